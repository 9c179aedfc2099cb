"""K-means of weighted instances, in NumPy: the specification, and for now the only implementation.

Only the assignment, most of the work, runs on the kernels of a backend. Instances of equal weight are better served by
`gmil.engine.kmeans`, which gives the same clusters.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from gmil.engine.kmeans import SEEDINGS, Seeding, is_better
from gmil.engine.reference import TIE, Clusters, dense_rows, fill_empty_clusters, sq_distances

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.engine.backends import Backend


def weighted_kmeans(
    X: Instances,
    weights: Floats,
    n_clusters: int,
    *,
    backend: Backend,
    generator: np.random.Generator,
    init: Floats | None = None,
    n_init: int = 1,
    max_iter: int = 300,
    seeding: Seeding = SEEDINGS["k-means++"],
) -> Clusters:
    """Cluster rows as `gmil.engine.kmeans` does, a row of weight 2 counting as two rows of weight 1.

    Parameters
    ----------
    X : (n_instances, n_features)
    weights : (n_instances,)
        Above zero.
    n_clusters : int
    backend : Backend
    generator : numpy.random.Generator
        Where the starts are drawn from; seeding looks at all rows, because few rows may carry most of the weight.
    init : (n_clusters, n_features), optional
    n_init, max_iter : int
    seeding : Seeding
        Whether starts are chosen greedily.
    """
    if init is not None:
        return weighted_lloyd(X, weights, init.astype(X.dtype), max_iter, backend)
    draws = [generator.random((n_clusters, seeding.n_trials(n_clusters))) for _ in range(n_init)]
    starts = (dense_rows(X, weighted_seed(X, weights, n_clusters, uniforms)) for uniforms in draws)
    runs = (weighted_lloyd(X, weights, start, max_iter, backend) for start in starts)
    return functools.reduce(lambda best, run: run if is_better(run.inertia, best.inertia, X.dtype) else best, runs)


def weighted_seed(X: Instances, weights: Floats, n_clusters: int, uniforms: Floats) -> Integers:
    """Choose the rows that start k-means by k-means++, with chances and totals in proportion to the weights.

    ``uniforms (n_clusters, n_trials)`` are draws from [0, 1), used as `gmil.engine.reference.seed` uses them.
    """
    tie = TIE[np.dtype(X.dtype).name]
    chosen = np.empty(n_clusters, dtype=np.int64)
    chosen[0] = _draw(weights, uniforms[0, :1])[0]
    nearest = _sq_distances_to_rows(X, chosen[:1])[:, 0]
    for k in range(1, n_clusters):
        candidates = _draw(weights * nearest, uniforms[k])
        squares = np.minimum(_sq_distances_to_rows(X, candidates), nearest[:, None])
        totals = weights @ squares.astype(np.float64, copy=False)
        best = int((totals <= totals.min() * (1 + tie)).argmax())
        chosen[k], nearest = candidates[best], squares[:, best]
    return chosen


def _draw(chances: Floats, uniforms: Floats) -> Integers:
    cumulative = np.cumsum(chances, dtype=np.float64)
    found = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
    return np.minimum(found, len(chances) - 1)


def _sq_distances_to_rows(X: Instances, rows: Integers) -> Floats:
    squares = sq_distances(X, dense_rows(X, rows))
    squares[rows, np.arange(len(rows))] = 0  # a row is at distance zero from itself, whatever rounding says
    return squares


def weighted_lloyd(X: Instances, weights: Floats, centers: Floats, max_iter: int, backend: Backend) -> Clusters:
    """Run Lloyd's iterations with weighted means from ``centers`` until no label changes, or ``max_iter`` times.

    As in `gmil.engine.reference.lloyd`, dense data are moved to their mean, and distances round less.
    """
    if sp.issparse(X):
        return _iterate(X, weights, centers.astype(X.dtype), max_iter, backend)
    shift = np.average(X, axis=0, weights=weights).astype(X.dtype)
    found = _iterate(X - shift, weights, (centers - shift).astype(X.dtype), max_iter, backend)
    return found._replace(centers=found.centers + shift)


def _iterate(X: Instances, weights: Floats, centers: Floats, max_iter: int, backend: Backend) -> Clusters:
    labels, nearest = backend.assign(X, centers)
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        filled = fill_empty_clusters(labels, nearest, len(centers))
        centers = weighted_means(X, weights, filled, centers)
        labels, nearest = backend.assign(X, centers)
        if np.array_equal(labels, filled):
            break
    return Clusters(centers, labels, float(weights @ nearest.astype(np.float64, copy=False)), n_iter)


def weighted_means(X: Instances, weights: Floats, labels: Integers, centers: Floats) -> Floats:
    """Return the weighted mean of every cluster; a cluster without instances keeps its centre."""
    shape = (len(centers), len(labels))
    member = sp.csr_array((weights.astype(np.float64), (labels, np.arange(len(labels)))), shape=shape)
    sums: Any = member @ X
    sums = sums.toarray() if sp.issparse(sums) else np.asarray(sums)
    masses = np.bincount(labels, weights=weights, minlength=len(centers))[:, None]
    means = sums / np.where(masses > 0, masses, 1)
    return np.where(masses > 0, means, centers).astype(centers.dtype, copy=False)
