"""The specification of every kernel, in NumPy and SciPy, for dense and sparse instances."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np
import scipy.sparse as sp

from gmil.engine.arrays import is_of_kernels
from gmil.engine.columns import column_ranks as column_ranks  # these too are part of this backend
from gmil.engine.columns import l1_distances as l1_distances
from gmil.engine.margins import solve_svm as solve_svm
from gmil.engine.rbf import block_rbf_sums
from gmil.engine.sparse_rows import row_products, rows_beside
from gmil.engine.sparse_rows import sparse_sq_distances as sparse_sq_distances

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gmil.engine.arrays import Booleans, Floats, Instances, Integers
    from gmil.engine.rbf import Points

_Method = TypeVar("_Method", bound="Callable[..., Any]")

name = "numpy"
n_threads = 1

_BLOCK_ENTRIES = 1 << 22
"""How many distances are held at once while assigning: 32 MiB in double precision."""

TIE = {"float32": 2e-5, "float64": 4e-11}
"""How far apart, relative to themselves, two totals of distances may be and still count as equal."""


class Clusters(NamedTuple):
    """Where k-means ended."""

    centers: Floats  # (n_clusters, n_features)
    labels: Integers  # (n_instances,)
    inertia: float
    n_iter: int


class GramClusters(NamedTuple):
    """Where k-means in Gram space ended, for every job; rows that did not train are there too."""

    labels: Integers  # (n_jobs, n_instances)
    sq_distances: Floats  # (n_jobs, n_instances, n_clusters)
    inertia: Floats  # (n_jobs,), of the rows that trained
    n_iter: Integers  # (n_jobs,)


class BagMinima(NamedTuple):
    """The two smallest values of every bag, column by column."""

    smallest: Floats  # (n_bags, ...)
    where: Integers  # (n_bags, ...): the first row that has the smallest value
    second: Floats  # (n_bags, ...): the smallest of the other rows, infinity in a bag of one


def sq_distances(X: Instances, centers: Instances) -> Floats:
    """Return squared Euclidean distances between instances and centres, (n_instances, n_centers).

    They are expanded as x.x - 2 x.c + c.c around the mean of the centres, which keeps the cancellation relative to the
    spread of the data and not to its distance from the origin. Sparse ones stay; only theirs may be sparse centres.
    """
    if sp.issparse(X):
        return _expand(X, centers)
    out = np.empty((X.shape[0], len(centers)), dtype=X.dtype)
    shift = centers.mean(axis=0)
    moved_centers = (centers - shift).astype(X.dtype, copy=False)
    rows = max(1, _BLOCK_ENTRIES // max(1, X.shape[1]))
    for start in range(0, X.shape[0], rows):
        block = slice(start, start + rows)
        out[block] = _expand((X[block] - shift).astype(X.dtype, copy=False), moved_centers)
    return out


def rbf_sums(left: Points, right: Points, gammas: Sequence[float]) -> Floats:
    """Return weighted sums of exp(-gamma d^2) over all pairs of points of two bags, (n_gammas, n_left, n_right).

    No matrix of all pairs of points is ever held. Where both are the same object, half of the pairs suffice.
    """
    return block_rbf_sums(left, right, gammas, sq_distances)


def _expand(X: Instances, centers: Instances) -> Floats:
    squares = row_products(X, centers)  # (n_instances, n_centers)
    squares *= -2
    squares += row_sq_norms(X)[:, None]
    squares += row_sq_norms(centers)
    return np.maximum(squares, 0, out=squares)


def row_sq_norms(X: Instances) -> Floats:
    """Return the squared Euclidean norm of every row."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    norms: Floats = np.einsum("ij,ij->i", X, X)
    return norms


def assign(X: Instances, centers: Floats) -> tuple[Integers, Floats]:
    """Return the nearest centre of every instance (the first of equals) and its squared distance."""
    n_instances = X.shape[0]
    labels = np.empty(n_instances, dtype=np.int32)
    nearest = np.empty(n_instances, dtype=X.dtype)
    rows = max(1, _BLOCK_ENTRIES // max(1, len(centers)))
    for start in range(0, n_instances, rows):
        block = slice(start, start + rows)
        squares = sq_distances(X[block], centers)
        labels[block] = squares.argmin(axis=1)
        nearest[block] = np.take_along_axis(squares, labels[block, None], axis=1)[:, 0]
    return labels, nearest


def assign_sums(X: Instances, centers: Floats) -> tuple[Integers, Floats, Floats, Integers]:
    """Return what `assign` returns, the sums of the instances of every centre, and their number."""
    labels, nearest = assign(X, centers)
    return labels, nearest, *cluster_sums(X, labels, len(centers))


def seed(X: Instances, n_clusters: int, uniforms: Floats, weights: Floats | None = None) -> Integers:
    """Choose the rows that start k-means by greedy k-means++; with one trial it is the plain one.

    ``uniforms (n_clusters, n_trials)`` are draws from [0, 1), so that every backend chooses the same rows:
    the first picks the first row, each later line picks candidates in proportion to their squared distance
    to the rows chosen so far, and the candidate that leaves the least total distance is kept. Two candidates that
    are each other's neighbours leave exactly the same total: totals that rounding cannot tell apart are equal, and
    the first of equals is kept. Chances and totals are in proportion to ``weights (n_instances,)``, if any.
    """
    return _greedy_choice(X.shape[0], n_clusters, uniforms, lambda rows: _sq_distances_to_rows(X, rows), weights)


def _greedy_choice(
    n_instances: int,
    n_clusters: int,
    uniforms: Floats,
    to_rows: Callable[[Integers], Floats],
    weights: Floats | None = None,
) -> Integers:
    chosen = np.empty(n_clusters, dtype=np.int64)
    if weights is None:
        chosen[0] = min(int(uniforms[0, 0] * n_instances), n_instances - 1)
    else:
        chosen[0] = _draw(weights, uniforms[0, 0])
    nearest = to_rows(chosen[:1])[:, 0]
    tie = TIE[nearest.dtype.name]
    for k in range(1, n_clusters):
        candidates = _draw(nearest if weights is None else weights * nearest, uniforms[k])
        squares = np.minimum(to_rows(candidates), nearest[:, None])
        totals = squares.sum(axis=0, dtype=np.float64) if weights is None else weights @ squares.astype(np.float64)
        best = int((totals <= totals.min() * (1 + tie)).argmax())
        chosen[k], nearest = candidates[best], squares[:, best]
    return chosen


def _draw(chances: Floats, uniforms: Any) -> Any:
    cumulative = np.cumsum(chances, dtype=np.float64)
    found = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
    return np.minimum(found, len(chances) - 1)


def _sq_distances_to_rows(X: Instances, rows: Integers) -> Floats:
    squares = sq_distances(X, rows_beside(X, X, rows))
    squares[rows, np.arange(len(rows))] = 0  # a row is at distance zero from itself, whatever rounding says
    return squares


def dense_rows(X: Instances, rows: Integers) -> Floats:
    """Return the given rows as a dense array."""
    picked = X[rows]
    return picked.toarray() if sp.issparse(picked) else picked


def lloyd(
    X: Instances,
    centers: Floats,
    max_iter: int,
    weights: Floats | None = None,
    find_nearest: Callable[[Instances, Floats], tuple[Integers, Floats]] = assign,
) -> Clusters:
    """Run Lloyd's iterations from ``centers`` until no label changes, or ``max_iter`` times.

    Dense data and centres are moved to the mean of the data: distances stay, and both round less. With ``weights
    (n_instances,)`` means and inertia are weighted; ``find_nearest`` is the `assign` of any backend.
    """
    if sp.issparse(X):
        return _iterate(X, centers.astype(X.dtype), max_iter, weights, find_nearest)
    shift = X.mean(axis=0, dtype=np.float64) if weights is None else np.average(X, axis=0, weights=weights)
    shift = shift.astype(X.dtype)
    found = _iterate(X - shift, (centers - shift).astype(X.dtype), max_iter, weights, find_nearest)
    return found._replace(centers=found.centers + shift)


def _iterate(X: Instances, centers: Floats, max_iter: int, weights: Floats | None, find_nearest: Any) -> Clusters:
    labels, nearest = find_nearest(X, centers)
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        filled = fill_empty_clusters(labels, nearest, len(centers))
        centers = cluster_means(X, filled, centers, weights)
        labels, nearest = find_nearest(X, centers)
        if np.array_equal(labels, filled):
            break
    inertia = nearest.sum(dtype=np.float64) if weights is None else weights @ nearest.astype(np.float64, copy=False)
    return Clusters(centers, labels, float(inertia), n_iter)


def fill_empty_clusters(labels: Integers, nearest: Floats, n_clusters: int) -> Integers:
    """Give every empty cluster the instance that is farthest from its own centre.

    An instance that is alone in its cluster, or at its centre already, is never moved: where there are fewer
    distinct instances than clusters, some clusters stay empty and keep their centre.
    """
    counts = np.bincount(labels, minlength=n_clusters)
    empty = np.flatnonzero(counts == 0)
    if len(empty) == 0:
        return labels
    labels = labels.copy()
    candidates = iter(np.argsort(-nearest, kind="stable"))
    for cluster in empty:
        for row in candidates:
            if nearest[row] == 0:
                return labels
            if counts[labels[row]] > 1:
                counts[labels[row]] -= 1
                labels[row] = cluster
                break
    return labels


def cluster_means(X: Instances, labels: Integers, centers: Floats, weights: Floats | None = None) -> Floats:
    """Return the mean of every cluster; a cluster without instances keeps its centre."""
    sums, counts = cluster_sums(X, labels, len(centers), weights)
    means = sums / np.where(counts > 0, counts, 1)[:, None]
    return np.where(counts[:, None] > 0, means, centers).astype(centers.dtype, copy=False)


def cluster_sums(
    X: Instances, labels: Integers, n_clusters: int, weights: Floats | None = None
) -> tuple[Floats, Integers]:
    """Return the sum of the instances of every cluster, in double precision, and their number or total weight."""
    n_instances = len(labels)
    shares = np.ones(n_instances) if weights is None else weights.astype(np.float64)
    member = sp.csr_array((shares, (labels, np.arange(n_instances))), shape=(n_clusters, n_instances))
    sums: Any = member @ X
    counts: Any = np.bincount(labels, weights=weights, minlength=n_clusters)
    return (sums.toarray() if sp.issparse(sums) else np.asarray(sums)), counts


def gram_matrix(X: Instances) -> Floats:
    """Return the products of all rows, moved to their mean, in double precision."""
    rows = dense_rows(X, np.arange(X.shape[0])).astype(np.float64)
    rows -= rows.mean(axis=0)
    gram: Floats = rows @ rows.T
    return gram


def gram_seed(gram: Floats, members: Booleans, uniforms: Floats) -> Integers:
    """Choose the rows that start every job, (n_jobs, n_clusters), as `seed` does from the rows that train it.

    ``gram (n_instances, n_instances)`` holds the products of all rows, ``members (n_jobs, n_instances)`` says which
    rows train a job, and ``uniforms (n_jobs, n_clusters, n_trials)`` are draws from [0, 1).
    """
    chosen = np.empty(uniforms.shape[:2], dtype=np.int64)
    for job, draws in enumerate(uniforms):
        rows = np.flatnonzero(members[job])
        to_rows = functools.partial(_gram_to_rows, gram[np.ix_(rows, rows)])
        chosen[job] = rows[_greedy_choice(len(rows), len(draws), draws, to_rows)]
    return chosen


def _gram_to_rows(gram: Floats, rows: Integers) -> Floats:
    norms = gram.diagonal()
    squares: Floats = np.maximum(norms[:, None] + norms[rows] - 2 * gram[:, rows], 0)
    squares[rows, np.arange(len(rows))] = 0
    return squares


def gram_lloyd(gram: Floats, members: Booleans, starts: Integers, max_iter: int) -> GramClusters:
    """Run Lloyd's iterations of every job from the rows ``starts (n_jobs, n_clusters)``, from products alone.

    A job sees only its ``members``; labels and distances are for all rows.
    """
    jobs = [_gram_iterate(gram, *job, max_iter) for job in zip(members, starts, strict=True)]
    labels, squares, inertia, n_iter = zip(*jobs, strict=True)
    return GramClusters(np.stack(labels), np.stack(squares), np.array(inertia), np.array(n_iter))


def _gram_iterate(
    gram: Floats, members: Booleans, starts: Integers, max_iter: int
) -> tuple[Integers, Floats, float, int]:
    n_clusters, rows = len(starts), np.flatnonzero(members)
    weights = np.zeros((n_clusters, len(gram)))  # centre k is the sum over all rows i of weights[k, i] * x_i
    weights[np.arange(n_clusters), starts] = 1
    squares = _gram_sq_distances(gram, weights)
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        labels, nearest = squares[rows].argmin(axis=1), squares[rows].min(axis=1)
        filled = fill_empty_clusters(labels, nearest, n_clusters)
        counts = np.bincount(filled, minlength=n_clusters)
        weights[counts > 0] = 0
        weights[filled, rows] = 1 / counts[filled]
        squares = _gram_sq_distances(gram, weights)
        if np.array_equal(squares[rows].argmin(axis=1), filled):
            break
    inertia = float(squares[rows].min(axis=1).sum())
    return squares.argmin(axis=1).astype(np.int32), squares, inertia, n_iter


def _gram_sq_distances(gram: Floats, weights: Floats) -> Floats:
    products = gram @ weights.T  # (n_instances, n_clusters)
    own = np.einsum("ki,ik->k", weights, products)
    return np.maximum(gram.diagonal()[:, None] - 2 * products + own, 0)


def bag_min(values: Floats, offsets: Integers) -> Floats:
    """Return the minimum over every bag, column by column."""
    return np.asarray(np.minimum.reduceat(values, offsets[:-1], axis=0))


def bag_max(values: Floats, offsets: Integers) -> Floats:
    """Return the maximum over every bag, column by column."""
    return np.asarray(np.maximum.reduceat(values, offsets[:-1], axis=0))


def bag_mean(values: Floats, offsets: Integers) -> Floats:
    """Return the mean over every bag, column by column, summed in double precision."""
    sizes = np.diff(offsets).reshape((-1,) + (1,) * (values.ndim - 1))
    return (np.add.reduceat(values, offsets[:-1], axis=0, dtype=np.float64) / sizes).astype(values.dtype, copy=False)


def bag_deviation(values: Floats, offsets: Integers) -> Floats:
    """Return the root mean squared deviation from the mean over every bag, column by column."""
    wide = values.astype(np.float64)
    wide -= np.repeat(bag_mean(wide, offsets), np.diff(offsets), axis=0)
    return np.sqrt(bag_mean(np.square(wide), offsets)).astype(values.dtype, copy=False)


def bag_moments(values: Floats, offsets: Integers) -> Floats:
    """Return size, mean and sum of squared deviations of every bag, (n_bags, 3, n_features), in double precision.

    They are measured from the first instance: no digits are lost far from zero, nor where all instances are equal.
    """
    sizes, first = np.diff(offsets), values[offsets[:-1]].astype(np.float64)
    moved = values - np.repeat(first, sizes, axis=0)
    means = np.add.reduceat(moved, offsets[:-1], axis=0) / sizes[:, None]
    squares = np.add.reduceat((moved - np.repeat(means, sizes, axis=0)) ** 2, offsets[:-1], axis=0)
    return np.stack([np.broadcast_to(sizes[:, None], means.shape), first + means, squares], axis=1)


def bag_two_min(values: Floats, offsets: Integers) -> BagMinima:
    """Return the two smallest values of every bag, column by column, and the first row that has the smallest."""
    bags = np.split(values, offsets[1:-1])
    where = [start + bag.argmin(axis=0) for start, bag in zip(offsets[:-1], bags, strict=True)]
    alone = np.full_like(values[:1], np.inf)
    second = [np.partition(np.concatenate([bag, alone]), 1, axis=0)[1] for bag in bags]
    return BagMinima(bag_min(values, offsets), np.array(where), np.array(second))


def bag_histograms(labels: Integers, offsets: Integers, n_bins: int) -> Integers:
    """Count the instances of every bag in every bin, (n_bags, n_bins)."""
    n_bags = len(offsets) - 1
    bag_of = np.repeat(np.arange(n_bags), np.diff(offsets))
    flat = np.bincount(bag_of * n_bins + labels, minlength=n_bags * n_bins)
    return flat.reshape(n_bags, n_bins)


def class_histograms(labels: Integers, offsets: Integers, classes: Integers, n_classes: int, n_bins: int) -> Integers:
    """Count the instances of every bin by the class of their bag, (n_classes, n_bins)."""
    class_of = np.repeat(classes, np.diff(offsets))
    flat = np.bincount(class_of * n_bins + labels, minlength=n_classes * n_bins)
    return flat.reshape(n_classes, n_bins)


def or_reference(method: _Method) -> _Method:
    """Make a kernel of a backend: arrays (or tensors) of single and double precision are its own, others done here."""
    here: Callable[..., Any] = globals()[method.__name__]

    @functools.wraps(method)
    def kernel(self: Any, X: Any, *rest: Any) -> Any:
        if sp.issparse(X) or not is_of_kernels(X.dtype):
            return here(X, *rest)
        return method(self, X, *rest)

    return cast("_Method", kernel)
