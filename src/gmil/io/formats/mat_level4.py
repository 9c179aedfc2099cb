"""The variables of a Matlab file of level 4 (``-v4``), read by plain Python and NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gmil.errors import FormatError
from gmil.io.formats.mat_level5 import Other

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_TYPES = ("f8", "f4", "i4", "i2", "u2", "u1")
_FULL, _TEXT, _SPARSE = 0, 1, 2


class _Header(NamedTuple):
    kind: int
    n_rows: int
    n_columns: int
    is_complex: int
    name_size: int


def read_level4(raw: bytes, bound: Callable[[str, int], None]) -> dict[str, Any]:
    """Return all variables of a file by name; ``bound`` refuses what takes too many bytes."""
    variables: dict[str, Any] = {}
    at = 0
    while at < len(raw):
        header, dtype = _header(raw, at)
        at += 20
        n_values = header.n_rows * header.n_columns
        end = at + header.name_size + n_values * dtype.itemsize * (1 + header.is_complex)
        if end > len(raw):
            msg = f"a variable claims {end - at} bytes, but {len(raw) - at} are left"
            raise FormatError(msg)
        name = raw[at : at + header.name_size].rstrip(b"\0").decode("latin-1")
        values = np.frombuffer(raw, dtype, n_values, at + header.name_size).astype(dtype.newbyteorder("="))
        matrix = values.reshape((header.n_rows, header.n_columns), order="F")
        variables[name] = Other("complex numbers") if header.is_complex else _value(matrix, header.kind, bound)
        at = end
    return variables


def _header(raw: bytes, at: int) -> tuple[_Header, np.dtype[Any]]:
    order = "<"
    fields = np.frombuffer(raw[at : at + 20], "<i4").tolist() if len(raw) - at >= 20 else []
    if fields and not 0 <= fields[0] <= 5000:
        order = ">"
        fields = np.frombuffer(raw[at : at + 20], ">i4").tolist()
    kinds = [int(digit) for digit in f"{fields[0]:04d}"] if fields and 0 <= fields[0] < 2000 else []
    if not kinds or kinds[2] >= len(_TYPES) or kinds[3] > _SPARSE or min(fields) < 0 or fields[3] > 1:
        msg = "the header of a variable is damaged"
        raise FormatError(msg)
    return _Header(kinds[3], *fields[1:]), np.dtype(order + _TYPES[kinds[2]])


def _value(matrix: NDArray[Any], kind: int, bound: Callable[[str, int], None]) -> Any:
    if kind == _FULL:
        return matrix
    if kind == _TEXT:
        return np.array([bytes(row).decode("latin-1") for row in _whole(matrix, np.uint8)])
    if matrix.shape[1] != 3 or not len(matrix):
        msg = f"a sparse matrix must be stored in 3 columns, got {matrix.shape[1]}"
        raise FormatError(msg)
    *_, last = matrix
    shape = int(last[0]), int(last[1])
    bound("a sparse matrix", max(shape))
    places = _whole(matrix[:-1, :2], np.int64).T - 1
    if places.size and (places.min() < 0 or (places.max(axis=1) >= shape).any()):
        msg = f"a sparse matrix of shape {shape} has values outside of it"
        raise FormatError(msg)
    return sp.coo_array((matrix[:-1, 2], (places[0], places[1])), shape=shape).tocsc()


def _whole(numbers: NDArray[Any], dtype: type[np.integer[Any]]) -> NDArray[Any]:
    """Return numbers as integers; those that are none become any, without a warning."""
    with np.errstate(invalid="ignore"):
        return numbers.astype(dtype)
