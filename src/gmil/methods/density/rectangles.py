"""Axis-parallel rectangles: growing, choosing features and expanding, on plain arrays.

A box has a lower and an upper edge for every feature, ``edges (2, n_features)``. Its size is the sum of its widths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from gmil.engine import reference

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats, Integers

_HALVINGS = 50


def minimax_seed(X: Floats, offsets: Integers) -> int:
    """Return the instance nearest to the middle of the minimax box.

    That box lies, on every feature, between the least of the maxima of the bags and the largest of their minima: every
    bag reaches over it or into it.
    """
    lower = reference.bag_max(X, offsets).min(axis=0)
    upper = reference.bag_min(X, offsets).max(axis=0)
    differences = X - (lower + upper) / 2
    return int(np.einsum("ij,ij->i", differences, differences).argmin())


def discriminating_features(negatives: Floats, edges: Floats, margin: float) -> Integers:
    """Return the features that keep negative instances out of the box, in order; all where none does.

    A feature excludes an instance that lies outside by ``margin`` at least, or farther than on any other feature.
    The feature that excludes most is taken, its instances are struck off, and so on; of equals the one with the
    largest distances outside. Instances inside the box cannot be excluded and are left alone.
    """
    outside = np.maximum(edges[0] - negatives, negatives - edges[1])
    outside = np.maximum(outside[outside.max(axis=1) > 0], 0)
    excluded = (outside >= margin) & (outside > 0)
    excluded[np.arange(len(outside)), outside.argmax(axis=1)] = True
    columns = np.ascontiguousarray(excluded.T)
    waiting = np.ones(len(outside), dtype=bool)
    counts, totals = excluded.sum(axis=0), outside.sum(axis=0)
    picked = []
    while counts.max(initial=0) > 0:
        feature = int(np.lexsort((-totals, -counts))[0])
        picked.append(feature)
        gone = np.flatnonzero(columns[feature] & waiting)
        counts -= excluded[gone].sum(axis=0)
        totals -= outside[gone].sum(axis=0)
        waiting[gone] = False
    return np.sort(picked) if picked else np.arange(negatives.shape[1])


def expand(edges: Floats, X: Floats, tau: float, epsilon: float) -> Floats:
    """Move the edges outwards until a kernel estimate leaves the mass ``epsilon`` outside, half on each side.

    On every feature the estimate has a Gaussian on the value of each instance inside the box, so wide that one in the
    middle of the box would keep the mass ``tau`` inside. A feature on which the box has no width keeps it.
    """
    lower, upper = edges
    inside = X[((lower <= X) & (upper >= X)).all(axis=1)]
    deviations = (upper - lower) / (2 * ndtri((1 + tau) / 2))
    low = _quantile(inside, lower, upper, deviations, epsilon / 2)
    high = -_quantile(-inside, -upper, -lower, deviations, epsilon / 2)
    return np.stack([np.minimum(lower, low), np.maximum(upper, high)])


def _quantile(X: Floats, lower: Floats, upper: Floats, deviations: Floats, mass: float) -> Floats:
    """Return where the kernel estimate of every feature has that mass below it, by halving."""
    divisors = np.where(deviations > 0, deviations, 1)
    left, right = lower - 10 * deviations, upper
    for _ in range(_HALVINGS):
        middle = (left + right) / 2
        too_much = ndtr((middle - X) / divisors).mean(axis=0) > mass
        left, right = np.where(too_much, left, middle), np.where(too_much, middle, right)
    return np.where(deviations > 0, right, lower)


def overshoot(X: Floats, edges: Floats, units: Floats) -> Floats:
    """Return how far outside the box every instance is on its worst feature, in units; inside it is negative."""
    farthest: Floats = (np.maximum(edges[0] - X, X - edges[1]) / units).max(axis=1)
    return farthest
