"""Files of ``torch.save``: tensors and arrays alone, by the loader of PyTorch that runs no code of the file."""

from __future__ import annotations

import contextlib
import functools
import warnings
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.errors import BackendUnavailableError, FormatError, SlideWarning
from gmil.safety.guard import first_line, parsing, refuse_bomb
from gmil.slides.hdf5 import DamagedFileError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SUFFIXES = (".pt", ".pth")
_KEYS = ("feats", "features")
_OLDEST = (2, 6)  # CVE-2025-32434: before, a file could run code despite weights_only=True
_SAFE = (2, 10)  # CVE-2026-24747: before, a file could write beyond its memory


def read(path: Path) -> Any:
    """Return the matrix of a file as an array; that of a zip is mapped, not read."""
    torch = import_torch()
    with parsing(path, "a file of PyTorch"):
        refuse_bomb(path)
        found = _loaded(torch, path)
    if isinstance(found, dict):
        found = _only_matrix(path, found)
    array = _as_array(torch, path, found)
    if array.dtype.kind not in "biuf":
        msg = f"{path} is refused: it must hold numbers, got {array.dtype}. Save a tensor of numbers."
        raise FormatError(msg)
    return array


def import_torch() -> Any:
    """Return PyTorch, if it is one that runs no code of a file, or say how to get it."""
    try:
        import torch
    except ImportError as error:
        msg = ".pt files need PyTorch, which is not installed. Install it, or convert them to .h5 or .npy files."
        raise BackendUnavailableError(msg) from error
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < _OLDEST:
        msg = f".pt files need PyTorch 2.6, got {torch.__version__}: older ones may run code of a file. Upgrade it."
        raise BackendUnavailableError(msg)
    if version < _SAFE:
        msg = (
            f"A damaging .pt file can corrupt memory in PyTorch {torch.__version__}: read files that you trust alone, "
        )
        warnings.warn(SlideWarning(f"{msg}or upgrade it to 2.10."), stacklevel=2)
    return torch


def _loaded(torch: Any, path: Path) -> Any:
    """Load a file with ``weights_only=True``, always; there is no second way for files that this refuses."""
    import pickle

    how = {"map_location": "cpu", "weights_only": True}
    try:
        with torch.serialization.safe_globals(_parts_of_arrays()), _quiet():
            return torch.load(path, mmap=zipfile.is_zipfile(path), **how)
    except pickle.UnpicklingError as error:
        msg = (
            f"{path} is refused: it holds Python objects, which could run code when read. Save the tensor alone, with "
            "torch.save(torch.as_tensor(features), path), where the file was made."
        )
        raise FormatError(msg) from error
    except (RuntimeError, EOFError, OSError, ValueError) as error:
        msg = f"{path} cannot be read as a file of PyTorch: {first_line(error)}. Write or download it again."
        raise DamagedFileError(msg) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep PyTorch from warning that a mapped tensor cannot be written to."""
    with warnings.catch_warnings(action="ignore"):
        yield


@functools.cache
def _parts_of_arrays() -> tuple[Any, ...]:
    """Return what the pickle of a NumPy array of numbers consists of, by its names in NumPy 1 and in NumPy 2."""
    import _codecs

    rebuild: Any = np.empty(0).__reduce__()[0]
    name = rebuild.__name__
    numbers = {type(np.dtype(kind)) for kind in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")}
    both = [(rebuild, f"numpy.{core}.multiarray.{name}") for core in ("core", "_core")]
    return (*both, np.ndarray, np.dtype, *numbers, _codecs.encode)


def _only_matrix(path: Path, found: dict[Any, Any]) -> Any:
    known = [key for key in _KEYS if key in found]
    if len(known) != 1:
        msg = f"{path} must hold one tensor, alone or called {' or '.join(_KEYS)}; its entries are {sorted(found)!r}."
        raise FormatError(msg)
    return found[known[0]]


def _as_array(torch: Any, path: Path, found: Any) -> Any:
    if isinstance(found, np.ndarray):
        return found
    if not isinstance(found, torch.Tensor):
        msg = f"{path} must hold a tensor of patches x features, got {type(found).__name__}. Save the tensor alone."
        raise FormatError(msg)
    tensor = found.detach()
    if tensor.layout is not torch.strided or tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        msg = f"{path} is refused: its tensor of shape {tuple(tensor.shape)} claims more numbers than are stored."
        raise FormatError(msg)
    # NumPy has no bfloat16, which single precision holds exactly.
    return (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()
