"""Hausdorff distances between bags, block by block: never all distances between instances at once."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gmil.engine import closeness, column_sizes, sq_differences
from gmil.engine.reference import row_sq_norms
from gmil.engine.sparse_rows import rows_beside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers

DISTANCES = ("min", "max", "ranked")

_ENTRIES_AT_ONCE = 1 << 21
"""How many distances between instances are held at once: 16 MiB in double precision."""

_SYMMETRIC_BLOCKS = 16
"""Into how many blocks bags are cut against each other; a block against itself is the only work done twice."""


class Grouped(NamedTuple):
    """The instances of bags, in double precision, and where the bags begin."""

    instances: Instances
    offsets: Integers

    @property
    def n_bags(self) -> int:
        """The number of bags."""
        return len(self.offsets) - 1

    def part(self, start: int, stop: int) -> Grouped:
        """Return the bags from ``start`` up to ``stop``."""
        first, last = self.offsets[start], self.offsets[stop]
        return Grouped(self.instances[first:last], self.offsets[start : stop + 1] - first)


def grouped(instances: Instances, offsets: Integers) -> Grouped:
    """Return bags in double precision, so that rounding of the fast expansion never decides between neighbours."""
    return Grouped(instances.astype(np.float64, copy=False), offsets)


def rank_within(how: str, rank: float, size: int) -> int:
    """Return which of the ``size`` ordered distances of a bag counts, from 1 (the least) to ``size``.

    >>> rank_within("ranked", 3, 2), rank_within("ranked", 0.5, 5), rank_within("min", 9, 5)
    (2, 3, 1)
    """
    if how == "min":
        return 1
    if how == "max":
        return size
    wanted = rank if isinstance(rank, (int, np.integer)) else int(np.ceil(rank * size))
    return int(min(max(wanted, 1), size))


def distances_within(bags: Grouped, how: str, rank: float, backend: Backend) -> Floats:
    """Return the distances between all pairs of bags, (n_bags, n_bags), zero on the diagonal."""
    if how == "min":
        return _symmetric_minima(bags, backend)
    directed = _directed(bags, bags, how, rank, backend)
    both: Floats = np.maximum(directed, directed.T)
    np.fill_diagonal(both, 0)
    return both


def distances_between(queries: Grouped, bags: Grouped, how: str, rank: float, backend: Backend) -> Floats:
    """Return the distances between two sets of bags, (n_queries, n_bags)."""
    directed = _directed(queries, bags, how, rank, backend)
    if how == "min":  # it is the same in both directions
        return directed
    return np.maximum(directed, _directed(bags, queries, how, rank, backend).T)


def _symmetric_minima(bags: Grouped, backend: Backend) -> Floats:
    """Measure every pair of bags once: each block of bags against itself and the bags behind it."""
    found = np.zeros((bags.n_bags, bags.n_bags))
    for start, stop in _blocks(bags, 1 + bags.instances.shape[0] // _SYMMETRIC_BLOCKS):
        behind = _directed(bags.part(start, stop), bags.part(start, bags.n_bags), "min", 1, backend)
        found[start:stop, start:] = behind
        found[start:, start:stop] = behind.T
    np.fill_diagonal(found, 0)
    return np.minimum(found, found.T)  # inside a block both directions were measured, and round differently


def _directed(queries: Grouped, bags: Grouped, how: str, rank: float, backend: Backend) -> Floats:
    """Return, for every pair of bags, the ranked distance of instances of the first to the second bag."""
    found = np.empty((queries.n_bags, bags.n_bags))
    largest = float(row_sq_norms(bags.instances).max())
    for start, stop in _blocks(queries, _ENTRIES_AT_ONCE // bags.n_bags):
        block = queries.part(start, stop)
        nearest, where = _nearest_in_bags(block.instances, bags, backend)  # (n_bags, n_instances of the block)
        picked = np.empty((stop - start, bags.n_bags), dtype=np.int64)  # the instance whose distance counts
        for i, (first, last) in enumerate(itertools.pairwise(block.offsets.tolist())):
            picked[i] = first + _place_of_rank(nearest[:, first:last], rank_within(how, rank, last - first))
        columns = np.arange(bags.n_bags)
        squares = nearest[columns, picked]
        _measure_close_again(squares, block.instances, picked, bags.instances, where[columns, picked], largest)
        found[start:stop] = np.sqrt(squares)
    return found


def _place_of_rank(values: Floats, rank: int) -> Integers:
    """Return where in every row the value of that rank is."""
    if rank == 1:
        return values.argmin(axis=1)
    if rank == values.shape[1]:
        return values.argmax(axis=1)
    return np.argpartition(values, rank - 1, axis=1)[:, rank - 1]


def _nearest_in_bags(points: Instances, bags: Grouped, backend: Backend) -> tuple[Floats, Integers]:
    """Return the squared distance of every point to its nearest instance of every bag, and which that is."""
    n_points = points.shape[0]
    nearest = np.empty((bags.n_bags, n_points))
    where = np.empty((bags.n_bags, n_points), dtype=np.int64)
    for start, stop in _blocks(bags, _ENTRIES_AT_ONCE):
        part = bags.part(start, stop)
        columns = max(1, _ENTRIES_AT_ONCE // part.instances.shape[0])
        for left in range(0, n_points, columns):
            some = slice(left, min(left + columns, n_points))
            squares = backend.sq_distances(part.instances, rows_beside(part.instances, points, some))
            minima = backend.bag_two_min(squares, part.offsets)
            nearest[start:stop, some] = minima.smallest
            where[start:stop, some] = bags.offsets[start] + minima.where
    return nearest, where


def _blocks(bags: Grouped, most: int) -> Iterator[tuple[int, int]]:
    """Cut bags into runs of at most so many instances; a larger bag is a run of its own."""
    start = 0
    while start < bags.n_bags:
        end = int(np.searchsorted(bags.offsets, bags.offsets[start] + most, side="right")) - 1
        stop = max(start + 1, end)
        yield start, stop
        start = stop


def _measure_close_again(
    squares: Floats, points: Instances, rows: Integers, instances: Instances, others: Integers, largest: float
) -> None:
    """Replace rounding by the truth where the two instances that count are close, as `gmil.engine.distances` does.

    The expansion rounds by the largest squared norms around, not by those of the two: they may lie at the origin.
    """
    close = np.nonzero(squares <= closeness(squares.dtype) * (row_sq_norms(points).max() + largest))
    if len(close[0]):
        one, other = points[rows[close]], instances[others[close]]
        squares[close] = sq_differences(one, other, column_sizes(one))
