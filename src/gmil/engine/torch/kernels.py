"""Distances and reductions over bags, on tensors."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING

import numpy as np
import torch

from gmil.engine.torch.tensors import to_device

if TYPE_CHECKING:
    from gmil.engine.arrays import Integers

_ENTRIES_AT_ONCE = {"cpu": 1 << 22, "cuda": 1 << 28}
"""How many numbers a kernel may hold beside its input: 16 MiB in single precision, or 1 GiB on a GPU."""


_ROWS_OF_A_PIECE = 64
"""Bags are reduced over so many rows first, then over these pieces: one long bag would be the work of few threads."""


def unit_rows(X: torch.Tensor, *, in_place: bool = False) -> torch.Tensor:
    """Return rows at length 1; a row of zeros stays as it is."""
    lengths = torch.linalg.vector_norm(X, dim=-1, keepdim=True)
    lengths = torch.where(lengths > 0, lengths, 1)
    return X.div_(lengths) if in_place else X / lengths


def rows_at_once(n_entries_of_a_row: int, device: torch.device) -> int:
    """Return how many rows to work on at once when each of them needs so many numbers."""
    return max(1, _ENTRIES_AT_ONCE[device.type] // max(1, n_entries_of_a_row))


def sq_norms(X: torch.Tensor) -> torch.Tensor:
    """Return the squared Euclidean norms of rows, (..., n_rows)."""
    return torch.linalg.vector_norm(X, dim=-1).square_()


def expand(X: torch.Tensor, norms: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    """Return x.x - 2 x.c + c.c, (n_jobs, n_rows, n_centers), given ``norms (n_jobs, n_rows)``; it may be below zero."""
    sums = norms[..., None] + sq_norms(centers)[:, None, :]
    return sums.baddbmm_(X, centers.mT, alpha=-2)


def sq_distances(X: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    """Return squared distances, (n_rows, n_centers), expanded around the mean of the centres as the reference does."""
    out = torch.empty((len(X), len(centers)), dtype=X.dtype, device=X.device)
    shift = centers.mean(dim=0)
    moved = (centers - shift)[None]
    step = rows_at_once(X.shape[1] + 2 * len(centers), X.device)
    for start in range(0, len(X), step):
        rows = (X[start : start + step] - shift)[None]
        out[start : start + step] = expand(rows, sq_norms(rows), moved)[0]
    return out.clamp_(min=0)


def assign(X: torch.Tensor, centers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the nearest centre of every row (the first of equals) and its squared distance."""
    labels = torch.empty(len(X), dtype=torch.int64, device=X.device)
    nearest = torch.empty(len(X), dtype=X.dtype, device=X.device)
    step = rows_at_once(X.shape[1] + 2 * len(centers), X.device)
    for start in range(0, len(X), step):
        block = slice(start, start + step)
        nearest[block], labels[block] = sq_distances(X[block], centers).min(dim=1)
    return labels, nearest


def count(labels: torch.Tensor, n_bins: int, weights: torch.Tensor | None = None) -> torch.Tensor:
    """Return how many entries of every row of labels are in every bin, (n_rows, n_bins), or their sum of weights."""
    values = torch.ones((), dtype=torch.int64, device=labels.device) if weights is None else weights
    counts = torch.zeros((len(labels), n_bins), dtype=values.dtype, device=labels.device)
    return counts.scatter_add_(1, labels, values.expand_as(labels))


def segment_ids(offsets: torch.Tensor, n_rows: int) -> torch.Tensor:
    """Return the number of the bag of every row, (n_rows,)."""
    bags = torch.arange(len(offsets) - 1, device=offsets.device)
    return bags.repeat_interleave(offsets.diff(), output_size=n_rows)


def segment_min(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Return the minimum over the rows of every bag; a bag without rows gets infinity."""
    return torch.segment_reduce(values, "min", offsets=offsets, axis=0, initial=torch.inf, unsafe=True)


def segment_two_min(values: torch.Tensor, offsets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the smallest value of every bag, the first row that has it, and the smallest of the other rows."""
    smallest = segment_min(values, offsets)
    bag_of = segment_ids(offsets, len(values))
    rows = torch.arange(len(values), dtype=torch.float64, device=values.device)[:, None]  # exact below 2 ** 53
    where = segment_min(torch.where(values == smallest[bag_of], rows, torch.inf), offsets).to(torch.int64)
    others = values.scatter(0, where, torch.inf)
    return smallest, where, segment_min(others, offsets)


# -------------------------------------------------------------------------------- reductions over bags


class Segments:
    """Bags of consecutive rows, and the pieces that they are cut into.

    Parameters
    ----------
    offsets : array of shape (n_bags + 1,)
    device : torch.device
    """

    def __init__(self, offsets: Integers, device: torch.device) -> None:
        edges = np.union1d(np.arange(0, offsets[-1], _ROWS_OF_A_PIECE), offsets)
        self.n_rows = int(offsets[-1])
        self.offsets, self.edges = to_device(offsets, device, torch.int64), to_device(edges, device, torch.int64)
        self.pieces_of_bags = to_device(np.searchsorted(edges, offsets), device)
        self.sizes = self.offsets.diff()[:, None]

    @functools.cached_property
    def bag_of(self) -> torch.Tensor:
        """The bag of every row, (n_rows,)."""
        return segment_ids(self.offsets, self.n_rows)

    def min(self, values: torch.Tensor) -> torch.Tensor:
        """Return the minimum over every bag, column by column."""
        return self._reduce(values, "min")

    def max(self, values: torch.Tensor) -> torch.Tensor:
        """Return the maximum over every bag, column by column."""
        return self._reduce(values, "max")

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """Return the sum over every bag, column by column, in double precision."""
        return self._reduce(values.double(), "sum")

    def mean(self, values: torch.Tensor) -> torch.Tensor:
        """Return the mean over every bag, column by column, in double precision."""
        return self.sum(values) / self.sizes

    def deviation(self, values: torch.Tensor) -> torch.Tensor:
        """Return the root mean squared deviation from the mean over every bag, in double precision."""
        apart = self.mean(values)[self.bag_of].sub_(values)
        return self.mean(apart.square_()).sqrt_()

    def moments(self, values: torch.Tensor) -> torch.Tensor:
        """Return size, mean and sum of squared deviations of every bag, measured from its first row.

        See `gmil.engine.reference.bag_moments`, (n_bags, 3, n_columns).
        """
        first = values[self.offsets[:-1]]
        moved = first[self.bag_of]
        torch.sub(values, moved, out=moved)
        means = self._reduce(moved, "sum", torch.float64) / self.sizes
        moved.sub_(means.to(values.dtype)[self.bag_of])
        squares = self._reduce(moved.square_(), "sum", torch.float64)
        return torch.stack([self.sizes.expand_as(means), first + means, squares], dim=1)

    def _reduce(self, values: torch.Tensor, how: str, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Reduce pieces in the precision of the values, and bags in that asked for."""
        pieces = torch.segment_reduce(values, how, offsets=self.edges, axis=0, unsafe=True).to(dtype or values.dtype)
        return torch.segment_reduce(pieces, how, offsets=self.pieces_of_bags, axis=0, unsafe=True)


def segments(offsets: Integers, device: torch.device) -> Segments:
    """Return the segments of bags; several tables of the same bags in a row share them."""
    return _segments(np.ascontiguousarray(offsets, dtype=np.int64).tobytes(), device, threading.get_ident())


@functools.lru_cache(maxsize=16)
def _segments(offsets: bytes, device: torch.device, thread: int) -> Segments:  # noqa: ARG001  # threads have streams
    return Segments(np.frombuffer(offsets, dtype=np.int64), device)


# -------------------------------------------------------------------------------- columns


def column_moments(X: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and variance of every column, in double precision."""
    step = rows_at_once(2 * X.shape[1], X.device)
    blocks = X.split(step)
    mean = sum(block.double().sum(dim=0) for block in blocks) / len(X)
    return mean, sum((block - mean).square_().sum(dim=0) for block in blocks) / len(X)


def column_ranks(X: torch.Tensor, knots: torch.Tensor) -> torch.Tensor:
    """See `gmil.engine.reference.column_ranks`; knots are in double precision."""
    out = torch.empty_like(X)
    step = rows_at_once(6 * X.shape[1], X.device)
    for start in range(0, len(X), step):
        values = X[start : start + step].double().mT.contiguous()
        below = torch.searchsorted(knots, values) + torch.searchsorted(knots, values, right=True)
        out[start : start + step] = (below.double() / (2 * knots.shape[1])).mT
    return out


def quantiles_of_columns(X: torch.Tensor, most: int) -> torch.Tensor:
    """Return the values of every column in order, (n_columns, n_values); of many, ``most`` at equal steps."""
    ordered = X.mT.sort(dim=1).values
    if ordered.shape[1] <= most:
        return ordered
    places = np.linspace(0, ordered.shape[1] - 1, most).round().astype(np.int64)
    return ordered[:, to_device(places, X.device)]
