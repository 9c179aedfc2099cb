"""Euclidean distances that are right where an instance lies on a centre."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from gmil.engine.reference import row_sq_norms
from gmil.engine.sparse_rows import rows_beside

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from gmil.engine.arrays import Booleans, Floats, Instances, Integers
    from gmil.engine.backends import Backend

_NUMBERS_AT_ONCE = 1 << 17
"""Numbers that are gathered for pairs: so many stay in the cache of a core."""

_SPARSE_PAIRS_AT_ONCE = 1 << 16

_ROUNDING_STEPS = 64
"""The mean of equal numbers may be this many roundings off them."""


def distances(X: Instances, centers: Instances, backend: Backend) -> Floats:
    """Return Euclidean distances between instances and centres, (n_instances, n_centers).

    Centres may be sparse where instances are.

    The fast expansion x.x - 2 x.c + c.c leaves rounding in place of zero, so pairs that it calls close are
    measured again by differences: an instance on a centre of both codebooks is a tie, and a tie is negative.
    """
    squares = backend.sq_distances(X, centers)
    # The expansion is taken around the mean of the centres, so it rounds relative to their size too.
    center_norms = row_sq_norms(centers)
    norms = row_sq_norms(X)[:, None] + center_norms + center_norms.max(initial=0)
    with np.errstate(invalid="ignore"):
        close = np.flatnonzero(~(squares > closeness(squares.dtype) * norms))  # what overflowed is not above it either
    rows, columns = np.divmod(close, centers.shape[0])
    squares.flat[close] = sq_differences_of(X, rows, centers, columns, column_sizes(centers))
    return np.sqrt(squares, out=squares)


def closeness(dtype: DTypeLike) -> float:
    """Return the squared distance, relative to squared norms, below which the expansion is not to be trusted."""
    return float(np.sqrt(np.finfo(dtype).eps))


def column_sizes(X: Instances) -> Floats:
    """Return the largest absolute value of every column: what its rounding is relative to."""
    if sp.issparse(X):
        return np.asarray(abs(X).max(axis=0).toarray()).ravel() if X.shape[0] else np.zeros(X.shape[1], X.dtype)
    return np.abs(X).max(axis=0, initial=0)


def sq_differences(points: Instances, others: Instances, sizes: Floats) -> Floats:
    """Return squared distances of pairs by differences; a distance that is all rounding is zero.

    It is where every column differs by no more than rounding, relative to ``sizes (n_features,)``: one column that is
    far from zero says nothing about the others.
    """
    differences = points - others
    squares = row_sq_norms(differences)
    limits = rounding_of(points.dtype) * sizes
    squares[_all_within(differences, limits)] = 0
    return squares


def sq_differences_of(X: Instances, rows: Integers, others: Instances, columns: Integers, sizes: Floats) -> Floats:
    """Return squared distances by differences between rows of ``X`` and rows of ``others``, a pair for each number."""
    found = np.empty(len(rows), dtype=X.dtype)
    step = _SPARSE_PAIRS_AT_ONCE if sp.issparse(others) else max(1, _NUMBERS_AT_ONCE // max(1, X.shape[1]))
    for start in range(0, len(rows), step):
        some = slice(start, start + step)
        found[some] = sq_differences(rows_beside(others, X, rows[some]), others[columns[some]], sizes)
    return found


def _all_within(differences: Instances, limits: Floats) -> Booleans:
    """Return the rows that have no difference above the limit of its column."""
    if not sp.issparse(differences):
        return np.asarray((np.abs(differences) <= limits).all(axis=1))
    rows = np.repeat(np.arange(differences.shape[0]), np.diff(differences.indptr))
    within = np.abs(differences.data) <= limits[differences.indices]
    return np.bincount(rows[~within], minlength=differences.shape[0]) == 0


def rounding_of(dtype: DTypeLike) -> float:
    """Return how far, relative to equal numbers, their mean may be off them."""
    return _ROUNDING_STEPS * float(np.finfo(dtype).eps)
