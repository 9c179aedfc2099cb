"""What `InstanceSVM`, `WitnessSVM` and others share: kernels, machines, arranged rows, and tuning."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.svm import SVC

from gmil import AnnealedSVM, InstanceSVM, WitnessSVM
from gmil.base import Training
from gmil.engine import resolve
from gmil.methods.kernels.bag_kernels import InstanceKernel
from gmil.methods.shared import tuning
from gmil.methods.shared.tuning import (
    KernelSetting,
    MachineSetting,
    Sample,
    Tuning,
    all_of_bags,
    kernel_settings,
    sample_bags,
    thinned_bags,
)
from gmil.methods.svm import kernels as svm_kernels
from gmil.methods.svm import problems
from gmil.methods.svm.gram import Gram, solve_svm
from gmil.methods.svm.kernels import arrange, expansion, first_maxima, kernel_columns, pair_values

BACKEND = resolve("auto", 1)


def training_of(positive, groups=None, seed=0):
    """Return what a machine learns from, without the bags."""
    labels = np.asarray(positive).astype(int)
    return Training(None, labels, labels, groups, np.ones(len(labels)), BACKEND, np.random.default_rng(seed))


def folds_of(positive, groups=None, repeats=1):
    return Tuning.of(training_of(positive, groups), tune=True, repeats=repeats).folds


few = settings(max_examples=25)


@st.composite
def some_rows(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    return rng.normal(size=(draw(st.integers(2, 20)), 2))


# ------------------------------------------------------------------ kernels and machines


@few
@given(some_rows(), st.sampled_from(["rbf", "linear"]))
def test_kernels_are_what_their_definition_says(X, name):
    kernel = InstanceKernel(name, 0.7)
    slow = np.array([[np.exp(-0.7 * ((x - z) ** 2).sum()) if name == "rbf" else x @ z for z in X] for x in X])
    base = pair_values(X, name, BACKEND)
    assert_allclose(kernel.of(base, np.empty_like(base)), slow, atol=1e-12)
    assert_allclose(pair_values(sp.csr_array(X), name, BACKEND), base, atol=1e-12)
    assert_allclose(kernel_columns(X, X[:2], kernel, BACKEND), slow[:, :2], atol=1e-12)
    dual = np.arange(len(X)) - 2.0
    assert_allclose(expansion(X, X, dual, kernel, BACKEND), slow @ dual, atol=1e-10)
    assert_allclose(expansion(sp.csr_array(X), sp.csr_array(X), dual, kernel, BACKEND), slow @ dual, atol=1e-10)


def test_blocks_do_not_show(monkeypatch):
    X = np.random.default_rng(0).normal(size=(9, 4))
    kernel, dual = InstanceKernel("rbf", 0.3), np.linspace(-1, 1, 9)
    whole = expansion(X, X, dual, kernel, BACKEND)
    monkeypatch.setattr(svm_kernels, "_BLOCK_ENTRIES", 12)
    assert_allclose(expansion(X, X, dual, kernel, BACKEND), whole, atol=1e-12)
    assert_allclose(expansion(X, sp.csr_array(X), dual, kernel, BACKEND), whole, atol=1e-12)
    assert_allclose(pair_values(sp.csr_array(X), "rbf", BACKEND), pair_values(X, "rbf", BACKEND), atol=1e-12)


@few
@given(some_rows())
def test_machines_are_those_of_scikit_learn(X):
    gram, positive = np.exp(-((X[:, None] - X) ** 2).sum(axis=2)), np.arange(len(X)) % 2 == 0
    dual, intercept = solve_svm(gram, positive, np.full(len(X), 3.0))
    expected = SVC(C=3.0, kernel="precomputed").fit(gram, positive).decision_function(gram)
    assert_allclose(gram @ dual + intercept, expected, atol=2e-2)


@few
@given(some_rows(), st.integers(0, 99))
def test_rows_that_cost_nothing_take_no_part(X, seed):
    rng = np.random.default_rng(seed)
    gram, rows = np.exp(-((X[:, None] - X) ** 2).sum(axis=2)), rng.permutation(len(X))[: rng.integers(2, len(X) + 1)]
    positive, costs = np.arange(len(rows)) % 2 == 0, rng.uniform(0.5, 3, size=len(rows))
    part = Gram(gram, rows)
    found = part.solve(positive, costs, BACKEND)
    copied, expected = solve_svm(gram[np.ix_(rows, rows)], positive, costs)
    assert_allclose((found.products + found.intercept)[rows], gram[np.ix_(rows, rows)] @ copied + expected, atol=2e-2)
    assert_allclose(found.products, gram[:, rows] @ found.dual[rows], atol=1e-9)
    assert_allclose(part.products(found.dual[rows]), found.products, atol=1e-9)


@few
@given(some_rows(), st.integers(0, 99))
def test_machines_that_go_on_are_those_that_begin_anew(X, seed):
    rng = np.random.default_rng(seed)
    matrix, positive = np.exp(-((X[:, None] - X) ** 2).sum(axis=2)), np.arange(len(X)) % 2 == 0
    costs = rng.uniform(0.5, 3, size=(2, len(X)))
    going_on, anew = Gram(matrix, goes_on=True), Gram(matrix)
    first = going_on.solve(positive, costs[0], BACKEND)
    anew.solve(positive, costs[0], BACKEND)
    second, expected = (gram.solve(positive, costs[1], BACKEND) for gram in (going_on, anew))
    assert_array_equal(first.dual, Gram(matrix).solve(positive, costs[0], BACKEND).dual)
    assert_array_equal(expected.dual, Gram(matrix).solve(positive, costs[1], BACKEND).dual)
    assert_array_equal(second.dual, Gram(matrix).solve(positive, costs[1], BACKEND, first).dual)
    assert_allclose(second.products + second.intercept, expected.products + expected.intercept, atol=2e-2)
    assert going_on.with_mixtures(sp.csr_array(np.ones((1, len(X))))).goes_on


@few
@given(some_rows(), st.integers(0, 99))
def test_mixtures_of_rows_are_sums_of_images(X, seed):
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(X))[: rng.integers(1, len(X) + 1)]
    mixtures = rng.uniform(size=(3, len(rows)))
    found = Gram(X @ X.T, rows).with_mixtures(sp.csr_array(mixtures))
    points = np.concatenate([X[rows], mixtures @ X[rows]])  # under the linear kernel a point is its image
    assert_allclose(found.matrix, points @ points.T, atol=1e-9)
    assert len(found) == len(rows) + 3


def test_arranging_puts_positive_bags_first():
    found = arrange(np.array([0, 2, 3, 6, 7]), np.array([False, True, False, True]))
    assert_array_equal(found.rows, [2, 6, 0, 1, 3, 4, 5])
    assert_array_equal(found.offsets, [0, 1, 2])
    left_out = arrange(
        np.array([0, 2, 3, 6, 7]), np.array([False, True, False, True]), np.array([False, True, True, True])
    )
    assert_array_equal(left_out.rows, [2, 6, 3, 4, 5])


def test_the_first_of_equal_maxima_is_taken():
    assert_array_equal(first_maxima(np.array([1.0, 3.0, 3.0, 2.0, 2.0]), np.array([0, 3, 5]), BACKEND), [1, 3])


# ------------------------------------------------------------------ tuning


@pytest.mark.parametrize("model", [InstanceSVM(tune=True), WitnessSVM(tune=True)], ids=repr)
def test_tuning_chooses_from_the_grid(model, gaussian_bags):
    bags, y = gaussian_bags()
    model.set_params(gamma=0.5, random_state=0).fit(bags, y)
    assert KernelSetting(model.gamma_, model.C_) in kernel_settings(0.5)
    assert model.kernel_ in ("rbf", "linear")
    assert model.score(bags, y) > 0.9


def test_kernel_values_that_are_not_finite_are_refused():
    # The solver is not asked to look for them.
    instances, offsets = np.full((4, 1), 1e160), np.arange(5)
    training = training_of([True, False, True, False])
    problem = problems.GramProblem(WitnessSVM()._train, instances, all_of_bags(offsets), training, one_setting=False)
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="contains infinity"):
        problem.train(MachineSetting(1.0, 10.0, "linear"))


@pytest.mark.parametrize("method", [InstanceSVM(), WitnessSVM()], ids=repr)
def test_inner_decisions_do_not_know_the_labels_of_the_bags_decided(method, gaussian_bags):
    bags, y = gaussian_bags()
    test = np.arange(len(y)) < 8
    found = []
    for positive in (y == 1, np.where(test, y == 0, y == 1)):
        problem = problems.GramProblem(
            method._train, bags.instances, all_of_bags(bags.offsets), training_of(positive), one_setting=False
        )
        found.append(problem.decide(MachineSetting(0.5, 10.0), test))
    assert_array_equal(found[0], found[1])
    alone = type(method)(gamma=0.5, scale=None).fit(bags[~test], y[~test]).decision_function(bags[test])
    assert_allclose(found[0], alone, atol=5e-3)  # the solver's tolerance


def test_groups_are_never_split():
    positive = np.arange(40) % 2 == 0
    groups = np.arange(40) // 4
    folds = folds_of(positive, groups)
    assert len(folds) == 5
    assert_array_equal(np.sum(folds, axis=0), 1)
    twice = folds_of(positive, groups, repeats=2)
    assert_array_equal(twice[:5], folds)
    assert_array_equal(np.sum(twice, axis=0), 2)
    for test in twice:
        assert not set(groups[test]) & set(groups[~test])


def test_folds_that_would_train_on_one_class_are_left_out():
    positive = np.array([True, False, False, False])
    assert folds_of(positive) == []
    assert folds_of(positive, np.zeros(4, dtype=int)) == []
    folds = folds_of(positive, np.array([0, 0, 1, 2]))
    assert folds
    assert all(positive[~test].any() for test in folds)


@few
@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(1, 60), st.integers(0, 99))
def test_large_bags_are_thinned_to_a_common_size(sizes, most, seed):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    rows = thinned_bags(offsets, most, np.random.default_rng(seed))
    if sum(sizes) <= most:
        assert rows is None
        return
    kept = np.diff(np.searchsorted(rows, offsets))
    assert (np.diff(rows) > 0).all()
    assert_array_equal(kept, np.minimum(sizes, kept.max()))
    assert kept.sum() <= max(most, len(sizes))
    assert np.minimum(sizes, kept.max() + 1).sum() > most  # no larger common size would do


@few
@given(st.lists(st.integers(1, 40), min_size=2, max_size=8), st.integers(1, 60), st.integers(0, 99))
def test_a_sample_stands_for_all_instances_of_every_bag(sizes, most, seed):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    sample = sample_bags(offsets, most, np.random.default_rng(seed))
    assert_allclose(np.add.reduceat(sample.counts, sample.offsets[:-1]), sizes)
    assert_array_equal(
        sample.of(np.arange(offsets[-1])), np.arange(offsets[-1]) if sample.rows is None else sample.rows
    )


@pytest.mark.parametrize("balance", [True, False])
def test_a_sample_of_copies_decides_as_all_of_them(balance, gaussian_bags):
    # Every instance of a negative bag is there three times; any sample that keeps one of each must do as well.
    bags, y = gaussian_bags(n_bags=16)
    copies = np.where(np.repeat(y == 1, bags.sizes), 1, 3)
    many = np.repeat(bags.instances, copies, axis=0)
    offsets = np.concatenate([[0], np.cumsum(bags.sizes * np.where(y == 1, 1, 3))])
    kept = np.concatenate([[0], np.cumsum(copies)[:-1]])
    sample = Sample(kept, bags.offsets, copies.astype(float))
    setting = MachineSetting(0.5, 10.0, balance=balance)
    found = []
    for some in (sample, all_of_bags(offsets)):
        problem = problems.GramProblem(WitnessSVM()._train, many, some, training_of(y == 1), one_setting=False)
        found.append(problem.decide(setting, np.arange(16) < 4))
    assert_allclose(found[0], found[1], atol=2e-2)  # the solver's tolerance


@pytest.mark.parametrize("model", [InstanceSVM(), WitnessSVM(), AnnealedSVM("labels", cooling=4.0)], ids=repr)
def test_the_chosen_setting_is_fitted_on_all_instances(model, gaussian_bags, monkeypatch):
    bags, y = gaussian_bags()
    monkeypatch.setattr(tuning, "MOST_INSTANCES", 2 * len(bags))
    tuned_model = clone(model).set_params(tune=True, gamma=0.5, random_state=0).fit(bags, y)
    chosen = {
        name: getattr(tuned_model, f"{name}_")
        for name in ("C", "gamma", "kernel", "balance")
        if hasattr(tuned_model, f"{name}_")
    }
    alone = model.set_params(**chosen).fit(bags, y)
    assert_array_equal(tuned_model.decision_function(bags), alone.decision_function(bags))


def test_tuning_without_folds_takes_the_defaults(gaussian_bags):
    bags, _ = gaussian_bags(n_bags=4)
    model = WitnessSVM(tune=True, gamma=0.25).fit(bags, [1, 0, 0, 0])
    assert (model.gamma_, model.C_) == (0.25, 10.0)


def test_groups_reach_the_folds(gaussian_bags, monkeypatch):
    seen = []
    monkeypatch.setattr(tuning, "inner_folds", lambda *args: seen.append(args[3]) or [])
    bags, y = gaussian_bags(n_bags=4)
    WitnessSVM(tune=True).fit(bags, y, groups=["a", "b", "b", "a"])
    assert_array_equal(seen[0], [0, 1, 1, 0])
