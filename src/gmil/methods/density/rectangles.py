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

_PRECISION = 2.0**-50
"""How close to a quantile, relative to the bounds that it lies between, its search ends."""

_MOST_STEPS = 100


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


def inside_of(X: Floats, edges: Floats) -> Floats:
    """Return the instances inside the box, or on its edges."""
    return X[((edges[0] <= X) & (edges[1] >= X)).all(axis=1)]


def expand(edges: Floats, inside: Floats, tau: float, epsilon: float) -> Floats:
    """Move the edges outwards until a kernel estimate leaves the mass ``epsilon`` outside, half on each side.

    On every feature the estimate has a Gaussian on the value of each instance ``inside`` the box, so wide that one in
    the middle of the box would keep the mass ``tau`` inside. A feature on which the box has no width keeps it.
    """
    lower, upper = edges
    deviations = (upper - lower) / (2 * ndtri((1 + tau) / 2))
    low = _quantile(inside, lower, upper, deviations, epsilon / 2)
    high = -_quantile(-inside, -upper, -lower, deviations, epsilon / 2)
    return np.stack([np.minimum(lower, low), np.maximum(upper, high)])


def _quantile(X: Floats, lower: Floats, upper: Floats, deviations: Floats, mass: float) -> Floats:
    """Return where the kernel estimate of every feature has that mass below it."""
    found, wide = lower.copy(), deviations > 0
    found[wide] = _root(X[:, wide], lower[wide] - 10 * deviations[wide], upper[wide], deviations[wide], mass)
    return found


def _root(X: Floats, left: Floats, right: Floats, deviations: Floats, mass: float) -> Floats:
    """Return the quantile of every feature by Newton steps, or by halving where one would leave the bounds."""
    found, precision = (left + right) / 2, (right - left) * _PRECISION
    going = np.arange(len(found))
    for _ in range(_MOST_STEPS):
        at = found[going]
        units = (at - X[:, going]) / deviations[going]
        excess = ndtr(units).mean(axis=0) - mass
        slopes = np.exp(np.square(units, out=units) / -2).mean(axis=0) / (np.sqrt(2 * np.pi) * deviations[going])
        left[going], right[going] = np.where(excess > 0, left[going], at), np.where(excess > 0, at, right[going])
        with np.errstate(divide="ignore", over="ignore"):  # without a slope there is a halving
            newton = at - excess / slopes
        is_between = (left[going] <= newton) & (newton <= right[going])
        found[going] = np.where(is_between, newton, (left[going] + right[going]) / 2)
        going = going[np.abs(found[going] - at) > precision[going]]
        if not len(going):
            break
    return found


def overshoot(X: Floats, edges: Floats, units: Floats) -> Floats:
    """Return how far outside the box every instance is on its worst feature, in units; inside it is negative."""
    farthest: Floats = (np.maximum(edges[0] - X, X - edges[1]) / units).max(axis=1)
    return farthest
