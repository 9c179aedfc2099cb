"""A pass over bags on disk: parts are read in pieces, each piece is worked on as bags, the rows of a bag are joined.

Everything here is a plain function of plain arguments, so that a part can be worked on by a thread, or by a process on
another machine.
"""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from gmil.bags.bags import Bags, bags_drawn
from gmil.bags.finite import refuse_non_finite
from gmil.bags.tables import float_type
from gmil.errors import BagValidationError, FormatError, count_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.engine.arrays import Booleans, Floats, Integers

BagFunction: TypeAlias = Callable[[Bags], Sequence[Any]]
"""Takes bags, returns tables with one row for each of them."""
Join: TypeAlias = Callable[[Any, Any], Any]
"""Makes one row of the rows of two pieces of a bag: ``np.add``, ``np.minimum`` ..."""
Runner: TypeAlias = Callable[[Callable[..., Any], list[tuple[Any, ...]]], Iterator[Any]]
"""Calls a function with every tuple of arguments and yields the results in their order."""

_BYTES_OF_A_PART = 1 << 26


class Source(Protocol):
    """Rows on disk, in parts that can be read on their own."""

    @property
    def n_features(self) -> int: ...  # noqa: D102

    @property
    def dtype(self) -> np.dtype[Any]: ...  # noqa: D102

    @property
    def edges(self) -> Integers:
        """The row at which every part begins, and the number of all rows, (n_parts + 1,)."""

    def read(self, part: int, rows: int) -> Iterator[Floats]:
        """Yield the rows of a part in order, in pieces of at most so many rows."""

    def place(self, part: int) -> str:
        """Return how an error speaks of a part: the name of its file."""


def part_edges(n_rows: int, bytes_of_a_row: int) -> Integers:
    """Cut a matrix into parts of equal size; return `Source.edges`."""
    rows = max(1, _BYTES_OF_A_PART // max(1, bytes_of_a_row))
    return np.append(np.arange(0, n_rows, rows), n_rows)


@dataclass(frozen=True)
class MatrixSource(ABC):
    """All rows in one matrix, cut into parts of equal size."""

    X: Any
    edges: Integers

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self.X.shape[1])

    def read(self, part: int, rows: int) -> Iterator[Floats]:
        """See `Source.read`."""
        stop = int(self.edges[part + 1])
        for start in range(int(self.edges[part]), stop, rows):
            yield self.as_array(self.X[start : min(start + rows, stop)])

    @abstractmethod
    def as_array(self, rows: Any) -> Floats:
        """Return some rows of the matrix as an array of the host."""


class ArraySource(MatrixSource):
    """A matrix that is mapped into memory."""

    @classmethod
    def of(cls, X: Any) -> ArraySource:
        """Cut a matrix into parts."""
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            msg = f"X must be a matrix of real numbers, got {X.dtype} of shape {X.shape}. Convert it to float first."
            raise BagValidationError(msg)
        return cls(X, part_edges(X.shape[0], X.shape[1] * X.dtype.itemsize))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type that pieces have."""
        return float_type(self.X.dtype)

    def as_array(self, rows: Any) -> Floats:
        """See `MatrixSource.as_array`."""
        return np.ascontiguousarray(rows, dtype=self.dtype)

    def place(self, part: int) -> str:
        """See `Source.place`."""
        return str(getattr(self.X, "filename", None) or f"part {part} of the array")

    def __reduce__(self) -> tuple[Any, ...]:
        name = getattr(self.X, "filename", None)
        # A copy-on-write map may hold values that its file does not.
        is_in_file = isinstance(self.X, np.memmap) and name is not None and self.X.mode != "c"
        if not is_in_file or not self.X.flags.c_contiguous:
            return ArraySource, (np.asarray(self.X), self.edges)
        # Another process maps the file itself, and no row travels.
        return _mapped, (str(name), self.X.dtype.str, _place_in_file(self.X), self.X.shape, self.edges)


def _place_in_file(X: Any) -> int:
    """Return where in its file a mapped matrix begins; ``X.offset`` is that of the whole, of which X may be some rows.

    A map begins at a multiple of the granularity, at or before the offset.
    """
    begin = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
    behind = X.ctypes.data - np.frombuffer(X._mmap, dtype=np.uint8).ctypes.data
    return int(begin + behind)


def _mapped(name: str, dtype: str, offset: int, shape: tuple[int, ...], edges: Integers) -> ArraySource:
    return ArraySource(np.memmap(name, dtype, "r", offset, shape), edges)


class Part(NamedTuple):
    """A part of a source, and the bags that it holds rows of."""

    number: int
    first_bag: int
    cuts: Integers  # (n_bags + 1,): the rows of the part at which its bags begin, and its number of rows
    wanted: Booleans  # (n_bags,)

    @property
    def n_bags(self) -> int:
        """The number of bags that the part holds rows of."""
        return len(self.wanted)

    @classmethod
    def of(cls, number: int, edges: Integers, offsets: Integers, is_wanted: Booleans) -> Part:
        """Describe a part of a source by the edges of its parts and the offsets of its bags."""
        start, stop = int(edges[number]), int(edges[number + 1])
        first, last = bags_between(offsets, start, stop)
        cuts = np.clip(offsets[first : last + 1], start, stop) - start
        return cls(number, first, cuts, is_wanted[first:last])


def bags_between(offsets: Integers, start: int, stop: int) -> tuple[int, int]:
    """Return the first bag with a row in start..stop and the one behind the last."""
    return int(np.searchsorted(offsets, start, side="right")) - 1, int(np.searchsorted(offsets, stop, side="left"))


def wanted_pieces(
    source: Source, part: Part, rows: int, ids: NDArray[Any] | None = None, names: tuple[str, ...] | None = None
) -> Iterator[tuple[Integers, Bags]]:
    """Yield what a part holds of wanted bags, piece by piece: the numbers of the bags in the source, and their rows."""
    start = stop = 0
    for X in source.read(part.number, rows):
        stop = start + len(X)
        if stop > part.cuts[-1]:
            break
        first, last = bags_between(part.cuts, start, stop)
        edges: Integers = np.clip(part.cuts[first : last + 1], start, stop)
        sizes = edges[1:] - edges[:-1]
        keep = part.wanted[first:last]
        start = stop
        if not keep.any():
            continue
        inside = X if keep.all() else X[np.repeat(keep, sizes)]
        numbers = part.first_bag + first + np.flatnonzero(keep)
        offsets = np.concatenate([[0], np.cumsum(sizes[keep])])
        piece = bags_drawn(inside, offsets, None if ids is None else ids[first:last][keep], names)
        refuse_non_finite(piece, numbers)
        yield numbers, piece
    if stop != part.cuts[-1]:
        found = f"at least {stop}" if stop > part.cuts[-1] else stop
        place = source.place(part.number)
        msg = f"{place} has {found} instances where {part.cuts[-1]} were found before. Scan it again."
        raise FormatError(msg)


def reduce_part(
    source: Source,
    part: Part,
    function: BagFunction,
    joins: tuple[Join, ...],
    rows: int,
    ids: NDArray[Any] | None = None,
) -> tuple[Integers, list[NDArray[Any]]]:
    """Return the numbers of the wanted bags of a part, and their rows of every table."""
    joined = Joined(joins)
    for numbers, piece in wanted_pieces(source, part, rows, ids):
        joined.add(numbers, function(piece))
    return joined.numbers(), joined.tables()


def take_from_part(source: Source, part: int, wanted: Integers, rows: int) -> Floats:
    """Return some rows of a part, given in ascending order."""
    if isinstance(source, MatrixSource):
        return source.as_array(source.X[source.edges[part] + wanted])
    take = getattr(source, "take", None)
    if take is not None:  # which is quicker where rows are stored in another type
        return np.asarray(take(part, wanted, rows))
    return rows_of_pieces(source.read(part, rows), wanted, source.place(part))


def rows_of_pieces(pieces: Iterable[NDArray[Any]], wanted: Integers, place: object) -> NDArray[Any]:
    """Return some rows, given in ascending order, of a matrix that comes in pieces from a place."""
    found, start = [], 0
    for X in pieces:
        first, last = np.searchsorted(wanted, [start, start + len(X)])
        found.append(X[wanted[first:last] - start])
        start += len(X)
    if start <= wanted[-1]:
        msg = f"{place} has {count_of(start, 'instance')}, fewer than were found before. Scan it again."
        raise FormatError(msg)
    return np.concatenate(found)


class Joined:
    """Rows of bags that come in order; those of the pieces of one bag become one row."""

    def __init__(self, joins: tuple[Join, ...]) -> None:
        self._joins = joins
        self._numbers: list[Integers] = []
        self._tables: list[list[NDArray[Any]]] = [[] for _ in joins]

    def add(self, numbers: Integers, tables: Sequence[NDArray[Any]]) -> None:
        """Take the rows of further bags, of which the first may be the last one that came before."""
        is_continued = bool(self._numbers) and self._numbers[-1][-1] == numbers[0]
        if is_continued:
            for kept, table, join in zip(self._tables, tables, self._joins, strict=True):
                kept[-1][-1] = join(kept[-1][-1], table[0])
        skip = int(is_continued)
        if len(numbers) > skip:
            self._numbers.append(numbers[skip:])
            for kept, table in zip(self._tables, tables, strict=True):
                kept.append(np.array(table[skip:]))

    def numbers(self) -> Integers:
        """Return the numbers of all bags that came."""
        return np.concatenate(self._numbers)

    def tables(self) -> list[NDArray[Any]]:
        """Return all rows, one table for every join."""
        return [np.concatenate(kept) for kept in self._tables]


def in_threads(function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], n_threads: int) -> Iterator[Any]:
    """Call a function in threads; yield results in order, and work ahead of who takes them by one task a thread."""
    if n_threads == 1:
        yield from (function(*task) for task in tasks)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        waiting: deque[Any] = deque()
        try:
            for task in tasks:
                waiting.append(pool.submit(function, *task))
                if len(waiting) > n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def read_whole_bags(
    source: Source, parts: list[Part], rows: int, ids: NDArray[Any] | None, names: tuple[str, ...] | None
) -> Iterator[Bags]:
    """Yield runs of whole bags, in order; the next piece is read while the last block is worked on."""
    held: list[tuple[Integers, Bags]] = []
    n_held = 0
    for numbers, piece in _ahead(_all_pieces(source, parts, rows)):
        if n_held and n_held + piece.n_instances > rows and held[-1][0][-1] != numbers[0]:
            yield _one_block(held, ids, names)
            held, n_held = [], 0
        held.append((numbers, piece))
        n_held += piece.n_instances
        if n_held >= rows and len(numbers) > 1:
            # All but the last bag, which may go on in the next piece.
            held[-1] = numbers[:-1], piece[:-1]
            yield _one_block(held, ids, names)
            held, n_held = [(numbers[-1:], piece[-1:])], int(piece.sizes[-1])
    if held:
        yield _one_block(held, ids, names)


def call_on_whole_bags(
    source: Source,
    parts: list[Part],
    rows: int,
    ids: NDArray[Any] | None,
    names: tuple[str, ...] | None,
    function: Callable[[Bags], NDArray[Any]],
) -> NDArray[Any]:
    """Return what a function returns for all wanted bags of some parts, one after the other."""
    return np.concatenate([function(block) for block in read_whole_bags(source, parts, rows, ids, names)])


def _all_pieces(source: Source, parts: list[Part], rows: int) -> Iterator[tuple[Integers, Bags]]:
    for part in parts:
        yield from wanted_pieces(source, part, rows)


def _one_block(held: list[tuple[Integers, Bags]], ids: NDArray[Any] | None, names: tuple[str, ...] | None) -> Bags:
    numbers = np.concatenate([found for found, _ in held])
    sizes = np.concatenate([piece.sizes for _, piece in held])
    bags, where = np.unique(numbers, return_inverse=True)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(where, weights=sizes).astype(np.int64))])
    rows = np.concatenate([piece.instances for _, piece in held])
    return bags_drawn(rows, offsets, None if ids is None else ids[bags], names)


def _ahead(items: Iterator[Any]) -> Iterator[Any]:
    """Yield items of which the next is made in another thread while the last is in use."""
    end = object()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, items, end)
        while (item := waiting.result()) is not end:
            waiting = pool.submit(next, items, end)
            yield item
