"""One pass over rows that lie on the device: what bags are, seen from many codebooks at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from gmil.engine.distances import closeness, rounding_of
from gmil.engine.torch.kernels import expand, rows_at_once, segment_ids, segment_min, sq_norms
from gmil.engine.torch.tensors import numpy_dtype, to_device, to_host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from gmil.engine.arrays import Booleans, Floats, Integers

    ToSpace = Callable[[torch.Tensor], torch.Tensor]
    """Takes rows into the space of some centres."""

_ROWS_OF_A_PIECE = 64
"""Minima are taken over so many rows first, then over bags: one long bag would be the work of few threads."""


class Stack(NamedTuple):
    """Codebooks in one space."""

    apply: ToSpace
    centers: list[Floats]

    @property
    def n_centers(self) -> int:
        """The number of centres of all of them."""
        return sum(map(len, self.centers))


@dataclass(frozen=True)
class _Cuts:
    """Where bags begin, and pieces of bags: on the host, to choose rows, and on the device."""

    offsets: Integers  # (n_bags + 1,)
    edges: Integers  # (n_pieces + 1,): rows at which pieces begin
    bag_of: torch.Tensor  # (n_rows,)
    edges_there: torch.Tensor
    pieces_of_bags: torch.Tensor  # (n_bags + 1,): the piece at which every bag begins

    @classmethod
    def of(cls, offsets: Integers, device: torch.device) -> _Cuts:
        n_rows = int(offsets[-1])
        edges = np.union1d(np.arange(0, n_rows, _ROWS_OF_A_PIECE), offsets)
        there = to_device(edges, device)
        starts = to_device(offsets, device)
        return cls(offsets, edges, segment_ids(starts, n_rows), there, torch.searchsorted(there, starts))

    def minima(self, squares: torch.Tensor, start: int, stop: int) -> tuple[slice, torch.Tensor]:
        """Return which bags have rows between two edges, and the minima of these rows."""
        first_piece, last_piece = (int(i) for i in np.searchsorted(self.edges, (start, stop)))
        first = int(np.searchsorted(self.offsets, start, side="right")) - 1
        last = int(np.searchsorted(self.offsets, stop, side="left"))
        pieces = segment_min(squares, self.edges_there[first_piece : last_piece + 1] - start)
        cuts = self.pieces_of_bags[first : last + 1].clamp(first_piece, last_piece) - first_piece
        return slice(first, last), segment_min(pieces, cuts)


def measure(
    X: torch.Tensor, offsets: Integers, wanted: Booleans, stacks: Sequence[Stack]
) -> tuple[NDArray[np.int32], Floats, Floats]:
    """Return histograms, squared minima and squared sums of bags over the centres of all stacks, side by side.

    Parameters
    ----------
    X : (n_rows, n_features)
    offsets : (n_bags + 1,)
    wanted : (n_bags,)
        Which bags to look at; the rows of the others are left as they are.
    stacks : sequence of Stack
    """
    cuts = _Cuts.of(offsets, X.device)
    parts = [_measure_stack(X, cuts, wanted, stack) for stack in stacks]
    histograms, minima, sums = (np.hstack([to_host(table) for table in tables]) for tables in zip(*parts, strict=True))
    return histograms, minima, sums


def _measure_stack(
    X: torch.Tensor, cuts: _Cuts, wanted: Booleans, stack: Stack
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    shape, device = (len(wanted), stack.n_centers), X.device
    counts = torch.zeros(shape, dtype=torch.int32, device=device)
    minima = torch.full(shape, torch.inf, dtype=X.dtype, device=device)
    sums = torch.zeros(shape, dtype=torch.float64, device=device)
    centers = to_device(np.concatenate(stack.centers), device, X.dtype)
    shift = centers.mean(dim=0)
    moved = (centers - shift)[None]
    for start, stop in _chunks(cuts.offsets, wanted, rows_at_once(2 * X.shape[1] + 3 * shape[1], device)):
        rows = (stack.apply(X[start:stop]) - shift)[None]
        squares = expand(rows, sq_norms(rows), moved)[0]
        _count(squares, cuts.bag_of[start:stop], [len(own) for own in stack.centers], counts, sums)
        bags, found = cuts.minima(squares, start, stop)
        minima[bags] = torch.minimum(minima[bags], found.clamp_(min=0))
    _measure_close_bags_again(minima, X, cuts.offsets, stack.apply, centers)
    return counts, minima, sums


def _chunks(offsets: Integers, wanted: Booleans, most_rows: int) -> Iterator[tuple[int, int]]:
    """Yield runs of rows of wanted bags; they begin and end with pieces."""
    step = max(1, most_rows // _ROWS_OF_A_PIECE) * _ROWS_OF_A_PIECE
    turns = np.flatnonzero(np.diff(np.concatenate([[False], wanted, [False]])))
    for first, last in turns.reshape(-1, 2):
        start, end = int(offsets[first]), int(offsets[last])
        while start < end:
            stop = min(start // step * step + step, end)
            yield start, stop
            start = stop


def _count(
    squares: torch.Tensor, bag_of: torch.Tensor, sizes: list[int], counts: torch.Tensor, sums: torch.Tensor
) -> None:
    """Add to every bag and bin how many of its rows are nearest to the centre, and their squared distances."""
    one, column = torch.ones((), dtype=torch.int32, device=squares.device), 0
    for size, group in groupby(sizes):
        n_codebooks = len(list(group))
        own = squares[:, column : column + n_codebooks * size].unflatten(1, (n_codebooks, size))
        nearest, labels = own.min(dim=2)  # (n_rows, n_codebooks)
        columns = torch.arange(column, column + n_codebooks * size, size, device=squares.device)
        places = (bag_of[:, None] * counts.shape[1] + columns + labels).flatten()
        counts.view(-1).scatter_add_(0, places, one.expand_as(places))
        sums.view(-1).scatter_add_(0, places, nearest.clamp_(min=0).flatten().to(torch.float64))
        column += n_codebooks * size


def _measure_close_bags_again(
    minima: torch.Tensor,
    X: torch.Tensor,
    offsets: Integers,
    apply: Callable[[torch.Tensor], torch.Tensor],
    centers: torch.Tensor,
) -> None:
    """Replace rounding by the truth where a row lies on a centre, as `gmil.engine.distances` does."""
    dtype = numpy_dtype(X)
    norms = sq_norms(centers)
    # A row that near to a centre is about as long as the centre.
    close = minima <= closeness(dtype) * (4 * norms + 2 * norms.max())
    limits = rounding_of(dtype) * centers.abs().amax(dim=0)
    for bag, column in close.nonzero().tolist():
        rows = apply(X[offsets[bag] : offsets[bag + 1]])
        differences = rows - centers[column]
        is_rounding = (differences.abs() <= limits).all(dim=1)
        minima[bag, column] = torch.where(is_rounding, 0, sq_norms(differences)).min()
