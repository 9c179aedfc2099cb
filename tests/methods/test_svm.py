"""`InstanceSVM` and `WitnessSVM`: a machine and an assignment in turns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils._param_validation import InvalidParameterError

import gmil
from gmil import Bags, BagValidationError, InstanceSVM, WitnessSVM
from gmil.engine import resolve
from gmil.methods.shared import tuning
from gmil.methods.svm import kernels as svm_kernels
from gmil.methods.svm import problems
from gmil.methods.svm.gram import Gram
from gmil.methods.svm.kernels import arrange, hinge
from gmil.methods.svm.training import (
    Assignments,
    bag_means,
    relabel,
    thinned_rows,
    train_labels,
    train_linear_witnesses,
    train_witnesses,
    witness_costs,
)

BACKEND = resolve("auto", 1)
# Positive bags hold one instance above 3 each; no machine can do better than to cut midway between 1 and 4.
LINE = [[[0.0], [4.0]], [[1.0], [5.0]], [[0.0]] * 3, [[1.0]] * 3]
LINE_Y = [1, 1, 0, 0]
few = settings(max_examples=25)


@st.composite
def arranged(draw):
    """Draw rows of positive bags, their offsets, and rows of negative bags behind them."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n_negatives = draw(st.integers(1, 12))
    X = rng.normal(size=(offsets[-1] + n_negatives, 2))
    X[rng.choice(offsets[-1], len(sizes))] += draw(st.floats(0, 4))
    return X, offsets


def rbf_gram(X, gamma=0.5):
    return np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))


def assert_never_rises(objectives, all_costs):
    """The solver stops within 1e-3 of a margin, which costs that share of all slack at most."""
    assert (np.diff(objectives) <= 1e-3 * all_costs).all(), objectives


# ------------------------------------------------------------------ by hand


@pytest.mark.parametrize(
    "model",
    [
        InstanceSVM(1000.0, kernel="linear", scale=None),
        WitnessSVM(1000.0, kernel="linear", scale=None),
        WitnessSVM(1000.0, kernel="linear", scale=None, balance=False),
    ],
    ids=repr,
)
def test_the_line_is_cut_midway(model):
    model.fit(LINE, LINE_Y)
    assert_allclose(model.support_instances_, [[2 / 3]], atol=2e-3)
    assert_allclose(model.score_instances([[[2.5], [4.0]]]), [0, 1], atol=5e-3)
    assert_allclose(model.decision_function([[[0.0], [3.0]], [[1.0]]]), [1 / 3, -1], atol=5e-3)
    assert model.stop_reason_ == "converged"
    assert_allclose(model.objectives_[-1], (2 / 3) ** 2 / 2, rtol=1e-2)


def test_liblinear_cuts_the_line_where_libsvm_does():
    model = WitnessSVM(1e4, kernel="linear", solver="liblinear", scale=None).fit(LINE, LINE_Y)
    assert_allclose(model.support_instances_, [[2 / 3]], atol=1e-2)
    assert_array_equal(model.predict([[[0.0], [3.0]], [[2.0]]]), [1, 0])


def test_the_first_witness_is_the_mean():
    # Over means 2 and 3 the cut is at 1.5 with slope 2.
    model = WitnessSVM(1000.0, kernel="linear", scale=None, max_iter=1).fit(LINE, LINE_Y)
    assert_allclose(model.support_instances_, [[2.0]], atol=5e-3)
    assert model.stop_reason_ == "iterations"
    assert model.n_iter_ == 1


# ------------------------------------------------------------------ training


@few
@given(arranged(), st.sampled_from([0.1, 1.0, 30.0]))
def test_the_objective_of_mi_svm_never_rises(case, C):
    X, offsets = case
    machine = train_labels(Gram(rbf_gram(X)), offsets, np.full(len(X), C), 30, BACKEND)
    assert_never_rises(machine.objectives, C * len(X))


@few
@given(arranged(), st.sampled_from([0.1, 1.0, 30.0]), st.booleans())
def test_the_objective_of_mi_svm_with_witnesses_never_rises(case, C, balance):
    X, offsets = case
    costs = witness_costs(np.ones(len(offsets) - 1), np.ones(len(X) - offsets[-1]), C, balance)
    assert_never_rises(train_witnesses(Gram(rbf_gram(X)), offsets, costs, 30, BACKEND).objectives, C * len(X))
    inside, negatives = X[: offsets[-1]], X[offsets[-1] :]
    machine = train_linear_witnesses(inside, offsets, negatives, costs, 30, BACKEND)
    assert_never_rises(machine.objectives, C * len(X))


@few
@given(st.lists(st.lists(st.floats(-3, 3), min_size=1, max_size=4), min_size=1, max_size=3))
def test_new_labels_have_the_least_slack_of_all_that_keep_a_positive_instance(bags):
    offsets = np.concatenate([[0], np.cumsum([len(bag) for bag in bags])])
    values = np.concatenate([np.concatenate(bags), [5.0, -5.0]])  # two rows of negative bags
    labels = relabel(values, offsets, BACKEND)
    assert not labels[-2:].any()
    for bag, found in zip(bags, np.split(labels[:-2], offsets[1:-1]), strict=True):
        assert found.any()
        signs = [np.array(s) for s in itertools.product([-1, 1], repeat=len(bag)) if 1 in s]
        best = min(hinge(s * np.array(bag)).sum() for s in signs)
        assert_allclose(hinge(np.where(found, 1, -1) * np.array(bag)).sum(), best)


def test_every_positive_bag_keeps_a_positive_instance(gaussian_bags):
    bags, y = gaussian_bags()
    arrangement = arrange(bags.offsets, y == 1, np.ones(len(y), dtype=bool))
    gram = rbf_gram(bags.instances[arrangement.rows])
    for rounds in range(1, 6):
        machine = train_labels(Gram(gram), arrangement.offsets, np.ones(len(gram)), rounds, BACKEND)
        labels = relabel(gram @ machine.dual + machine.intercept, arrangement.offsets, BACKEND)
        assert np.logical_or.reduceat(labels[: arrangement.n_positive_rows], arrangement.offsets[:-1]).all()


def test_the_reason_to_stop():
    met = Assignments(np.array([1]))
    assert met.stop_reason(np.array([2])) is None
    assert met.stop_reason(np.array([2])) == "converged"
    assert met.stop_reason(np.array([1])) == "cycle"


def test_means_of_bags():
    mean = bag_means(np.array([0, 2, 3]), 4) @ np.array([[1.0], [3.0], [5.0], [9.0]])
    assert_array_equal(mean, [[2.0], [5.0]])


@few
@given(st.lists(st.integers(1, 6), min_size=2, max_size=8), st.integers(1, 20), st.integers(0, 99))
def test_drawn_negatives(sizes, most, seed):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    positive = np.arange(len(sizes)) % 2 == 0
    rows = thinned_rows(offsets, positive, most, np.random.default_rng(seed))
    n_negatives = int(np.array(sizes)[~positive].sum())
    if n_negatives <= most:
        assert rows is None
        return
    counts = np.diff(np.searchsorted(rows, offsets))
    assert (np.diff(rows) > 0).all()
    assert_array_equal(counts[positive], np.array(sizes)[positive])
    assert (counts[~positive] >= 1).all()
    assert counts[~positive].sum() == max(most, (~positive).sum())


# ------------------------------------------------------------------ the classes


def test_the_linear_kernel_needs_the_weights_only(gaussian_bags, tmp_path):
    bags, y = gaussian_bags()
    for model in (WitnessSVM(kernel="linear"), InstanceSVM(1.0, kernel="linear")):
        model.fit(bags, y)
        assert model.support_instances_.shape == (1, 3)
        model.save(tmp_path / "model.gmil")
        assert_array_equal(gmil.load(tmp_path / "model.gmil").decision_function(bags), model.decision_function(bags))


def test_sparse_support_is_kept_sparse(gaussian_bags, tmp_path):
    bags, y = gaussian_bags()
    sparse = Bags(sp.csr_array(bags.instances), bags.offsets)
    model = WitnessSVM().fit(sparse, y)
    assert set(model.support_instances_) == {"data", "indices", "indptr", "n_features"}
    model.save(tmp_path / "model.gmil")
    assert_array_equal(gmil.load(tmp_path / "model.gmil").decision_function(sparse), model.decision_function(sparse))


def test_liblinear_makes_no_gram_matrix(gaussian_bags, monkeypatch):
    monkeypatch.setattr(problems, "pair_values", None)
    train, test = gaussian_bags(n_bags=300), gaussian_bags(n_bags=60, seed=1)
    model = WitnessSVM(kernel="linear", solver="liblinear", max_negatives=200, random_state=0).fit(*train)
    assert model.score(*test) > 0.9
    sparse = Bags(sp.csr_array(train[0].instances), train[0].offsets)
    assert WitnessSVM(kernel="linear", solver="liblinear", tune=True).fit(sparse, train[1]).score(*test) > 0.9


def test_drawn_negatives_follow_the_seed(gaussian_bags):
    bags, y = gaussian_bags(n_bags=60)
    fits = [WitnessSVM(max_negatives=40, random_state=seed).fit(bags, y).decision_function(bags) for seed in (0, 0, 1)]
    assert_array_equal(fits[0], fits[1])
    assert (fits[0] != fits[2]).any()


def test_witnesses_score_above_the_rest():
    data = gmil.make_bags(60, separation=8, random_state=0)
    scores = WitnessSVM().fit(data.bags, data.y).score_instances(data.bags)
    assert scores[data.instance_y == 1].min() > scores[data.instance_y == 0].max()


# ------------------------------------------------------------------ bad input


def test_bad_input_is_refused(gaussian_bags, monkeypatch):
    bags, y = gaussian_bags(n_bags=8)
    with pytest.raises(BagValidationError, match="works with kernel='linear' only, got kernel='rbf'"):
        WitnessSVM(solver="liblinear").fit(bags, y)
    with pytest.raises(BagValidationError, match=r"each of the 8 bags, got shape \(3,\)"):
        InstanceSVM().fit(bags, y, groups=[0, 1, 2])
    with pytest.raises(InvalidParameterError, match="'C' parameter of InstanceSVM must be"):
        InstanceSVM(C=0).fit(bags, y)
    with pytest.raises(InvalidParameterError, match="'kernel' parameter of WitnessSVM"):
        WitnessSVM(kernel="cubic").fit(bags, y)
    with pytest.raises(BagValidationError, match="pos_label=7 is not a class"):
        WitnessSVM(pos_label=7).fit(bags, y)
    with pytest.raises(BagValidationError, match=r"Only binary classification .* 3 classes"):
        WitnessSVM().fit(bags, np.arange(8) % 3)
    monkeypatch.setattr(svm_kernels, "_MOST_GRAM_BYTES", 1000)
    with pytest.raises(BagValidationError, match=r"instances make a kernel matrix of .*solver='liblinear'"):
        InstanceSVM().fit(bags, y)


# ------------------------------------------------------------------ real data


# ------------------------------------------------------------------ balance, and its choice


def test_costs_of_a_sample_are_those_of_all():
    for balance in (True, False):
        thinned, whole = (
            witness_costs(np.ones(2), np.array(counts), 5.0, balance) for counts in ([1.0, 3.0], [1.0] * 4)
        )
        assert_allclose(thinned, [5.0, 5.0, whole[2], 3 * whole[2]])
        assert_allclose(thinned.sum(), whole.sum())
    assert whole[2] == 5.0


def test_liblinear_is_tuned_for_both_classes_alike():
    # One bag of ten is positive and nothing tells it apart: by accuracy, never to say yes would be best.
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(5, 2)) for _ in range(60)]
    y = (np.arange(60) % 10 == 0).astype(int)
    for i in np.flatnonzero(y):
        bags[i][0] += 1.0
    model = WitnessSVM(kernel="linear", solver="liblinear", tune=True, random_state=0).fit(bags, y)
    assert model.balance_ is True


@pytest.mark.parametrize("solver", ["libsvm", "liblinear"])
def test_tuning_drops_the_balance_where_it_loses_hard_negatives(solver, crowded_bags, monkeypatch):
    monkeypatch.setattr(tuning, "KERNELS", ("linear",))
    train, test = crowded_bags(0), crowded_bags(1)
    model = WitnessSVM(kernel="linear", solver=solver, scale=None, random_state=0)
    assert model.fit(*train).score(*test) < 0.8
    assert model.balance_ is True
    tuned = model.set_params(tune=True).fit(*train, groups=np.arange(24) // 2)
    assert tuned.balance_ is False
    assert tuned.score(*test) > 0.95


def test_tuning_chooses_the_kernel_and_given_values_win_ties(gaussian_bags):
    rng = np.random.default_rng(0)
    ring = rng.normal(size=(40, 3, 2))
    ring *= 4 / np.linalg.norm(ring, axis=2, keepdims=True)
    y = np.arange(40) % 2
    ring[y == 1, 0] /= 20
    model = WitnessSVM(kernel="linear", tune=True, random_state=0).fit(ring, y)
    assert model.kernel_ == "rbf"
    assert model.score(ring, y) == 1
    bags, y = gaussian_bags(n_bags=20, all_witnesses=True)  # which every setting gets right
    for kernel, balance in (("rbf", True), ("linear", False)):
        model = WitnessSVM(kernel=kernel, balance=balance, tune=True, random_state=0).fit(bags, y)
        assert (model.kernel_, model.balance_) == (kernel, balance)
        assert model.C_ == 10.0


def test_parameters_set_after_a_fit_change_no_decision(gaussian_bags):
    bags, y = gaussian_bags()
    model = WitnessSVM(random_state=0).fit(bags, y)
    before = model.decision_function(bags)
    model.set_params(kernel="linear", gamma=3.0, balance=False)
    assert_array_equal(model.decision_function(bags), before)


def test_a_copy_as_chosen_trains_the_same_machine(gaussian_bags):
    bags, y = gaussian_bags()
    model = WitnessSVM(tune=True, random_state=0).fit(bags, y)
    copy = model.as_chosen()
    assert copy.tune is False
    assert_array_equal(copy.fit(bags, y).decision_function(bags), model.decision_function(bags))


@pytest.mark.slow
@pytest.mark.parametrize(("model", "least"), [(WitnessSVM(), 0.80), (InstanceSVM(), 0.78)], ids=["witness", "instance"])
def test_musk1(model, least):
    bags, y = gmil.load_musk1(return_X_y=True)
    assert gmil.cross_validate(model, bags, y, repeats=2).accuracy() > least
