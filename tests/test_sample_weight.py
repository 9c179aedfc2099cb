"""Weights of bags: in every estimator that takes them, 2 is the bag twice and 0 is without it."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.svm import LinearSVC

import gmil
from gmil import BagValidationError
from gmil.engine import resolve
from gmil.methods.svm import training
from gmil.transform.widths import median_gamma

WEIGHTED = [cls() for _, cls in gmil.all_estimators() if "sample_weight" in inspect.signature(cls.fit).parameters]
SETTINGS = [
    *(estimator.set_params(tune=False) for estimator in WEIGHTED if not isinstance(estimator, gmil.AnnealedSVM)),
    gmil.AnnealedSVM(cooling=4.0),
    gmil.WitnessSVM(balance=False),
    gmil.WitnessSVM(kernel="linear", solver="liblinear"),
    pytest.param(gmil.AnnealedSVM("labels", cooling=30.0), marks=pytest.mark.slow),
    pytest.param(gmil.AnnealedSVM("labels-prior", cooling=30.0), marks=pytest.mark.slow),
    gmil.GraphKernelSVM("explicit"),
]
every = pytest.mark.parametrize("estimator", SETTINGS, ids=repr)


@pytest.fixture(scope="module")
def data():
    # With these bags the choice of witnesses is no matter of rounding: annealing has two ends with others.
    bags, y = gmil.make_bags(24, n_features=3, separation=5, random_state=5, return_X_y=True)
    return bags, y, np.random.default_rng(0).integers(0, 4, size=24)


@pytest.fixture
def exact_solvers(exact_machines, monkeypatch):
    """Let the solvers stop much later than they do: what is left then is no matter of their tolerance."""
    monkeypatch.setattr(
        training, "LinearSVC", lambda **options: LinearSVC(**{**options, "tol": 1e-9, "max_iter": 100_000})
    )


def with_widths(estimator):
    """Fix the widths of kernels, so that nothing but the weights is compared."""
    widths = {"gamma": 8.0, "edge_gamma": 50.0}
    return clone(estimator).set_params(**{k: v for k, v in widths.items() if k in estimator.get_params()})


def test_these_estimators_take_weights():
    names = ["AnnealedSVM", "GraphKernelSVM", "InstanceSVM", "WitnessSVM"]
    assert {type(estimator).__name__ for estimator in WEIGHTED} >= set(names)


@every
@pytest.mark.usefixtures("exact_solvers")
def test_a_weight_is_how_often_a_bag_counts(estimator, data):
    bags, y, weights = data
    rows, model = np.repeat(np.arange(len(y)), weights), with_widths(estimator)
    expected = model.fit(bags[rows], y[rows]).decision_function(bags)
    assert_allclose(model.fit(bags, y, sample_weight=weights).decision_function(bags), expected, atol=1e-4)


def test_the_median_width_counts_instances_by_weight():
    rng = np.random.default_rng(0)
    X, weights = rng.integers(0, 9, size=(30, 3)).astype(float), rng.integers(1, 4, size=30)
    backend, copies = resolve("numpy", 1), np.repeat(X, weights, axis=0)
    found = median_gamma(X, backend, rng, weights.astype(float))
    assert found == pytest.approx(median_gamma(copies, backend, rng), rel=1e-12)


@every
def test_a_bag_without_weight_is_left_out(estimator, data):
    bags, y, weights = data
    rows = np.flatnonzero(weights)
    expected = estimator.fit(bags[rows], y[rows]).decision_function(bags)
    assert_array_equal(estimator.fit(bags, y, sample_weight=weights > 0).decision_function(bags), expected)


@every
def test_weights_of_one_are_no_weights(estimator, data):
    bags, y, _ = data
    expected = estimator.fit(bags, y).decision_function(bags)
    assert_array_equal(estimator.fit(bags, y, sample_weight=np.ones(24)).decision_function(bags), expected)


def test_a_bag_that_weighs_much_decides(data):
    bags, y, _ = data
    wrong = y.copy()
    wrong[0] = 1 - y[0]
    weights = np.where(np.arange(24) == 0, 100.0, 1.0)
    light = gmil.GraphKernelSVM(C=0.1).fit(bags, wrong).decision_function(bags)[0]
    heavy = gmil.GraphKernelSVM(C=0.1).fit(bags, wrong, sample_weight=weights).decision_function(bags)[0]
    assert (heavy - light) * (wrong[0] - 0.5) > 0


def test_weights_reach_the_choice_of_a_setting(data):
    bags, y, weights = data
    model = gmil.WitnessSVM(tune=True, random_state=0)
    model.fit(bags, y, sample_weight=1.0 + weights, groups=np.arange(24) // 2)
    assert model.score(bags, y) > 0.8


@pytest.mark.parametrize("wrong", ["length", "negative", "nan", "zero"])
def test_what_is_no_weight_is_refused(data, wrong):
    bags, y, _ = data
    weights = np.ones(23 if wrong == "length" else 24)
    weights[3] = {"negative": -1.0, "nan": np.nan}.get(wrong, 1.0)
    weights *= 0.0 if wrong == "zero" else 1.0
    with pytest.raises(BagValidationError, match="sample_weight"):
        gmil.WitnessSVM().fit(bags, y, sample_weight=weights)
