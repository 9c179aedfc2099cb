"""The variables of a Matlab file of level 5 (``-v6``, ``-v7``), read by plain Python and NumPy.

A file is a sequence of elements, each with a tag: its type and its number of bytes. Nothing is believed: an element
that reaches beyond what holds it, or that holds another number of values than its dimensions say, is an error.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gmil.errors import FormatError

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


def read_level5(raw: bytes, bound: Bound) -> dict[str, Any]:
    """Return all variables of a file by name."""
    order = {b"IM": "<", b"MI": ">"}.get(raw[_HEADER - 2 : _HEADER])
    if order is None:
        msg = "its header does not say in which order bytes come"
        raise FormatError(msg)
    variables: dict[str, Any] = {}
    for element in _elements(memoryview(raw)[_HEADER:], order):
        inner = _decompressed(element, order, bound) if element.kind == _COMPRESSED else element
        _expect(inner.kind == _MATRIX, "a variable is no array")
        name, value = _array(inner.data, order, bound, 0)
        if name:  # Matlab keeps the workspace of functions without a name
            _expect(name not in variables, f"the variable {name!r} is there twice")
            variables[name] = value
    return variables


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise FormatError(otherwise)


def _elements(data: memoryview, order: str) -> Iterator[Element]:
    """Yield the elements that follow each other in some bytes."""
    at = 0
    while at < len(data):
        _expect(len(data) - at >= 8, "a tag is cut off")
        first, size = np.frombuffer(data[at : at + 8], f"{order}u4").tolist()
        kind, small = first & 0xFFFF, first >> 16
        if small:  # up to four bytes, in the tag itself
            _expect(small <= 4, "a small element has more than 4 bytes")
            yield Element(kind, data[at + 4 : at + 4 + small])
            at += 8
            continue
        _expect(size <= len(data) - at - 8, f"an element claims {size} bytes, but {len(data) - at - 8} are left")
        yield Element(first, data[at + 8 : at + 8 + size])
        at += 8 + size
        if first != _COMPRESSED:
            at += -at % 8


def _decompressed(element: Element, order: str, bound: Bound) -> Element:
    """Return the one element inside a compressed one; its own tag says how much memory that takes."""
    stream = zlib.decompressobj()
    tag = stream.decompress(element.data, 8)
    _expect(len(tag) == 8, "a compressed variable is cut off")
    kind, size = np.frombuffer(tag, f"{order}u4").tolist()
    bound("a compressed variable", size)
    inside = stream.decompress(stream.unconsumed_tail, size + 8)
    # The end of the stream brings its checksum, which zlib compares.
    _expect(size <= len(inside) <= size + 7 and stream.eof, f"a compressed variable does not hold its {size} bytes")
    return Element(kind, memoryview(inside)[:size])


def _array(data: memoryview, order: str, bound: Bound, depth: int) -> tuple[str, Any]:
    """Return the name and the value of an array."""
    _expect(depth <= _DEEPEST, "cells lie within cells too deep")
    if not len(data):
        return "", np.empty((0, 0))
    parts = _elements(data, order)
    flags = _numbers(_next(parts), order)
    _expect(len(flags) == 2 and flags.dtype.kind == "u", "the flags of an array are damaged")
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
    _expect(_FIRST_NUMBER <= kind <= _LAST_NUMBER, f"the variable {name!r} is of the unknown class {kind}")
    return name, _filled(_numbers(_next(parts), order), shape)


def _next(parts: Iterator[Element]) -> Element:
    element = next(parts, None)
    if element is None:
        msg = "an array is cut off"
        raise FormatError(msg)
    return element


def _numbers(element: Element, order: str) -> NDArray[Any]:
    _expect(element.kind in _NUMBERS, f"type {element.kind} is none of numbers")
    dtype = np.dtype(_NUMBERS[element.kind])
    _expect(len(element.data) % dtype.itemsize == 0, f"{len(element.data)} bytes are no {dtype} numbers")
    return np.frombuffer(element.data, order + dtype.str[1:]).astype(dtype, copy=False)


def _shape(dims: NDArray[Any]) -> tuple[int, ...]:
    _expect(dims.dtype.kind in "iu" and len(dims) >= 2 and bool((dims >= 0).all()), "the dimensions are damaged")
    return tuple(dims.tolist())


def _name(element: Element) -> str:
    return bytes(element.data).decode("latin-1").rstrip("\0")


def _filled(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    _expect(len(values) == math.prod(shape), f"{len(values)} values are stored, but {shape} takes {math.prod(shape)}")
    return values.reshape(shape, order="F")


def _cells(parts: Iterator[Element], shape: tuple[int, ...], order: str, bound: Bound, depth: int) -> NDArray[Any]:
    found = []
    for element in parts:
        _expect(element.kind == _MATRIX, "a cell is no array")
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
    _expect(len(text) == n_characters, f"{len(text)} characters are stored, but {shape} takes {n_characters}")
    rows = np.array(list(text)).reshape(shape, order="F").reshape(n_rows, -1)
    return np.array(["".join(row) for row in rows.tolist()]).reshape(shape[:-1])


def _characters(element: Element, order: str) -> str:
    end = "le" if order == "<" else "be"
    codecs = {1: "latin-1", 2: "latin-1", 4: f"utf-16-{end}", _UTF8: "utf-8"}
    codecs |= {_UTF16: f"utf-16-{end}", _UTF32: f"utf-32-{end}"}
    _expect(element.kind in codecs, f"type {element.kind} is none of texts")
    return bytes(element.data).decode(codecs[element.kind])


def _sparse(parts: Iterator[Element], shape: tuple[int, ...], order: str, bound: Bound) -> Any:
    rows, starts, values = (_numbers(_next(parts), order) for _ in range(3))
    _expect(len(shape) == 2 and rows.dtype.kind in "iu" and starts.dtype.kind in "iu", "a sparse matrix is damaged")
    _expect(len(starts) == shape[1] + 1, f"a sparse matrix of {shape[1]} columns has {len(starts)} starts of columns")
    bound("a sparse matrix", shape[0])  # a row takes memory, whether it holds something or not
    n_stored = int(starts[-1])
    _expect(0 <= n_stored <= min(len(rows), len(values)), "a sparse matrix stores fewer values than it says")
    matrix = sp.csc_array((values[:n_stored], rows[:n_stored], starts), shape=shape)
    matrix.check_format(full_check=True)  # an index out of range would be read from foreign memory
    return matrix
