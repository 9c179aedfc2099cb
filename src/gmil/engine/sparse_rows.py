"""The specification of kernels for rows most of whose numbers are zero; the others are in `gmil.engine.reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats, Instances, Integers

_SPARSE_UP_TO = 1 / 8
"""The share of filled entries above which rows are multiplied faster as dense ones."""

_MOST_FILLED = 1 / 2
"""The share of columns that are filled above which leaving out the others is not worth a copy."""


def rows_beside(X: Instances, Y: Instances, rows: Integers | slice) -> Instances:
    """Return rows of ``Y`` as `row_products` and distances to rows of ``X`` want them: sparse where both are."""
    picked = Y[rows]
    return picked.toarray() if sp.issparse(picked) and not sp.issparse(X) else picked


def row_products(X: Instances, Y: Instances) -> Floats:
    """Return the products of the rows of two matrices as a dense array, (n_rows_of_X, n_rows_of_Y).

    Of sparse rows, only the columns that both fill are met; ``Y`` may be sparse where ``X`` is.
    """
    if not sp.issparse(Y):
        return np.asarray(X @ Y.T)
    if Y.nnz > _SPARSE_UP_TO * Y.shape[0] * Y.shape[1]:
        return np.asarray(X @ Y.toarray().T)
    return np.asarray((X @ Y.T).toarray())


def filled_columns(X: Instances) -> Integers | None:
    """Return the columns that sparse rows fill, ascending, where these are few of many; None: work on all of them."""
    if not sp.issparse(X):
        return None
    filled = np.unique(X.indices)
    return filled if 0 < len(filled) <= _MOST_FILLED * X.shape[1] else None


def in_all_columns(rows: Floats, columns: Integers | None, n_columns: int) -> Floats:
    """Return dense rows of some columns as rows of all, zero in the others."""
    if columns is None:
        return rows
    found = np.zeros((len(rows), n_columns), dtype=rows.dtype)
    found[:, columns] = rows
    return found


def sparse_chebyshev(points: Any, X: Any) -> Floats:
    """Return the largest absolute difference in a column between sparse rows, (n_points, n_rows).

    Of a column that only one of two rows fills, the difference is its number; those that neither fills are not met.
    """
    found = np.zeros((points.shape[0], X.shape[0]))
    filled = np.flatnonzero(np.diff(X.indptr))  # `reduceat` takes no empty rows
    columns, point = X.tocsc(), np.zeros(X.shape[1])
    for place, far in enumerate(found):
        own = slice(points.indptr[place], points.indptr[place + 1])
        at, values = points.indices[own], points.data[own]
        if len(at):
            far[:] = np.abs(columns[:, at].toarray() - values).max(axis=1)
        if len(filled):
            point[at] = values
            of_entries = np.abs(X.data - point[X.indices])
            far[filled] = np.maximum(far[filled], np.maximum.reduceat(of_entries, X.indptr[filled]))
            point[at] = 0
    return found


def sparse_extremes(X: Any, offsets: Integers) -> Any:
    """Return the least and the largest number of every column over every bag, side by side, as sparse rows."""
    n_columns, sizes = X.shape[1], np.diff(offsets)
    bag_of = np.repeat(np.repeat(np.arange(len(sizes)), sizes), np.diff(X.indptr))  # of every entry
    order = np.lexsort((X.indices, bag_of))
    bags, columns, data = bag_of[order], X.indices[order].astype(np.int64), X.data[order]
    starts = np.flatnonzero((np.diff(bags, prepend=-1) != 0) | (np.diff(columns, prepend=-1) != 0))
    bags, columns = bags[starts], columns[starts]
    if not len(starts):
        return sp.csr_array((len(sizes), 2 * n_columns), dtype=X.dtype)
    low, high = np.minimum.reduceat(data, starts), np.maximum.reduceat(data, starts)
    has_zero = np.diff(starts, append=len(data)) < sizes[bags]
    low[has_zero], high[has_zero] = np.minimum(low[has_zero], 0), np.maximum(high[has_zero], 0)
    places = np.tile(bags, 2), np.concatenate([columns, columns + n_columns])
    found = sp.csr_array((np.concatenate([low, high]), places), shape=(len(sizes), 2 * n_columns))
    found.eliminate_zeros()
    return found


def sparse_sq_distances(rows: Any, matrix: Floats, terms: Floats, per_row: Floats) -> Floats:
    """Return squared distances between sparse rows and centres that were prepared, (n_rows, n_centers).

    They are ``scale * (x.m + inner) + length + outer``, none below zero.

    Parameters
    ----------
    rows : csr_array of shape (n_rows, n_features)
    matrix : array of shape (n_features, n_centers)
        The columns m.
    terms : array of shape (2, n_centers)
        ``inner`` and ``outer``.
    per_row : array of shape (n_rows, 2)
        ``scale`` and ``length``.
    """
    found: Floats = rows @ matrix
    found += terms[0]
    found *= per_row[:, :1]
    found += per_row[:, 1:]
    found += terms[1]
    return np.maximum(found, 0, out=found)
