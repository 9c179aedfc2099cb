"""Axis-parallel rectangles: growing, choosing features and expanding, on plain arrays.

A box has a lower and an upper edge for every feature, ``edges (2, n_features)``. Its size is the sum of its widths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from gmil.engine import reference

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats, Integers

_SMALLER = 1e-12
"""By how much, relative to its size, a box must shrink to be called smaller: rounding never keeps growing alive."""

_HALVINGS = 50


class Box(NamedTuple):
    """A box and the instance of every positive bag that it was grown on."""

    edges: Floats  # (2, n_features)
    members: Integers  # (n_bags,)


def minimax_seed(X: Floats, offsets: Integers) -> int:
    """Return the instance nearest to the middle of the minimax box.

    That box lies, on every feature, between the least of the maxima of the bags and the largest of their minima: every
    bag reaches over it or into it.
    """
    lower = reference.bag_max(X, offsets).min(axis=0)
    upper = reference.bag_min(X, offsets).max(axis=0)
    differences = X - (lower + upper) / 2
    return int(np.einsum("ij,ij->i", differences, differences).argmin())


def grow(X: Floats, offsets: Integers, seed: int) -> Box:
    """Grow the smallest box that greedy steps find with an instance of every bag.

    Every step adds the instance, of a bag that has none yet, that enlarges the box least. Then every bag in turn may
    exchange its instance for one that makes the box smaller, until none can.

    Parameters
    ----------
    X : array of shape (n_instances, n_features)
        Instances of positive bags.
    offsets : array of shape (n_bags + 1,)
    seed : int
        The instance to start with.
    """
    n_bags = len(offsets) - 1
    bag_of = np.repeat(np.arange(n_bags), np.diff(offsets))
    members = np.full(n_bags, -1)
    members[bag_of[seed]] = seed
    while (members < 0).any():
        waiting = np.flatnonzero(members[bag_of] < 0)
        lower, upper = _edges(X[members[members >= 0]])
        sizes = _sizes_with(X[waiting], lower, upper)
        best = waiting[sizes.argmin()]
        members[bag_of[best]] = best
        exchange_members(X, bag_of, members)
    return Box(_edges(X[members]), members)


def exchange_members(X: Floats, bag_of: Integers, members: Integers) -> None:
    """Let every bag, one after the other, exchange its member while that makes the box smaller.

    All exchanges are judged at once; only the first bag that gains may act on it, as the others then see another box.
    """
    bags = np.flatnonzero(members >= 0)
    if len(bags) < 2:
        return
    rows = np.flatnonzero(members[bag_of] >= 0)
    place_of = np.searchsorted(bags, bag_of[rows])
    starts = np.flatnonzero(np.diff(place_of, prepend=-1))
    turn = 0
    while True:
        sizes = _exchanged_sizes(X, members[bags], rows, place_of)
        least = np.minimum.reduceat(sizes, starts)
        current = sizes[np.searchsorted(rows, members[bags])]
        gains = np.roll(least < current * (1 - _SMALLER), -turn)  # in the order of the turns that come next
        if not gains.any():
            return
        place = (turn + int(gains.argmax())) % len(bags)
        inside = rows[place_of == place]
        members[bags[place]] = inside[sizes[place_of == place].argmin()]
        turn = (place + 1) % len(bags)


def _exchanged_sizes(X: Floats, members: Integers, rows: Integers, place_of: Integers) -> Floats:
    """Return the size of the box where each row stands in for the member of its bag, (n_rows,)."""
    inside = X[members]  # (n_members, n_features)
    lowest, highest = np.partition(inside, 1, axis=0)[:2], np.partition(-inside, 1, axis=0)[:2]
    # Without a member that is the lowest alone, the second lowest takes its place.
    lower = np.where(inside == lowest[0], lowest[1], lowest[0])
    upper = np.where(-inside == highest[0], -highest[1], -highest[0])
    return _sizes_with(X[rows], lower[place_of], upper[place_of])


def _sizes_with(X: Floats, lower: Floats, upper: Floats) -> Floats:
    """Return the size of a box that is enlarged to hold an instance, for every instance."""
    sizes: Floats = (np.maximum(X, upper) - np.minimum(X, lower)).sum(axis=1)
    return sizes


def _edges(X: Floats) -> Floats:
    return np.stack([X.min(axis=0), X.max(axis=0)])


def discriminating_features(negatives: Floats, edges: Floats, margin: float) -> Integers:
    """Return the features that keep negative instances out of the box, in order; all where none does.

    A feature excludes an instance that lies outside by ``margin`` at least, or farther than on any other feature.
    The feature that excludes most is taken, its instances are struck off, and so on; of equals the one with the
    largest distances outside. Instances inside the box cannot be excluded and are left alone.
    """
    outside = np.maximum(np.maximum(edges[0] - negatives, negatives - edges[1]), 0)
    alive = outside.max(axis=1) > 0
    outside = outside[alive]
    excluded = (outside >= margin) & (outside > 0)
    excluded[np.arange(len(outside)), outside.argmax(axis=1)] = True
    counts, totals = excluded.sum(axis=0), outside.sum(axis=0)
    picked = []
    while counts.max(initial=0) > 0:
        feature = int(np.lexsort((-totals, -counts))[0])
        picked.append(feature)
        gone = excluded[:, feature]
        counts -= excluded[gone].sum(axis=0)
        totals -= outside[gone].sum(axis=0)
        excluded, outside = excluded[~gone], outside[~gone]
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
