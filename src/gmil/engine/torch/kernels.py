"""Distances and reductions over bags, on tensors."""

from __future__ import annotations

import torch

_ENTRIES_AT_ONCE = {"cpu": 1 << 22, "cuda": 1 << 28}
"""How many numbers a kernel may hold beside its input: 16 MiB in single precision, or 1 GiB on a GPU."""


def unit_rows(X: torch.Tensor) -> torch.Tensor:
    """Return rows at length 1; a row of zeros stays as it is."""
    lengths = torch.linalg.vector_norm(X, dim=-1, keepdim=True)
    return X / torch.where(lengths > 0, lengths, 1)


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


def segment_max(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Return the maximum over the rows of every bag."""
    return torch.segment_reduce(values, "max", offsets=offsets, axis=0, initial=-torch.inf, unsafe=True)


def segment_mean(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Return the mean over the rows of every bag, in double precision."""
    wide = values.to(torch.float64)
    sums = torch.segment_reduce(wide, "sum", offsets=offsets, axis=0, initial=0, unsafe=True)
    return sums / offsets.diff()[:, None]


def segment_deviation(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Return the root mean squared deviation from the mean over the rows of every bag, in double precision."""
    means = segment_mean(values, offsets)
    return segment_mean((values - means[segment_ids(offsets, len(values))]).square_(), offsets).sqrt_()


def segment_two_min(values: torch.Tensor, offsets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the smallest value of every bag, the first row that has it, and the smallest of the other rows."""
    smallest = segment_min(values, offsets)
    bag_of = segment_ids(offsets, len(values))
    rows = torch.arange(len(values), dtype=torch.float64, device=values.device)[:, None]  # exact below 2 ** 53
    where = segment_min(torch.where(values == smallest[bag_of], rows, torch.inf), offsets).to(torch.int64)
    others = values.scatter(0, where, torch.inf)
    return smallest, where, segment_min(others, offsets)
