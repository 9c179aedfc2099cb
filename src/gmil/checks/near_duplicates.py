"""Bags that are nearly the same: copies with rounding, compression or a little noise between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from gmil.bags import Bags
from gmil.engine import resolve
from gmil.transform.vectors.summaries import summarize

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats, Integers

NEAR = 0.05
"""So much nearer than bags usually are to their nearest one, two bags are nearly the same."""


def near_duplicates(bags: Bags) -> Integers:
    """Return pairs of bags that are much nearer to each other than bags usually are, (n_pairs, 2), the first smaller.

    Bags are compared by mean, minimum and maximum of their features, sparse ones by the direction of their mean. Bags
    that are exactly the same are among the pairs.
    """
    vectors = _vectors(bags)
    if len(bags) < 3:
        return np.empty((0, 2), dtype=np.int64)
    distances, numbers = NearestNeighbors(n_neighbors=3).fit(vectors).kneighbors(vectors)
    # A bag is its own nearest one, or an exact copy is; of copies the usual distance must not be zero.
    usual = float(np.median(distances[:, 1][distances[:, 1] > 0])) if (distances[:, 1] > 0).any() else 0.0
    rows, columns = np.nonzero(distances <= NEAR * usual + 1e-12)
    pairs = np.column_stack([rows, numbers[rows, columns]])
    return np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)


def _vectors(bags: Bags) -> Any:
    """Return what bags are compared by, (n_bags, n)."""
    if sp.issparse(bags.instances):
        X: Any = bags.instances.copy()
        X.data = np.nan_to_num(X.data)
        means = sp.csr_array((1 / bags.sizes[bags.segment_ids], bags.segment_ids, np.arange(bags.n_instances + 1)))
        return normalize(means.T @ X)
    X = np.nan_to_num(np.asarray(bags.instances, dtype=np.float64))
    found = summarize(X, bags.offsets, ("min", "mean", "max"), resolve("auto"))
    spread = found.std(axis=0)
    return (found - found.mean(axis=0))[:, spread > 0] / spread[spread > 0]


def compared_by(reference: Bags, new: Bags) -> tuple[Floats, Floats]:
    """Return how far reference bags are from their nearest other one, and new bags from their nearest reference bag."""
    vectors = _vectors(Bags.concat([Bags(part.instances, part.offsets) for part in (reference, new)]))
    own, others = vectors[: len(reference)], vectors[len(reference) :]
    nearest = NearestNeighbors(n_neighbors=1).fit(own)
    return nearest.kneighbors()[0][:, 0], nearest.kneighbors(others)[0][:, 0]


def joined_by(pairs: Integers, n_bags: int) -> Integers:
    """Return a number for every bag, equal where pairs join them, (n_bags,).

    >>> joined_by(np.array([[0, 2], [2, 3]]), 5).tolist()
    [0, 1, 0, 0, 2]
    """
    graph = sp.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n_bags, n_bags))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)
