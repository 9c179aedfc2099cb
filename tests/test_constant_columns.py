"""A column that is the same everywhere says nothing: no decision changes with it, wherever scaling happens."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import is_classifier
from tests.estimators import seeded, small

import gmil
from gmil import Bags, LazyBags, WeightedGMIL, make_bags
from gmil.engine import available_backends, moments, resolve
from gmil.methods.shared.columns import varying_columns

CONSTANTS = [0.0, 0.1, 1 / 3, -0.7, 1e6 + 0.1]
WITHOUT_LENGTHS = ["standard", "minmax", "standard+l2", "minmax+l2", "rank"]
# By design the length of an instance, and what is scaled by it, depends on every column.
SETTINGS = {
    "GMILCV": {"param_grid": {"scale": [None, "standard"], "n_clusters": [5, 10]}},
    "WeightedGMIL": {"scales": WITHOUT_LENGTHS},
    "WeightedGMILOrdinal": {"scales": WITHOUT_LENGTHS},
}
# Errors of left out bags are flat where penalties are small: rounding picks one of several that are as good.
TOLERANCES = {"WeightedGMIL": 1e-2, "WeightedGMILOrdinal": 1e-2}
CLASSIFIERS = [cls for _, cls in gmil.all_estimators() if is_classifier(cls())]


def widened(bags, constants=CONSTANTS):
    X = bags.instances
    same = np.tile(np.array(constants, dtype=X.dtype), (len(X), 1))
    return Bags(np.hstack([same[:, :2], X, same[:, 2:]]), bags.offsets)


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def problem(request):
    bags, y = make_bags(30, n_features=5, separation=3, random_state=3, return_X_y=True)
    return Bags(bags.instances.astype(request.param), bags.offsets), y


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_constant_columns_change_no_decision(cls, problem):
    bags, y = problem
    model = seeded(small(cls, **SETTINGS.get(cls.__name__, {})))
    before = model.fit(bags[:22], y[:22]).decision_function(bags)
    after = model.fit(widened(bags)[:22], y[:22]).decision_function(widened(bags))
    tolerance = TOLERANCES.get(cls.__name__, 1e-5 if bags.dtype == np.float32 else 1e-7)
    np.testing.assert_allclose(after, before, rtol=0, atol=tolerance * np.abs(before).max())


def test_proportional_hazards_of_constant_columns_are_none():
    made = make_bags(40, target="survival", n_features=3, random_state=0)
    found = gmil.BagCox(penalty=1.0).fit(widened(made.bags), made.y).coef_
    expected = gmil.BagCox(penalty=1.0).fit(made.bags, made.y).coef_
    np.testing.assert_array_equal(found[[0, 1, 5, 6, 7]], 0)
    np.testing.assert_allclose(found[2:5], expected, rtol=1e-4)


@pytest.mark.parametrize("kind", ["range", "moments", "nearest"])
def test_no_view_is_made_of_rounding(kind, problem):
    bags, y = problem
    model = WeightedGMIL(scales=WITHOUT_LENGTHS, views=[kind], random_state=0).fit(widened(bags), y)
    assert model.views_
    for view in model.views_:
        assert view["divisor"].min() > 1e-6


def test_streamed_bags_have_no_rounding_either(problem):
    bags, y = problem
    wide = widened(bags)
    lazy = LazyBags.from_array(wide.instances, wide.offsets)
    for sample_size in (60, "auto"):
        model = WeightedGMIL(scales=WITHOUT_LENGTHS, sample_size=sample_size, random_state=0)
        one = model.fit(wide, y).decision_function(wide)
        other = model.fit(lazy, y).decision_function(lazy)
        np.testing.assert_allclose(other, one, atol=1e-4)


@pytest.mark.parametrize("backend", available_backends())
def test_moments_are_exact_where_instances_are_equal(backend, problem):
    bags, _ = problem
    backend = resolve(backend)
    wide = widened(bags)
    constant = [0, 1, -3, -2, -1]
    means = moments.bag_mean(wide.instances, wide.offsets, backend)
    assert (means[:, constant] == wide.instances[0, constant]).all()
    assert (moments.bag_deviation(wide.instances, wide.offsets, backend)[:, constant] == 0).all()
    expected = np.array([bag.astype(np.float64).std(axis=0) for bag in wide])
    np.testing.assert_allclose(
        moments.bag_deviation(wide.instances, wide.offsets, backend), expected, rtol=1e-5, atol=1e-9
    )


def test_moments_of_pieces_are_those_of_the_whole():
    rng = np.random.default_rng(0)
    bag = rng.normal(size=(40, 3)) + np.array([0, 1e6, 0])
    bag[:, 2] = 0.1
    backend = resolve("numpy")
    one, other = (backend.bag_moments(bag[part], np.array([0, 20]))[0] for part in (slice(20), slice(20, 40)))
    size, mean, squares = moments.join_moments(one, other)
    np.testing.assert_allclose(size, 40)
    np.testing.assert_allclose(mean, bag.mean(axis=0))
    np.testing.assert_allclose(np.sqrt(squares / size), bag.std(axis=0), rtol=1e-9, atol=1e-16)
    assert mean[2] == 0.1
    assert squares[2] == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_that_differ_by_rounding_do_not_vary(dtype):
    X = np.full((6, 3), 0.1, dtype=dtype)
    X[0, 0] = np.nextafter(X[0, 0], dtype(1))
    X[0, 2] = 0.11
    assert varying_columns(X).tolist() == [2]
