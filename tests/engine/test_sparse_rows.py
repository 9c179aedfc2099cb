"""Products and distances between sparse rows are those of the same rows made dense."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from gmil.engine import column_sizes, distances, resolve, sq_differences
from gmil.engine.sparse_rows import (
    filled_columns,
    in_all_columns,
    row_products,
    rows_beside,
    sparse_chebyshev,
    sparse_extremes,
)

BACKEND = resolve("auto", 1)


def sparse_table(share, n_rows=23, seed=0):
    """Return a dense table of which a share is filled, with an empty row and an empty column."""
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((n_rows, 17)) < share, rng.normal(size=(n_rows, 17)), 0)
    table[3], table[:, 4] = 0, 0
    return table


SHARES = pytest.mark.parametrize("share", [0.0, 0.05, 0.6])  # those that fill much are multiplied as dense rows


@SHARES
def test_products_and_squared_distances(share):
    X, Y = sparse_table(share), sparse_table(share, 9, seed=1)
    for others in (Y, sp.csr_array(Y)):
        assert_allclose(row_products(sp.csr_array(X), others), X @ Y.T, atol=1e-12)
        assert_allclose(BACKEND.sq_distances(sp.csr_array(X), others), cdist(X, Y) ** 2, atol=1e-12)
    assert_allclose(row_products(X, Y), X @ Y.T, atol=1e-12)


def test_rows_are_dense_beside_dense_rows():
    X = sparse_table(0.1)
    assert_array_equal(rows_beside(X, sp.csr_array(X), slice(2, 5)), X[2:5])
    assert sp.issparse(rows_beside(sp.csr_array(X), sp.csr_array(X), np.array([1, 1])))
    assert_array_equal(rows_beside(sp.csr_array(X), X, np.array([1, 1])), X[[1, 1]])


@SHARES
def test_distances_of_copies_are_zero(share):
    X = sparse_table(share)
    X[7] = X[8]
    found = distances(sp.csr_array(X), sp.csr_array(X), BACKEND)
    assert_allclose(found, cdist(X, X), atol=1e-7)
    assert_array_equal(found.diagonal(), 0)
    assert found[7, 8] == 0


def test_differences_that_are_rounding_are_zero():
    X, other = np.array([[0, 1e6, 1.0], [0, 1e6, 1.0], [0, 0, 0]]), np.array([[0, 1e6, 1.0], [0, 1e6, 1.1], [0, 0, 1]])
    X[0, 1] += 1e-9
    found = sq_differences(sp.csr_array(X), sp.csr_array(other), column_sizes(sp.csr_array(X)))
    assert_allclose(found, [0, 0.01, 1])
    assert_array_equal(found, sq_differences(X, other, column_sizes(X)))


def test_sizes_of_columns():
    X = sparse_table(0.1)
    assert_array_equal(column_sizes(sp.csr_array(X)), column_sizes(X))
    assert_array_equal(column_sizes(sp.csr_array((0, 3))), np.zeros(3))


@SHARES
def test_largest_differences(share):
    X, points = sparse_table(share), sparse_table(share, 9, seed=1)
    found = sparse_chebyshev(sp.csr_array(points), sp.csr_array(X))
    assert_array_equal(found, cdist(points, X, "chebyshev"))


def test_columns_that_no_row_fills():
    X = np.zeros((4, 9))
    X[[0, 1, 3], [2, 7, 2]] = 1, 2, 3
    assert_array_equal(filled_columns(sp.csr_array(X)), [2, 7])
    assert_array_equal(in_all_columns(X[:, [2, 7]], np.array([2, 7]), 9), X)
    for table in (X, sp.csr_array(X[:, [2, 7]]), sp.csr_array((4, 9))):  # dense, all of it filled, nothing to work on
        assert filled_columns(table) is None
    assert in_all_columns(X, None, 9) is X


@SHARES
def test_extremes_of_bags(share):
    X, offsets = sparse_table(share), np.array([0, 1, 3, 4, 12, 23])
    X[0], X[12:, 2] = 2, 5  # a bag without zeros, a column without them
    found = sparse_extremes(sp.csr_array(X), offsets)
    expected = np.hstack([extreme.reduceat(X, offsets[:-1], axis=0) for extreme in (np.minimum, np.maximum)])
    assert_array_equal(found.toarray(), expected)
    assert sparse_extremes(sp.csr_array((3, 4)), np.array([0, 3])).shape == (1, 8)
