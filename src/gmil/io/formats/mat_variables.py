"""The variables of a Matlab file, of level 5 (``-v6``, ``-v7``) or 4 (``-v4``), read by plain Python and NumPy.

A file of level 5 is a sequence of elements, each with a tag: its type and its number of bytes. Nothing is believed: an
element that reaches beyond what holds it, or that holds another number of values than its dimensions say, is an error.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gmil.errors import FormatError
from gmil.safety.guard import expect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Bound = Callable[[str, int], None]
    """Refuses something that takes so many bytes, before they are taken."""

_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_UTF8, _UTF16, _UTF32 = 16, 17, 18
_CELL, _CHAR, _SPARSE, _OPAQUE = 1, 4, 5, 17
_FIRST_NUMBER, _LAST_NUMBER = 6, 15
_OTHERS = {2: "a struct", 3: "an object", 16: "a function", _OPAQUE: "an object"}
_COMPLEX = 0x08
_DEEPEST = 8  # cells within cells; bags have one level, names one more


@dataclass(frozen=True)
class Other:
    """A variable that is neither numbers, texts nor cells, and that is not read."""

    kind: str


class Element(NamedTuple):
    """What a tag says, and what follows it."""

    kind: int
    data: memoryview


def variables_in(raw: bytes, bound: Bound) -> dict[str, Any]:
    """Return all variables of a file by name; ``bound`` refuses what takes too many bytes."""
    # A file of level 4 begins with four small numbers, one of level 5 with a text.
    return _level4(raw, bound) if 0 in raw[:4] else _level5(raw, bound)


def _level5(raw: bytes, bound: Bound) -> dict[str, Any]:
    order = {b"IM": "<", b"MI": ">"}.get(raw[_HEADER - 2 : _HEADER])
    if order is None:
        msg = "its header does not state the order of bytes"
        raise FormatError(msg)
    variables: dict[str, Any] = {}
    for element in _elements(memoryview(raw)[_HEADER:], order):
        inner = _decompressed(element, order, bound) if element.kind == _COMPRESSED else element
        expect(inner.kind == _MATRIX, "a variable is no array")
        name, value = _array(inner.data, order, bound, 0)
        if name:  # Matlab keeps the workspace of functions without a name
            expect(name not in variables, f"the variable {name!r} is there twice")
            variables[name] = value
    return variables


def _elements(data: memoryview, order: str) -> Iterator[Element]:
    """Yield the elements that follow each other in some bytes."""
    at = 0
    while at < len(data):
        expect(len(data) - at >= 8, "a tag is cut off")
        first, size = np.frombuffer(data[at : at + 8], f"{order}u4").tolist()
        kind, small = first & 0xFFFF, first >> 16
        if small:  # up to four bytes, in the tag itself
            expect(small <= 4, "a small element has more than 4 bytes")
            yield Element(kind, data[at + 4 : at + 4 + small])
            at += 8
            continue
        expect(size <= len(data) - at - 8, f"an element claims {size} bytes, but {len(data) - at - 8} are left")
        yield Element(first, data[at + 8 : at + 8 + size])
        at += 8 + size
        if first != _COMPRESSED:
            at += -at % 8


def _decompressed(element: Element, order: str, bound: Bound) -> Element:
    """Return the one element inside a compressed one; its own tag says how much memory that takes."""
    stream = zlib.decompressobj()
    tag = stream.decompress(element.data, 8)
    expect(len(tag) == 8, "a compressed variable is cut off")
    kind, size = np.frombuffer(tag, f"{order}u4").tolist()
    bound("a compressed variable", size)
    inside = stream.decompress(stream.unconsumed_tail, size + 8)
    # The end of the stream brings its checksum, which zlib compares.
    expect(size <= len(inside) <= size + 7 and stream.eof, f"a compressed variable does not hold its {size} bytes")
    return Element(kind, memoryview(inside)[:size])


def _array(data: memoryview, order: str, bound: Bound, depth: int) -> tuple[str, Any]:
    """Return the name and the value of an array."""
    expect(depth <= _DEEPEST, "cells lie within cells too deep")
    if not len(data):
        return "", np.empty((0, 0))
    parts = _elements(data, order)
    flags = _numbers(_next(parts), order)
    expect(len(flags) == 2 and flags.dtype.kind == "u", "the flags of an array are damaged")
    kind, is_complex = int(flags[0]) & 0xFF, bool(int(flags[0]) >> 8 & _COMPLEX)
    if kind == _OPAQUE:  # which has no dimensions
        return _name(_next(parts)), Other(_OTHERS[kind])
    shape = _shape(_numbers(_next(parts), order))
    name = _name(_next(parts))
    if kind in _OTHERS:
        return name, Other(_OTHERS[kind])
    if is_complex:
        return name, Other("complex numbers")
    if kind == _CELL:
        return name, _cells(parts, shape, order, bound, depth)
    if kind == _CHAR:
        return name, _texts(_next(parts), shape, order)
    if kind == _SPARSE:
        return name, _sparse(parts, shape, order, bound)
    expect(_FIRST_NUMBER <= kind <= _LAST_NUMBER, f"the variable {name!r} is of the unknown class {kind}")
    return name, _filled(_numbers(_next(parts), order), shape)


def _next(parts: Iterator[Element]) -> Element:
    for element in parts:
        return element
    msg = "an array is cut off"
    raise FormatError(msg)


def _numbers(element: Element, order: str) -> NDArray[Any]:
    expect(element.kind in _NUMBERS, f"type {element.kind} is none of numbers")
    dtype = np.dtype(_NUMBERS[element.kind])
    expect(len(element.data) % dtype.itemsize == 0, f"{len(element.data)} bytes are no {dtype} numbers")
    return np.frombuffer(element.data, order + dtype.str[1:]).astype(dtype, copy=False)


def _shape(dims: NDArray[Any]) -> tuple[int, ...]:
    expect(dims.dtype.kind in "iu" and len(dims) >= 2 and bool((dims >= 0).all()), "the dimensions are damaged")
    return tuple(dims.tolist())


def _name(element: Element) -> str:
    return bytes(element.data).decode("latin-1").rstrip("\0")


def _filled(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    expect(len(values) == math.prod(shape), f"{len(values)} values are stored, but {shape} takes {math.prod(shape)}")
    return values.reshape(shape, order="F")


def _cells(parts: Iterator[Element], shape: tuple[int, ...], order: str, bound: Bound, depth: int) -> NDArray[Any]:
    found = []
    for element in parts:
        expect(element.kind == _MATRIX, "a cell is no array")
        found.append(_array(element.data, order, bound, depth + 1)[1])
    cells = np.empty(len(found), dtype=object)
    for i, value in enumerate(found):  # at once, NumPy would look inside arrays of one shape
        cells[i] = value
    return _filled(cells, shape)


def _texts(element: Element, shape: tuple[int, ...], order: str) -> NDArray[Any]:
    """Return a matrix of characters as one text a row."""
    text = _characters(element, order)
    n_characters, n_rows = math.prod(shape), math.prod(shape[:-1])
    if n_characters == 0:
        return np.empty(0, dtype="<U1")
    if n_rows == 1:  # a letter may take two of the units that are counted
        return np.array([text])
    expect(len(text) == n_characters, f"{len(text)} characters are stored, but {shape} takes {n_characters}")
    rows = np.array(list(text)).reshape(shape, order="F").reshape(n_rows, -1)
    return np.array(["".join(row) for row in rows.tolist()]).reshape(shape[:-1])


def _characters(element: Element, order: str) -> str:
    end = "le" if order == "<" else "be"
    codecs = {1: "latin-1", 2: "latin-1", 4: f"utf-16-{end}", _UTF8: "utf-8"}
    codecs |= {_UTF16: f"utf-16-{end}", _UTF32: f"utf-32-{end}"}
    expect(element.kind in codecs, f"type {element.kind} is none of texts")
    return bytes(element.data).decode(codecs[element.kind])


def _sparse(parts: Iterator[Element], shape: tuple[int, ...], order: str, bound: Bound) -> Any:
    rows, starts, values = (_numbers(_next(parts), order) for _ in range(3))
    expect(len(shape) == 2 and rows.dtype.kind in "iu" and starts.dtype.kind in "iu", "a sparse matrix is damaged")
    expect(len(starts) == shape[1] + 1, f"a sparse matrix of {shape[1]} columns has {len(starts)} starts of columns")
    bound("a sparse matrix", shape[0])  # a row takes memory, whether it holds something or not
    n_stored = int(starts[-1])
    expect(0 <= n_stored <= min(len(rows), len(values)), "a sparse matrix stores fewer values than it states")
    matrix = sp.csc_array((values[:n_stored], rows[:n_stored], starts), shape=shape)
    matrix.check_format(full_check=True)  # an index out of range would be read from foreign memory
    return matrix


# -------------------------------------------------------------------------------- level 4

_TYPES4 = ("f8", "f4", "i4", "i2", "u2", "u1")
_FULL4, _TEXT4, _SPARSE4 = 0, 1, 2


class _Header4(NamedTuple):
    kind: int
    n_rows: int
    n_columns: int
    is_complex: int
    name_size: int


def _level4(raw: bytes, bound: Bound) -> dict[str, Any]:
    variables: dict[str, Any] = {}
    at = 0
    while at < len(raw):
        header, dtype = _header4(raw, at)
        at += 20
        n_values = header.n_rows * header.n_columns
        end = at + header.name_size + n_values * dtype.itemsize * (1 + header.is_complex)
        expect(end <= len(raw), f"a variable claims {end - at} bytes, but {len(raw) - at} are left")
        name = raw[at : at + header.name_size].rstrip(b"\0").decode("latin-1")
        values = np.frombuffer(raw, dtype, n_values, at + header.name_size).astype(dtype.newbyteorder("="))
        matrix = values.reshape((header.n_rows, header.n_columns), order="F")
        variables[name] = Other("complex numbers") if header.is_complex else _value4(matrix, header.kind, bound)
        at = end
    return variables


def _header4(raw: bytes, at: int) -> tuple[_Header4, np.dtype[Any]]:
    order = "<"
    fields = np.frombuffer(raw[at : at + 20], "<i4").tolist() if len(raw) - at >= 20 else []
    if fields and not 0 <= fields[0] <= 5000:
        order = ">"
        fields = np.frombuffer(raw[at : at + 20], ">i4").tolist()
    kinds = [int(digit) for digit in f"{fields[0]:04d}"] if fields and 0 <= fields[0] < 2000 else []
    known = kinds and kinds[2] < len(_TYPES4) and kinds[3] <= _SPARSE4
    expect(known and min(fields) >= 0 and fields[3] <= 1, "the header of a variable is damaged")
    return _Header4(kinds[3], *fields[1:]), np.dtype(order + _TYPES4[kinds[2]])


def _value4(matrix: NDArray[Any], kind: int, bound: Bound) -> Any:
    if kind == _FULL4:
        return matrix
    if kind == _TEXT4:
        return np.array([bytes(row).decode("latin-1") for row in _whole(matrix, np.uint8)])
    fits = matrix.shape[1] == 3 and len(matrix)
    expect(fits, f"a sparse matrix must be stored in 3 columns, got {matrix.shape[1]}")
    *_, last = matrix
    shape = int(last[0]), int(last[1])
    bound("a sparse matrix", max(shape))
    places = _whole(matrix[:-1, :2], np.int64).T - 1
    fits = not places.size or (places.min() >= 0 and (places.max(axis=1) < shape).all())
    expect(fits, f"a sparse matrix of shape {shape} has values outside of it")
    return sp.coo_array((matrix[:-1, 2], (places[0], places[1])), shape=shape).tocsc()


def _whole(numbers: NDArray[Any], dtype: type[np.integer[Any]]) -> NDArray[Any]:
    """Return numbers as integers; those that are none become any, without a warning."""
    with np.errstate(invalid="ignore"):
        return numbers.astype(dtype)
