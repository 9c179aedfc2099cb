"""The compiled support vector machine against scikit-learn's, on every instruction set that runs here."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from tests.simd import simd_level  # noqa: F401 (every test runs with it)

from gmil.engine import margins, reference
from gmil.engine.margins import Margins

native = pytest.importorskip("gmil.engine.native.backend", exc_type=ImportError)
BACKEND = native.NativeBackend(1)


class Problem(NamedTuple):
    kernel: np.ndarray
    positive: np.ndarray
    costs: np.ndarray

    def energy(self, machine: Margins) -> float:
        """Return what training minimises, at the products and the intercept of the machine."""
        values = self.kernel @ machine.dual + machine.intercept
        slacks = np.maximum(0, 1 - np.where(self.positive, values, -values))
        return float(machine.dual @ self.kernel @ machine.dual / 2 + self.costs @ slacks)


KERNELS = ("rbf", "linear", "rounded", "equal rows")


def draw_problem(seed, n_rows, kind, C):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    if kind == "equal rows":
        X = X[rng.integers(0, 1 + n_rows // 3, n_rows)]
    kernel = X @ X.T if kind == "linear" else np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    if kind == "rounded":  # as of single precision, with small negative eigenvalues
        noise = rng.normal(size=kernel.shape) * 1e-6
        kernel = kernel + noise + noise.T
    positive = X[:, 0] + rng.normal(size=n_rows) > 0
    costs = C * rng.uniform(0.1, 1, n_rows) * (rng.random(n_rows) < 0.8)
    positive[:2], costs[:2] = (True, False), C
    return Problem(kernel, positive, costs)


problems = st.builds(
    draw_problem,
    st.integers(0, 10**6),
    st.integers(2, 90),
    st.sampled_from(KERNELS),
    st.sampled_from([0.01, 1.0, 100.0]),
)


def assert_solves(problem, machine):
    """Check bounds, the sum, the products and that no two rows disagree about the intercept."""
    dual, total = machine.dual, problem.costs.sum()
    signed = np.where(problem.positive, dual, -dual)
    assert (signed >= 0).all()
    assert (signed <= problem.costs).all()
    assert abs(dual.sum()) <= 1e-12 * total
    assert_allclose(machine.products, problem.kernel @ dual, atol=1e-10 * (1 + total))
    left = np.where(problem.positive, 1, -1) - machine.products
    takes_part, slack = problem.costs > 0, 1e-13 * total
    rises = takes_part & (dual < np.where(problem.positive, problem.costs, 0) - slack)
    falls = takes_part & (dual > np.where(problem.positive, 0, -problem.costs) + slack)
    assert left[rises].max() - left[falls].min() <= margins.TOLERANCE * (1 + 1e-6) + 1e-9 * (1 + total)


@settings(max_examples=150, deadline=None)
@given(problems)
def test_machines_are_those_of_scikit_learn(problem):
    found, expected = BACKEND.solve_svm(*problem), reference.solve_svm(*problem)
    assert_solves(problem, found)
    near = 2 * margins.TOLERANCE * problem.costs.sum()  # both stop so far from the optimum at most
    assert_allclose(problem.energy(found), problem.energy(expected), atol=near)
    if np.linalg.eigvalsh(problem.kernel).min() > -1e-9:
        # A function as near to the optimum as that is near to its function, too.
        assert np.abs(found.products - expected.products).max() <= 2 * np.sqrt(near * problem.kernel.max())


@settings(max_examples=100, deadline=None)
@given(problems, st.integers(0, 10**6))
def test_machines_start_from_anything(problem, seed):
    rng = np.random.default_rng(seed)
    dual = (
        rng.normal(size=len(problem.costs))
        * rng.choice([0.0, 1e-3, 10.0, 1e3])
        * (rng.random(len(problem.costs)) < 0.5)
    )
    start = Margins(dual, 0.0, problem.kernel @ dual, rng.choice([0.0, 1.0], len(problem.costs)))
    kept = dual.copy(), start.products.copy()
    found, expected = BACKEND.solve_svm(*problem, start), BACKEND.solve_svm(*problem)
    near = 2 * margins.TOLERANCE * problem.costs.sum()
    assert_allclose(problem.energy(found), problem.energy(expected), atol=near)
    assert_array_equal((start.dual, start.products), kept)


@settings(max_examples=60, deadline=None)
@given(problems, st.integers(0, 10**6))
def test_machines_start_from_those_of_other_labels_and_costs(problem, seed):
    rng = np.random.default_rng(seed)
    machine = BACKEND.solve_svm(*problem)
    for _ in range(3):
        labels, costs = problem.positive ^ (rng.random(len(problem.costs)) < 0.1), problem.costs * rng.uniform(0, 1.5)
        labels[:2], costs[:2] = (True, False), 1.0
        other = Problem(problem.kernel, labels, costs)
        machine = BACKEND.solve_svm(*other, machine)
        assert_solves(other, machine)


def test_a_solution_is_where_it_stays():
    problem = draw_problem(0, 80, "rbf", 10.0)
    machine = BACKEND.solve_svm(*problem)
    again = BACKEND.solve_svm(*problem, machine)
    assert_array_equal(again.dual, machine.dual)
    assert_allclose(again.products, machine.products, atol=1e-12)
    assert again.intercept == pytest.approx(machine.intercept, abs=1e-12)


def test_two_points_are_told_apart_by_hand():
    # Points 0 and 2 on a line: f(x) = x - 1 has both on their margins, by coefficients of 1 / 2.
    kernel = np.array([[0.0, 0.0], [0.0, 4.0]])
    found = BACKEND.solve_svm(kernel, np.array([False, True]), np.full(2, 10.0))
    assert_allclose(found.dual, [-0.5, 0.5])
    assert_allclose(found.products + found.intercept, [-1, 1])


def test_the_intercept_is_in_the_middle_where_all_rows_are_at_their_bounds():
    kernel = np.array([[0.0, 0.0], [0.0, 4.0]])
    found = BACKEND.solve_svm(kernel, np.array([False, True]), np.full(2, 0.1))
    assert_allclose(found.dual, [-0.1, 0.1])
    expected = SVC(C=0.1, kernel="precomputed").fit(kernel, [0, 1])
    assert found.intercept == pytest.approx(expected.intercept_[0])
    # Seven times 0.1 is not 0.7 in a computer, and the difference is no reason to believe one of the rows.
    X = np.array([0.0] * 7 + [2.0])
    costs = np.array([0.01] * 7 + [0.07])
    found = BACKEND.solve_svm(np.outer(X, X), X > 0, costs)
    assert found.intercept == pytest.approx((-1 + 1 - 0.07 * 4) / 2)


def test_machines_of_one_class_are_refused():
    kernel = np.eye(4)
    for positive, costs in (([True] * 4, [1.0] * 4), ([True, True, False, False], [1.0, 1.0, 0.0, 0.0])):
        with pytest.raises(ValueError, match="class"):
            BACKEND.solve_svm(kernel, np.array(positive), np.array(costs))


def test_machines_that_do_not_settle_say_so(monkeypatch):
    problem = draw_problem(1, 80, "rbf", 100.0)
    monkeypatch.setattr(native, "_MOST_STEPS", 3)
    with pytest.warns(ConvergenceWarning, match="has not settled after 3 steps"):
        BACKEND.solve_svm(*problem)
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BACKEND.solve_svm(*problem)


def test_arrays_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="kernel does not fit"):
        BACKEND.solve_svm(np.ones((3, 2)), np.array([True, False, True]), np.ones(3))
