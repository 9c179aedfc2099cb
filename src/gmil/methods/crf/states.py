"""The states of a graph of bags, and how unlike two instances are; plain arrays in, plain arrays out."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gmil.engine.distances import distances
from gmil.engine.sparse_rows import rows_beside
from gmil.errors import BagValidationError
from gmil.methods.shared.columns import as_double
from gmil.methods.svm.kernels import column_blocks, rows_at_once

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers

KINDS: dict[str | None, tuple[str, ...]] = {
    "euclidean": ("euclidean",),
    "gaussian": ("gaussian",),
    "both": ("euclidean", "gaussian"),
    None: (),
}

_MOST_STATES = 4000
"""Candidates of all bags together; beyond, every bag has fewer."""

_MOST_BYTES = 4 << 30


class Dissimilarity(NamedTuple):
    """Kinds of dissimilarity in units of a typical distance: d / width, and 1 - exp(-(d / width)^2)."""

    kinds: tuple[str, ...]
    width: float

    def of(self, distances: Floats) -> Floats:
        """Return one array of the shape of the distances for every kind, (n_kinds, ...)."""
        found = np.empty((len(self.kinds), *distances.shape))
        for kind, values in zip(self.kinds, found, strict=True):
            np.divide(distances, self.width, out=values)
            if kind == "gaussian":
                np.expm1(np.multiply(values, -values, out=values), out=values)
                np.negative(values, out=values)
        return found

    def total(self, X: Instances, others: Instances, weights: Floats, backend: Backend) -> Floats:
        """Return the weighted dissimilarities between every row and all others, added up, (n_rows,)."""
        found = np.zeros(X.shape[0])
        for columns in column_blocks(X, others) if self.kinds else []:
            block = rows_beside(X, others, columns)
            rows = rows_at_once(block)
            for start in range(0, X.shape[0], rows):
                apart = distances(as_double(X[start : start + rows]), block, backend)
                found[start : start + rows] += weights @ self.of(apart).sum(axis=-1)
        return found


class States(NamedTuple):
    """What may be chosen: for every bag "none", its first row, and then candidate instances."""

    scores: Floats  # (n_scorers, n_states), zero for "none"
    pairs: Floats  # (n_kinds, n_states, n_states), zero with "none" and between states of one bag
    offsets: Integers  # (n_bags + 1,)

    @property
    def none(self) -> Integers:
        """The labelling without any instance, (n_bags,)."""
        return self.offsets[:-1].copy()

    @property
    def is_instance(self) -> Booleans:
        """Which rows are instances, (n_states,)."""
        found = np.ones(self.scores.shape[1], dtype=bool)
        found[self.offsets[:-1]] = False
        return found


class Candidates(NamedTuple):
    """The instances of every bag that may be chosen."""

    rows: Integers  # (n_candidates,), positions among all instances, ascending
    offsets: Integers  # (n_bags + 1,), of the candidates

    def chosen(self, labels: Integers) -> Integers:
        """Return the instance that every bag has in a labelling of their `States`, -1 for "none", (n_bags,)."""
        found = np.full(len(labels), -1)
        places = labels - np.arange(len(labels)) - self.offsets[:-1]  # in the bag, where "none" is the first
        some = places > 0
        found[some] = self.rows[self.offsets[:-1][some] + places[some] - 1]
        return found


def best_candidates(scores: Floats, offsets: Integers, max_states: int) -> Candidates:
    """Return the ``max_states`` instances of every bag with the largest scores; fewer where there would be too many."""
    sizes = np.diff(offsets)
    while max_states > 1 and np.minimum(sizes, max_states).sum() > _MOST_STATES:
        max_states -= 1
    order = np.lexsort((-scores, np.repeat(np.arange(len(sizes)), sizes)))
    ranks = np.arange(len(scores)) - np.repeat(offsets[:-1], sizes)
    cuts = np.concatenate([[0], np.cumsum(np.minimum(sizes, max_states))])
    return Candidates(np.sort(order[ranks < max_states]), cuts)


def pairwise_distances(X: Instances, backend: Backend) -> Floats:
    """Return the distances between all rows, (n_rows, n_rows)."""
    X = as_double(X)
    found = np.empty((X.shape[0], X.shape[0]))
    for columns in column_blocks(X, X):
        found[:, columns] = distances(X, X[columns], backend)
    return found


def spread_of(scores: Floats) -> Floats:
    """Return the standard deviation of every row, one where it is nothing but rounding."""
    spreads = scores.std(axis=1)
    return np.where(spreads > 1e-9 * np.abs(scores).max(axis=1), spreads, 1.0)


def make_states(
    scores: Floats, apart: Floats, offsets: Integers, dissimilarity: Dissimilarity, per_pair: float
) -> States:
    """Return the states of candidates whose scores and distances are given.

    Parameters
    ----------
    scores : (n_scorers, n_candidates)
    apart : (n_candidates, n_candidates)
    offsets : (n_bags + 1,)
        Those of the candidates.
    dissimilarity : Dissimilarity
    per_pair : float
        What all dissimilarities are multiplied with.
    """
    n_bags, n_kinds = len(offsets) - 1, len(dissimilarity.kinds)
    cuts = offsets + np.arange(n_bags + 1)
    _check_memory(n_bags, n_kinds * int(cuts[-1]) ** 2 * 8)
    rows = np.delete(np.arange(cuts[-1]), cuts[:-1])
    states = States(np.zeros((len(scores), cuts[-1])), np.zeros((n_kinds, cuts[-1], cuts[-1])), cuts)
    states.scores[:, rows] = scores
    for kind, values in zip(states.pairs, dissimilarity.of(apart), strict=True):
        values *= per_pair
        for row, with_others in zip(rows, values, strict=True):
            kind[row, rows] = with_others
        for start, stop in itertools.pairwise(cuts):
            kind[start:stop, start:stop] = 0
    return states


def in_later_bags(offsets: Integers) -> Booleans:
    """Tell which pairs of instances are of different bags, every pair once, (n_instances, n_instances)."""
    bag_of = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    later: Booleans = bag_of[:, None] < bag_of
    return later


def _check_memory(n_bags: int, n_bytes: int) -> None:
    if n_bytes > _MOST_BYTES:
        msg = (
            f"The graph of {n_bags} bags needs {n_bytes / 2**30:.0f} GiB, above the {_MOST_BYTES >> 30} GiB that are "
            "allowed. Use fewer bags."
        )
        raise BagValidationError(msg)
