"""Between arrays of the host and tensors of a device."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gmil.engine.threads import SharedSetting

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray


_LEAST_PINNED, _MOST_PINNED = 1 << 20, 1 << 28
"""Bytes of arrays that go to a GPU through pinned memory: blocks, not whole data sets."""

with warnings.catch_warnings():
    # PyTorch warns once about arrays that may not be written to, as those of `Bags`: let that be here.
    warnings.simplefilter("ignore")
    torch.from_numpy(np.frombuffer(b"0", dtype=np.uint8))


def choose_device(backend: str) -> torch.device:
    """Return the device of "torch" (a GPU where there is one), "torch:cpu" or "torch:cuda"."""
    _, _, kind = backend.partition(":")
    if kind == "cuda" or (not kind and torch.cuda.is_available()):
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def to_device(values: Any, device: torch.device, dtype: Any = None) -> torch.Tensor:
    """Return an array, or a tensor, as a tensor of a device; it may be the same memory, which is never written to."""
    there = values if isinstance(values, torch.Tensor) else torch.from_numpy(np.ascontiguousarray(values))
    if device.type != "cuda" or there.is_cuda:
        return there.to(device=device, dtype=dtype)
    if _LEAST_PINNED <= there.nbytes <= _MOST_PINNED:
        there = there.pin_memory()  # a copy that the device fetches by itself, while the host and other streams go on
    return there.to(device=device, dtype=dtype, non_blocking=True)


def own_stream(device: torch.device) -> AbstractContextManager[Any]:
    """Let what this thread asks of a GPU run beside what other threads ask; all it uses must be made within."""
    return torch.cuda.stream(torch.cuda.Stream(device)) if device.type == "cuda" else nullcontext()


def to_host(tensor: torch.Tensor) -> NDArray[Any]:
    """Return a tensor as an array."""
    found: NDArray[Any] = tensor.cpu().numpy()
    return found


def numpy_dtype(tensor: torch.Tensor) -> np.dtype[Any]:
    """Return the type that a tensor has as an array."""
    return np.dtype(str(tensor.dtype).removeprefix("torch."))


def full_precision() -> SharedSetting:
    """Multiply single precision as such: TF32 keeps ten bits, which is not enough for what centres are made of."""
    return _FULL_PRECISION


def _raise_precision() -> Callable[[], None]:
    restore = _restores_precision()
    torch.set_float32_matmul_precision("highest")
    return restore


_FULL_PRECISION = SharedSetting(_raise_precision)


def _restores_precision() -> Callable[[], None]:
    """Return what brings the present setting back; set by its newer name, PyTorch refuses to read the older one."""
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:
        newer = torch.backends.cuda.matmul.fp32_precision
        return lambda: setattr(torch.backends.cuda.matmul, "fp32_precision", newer)
    return lambda: torch.set_float32_matmul_precision(before)
