"""Growing a box: the instance of every bag that keeps it small, by greedy steps and exchanges.

Most instances lie so far outside the box that they cannot be chosen next. How far is kept up to date on the features
whose edges move, which are few; only those that may win are measured on all features.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats, Integers

_SMALLER = 1e-12
"""By how much, relative to its size, a box must shrink to be called smaller: rounding never keeps growing alive."""

_ROUNDING = 1e-9
"""How far, relative to the largest box so far, an excess that was updated again and again may be off."""

_BLOCK_ENTRIES = 1 << 20
"""Entries of features that are updated at a time."""


class Box(NamedTuple):
    """A box and the instance of every positive bag that it was grown on."""

    edges: Floats  # (2, n_features)
    members: Integers  # (n_bags,)


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
    growing = _Growing(X, offsets)
    growing.place(seed)
    for _ in range(len(offsets) - 2):
        growing.place(growing.nearest_waiting())
        growing.exchange()
    return Box(growing.edges(), growing.members)


class _Growing:
    """A box that grows: its members, its edges, and by how much every instance would enlarge it.

    Upper edges are lower edges of the features with the other sign: there are 2 * n_features of them.
    """

    def __init__(self, X: Floats, offsets: Integers) -> None:
        n_bags, n_edges = len(offsets) - 1, 2 * X.shape[1]
        self.X = np.ascontiguousarray(X)
        self.columns = np.ascontiguousarray(X.T)
        self.bag_of = np.repeat(np.arange(n_bags), np.diff(offsets))
        self.members = np.full(n_bags, -1)
        self.held = np.full((n_bags, n_edges), np.inf)  # the members, with both signs
        self.lowest, self.second = np.full((2, n_edges), np.inf)  # of the members
        self.owners = np.full(n_edges, -1)  # the bag of the lowest
        self.excess = np.zeros(len(X))  # what the box would gain by every instance, up to rounding
        self.size = self.largest = 0.0  # of the box, and the largest that it had

    def place(self, row: int) -> None:
        """Make an instance the member of its bag, in place of the one before."""
        bag, before = self.bag_of[row], self.lowest.copy()
        new, old = np.concatenate([self.X[row], -self.X[row]]), self.held[bag]
        # Elsewhere neither the old nor the new member is one of the two lowest.
        changed = np.flatnonzero((old <= self.second) | (new < self.second))
        self.members[bag], self.held[bag] = row, new
        held, places = self.held[:, changed], np.arange(len(changed))
        owners = held.argmin(axis=0)
        self.owners[changed], self.lowest[changed] = owners, held[owners, places]
        held[owners, places] = np.inf
        self.second[changed] = held.min(axis=0)
        self._move_edges(np.where(np.isinf(before), -np.inf, before))

    def _move_edges(self, before: Floats) -> None:
        """Let the excess follow the edges, where they were elsewhere before."""
        n_features, n = self.columns.shape
        moved = np.flatnonzero(self.lowest != before)
        block = max(1, _BLOCK_ENTRIES // n)
        for start in range(0, len(moved), block):
            some = moved[start : start + block]
            values = self.columns[some % n_features]
            values[some >= n_features] *= -1
            enlarged = np.maximum(values, self.lowest[some, None])
            enlarged -= np.maximum(values, before[some, None], out=values)
            self.excess += enlarged.sum(axis=0)
        lower, upper = self.lowest.reshape(2, -1)
        self.size = float((-upper - lower).sum())
        self.largest = max(self.largest, self.size)

    def edges(self, without: int | None = None) -> Floats:
        """Return the edges of the box, or those that it has without the member of a bag, (2, n_features)."""
        edges = self.lowest.copy() if without is None else np.where(self.owners == without, self.second, self.lowest)
        edges = edges.reshape(2, -1)
        np.negative(edges[1], out=edges[1])
        return edges

    def nearest_waiting(self) -> int:
        """Return the instance, of a bag without a member, that enlarges the box least."""
        waiting = np.flatnonzero(self.members[self.bag_of] < 0)
        excess = self.excess[waiting]
        least = excess.min()
        some = waiting[excess <= least + _ROUNDING * (self.largest + least)]
        return int(some[0] if len(some) == 1 else some[_sizes_with(self.X[some], self.edges()).argmin()])

    def exchange(self) -> None:
        """Let every bag, one after the other, exchange its member while that makes the box smaller."""
        turn = 0
        while True:
            rows, bags = self._may_gain()
            for bag in _from_turn(bags, turn):
                some = rows[bags == bag]
                sizes = _sizes_with(self.X[some], self.edges(without=bag))
                best = sizes.argmin()
                if sizes[best] < self.size * (1 - _SMALLER):
                    self.place(some[best])
                    turn = bag + 1
                    break
            else:
                return

    def _may_gain(self) -> tuple[Integers, Integers]:
        """Return the instances that could make the box smaller in place of the member of their bag, and the bags.

        Without its member the box loses what lies between the lowest and the second. An instance that enlarges the
        whole box by more than that is none of them.
        """
        losses = np.bincount(self.owners, self.second - self.lowest, minlength=len(self.members))
        limits = np.where(losses > 0, losses + _ROUNDING * self.largest, -np.inf)
        rows = np.flatnonzero(self.excess <= limits[self.bag_of])
        bags = self.bag_of[rows]
        others = rows != self.members[bags]
        return rows[others], bags[others]


def _from_turn(bags: Integers, turn: int) -> list[int]:
    """Return every bag once, in the order of the turns that come next."""
    found = sorted(set(bags.tolist()))
    first = bisect_left(found, turn)
    return found[first:] + found[:first]


def _sizes_with(X: Floats, edges: Floats) -> Floats:
    """Return the size of a box that is enlarged to hold an instance, for every instance."""
    sizes: Floats = (np.maximum(X, edges[1]) - np.minimum(X, edges[0])).sum(axis=1)
    return sizes
