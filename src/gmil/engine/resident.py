"""Where numbers lie: in an array of the host, or in a tensor of PyTorch on the device of a backend.

Kernels of a backend in PyTorch return tensors for tensors. What is written with these few functions runs on both, and
nothing moves before `as_array` takes a table to the host.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from gmil.engine.backends import Backend


def is_tensor(X: Any) -> bool:
    """Tell whether this is a tensor of PyTorch, which is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def namespace(X: Any) -> Any:
    """Return the package whose functions take X: NumPy, or PyTorch, which has ``exp``, ``sqrt`` and ``hstack`` too."""
    return sys.modules["torch"] if is_tensor(X) else np


def device_of(backend: Backend) -> Any | None:
    """Return the device of a backend that runs in PyTorch; None for others, which work where arrays are."""
    return getattr(backend, "device", None)


def resident(X: Any, backend: Backend) -> Any:
    """Return dense numbers where a backend works on them: as a tensor on its device, where it has one."""
    if device_of(backend) is None or sp.issparse(X):
        return X
    from gmil.engine.torch.tensors import to_device

    return to_device(X, device_of(backend))


def in_own_stream(X: Any, backend: Backend) -> AbstractContextManager[Any]:
    """Let the work of this thread on an array of the host run beside that of other threads, where a GPU does it."""
    device = device_of(backend)
    if device is None or is_tensor(X):
        return nullcontext()
    from gmil.engine.torch.tensors import own_stream

    return own_stream(device)


def blocks_for(backend: Backend) -> tuple[int, int]:
    """Return how many blocks to work on at a time, and how many times as large as on a processor they should be.

    On a GPU some are read and copied while others are worked on.
    """
    device = device_of(backend)
    return (4, 8) if device is not None and device.type == "cuda" else (backend.n_threads, 1)


def beside(values: Any, X: Any, *, wide: bool = False) -> Any:
    """Return numbers where X lies, as a tensor of its precision where X is a tensor; ``wide``: in double precision."""
    if not is_tensor(X):
        return values
    from gmil.engine.torch.tensors import to_device

    return to_device(values, X.device, namespace(X).float64 if wide else X.dtype)


def take_rows(X: Any, rows: Any) -> Any:
    """Return some rows of a matrix, given by number; rows that follow each other in a tensor are not copied."""
    if not is_tensor(X):
        return X[rows]
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
        return X[int(rows[0]) : int(rows[-1]) + 1]
    from gmil.engine.torch.tensors import to_device

    return X[to_device(rows, X.device)]


def in_double(X: Any) -> Any:
    """Return numbers in double precision."""
    return X.double() if is_tensor(X) else X.astype(np.float64)


def as_array(X: Any) -> Any:
    """Return numbers as an array of the host."""
    if not is_tensor(X):
        return X
    from gmil.engine.torch.tensors import to_host

    return to_host(cast("Any", X))
