"""Decisions of many settings on the same clusters, for many folds at once.

Codebooks of different sizes are beginnings of one ranking, so their distances to bags are running minima along it:
another p or q costs one subtraction.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.greedy import codebook, voting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.greedy.bag_tables import BagTables
    from gmil.greedy.settings import CodebookSize


class FoldClusters(NamedTuple):
    """Clusterings of several jobs, as seen from the bags; training bags and test bags alike."""

    histograms: Integers  # (n_jobs, n_bags, n_clusters)
    sq_minima: Floats  # (n_jobs, n_bags, n_clusters): squared distance of the nearest instance
    spreads: Floats | None  # (n_jobs, n_clusters): squared distances of training instances to their centre, summed
    votes: Floats | None = None  # (n_jobs, n_bags, n_clusters), counted in place of the histograms

    def of_jobs(self, places: list[int]) -> FoldClusters:
        """Return the clusterings of some of the jobs."""
        spreads = None if self.spreads is None else self.spreads[places]
        votes = None if self.votes is None else self.votes[places]
        return FoldClusters(self.histograms[places], self.sq_minima[places], spreads, votes)

    @classmethod
    def of_tables(cls, jobs: Sequence[BagTables], training: Booleans) -> FoldClusters:
        """Put together what was measured of bags that are read in blocks."""
        spreads = [inside @ job.sq_sums for job, inside in zip(jobs, training, strict=True)]
        return cls(
            np.stack([job.histograms for job in jobs]),
            np.stack([job.sq_minima for job in jobs]).astype(np.float64),
            np.stack(spreads),
        )

    @classmethod
    def stacked(cls, jobs: Sequence[FoldClusters]) -> FoldClusters:
        """Put together the clusterings of single jobs, whose arrays lack the first axis."""
        spreads = [job.spreads for job in jobs if job.spreads is not None]
        votes = [job.votes for job in jobs if job.votes is not None]
        return cls(
            np.stack([job.histograms for job in jobs]),
            np.stack([job.sq_minima for job in jobs]),
            np.stack(spreads) if spreads else None,
            np.stack(votes) if votes else None,
        )


def sum_spreads(labels: Integers, squares: Floats, members: Booleans) -> Floats:
    """Return the squared distances of training instances to their centre, summed over clusters."""
    n_clusters = squares.shape[-1]
    nearest = np.take_along_axis(squares, labels[..., None], axis=-1)[..., 0]
    rows = labels + n_clusters * np.arange(len(labels))[:, None]
    sums: Any = np.bincount(rows[members], weights=nearest[members], minlength=len(labels) * n_clusters)
    return sums.reshape(len(labels), n_clusters)


class Sweep(NamedTuple):
    """One setting of what lies behind the clusters: its place in the results, its parameters, its sizes."""

    place: int
    parameters: Any
    size: CodebookSize


def sweep_decisions(
    clusters: FoldClusters, positive: Booleans, training: Booleans, settings: Sequence[Sweep]
) -> Iterator[tuple[int, Floats]]:
    """Yield the place of every setting and its decisions about all bags, (n_jobs, n_problems, n_bags).

    Parameters
    ----------
    clusters : FoldClusters
    positive : array of shape (n_bags, n_problems)
    training : array of shape (n_jobs, n_bags)
    settings : sequence of Sweep
    """
    groups: dict[Any, list[Sweep]] = defaultdict(list)
    for setting in settings:
        groups[_ranking_key(setting)].append(setting)
    for group in groups.values():
        yield from _decide_group(clusters, positive, training, group)


def _ranking_key(setting: Sweep) -> tuple[Any, ...]:
    """Return what tells two rankings of bins apart; an excluding codebook is ranked anew for every size."""
    p = setting.parameters
    outer = {"allow": None, "exclude": setting.size.n_positive, "exclude-positive": setting.size.n_negative}
    return p.epsilon, p.counting, p.weighting, p.negative_rank, p.distance, p.overlap, outer[p.overlap]


def _decide_group(
    clusters: FoldClusters, positive: Booleans, training: Booleans, group: list[Sweep]
) -> Iterator[tuple[int, Floats]]:
    parameters = group[0].parameters
    book = codebook.build_codebook(
        clusters.histograms,
        positive,
        n_positive=max(setting.size.n_positive for setting in group),
        n_negative=max(setting.size.n_negative for setting in group),
        **{name: getattr(parameters, name) for name in codebook.PARAMETERS},
        training=training,
        votes=clusters.votes,
    )
    to_positive = _running_distances(clusters.sq_minima, book.positive_bins, parameters.distance)
    to_negative = _running_distances(clusters.sq_minima, book.negative_bins, parameters.distance)
    for setting in group:
        nearest = to_positive[setting.size.n_positive - 1]
        if setting.size.n_negative:
            yield setting.place, voting.decide(nearest, to_negative[setting.size.n_negative - 1])
            continue
        bins = book.positive_bins[..., : setting.size.n_positive]
        thresholds = _thresholds(setting.parameters.threshold, nearest, bins, clusters, positive, training)
        yield setting.place, voting.decide(nearest, thresholds[..., None])


def _running_distances(sq_minima: Floats, bins: Integers, how: str) -> Floats:
    """Return distances between bags and the first 1, 2, ... bins, (n_bins, n_jobs, n_problems, n_bags)."""
    picked = np.take_along_axis(sq_minima[:, None], bins[:, :, None, :], axis=-1)
    picked = np.ascontiguousarray(np.moveaxis(np.sqrt(picked), -1, 0))
    if how == "min":
        return np.minimum.accumulate(picked, axis=0)
    counts = np.arange(1, len(picked) + 1).reshape(-1, 1, 1, 1)
    return np.cumsum(picked, axis=0) / counts


def _thresholds(
    how: float | str,
    distances: Floats,
    bins: Integers,
    clusters: FoldClusters,
    positive: Booleans,
    training: Booleans,
) -> Floats:
    """Return tau of every job and problem, from the training bags alone."""
    if how == "mean":
        inside = training[:, None, :]
        return (distances * inside).sum(axis=-1) / inside.sum(axis=-1)
    thresholds = np.empty(distances.shape[:2])
    for job, problem in np.ndindex(*thresholds.shape):
        inside = training[job]
        spread = _spread(clusters, job, bins[job, problem], inside) if how == "variance" else 0.0
        thresholds[job, problem] = voting.choose_threshold(
            how, distances[job, problem, inside], positive[inside, problem], spread
        )
    return thresholds


def _spread(clusters: FoldClusters, job: int, bins: Integers, inside: Booleans) -> float:
    """Return the root mean square distance of training instances in some bins to their centres."""
    assert clusters.spreads is not None, "spreads are measured where a setting asks for them"
    n_members = clusters.histograms[job][inside][:, bins].sum()
    return float(np.sqrt(clusters.spreads[job, bins].sum() / n_members)) if n_members else 0.0
