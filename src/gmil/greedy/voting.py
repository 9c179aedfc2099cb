"""From distances between instances and centres to decisions about bags (section 3.3 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.engine.backends import Backend

DISTANCES = ("min", "mean", "max", "hausdorff", "center-mean")
FROM_NEAREST = ("min", "center-mean")
"""Distances that follow from the distance of the nearest instance of a bag to every centre."""
RULES = ("nearest", "vote")
THRESHOLDS = ("mean", "mean-positive", "midpoint", "best", "variance")


def bag_distance(to_centers: Floats, offsets: Integers, how: str, backend: Backend) -> Floats:
    """Return the distance between every bag and a codebook, (n_bags,).

    Parameters
    ----------
    to_centers : array of shape (n_instances, n_centers)
        Distances between instances and the centres of the codebook.
    offsets : array of shape (n_bags + 1,)
    how : {"min", "mean", "max", "hausdorff", "center-mean"}
        The nearest pair of an instance and a centre, which the paper calls minimum Hausdorff distance; the mean or
        the maximum over instances of the distance to the nearest centre; the larger of the two directed
        Hausdorff distances; the mean over centres of the distance to the nearest instance.
    backend : Backend
    """
    if how == "center-mean":
        return np.asarray(backend.bag_min(to_centers, offsets).mean(axis=1))
    to_nearest = to_centers.min(axis=1)  # (n_instances,)
    if how == "min":
        return backend.bag_min(to_nearest, offsets)
    if how == "mean":
        return backend.bag_mean(to_nearest, offsets)
    farthest = backend.bag_max(to_nearest, offsets)
    if how == "max":
        return farthest
    return np.maximum(farthest, backend.bag_min(to_centers, offsets).max(axis=1))


def decide(to_positive: Floats, to_negative: Floats | float) -> Floats:
    """Return the decision value: positive where C+ is nearer than C- (Eq. 7) or than the threshold."""
    return np.asarray(to_negative - to_positive)


def count_votes(instance_decisions: Floats, offsets: Integers, backend: Backend) -> Floats:
    """Return the share of instances that vote positive minus the share that do not, (n_bags,)."""
    votes = np.where(instance_decisions > 0, 1.0, -1.0)
    return backend.bag_mean(votes, offsets)


@dataclass(frozen=True)
class Voter:
    """Codebooks ready to vote, for one problem or for several, one class against the others.

    The first axis of its arrays counts problems. Distances come in as (n_instances, n_used), to the bins that
    are in some codebook: distances to the others are never needed.
    """

    positive_bins: Integers  # (n_problems, n_positive)
    negative_bins: Integers  # (n_problems, n_negative)
    thresholds: Floats | None = None  # (n_problems,) where there are no negative bins
    distance: str = "min"
    rule: str = "nearest"

    @cached_property
    def used_bins(self) -> Integers:
        """The bins that are in some codebook, in order."""
        return np.union1d(self.positive_bins, self.negative_bins)

    def columns(self, bins: Integers) -> Integers:
        """Return the columns of these bins among the used ones."""
        return np.searchsorted(self.used_bins, bins)

    def bag_decisions(self, to_used: Floats, offsets: Integers, backend: Backend) -> Floats:
        """Return the decision about every bag, (n_bags,) for one problem or (n_bags, n_problems)."""
        if self.rule == "vote":
            votes = _as_columns(self.instance_decisions(to_used))
            return _squeezed([count_votes(column, offsets, backend) for column in votes])
        positive = self.positive_distances(to_used, offsets, backend).T
        if self.thresholds is not None:
            return _squeezed([decide(d, tau) for d, tau in zip(positive, self.thresholds, strict=True)])
        negative = (self._bag_distance(to_used, bins, offsets, backend) for bins in self.negative_bins)
        return _squeezed([decide(d, other) for d, other in zip(positive, negative, strict=True)])

    def instance_decisions(self, to_used: Floats) -> Floats:
        """Return the decision about every instance alone, (n_instances,) or (n_instances, n_problems)."""
        decisions = []
        for i, bins in enumerate(self.positive_bins):
            to_positive = to_used[:, self.columns(bins)].min(axis=1)
            if self.thresholds is not None:
                decisions.append(decide(to_positive, self.thresholds[i]))
            else:
                to_negative = to_used[:, self.columns(self.negative_bins[i])].min(axis=1)
                decisions.append(decide(to_positive, to_negative))
        return _squeezed(decisions)

    def positive_distances(self, to_used: Floats, offsets: Integers, backend: Backend) -> Floats:
        """Return distances between bags and C+, (n_bags, n_problems)."""
        columns = [self._bag_distance(to_used, bins, offsets, backend) for bins in self.positive_bins]
        return np.column_stack(columns)

    def _bag_distance(self, to_used: Floats, bins: Integers, offsets: Integers, backend: Backend) -> Floats:
        return bag_distance(to_used[:, self.columns(bins)], offsets, self.distance, backend)

    def spreads(self, nearest: Integers, sq_nearest: Floats) -> list[float]:
        """Return, for every problem, the root mean square distance of instances in C+ to their centres."""
        members = [np.isin(nearest, bins) for bins in self.positive_bins]
        return [float(np.sqrt(sq_nearest[m].mean(dtype=np.float64))) if m.any() else 0.0 for m in members]


def _as_columns(decisions: Floats) -> Floats:
    return decisions[None, :] if decisions.ndim == 1 else decisions.T


def _squeezed(columns: list[Floats]) -> Floats:
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


def choose_threshold(how: str | float, distances: Floats, positive: Booleans, spread: float) -> float:
    """Return tau, the distance below which a bag is positive when there are no negative centres.

    Parameters
    ----------
    how : float or {"mean", "mean-positive", "midpoint", "best", "variance"}
        A number is taken as it is. The mean distance of all training bags (the text of the paper); of the
        positive ones; the middle between the means of both classes; the threshold with the fewest errors on
        the training bags; or ``spread``.
    distances : array of shape (n_bags,)
        Distances between training bags and C+.
    positive : array of shape (n_bags,)
    spread : float
        The root mean square distance between the centres of C+ and the instances of their clusters.
    """
    if not isinstance(how, str):
        return float(how)
    if how == "mean":
        return float(distances.mean())
    if how == "mean-positive":
        return float(distances[positive].mean())
    if how == "midpoint":
        return float((distances[positive].mean() + distances[~positive].mean()) / 2)
    if how == "best":
        return _threshold_with_fewest_errors(distances, positive)
    return spread


def _threshold_with_fewest_errors(distances: Floats, positive: Booleans) -> float:
    """Try the middles between neighbouring distances; of equals, the one with the widest gap around it."""
    order = np.argsort(distances, kind="stable")
    ordered, labels = distances[order], positive[order]
    # Errors when the first i bags are called positive: negatives among them, and positives behind them.
    errors = np.concatenate([[0], np.cumsum(~labels)]) + labels.sum() - np.concatenate([[0], np.cumsum(labels)])
    gaps = np.concatenate([[0.0], np.diff(ordered), [0.0]])
    separable = gaps > 0
    separable[[0, -1]] = True
    best = min(np.flatnonzero(separable), key=lambda i: (errors[i], -gaps[i]))
    if best == 0:
        return float(ordered[0])
    if best == len(ordered):
        return float(np.nextafter(ordered[-1], np.inf))
    return float((ordered[best - 1] + ordered[best]) / 2)
