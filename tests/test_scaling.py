"""Scalings against scikit-learn, and sparse instances against dense ones."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler

from gmil import BagValidationError
from gmil.transform.scaling import SCALINGS
from gmil.transform.space import fit_scaling

SAME_IN_SCIKIT_LEARN = {
    "standard": StandardScaler(),
    "minmax": MinMaxScaler(),
    "l2": Normalizer(),
    "standard+l2": make_pipeline(StandardScaler(), Normalizer()),
    "minmax+l2": make_pipeline(MinMaxScaler(), Normalizer()),
}
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-12}


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param


@pytest.fixture
def train_and_new(dtype):
    """Return training instances with constant features (one of them 0, one 0.1), and new ones."""
    rng = np.random.default_rng(0)
    train = rng.normal(size=(40, 5)) * [1, 100, 0, 0, 0.01] + [0, 50, 0, 0.1, -3]
    return train.astype(dtype), (rng.normal(size=(7, 5)) * 3).astype(dtype)


@pytest.mark.parametrize("how", SAME_IN_SCIKIT_LEARN)
def test_scalings_are_those_of_scikit_learn(how, train_and_new, dtype):
    train, new = train_and_new
    scaling = fit_scaling(train, how)
    oracle = SAME_IN_SCIKIT_LEARN[how].fit(train)
    for X in (train, new):
        scaled = scaling.apply(X)
        expected = oracle.transform(X)
        assert scaled.dtype == dtype
        assert_allclose(scaled, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * np.abs(expected).max())


def test_a_constant_feature_is_moved_and_not_stretched(train_and_new):
    train, _ = train_and_new
    for how in ("standard", "minmax"):
        scaling = fit_scaling(train, how)
        assert_array_equal(scaling.divisor[[2, 3]], [1, 1])
        assert_array_equal(scaling.apply(train)[:, [2, 3]], 0)


@pytest.mark.parametrize("how", ["standard", "minmax"])
@pytest.mark.parametrize("value", [0.1, -1e6 / 3, 1e-30])
def test_a_feature_that_differs_by_rounding_is_not_stretched(how, value, dtype):
    rows = np.full((30, 2), value, dtype=dtype)
    rows[::3, 0] = np.nextafter(rows[0, 0], dtype(np.inf))
    scaling = fit_scaling(rows, how)
    assert_array_equal(scaling.divisor, [1, 1])
    assert np.abs(scaling.apply(rows)).max() <= 4 * np.finfo(dtype).eps * abs(value)


def test_global_scales_the_range_of_the_whole_matrix_to_one(dtype):
    train = np.array([[0, 2, 1, 4], [2, 10, 3, 1]], dtype=dtype)
    scaling = fit_scaling(train, "global")
    assert_allclose(scaling.apply(train), train / (10 * np.sqrt(4)), rtol=1e-6)
    ends = np.array([[0, 0, 0, 0], [10, 10, 10, 10]], dtype=dtype)
    assert_allclose(pdist(scaling.apply(ends)), 1, rtol=1e-6)


def test_global_moves_a_constant_matrix_and_does_not_stretch_it():
    assert_array_equal(fit_scaling(np.full((3, 2), 7.0), "global").apply(np.full((3, 2), 7.0)), 0)


def test_none_leaves_instances_as_they_are(train_and_new):
    train, _ = train_and_new
    assert fit_scaling(train, None).apply(train) is train


@pytest.mark.parametrize("how", SCALINGS)
def test_the_instances_passed_stay_as_they_are(how, train_and_new):
    train, new = train_and_new
    before, new_before = train.copy(), new.copy()
    fit_scaling(train, how).apply(new)
    fit_scaling(train, how).apply(train)
    assert_array_equal(train, before)
    assert_array_equal(new, new_before)


def test_a_zero_instance_stays_zero_under_l2():
    X = np.array([[0.0, 0.0], [3.0, 4.0]])
    assert_array_equal(fit_scaling(X, "l2").apply(X), [[0, 0], [0.6, 0.8]])


# ------------------------------------------------------------------ sparse instances


@pytest.fixture
def sparse_train(dtype):
    """Return mostly empty instances; feature 2 is constant and not zero, feature 3 is zero."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 5)) * (rng.random((30, 5)) < 0.4) * [1, 40, 0, 0, 0.1]
    X[:, 2] = 0.1
    return sp.csr_array(X.astype(dtype))


@pytest.mark.parametrize("how", ["standard", "minmax", "l2", "global"])
def test_distances_between_sparse_instances_are_those_of_dense_ones(how, sparse_train, dtype):
    before = sparse_train.copy()
    scaled = fit_scaling(sparse_train, how).apply(sparse_train)
    dense = sparse_train.toarray()
    expected = fit_scaling(dense, how).apply(dense)
    assert isinstance(scaled, sp.csr_array)
    assert scaled.dtype == dtype
    assert_allclose(pdist(scaled.toarray()), pdist(expected), rtol=1e-4 if dtype == np.float32 else 1e-9, atol=1e-6)
    assert_array_equal(sparse_train.toarray(), before.toarray())


@pytest.mark.parametrize("how", ["standard", "minmax", "global"])
def test_the_divisors_of_sparse_instances_are_those_of_dense_ones(how, sparse_train, dtype):
    divisor = fit_scaling(sparse_train, how).divisor
    assert_allclose(divisor, fit_scaling(sparse_train.toarray(), how).divisor, rtol=TOLERANCE[dtype])
    assert (divisor > 0).all()


def test_the_deviation_of_a_sparse_feature_far_from_zero_is_exact(dtype):
    X = (1000 + np.random.default_rng(2).normal(size=(50, 1)) / 10).astype(dtype)
    assert_allclose(fit_scaling(sp.csr_array(X), "standard").divisor, X.std(axis=0, dtype=np.float64), rtol=1e-6)


@pytest.mark.parametrize("how", ["standard+l2", "minmax+l2"])
def test_scalings_that_would_make_sparse_instances_dense_are_refused(how, sparse_train):
    with pytest.raises(BagValidationError, match=rf"scale='{how[:-3]}\+l2' moves the origin.*Use scale='l2'"):
        fit_scaling(sparse_train, how)
