"""K-means of many jobs at once: every step is a few kernels for all of them, and the host seldom waits."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import torch

from gmil.engine import reference
from gmil.engine.kmeans import SEEDINGS, Draws, Seeding, far_and_near, is_better
from gmil.engine.reference import TIE, Clusters
from gmil.engine.torch.kernels import count, expand, rows_at_once, sq_distances, sq_norms
from gmil.engine.torch.tensors import full_precision, numpy_dtype, to_device, to_host

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine.arrays import Floats

_STEPS_BETWEEN_LOOKS = 8
"""How many steps of Lloyd are sent to the device before the host asks whether all jobs have ended."""


class ClusteredRows(Protocol):
    """Rows of several jobs, and how centres are made of them and measured against them."""

    @property
    def members(self) -> torch.Tensor:
        """Which rows train which job, (n_jobs, n_rows)."""

    def nearest(self, centers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return labels and squared distances of all rows, each (n_jobs, n_rows)."""

    def means(self, labels: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """Return the mean of the members of every cluster, (n_jobs, n_clusters, ...)."""


class Points:
    """Rows given by their features, (n_jobs, n_rows, n_features), all of them members; best moved to their mean."""

    def __init__(self, X: torch.Tensor) -> None:
        self.X, self.norms = X, sq_norms(X)
        self.members = torch.ones((), dtype=torch.bool, device=X.device).expand(X.shape[:2])

    def nearest(self, centers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """See `ClusteredRows.nearest`."""
        labels = torch.empty(self.X.shape[:2], dtype=torch.int64, device=self.X.device)
        squares = torch.empty_like(self.norms)
        for block in self._blocks(centers.shape[1]):
            found = expand(self.X[:, block], self.norms[:, block], centers).clamp_(min=0)
            squares[:, block], labels[:, block] = found.min(dim=2)
        return labels, squares

    def means(self, labels: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """See `ClusteredRows.means`; sums of blocks of rows are added in double precision."""
        (n_jobs, n_clusters), X = counts.shape, self.X
        sums = torch.zeros((n_jobs, n_clusters, X.shape[2]), dtype=torch.float64, device=X.device)
        for block in self._blocks(n_clusters):
            own = labels[:, None, block]
            is_in = torch.zeros((n_jobs, n_clusters, own.shape[2]), dtype=X.dtype, device=X.device).scatter_(1, own, 1)
            sums += is_in @ X[:, block]
        return (sums / counts.clamp(min=1)[..., None]).to(X.dtype)

    def sq_distances_to_rows(self, rows: torch.Tensor) -> torch.Tensor:
        """Return squared distances of all rows to some, (n_jobs, n_rows, n_some), given by number, (n_jobs, n_some)."""
        picked = self.X.gather(1, rows[..., None].expand(-1, -1, self.X.shape[2]))
        return _zero_to_themselves(expand(self.X, self.norms, picked), rows)

    def _blocks(self, n_clusters: int) -> list[slice]:
        step = rows_at_once(3 * len(self.X) * n_clusters, self.X.device)
        return [slice(start, start + step) for start in range(0, self.X.shape[1], step)]


class Products:
    """Rows given by their products with each other, (n_rows, n_rows); a centre is the weights of the rows it is of."""

    def __init__(self, gram: torch.Tensor, members: torch.Tensor) -> None:
        self.gram, self.members, self.norms = gram, members, gram.diagonal()

    def sq_distances(self, centers: torch.Tensor) -> torch.Tensor:
        """Return squared distances of all rows, (n_jobs, n_clusters, n_rows)."""
        products = centers @ self.gram
        own = (centers * products).sum(dim=2, keepdim=True)
        return (self.norms - 2 * products + own).clamp_(min=0)

    def nearest(self, centers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """See `ClusteredRows.nearest`."""
        squares, labels = self.sq_distances(centers).min(dim=1)
        return labels, squares

    def means(self, labels: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """See `ClusteredRows.means`."""
        weights = torch.zeros((*counts.shape, len(self.gram)), dtype=self.gram.dtype, device=self.gram.device)
        shares = self.members.to(weights.dtype) / counts.clamp(min=1).gather(1, labels)
        return weights.scatter_(1, labels[:, None], shares[:, None])

    def sq_distances_to_rows(self, rows: torch.Tensor) -> torch.Tensor:
        """See `Points.sq_distances_to_rows`; rows that do not train are at distance zero, and so are never chosen."""
        squares = self.norms[:, None] + self.norms[rows][:, None] - 2 * self.gram[rows].mT
        return _zero_to_themselves(squares, rows) * self.members[..., None]


def _zero_to_themselves(squares: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    return squares.clamp_(min=0).scatter_(1, rows[:, None], 0)


# -------------------------------------------------------------------------------- seeding


def greedy_rows(space: Points | Products, uniforms: torch.Tensor) -> torch.Tensor:
    """Choose starting rows of every job, (n_jobs, n_clusters), as `gmil.engine.reference.seed` does.

    ``uniforms (n_jobs, n_clusters, n_trials)`` are draws from [0, 1) in double precision.
    """
    ranks = space.members.cumsum(dim=1)  # the number of a member among members, from 1
    n_members = ranks[:, -1:].contiguous()
    first = torch.minimum((uniforms[:, 0, :1] * n_members).to(torch.int64), n_members - 1)
    chosen = [torch.searchsorted(ranks, first + 1)]
    last = torch.searchsorted(ranks, n_members)
    nearest = space.sq_distances_to_rows(chosen[0])[..., 0]
    for draws in uniforms.transpose(0, 1).contiguous()[1:]:
        cumulative = nearest.to(torch.float64).cumsum(dim=1)
        candidates = torch.searchsorted(cumulative, draws * cumulative[:, -1:], right=True)
        candidates = torch.minimum(candidates, last)
        squares = torch.minimum(space.sq_distances_to_rows(candidates), nearest[..., None])
        totals = squares.sum(dim=1, dtype=torch.float64)
        limits = totals.amin(dim=1, keepdim=True) * (1 + TIE[numpy_dtype(nearest).name])
        best = (totals <= limits).to(torch.uint8).argmax(dim=1, keepdim=True)
        chosen.append(candidates.gather(1, best))
        nearest = squares.gather(2, best[:, None].expand(-1, squares.shape[1], -1))[..., 0]
    return torch.cat(chosen, dim=1)


# -------------------------------------------------------------------------------- Lloyd


class Found(NamedTuple):
    """Where the jobs are."""

    centers: torch.Tensor  # (n_jobs, n_clusters, ...)
    labels: torch.Tensor  # (n_jobs, n_rows)
    nearest: torch.Tensor  # (n_jobs, n_rows), squared distances
    has_ended: torch.Tensor  # (n_jobs,)
    n_iter: torch.Tensor  # (n_jobs,)


def lloyd(space: ClusteredRows, centers: torch.Tensor, max_iter: int) -> Found:
    """Run Lloyd's iterations of every job until none of its labels changes, or ``max_iter`` times.

    The host looks at the device every few steps. A cluster that emptied meanwhile is filled as the reference does, by
    going through these steps again one at a time.
    """
    n_jobs = len(centers)
    labels, nearest = space.nearest(centers)
    never = torch.zeros(n_jobs, dtype=torch.bool, device=centers.device)
    found = Found(centers, labels, nearest, never, torch.zeros(n_jobs, dtype=torch.int64, device=centers.device))
    left, has_ended = max_iter, False
    while left and not has_ended:
        steps = min(left, _STEPS_BETWEEN_LOOKS)
        ahead, is_empty = _steps(space, found, steps, fill=False)
        went_empty, has_ended = torch.stack([is_empty, ahead.has_ended.all()]).tolist()
        if went_empty:
            ahead, _ = _steps(space, found, steps, fill=True)
            has_ended = bool(ahead.has_ended.all())
        found, left = ahead, left - steps
    return found


def _steps(space: ClusteredRows, found: Found, steps: int, *, fill: bool) -> tuple[Found, torch.Tensor]:
    """Take some steps; return where they lead, and whether a cluster was empty on the way."""
    went_empty = torch.zeros((), dtype=torch.bool, device=found.labels.device)
    n_clusters = found.centers.shape[1]
    for _ in range(steps):
        labels = _filled(space, found, n_clusters) if fill else found.labels
        counts = count(labels, n_clusters, space.members.to(torch.int64))
        went_empty = went_empty | ((counts == 0).any(dim=1) & ~found.has_ended).any()
        has_rows = (counts > 0)[..., None]
        centers = torch.where(has_rows, space.means(labels, counts), found.centers)
        new_labels, nearest = space.nearest(centers)
        stays = ((new_labels == labels) | ~space.members).all(dim=1)
        ended = found.has_ended
        found = Found(
            torch.where(ended[:, None, None], found.centers, centers),
            torch.where(ended[:, None], found.labels, new_labels),
            torch.where(ended[:, None], found.nearest, nearest),
            ended | stays,
            found.n_iter + ~ended,
        )
    return found, went_empty


def _filled(space: ClusteredRows, found: Found, n_clusters: int) -> torch.Tensor:
    labels, nearest, members = (to_host(values) for values in (found.labels, found.nearest, space.members))
    filled = labels.copy()
    for job, inside in enumerate(members):
        filled[job, inside] = reference.fill_empty_clusters(labels[job, inside], nearest[job, inside], n_clusters)
    return to_device(filled, found.labels.device)


# -------------------------------------------------------------------------------- k-means


def moved_to_mean(X: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows of jobs around their mean, and the mean, (n_jobs, 1, n_features); distances then round less."""
    shift = X.mean(dim=1, keepdim=True, dtype=torch.float64).to(X.dtype)
    return X - shift, shift


def seed(X: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """Choose starting rows of every job, (n_jobs, n_clusters), from ``X (n_jobs, n_rows, n_features)``."""
    with full_precision():
        return greedy_rows(Points(moved_to_mean(X)[0]), uniforms)


def cluster(X: torch.Tensor, centers: torch.Tensor, max_iter: int) -> list[Clusters]:
    """Run Lloyd's iterations of every job from given centres, (n_jobs, n_clusters, n_features)."""
    moved, shift = moved_to_mean(X)
    with full_precision():
        found = lloyd(Points(moved), centers - shift, max_iter)
    inertia = found.nearest.sum(dim=1, dtype=torch.float64)
    ends = (to_host(values) for values in (found.centers + shift, found.labels.to(torch.int32)))
    return [
        Clusters(*job) for job in zip(*ends, to_host(inertia).tolist(), to_host(found.n_iter).tolist(), strict=True)
    ]


def kmeans_jobs(
    X: torch.Tensor,
    n_clusters: int,
    *,
    generators: Sequence[np.random.Generator],
    init: Sequence[Floats] | None = None,
    n_init: int = 1,
    max_iter: int = 300,
    seeding: Seeding = SEEDINGS["k-means++"],
) -> list[Clusters]:
    """Cluster the rows of every job, (n_jobs, n_rows, n_features): `gmil.engine.kmeans` for all of them together.

    Every job draws from its own generator what `gmil.engine.kmeans` would draw. Given ``init``, centres to start from
    for every job, nothing is drawn and one run is made.
    """
    if init is not None:
        return cluster(X, to_device(np.stack(init), X.device, X.dtype), max_iter)
    draws = [[Draws.make(X.shape[1], n_clusters, own, seeding) for _ in range(n_init)] for own in generators]
    runs = (cluster(X, _starts(X, list(run)), max_iter) for run in zip(*draws, strict=True))

    def better(best: Clusters, run: Clusters) -> Clusters:
        return run if is_better(run.inertia, best.inertia, numpy_dtype(X)) else best

    return functools.reduce(lambda best, run: list(map(better, best, run)), runs)


def _starts(X: torch.Tensor, draws: list[Draws]) -> torch.Tensor:
    """Return the rows at which every job starts, (n_jobs, n_clusters, n_features)."""
    among = X
    rows = [draw.rows for draw in draws if draw.rows is not None]
    for job, draw in enumerate(draws):
        if draw.waits is not None:
            squares = sq_distances(X[job], X[job].mean(dim=0, keepdim=True))[:, 0]
            rows.append(far_and_near(to_host(squares), draw.waits, draw.uniforms.shape[0]))
    if rows:  # all jobs have as many rows, so that all seed on some or all on everything
        among = _rows_of_jobs(X, to_device(np.stack(rows), X.device))
    uniforms = to_device(np.stack([draw.uniforms for draw in draws]), X.device)
    return _rows_of_jobs(among, seed(among, uniforms))


def _rows_of_jobs(X: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    jobs = torch.arange(len(X), device=X.device)[:, None]
    return X[jobs, rows]
