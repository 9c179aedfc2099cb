"""Where an array of a slide lies, its header, and how it is read: HDF5, PyTorch and NumPy files alike."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags.bag_files import read_arrays
from gmil.errors import FormatError, MissingFileError
from gmil.safety.guard import parsing
from gmil.scale.passes import rows_of_pieces
from gmil.slides import hdf5, torch_files
from gmil.slides.hdf5 import DamagedFileError, Header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gmil.engine.arrays import Integers

_BYTES_AT_ONCE = 1 << 26
"""What is read of a file at once: an array in tiny chunks is slow by small pieces."""

_SINGLE_ROWS = 16
"""A row that is read alone takes as long as about so many that are read together."""


@dataclass(frozen=True)
class Place:
    """Where an array lies: a file, and its name in the file where that holds several."""

    file: str
    key: str = ""

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.file)

    def __str__(self) -> str:
        return f"{self.file} ({self.key})" if self.key else self.file


def header_of(place: Place) -> Header:
    """Return the header of an array; numbers are not read."""
    if place.path.suffix not in hdf5.SUFFIXES:
        array = _whole(place)
        return Header(tuple(array.shape), array.dtype)
    known = hdf5.contents_of(place.path).headers.get(place.key)
    if known is not None:
        return known
    with hdf5.opened(place.path) as file:
        array = hdf5.array_of(place.path, file, place.key)
        return Header(tuple(array.shape), array.dtype)


def read(place: Place) -> NDArray[Any]:
    """Return a whole array, in its stored type."""
    if place.path.suffix in hdf5.SUFFIXES:
        with hdf5.opened(place.path) as file:
            found: NDArray[Any] = hdf5.array_of(place.path, file, place.key)[()]
            return found
    return np.array(_whole(place))


def read_rows(place: Place, rows: int) -> Iterator[NDArray[Any]]:
    """Yield a matrix in pieces of at most so many rows, in its stored type; its file is read in large pieces."""
    if place.path.suffix not in hdf5.SUFFIXES:
        yield from _pieces(_as_matrix(place, _whole(place)), rows)
        return
    with hdf5.opened(place.path) as file:
        array = hdf5.array_of(place.path, file, place.key)
        shape = matrix_shape(place, tuple(array.shape))
        bytes_of_a_row = max(1, shape[1] * array.dtype.itemsize)
        step = rows * max(1, _BYTES_AT_ONCE // (rows * bytes_of_a_row))
        for start in range(0, shape[0], step):
            found = array[0, start : start + step] if array.ndim == 3 else array[start : start + step]
            yield from _pieces(found, rows)


def take_rows(place: Place, wanted: Integers, rows: int) -> NDArray[Any]:
    """Return some rows of a matrix, given in ascending order, in its stored type; a few are read alone."""
    if place.path.suffix in hdf5.SUFFIXES:
        with hdf5.opened(place.path) as file:
            array = hdf5.array_of(place.path, file, place.key)
            if array.ndim == 2 and len(wanted) * _SINGLE_ROWS < len(array) and wanted[-1] < len(array):
                few: NDArray[Any] = array[wanted]
                return few
    return rows_of_pieces(read_rows(place, rows), wanted, place)


def _pieces(matrix: NDArray[Any], rows: int) -> Iterator[NDArray[Any]]:
    return (matrix[start : start + rows] for start in range(0, len(matrix), rows))


def _as_matrix(place: Place, array: NDArray[Any]) -> NDArray[Any]:
    return array.reshape(matrix_shape(place, array.shape))


def matrix_shape(place: Place, shape: tuple[int, ...]) -> tuple[int, int]:
    """Return (n_patches, n_features) of an array of features; (0, 0) for one that is empty."""
    if math.prod(shape) == 0:
        return 0, 0
    if len(shape) == 3 and shape[0] == 1:
        return shape[1], shape[2]
    if len(shape) == 2:
        return shape[0], shape[1]
    if len(shape) == 1:
        msg = (
            f"{place} holds one vector of {shape[0]} numbers, an embedding of the whole slide. Name the folder of "
            "patch embeddings, (n_patches, n_features) in every file."
        )
        raise FormatError(msg)
    msg = f"{place} must hold patches x features, got shape {shape}. Write one matrix a slide."
    raise FormatError(msg)


def _whole(place: Place) -> Any:
    path = place.path
    if not path.exists():
        msg = f"{path} does not exist any more; a slide is missing. Restore it or scan again."
        raise MissingFileError(msg)
    if path.suffix in torch_files.SUFFIXES:
        return torch_files.read(path)
    if path.suffix == ".npz":
        return _of_archive(place)
    with parsing(path, "NPY"):
        try:
            return _numbers(place, np.load(path, mmap_mode="r", allow_pickle=False))
        except (EOFError, OSError, ValueError) as error:
            if isinstance(error, ValueError) and "mmap length" not in str(error):
                raise
            msg = f"{path} cannot be read as NPY: it is cut short. Write or download it again."
            raise DamagedFileError(msg) from error


@functools.lru_cache(maxsize=8)
def _archive(path: str, _changed: int) -> dict[str, NDArray[Any]]:
    return read_arrays(Path(path))


def _of_archive(place: Place) -> Any:
    arrays = _archive(place.file, place.path.stat().st_mtime_ns)
    if place.key not in arrays:
        msg = f"{place.file} has no array {place.key!r}; its arrays are {', '.join(sorted(arrays))}."
        raise FormatError(msg)
    return _numbers(place, arrays[place.key])


def _numbers(place: Place, array: Any) -> Any:
    if array.dtype.kind not in "biuf":
        msg = f"{place} is refused: it must hold numbers, got {array.dtype}. Save numbers."
        raise FormatError(msg)
    return array
