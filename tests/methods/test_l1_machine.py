"""`L1Machine`: the linear classifier of MILES, whose weights cost the sum of their absolute values."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from gmil.methods.embeddings.l1_machine import L1Machine, best_length

PRICES = st.sampled_from([1e-3, 0.1, 1.0, 10.0, 1e3])


@st.composite
def problems(draw):
    """Draw rows and labels: few values, so that columns are equal, multiples of each other, or constant."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    n_rows, n_columns = draw(st.integers(2, 25)), draw(st.integers(1, 40))
    rows = rng.integers(0, 3, size=(n_rows, n_columns)) / 2
    width = draw(st.sampled_from([None, 1.0, 300.0]))
    if width is not None:  # similarities, which of narrow kernels are zero or far below one
        rows = np.exp(-width * np.square(rng.normal(size=(n_rows, 1)) - rng.normal(size=n_columns)))
    return rows, np.append(rng.integers(0, 2, size=n_rows - 2), [0, 1])


def cost(weights, rows, labels, price):
    """Return the objective and its slopes by the weights, of which the last is the intercept."""
    rows, signs = np.column_stack([rows, np.ones(len(rows))]), np.where(labels == 1, 1, -1)
    errors = np.maximum(0, 1 - signs * (rows @ weights))
    return np.abs(weights).sum() + price * (errors**2).sum(), -2 * price * rows.T @ (signs * errors)


def learnt(rows, labels, price):
    machine = L1Machine(price).fit(rows, labels)
    return np.append(machine.coef_[0], machine.intercept_)


@pytest.mark.parametrize(("price", "weight"), [(1.0, 0.75), (0.5, 0.5), (0.25, 0.0), (0.1, 0.0)])
def test_two_rows_on_paper(price, weight):
    # w + 2 C (1 - w)^2 is least at 1 - 1 / (4 C); by symmetry there is no intercept.
    assert_allclose(learnt(np.array([[1.0], [-1.0]]), np.array([1, 0]), price), [weight, 0], atol=1e-7)


@given(problems(), PRICES)
@settings(max_examples=150)
def test_no_weight_can_be_changed_for_less(problem, price):
    weights = learnt(*problem, price)
    _, slopes = cost(weights, *problem, price)
    has_one = weights != 0
    tolerance = 1e-5 * max(1.0, price)
    assert_allclose(slopes[has_one], -np.sign(weights[has_one]), atol=tolerance)
    assert np.all(np.abs(slopes[~has_one]) <= 1 + tolerance)


@given(problems(), st.sampled_from([0.1, 1.0, 10.0]))
@settings(max_examples=50)
def test_the_objective_is_not_above_that_of_liblinear(problem, price):
    rows, labels = problem
    peer = LinearSVC(penalty="l1", dual=False, C=price, tol=1e-8, max_iter=2000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # where columns are equal it goes on and on
        peer.fit(rows, labels)
    theirs = cost(np.append(peer.coef_[0], peer.intercept_), rows, labels, price)[0]
    assert cost(learnt(rows, labels, price), rows, labels, price)[0] <= theirs * (1 + 1e-9)


def test_similarities_to_many_close_instances():
    rng = np.random.default_rng(0)
    points, prototypes = rng.normal(size=(150, 5)), rng.normal(size=(1500, 5))
    rows = np.exp(-np.square(points[:, None] - prototypes).sum(axis=2) / 10)
    labels = (points[:, 0] * points[:, 1] > 0).astype(int)
    weights = learnt(rows, labels, 100.0)
    _, slopes = cost(weights, rows, labels, 100.0)
    assert_allclose(slopes[weights != 0], -np.sign(weights[weights != 0]), atol=1e-4)
    assert np.abs(slopes).max() <= 1 + 1e-4
    assert np.count_nonzero(weights) <= 151


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("price", [1.0, 100.0])
def test_instances_far_from_all_others(seed, price):
    rng = np.random.default_rng(seed)
    points, prototypes = rng.standard_t(0.5, size=(40, 1, 2)), rng.standard_t(0.5, size=(150, 2))
    rows, labels = np.exp(-np.square(points - prototypes).sum(axis=2)), np.arange(40) % 2
    weights = learnt(rows, labels, price)
    _, slopes = cost(weights, rows, labels, price)
    assert_allclose(slopes[weights != 0], -np.sign(weights[weights != 0]), atol=1e-5 * price)
    assert np.abs(slopes).max() <= 1 + 1e-5 * price


def test_of_equal_columns_one_has_a_weight():
    rng = np.random.default_rng(0)
    rows = np.repeat(np.exp(-np.square(rng.normal(size=(30, 1)) - rng.normal(size=4))), 20, axis=1)
    weights = learnt(rows, np.arange(30) % 2, 10.0)
    assert 0 < np.count_nonzero(weights) <= 5


def test_every_class_is_set_against_the_others():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(60, 8)), rng.integers(0, 3, size=60)
    machine = L1Machine(0.5).fit(rows, labels)
    assert machine.coef_.shape == (3, 8)
    for k in range(3):
        alone = L1Machine(0.5).fit(rows, (labels == k).astype(int))
        assert_allclose(machine.decision_function(rows)[:, k], alone.decision_function(rows))


def test_too_few_steps_are_told():
    rng = np.random.default_rng(0)
    with pytest.warns(ConvergenceWarning, match="not converged after max_iter=1 steps. Increase"):
        L1Machine(10.0, max_iter=1).fit(rng.normal(size=(40, 30)), rng.integers(0, 2, size=40))


@given(st.integers(0, 10_000), st.sampled_from([0.1, 1.0, 10.0]))
@settings(max_examples=100)
def test_steps_are_as_long_as_the_objective_falls(seed, price):
    rng = np.random.default_rng(seed)
    values, step = rng.integers(-2, 3, size=6).astype(float), rng.integers(-2, 3, size=6).astype(float)
    slacks, change = rng.normal(size=9), rng.normal(size=9)

    def along(length):
        return np.abs(values + length * step).sum() + price * (np.maximum(0, slacks + length * change) ** 2).sum()

    assume(along(1e-7) < along(0.0))
    length, stopped = best_length(values, step, slacks, change, price)
    assert along(length) <= min(along(t) for t in np.linspace(0, 3 * length, 301)) + 1e-9
    assert stopped is None or values[stopped] + length * step[stopped] == pytest.approx(0, abs=1e-12)
