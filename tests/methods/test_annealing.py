"""`AnnealedSVM`: assignments at a temperature, the machine under them, and the way from hot to cold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from sklearn.svm import SVC
from sklearn.utils._param_validation import InvalidParameterError

import gmil
from gmil import AnnealedSVM, BagValidationError
from gmil.engine import resolve
from gmil.methods.shared import tuning
from gmil.methods.svm.annealing_training import (
    Annealing,
    assign,
    entropy,
    solve_expected,
    temperatures,
    train_annealed,
    with_negatives,
)
from gmil.methods.svm.gram import Gram
from gmil.methods.svm.kernels import hinge

BACKEND = resolve("auto", 1)
OBJECTIVES = ["witness", "labels", "labels-prior"]
few = settings(max_examples=20)
every_objective = pytest.mark.parametrize("objective", OBJECTIVES)
LINE = [[[0.0], [4.0]], [[1.0], [5.0]], [[0.0]] * 3, [[1.0]] * 3]
LINE_Y = [1, 1, 0, 0]


@st.composite
def arranged(draw):
    """Draw rows of positive bags, their offsets, and rows of negative bags behind them."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X = rng.normal(size=(offsets[-1] + draw(st.integers(1, 12)), 2))
    X[rng.choice(offsets[-1], len(sizes))] += draw(st.floats(0, 4))
    return X, offsets


def rbf_gram(X):
    return np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))


# ------------------------------------------------------------------ by hand


@every_objective
def test_the_line_is_cut_midway(objective):
    model = AnnealedSVM(objective, C=1000.0, kernel="linear", scale=None).fit(LINE, LINE_Y)
    assert_allclose(model.support_instances_, [[2 / 3]], atol=5e-3)
    assert_allclose(model.score_instances([[[2.5], [4.0]]]), [0, 1], atol=1e-2)
    assert model.stop_reason_ == "converged"
    assert model.temperatures_[0] == 1e4
    assert model.temperatures_[-1] == 0


def test_a_witness_by_hand():
    # Slacks 0 and 1 at the temperature C: weights 1 and 1/e.
    shares = assign(np.array([1.0, 0.0, -9.0]), np.array([0, 2]), Annealing("witness", C=2.0), 2.0, BACKEND)
    assert_allclose(shares, softmax([0, -1]))
    cold = assign(np.array([0.5, 0.7, -9.0]), np.array([0, 2]), Annealing("witness", C=2.0), 0.0, BACKEND)
    assert_array_equal(cold, [0, 1])


def test_labels_by_hand():
    # Gains C(slack as negative - slack as positive) of f = 1 and f = -1 are 2C and -2C.
    how = Annealing("labels", C=1.0)
    assert_allclose(assign(np.array([1.0, -1.0]), np.array([0, 2]), how, 1.0, BACKEND), expit([2, -2]))
    forced = assign(np.array([-1.0, -1.0]), np.array([0, 2]), how, 0.1, BACKEND)
    assert_allclose(forced, [0.5, 0.5])  # alone they would be all but negative; together they must make one
    assert_array_equal(assign(np.array([-1.0, -0.5]), np.array([0, 2]), how, 0.0, BACKEND), [0, 1])


def test_a_share_of_every_bag():
    how = Annealing("labels-prior", C=1.0, positive_share=0.5)
    values, offsets = np.array([3.0, 2.0, 1.0, -2.0, -1.0]), np.array([0, 4, 5])
    hot = assign(values, offsets, how, 5.0, BACKEND)
    assert_allclose([hot[:4].sum(), hot[4]], [2, 1], atol=1e-9)
    assert (np.diff(hot[:4]) <= 0).all()
    assert_array_equal(assign(values, offsets, how, 0.0, BACKEND), [1, 1, 0, 0, 1])


def test_temperatures_fall_to_zero():
    found = temperatures(Annealing("witness", C=3.0))
    assert (found[0], found[-1]) == (30.0, 0.0)
    assert_allclose(np.array(found[:-2]) / found[1:-1], 1.5)
    assert 0.03 <= found[-2] < 0.045


# ------------------------------------------------------------------ assignments


@few
@given(arranged(), st.sampled_from(OBJECTIVES), st.sampled_from([0.05, 1.0, 50.0]), st.integers(0, 99))
def test_no_nearby_assignment_is_better(case, objective, temperature, seed):
    """The assignment minimises expected cost less temperature times entropy, under the rule of its objective."""
    X, offsets = case
    how, rng = Annealing(objective, C=2.0, positive_share=0.4), np.random.default_rng(seed)
    values = 2 * rng.normal(size=len(X))
    best = assign(values, offsets, how, temperature, BACKEND)
    sums = np.add.reduceat(best, offsets[:-1])
    wanted = np.maximum(1, 0.4 * np.diff(offsets)) if objective == "labels-prior" else 1
    assert (sums >= 1 - 1e-9).all() if objective == "labels" else np.allclose(sums, wanted)

    def energy(shares):
        inside = values[: offsets[-1]]
        cost = 2.0 * shares @ hinge(inside)
        if objective != "witness":
            cost += 2.0 * (1 - shares) @ hinge(-inside)
        return cost - temperature * entropy(shares, objective)

    for _ in range(20):
        other = best.copy()
        i, j = rng.integers(offsets[-1], size=2)
        if np.searchsorted(offsets, i, side="right") != np.searchsorted(offsets, j, side="right"):
            continue
        step = min(0.05, other[i], 1 - other[j])
        other[i] -= step
        other[j] += step
        assert energy(other) >= energy(best) - 1e-9


@every_objective
def test_hot_is_even_and_cold_is_decided(objective):
    values, offsets = np.array([2.0, -1.0, 0.5, -3.0, -2.0, 1.0]), np.array([0, 3, 5])
    how = Annealing(objective, C=1.0, positive_share=0.5)
    hot = assign(values, offsets, how, 1e9, BACKEND)
    even = {"witness": [1 / 3] * 3 + [0.5] * 2, "labels": [0.5] * 5, "labels-prior": [0.5] * 5}[objective]
    assert_allclose(hot, even, atol=1e-6)
    cold = assign(values, offsets, how, 1e-3, BACKEND)
    assert_allclose(
        cold, assign(values, offsets, how, 0.0, BACKEND), atol=0.51 if objective == "labels-prior" else 1e-6
    )


# ------------------------------------------------------------------ machines and the whole


def test_the_expected_machine_is_that_of_doubled_rows():
    rng = np.random.default_rng(0)
    gram, offsets, shares = rbf_gram(rng.normal(size=(7, 2))), np.array([0, 2, 4]), np.array([0.3, 0.9, 1.0, 0.0])
    how = Annealing("labels", C=2.0)
    found = solve_expected(with_negatives(Gram(gram), offsets, how), offsets, shares, how, BACKEND)
    rows = np.array([0, 1, 2, 0, 1, 3, 4, 5, 6])
    positive, weights = np.arange(9) < 3, np.array([0.3, 0.9, 1, 0.7, 0.1, 1, 1, 1, 1])
    expected = SVC(C=2.0, kernel="precomputed").fit(gram[np.ix_(rows, rows)], positive, sample_weight=weights)
    assert_allclose(found.values[:7], expected.decision_function(gram[:, rows]), atol=1e-3)
    assert_array_equal(found.values[7:], found.values[:4])  # the negative selves


@few
@given(arranged(), st.sampled_from(OBJECTIVES), st.sampled_from([0.3, 10.0]))
def test_the_objective_never_rises_at_one_temperature(case, objective, C):
    X, offsets = case
    machine, course = train_annealed(Gram(rbf_gram(X)), offsets, Annealing(objective, C), BACKEND)
    objectives = machine.objectives
    same = np.diff(course) == 0
    # The solver stops within 1e-3 of a margin, which costs that share of all slack at most.
    assert (np.diff(objectives)[same] <= 1e-3 * C * 2 * len(X)).all()
    assert (np.diff(course) <= 0).all()


def test_annealing_ends_where_witnesses_stay(gaussian_bags):
    bags, y = gaussian_bags()
    model = AnnealedSVM(gamma=0.5, scale=None).fit(bags, y)
    scores = np.split(model.score_instances(bags), bags.offsets[1:-1])
    assert model.stop_reason_ == "converged"
    # Witnesses alone hold positive support: one instance of a positive bag at most.
    held = {tuple(row) for row, dual in zip(model.support_instances_, model.dual_coef_, strict=True) if dual > 0}
    for bag, label, score in zip(bags, y, scores, strict=True):
        if label:
            assert [i for i, x in enumerate(bag) if tuple(x) in held] in ([], [int(score.argmax())])


@every_objective
def test_every_objective_learns_and_is_saved(objective, gaussian_bags, tmp_path):
    bags, y = gaussian_bags(n_bags=30, all_witnesses=True)
    model = AnnealedSVM(objective, cooling=3.0, positive_share=0.9).fit(bags, y)
    assert model.score(bags, y) > 0.9
    assert len(model.objectives_) == len(model.temperatures_) == model.n_iter_
    model.save(tmp_path / "model.gmil")
    assert_array_equal(gmil.load(tmp_path / "model.gmil").decision_function(bags), model.decision_function(bags))


def test_tuning_chooses_the_cost(gaussian_bags):
    bags, y = gaussian_bags(n_bags=16)
    model = AnnealedSVM(tune=True, cooling=4.0, gamma=0.5, random_state=0).fit(bags, y, groups=np.arange(16) // 2)
    assert model.gamma_ == 0.5
    assert model.C_ in (1.0, 10.0, 100.0)
    assert len(model.temperatures_) == len(model.objectives_)
    assert model.positive_share_ == 0.5


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_what_is_kept_does_not_depend_on_what_it_was_compared_with(objective, gaussian_bags):
    bags, y = gaussian_bags(n_bags=20)
    model = AnnealedSVM(objective, tune=True, cooling=4.0, random_state=0).fit(bags, y)
    alone = AnnealedSVM(
        objective,
        kernel=model.kernel_,
        gamma=model.gamma_,
        C=model.C_,
        balance=model.balance_,
        positive_share=model.positive_share_,
        cooling=4.0,
        random_state=0,
    ).fit(bags, y)
    assert_array_equal(model.decision_function(bags), alone.decision_function(bags))


@pytest.mark.slow
def test_tuning_drops_the_balance_where_it_loses_hard_negatives(crowded_bags, monkeypatch):
    monkeypatch.setattr(tuning, "KERNELS", ("linear",))
    train, test = crowded_bags(0), crowded_bags(1)
    model = AnnealedSVM(kernel="linear", cooling=10.0, scale=None, random_state=0)
    assert model.fit(*train).score(*test) < 0.8
    tuned = model.set_params(tune=True).fit(*train, groups=np.arange(24) // 2)
    assert (model.kernel_, tuned.balance_) == ("linear", False)
    assert tuned.score(*test) > 0.95


def test_a_sample_costs_what_all_instances_cost():
    for balance in (True, False):
        how = Annealing("witness", C=3.0, balance=balance)
        offsets, fewer = np.array([0, 1, 2]), how._replace(negative_counts=np.array([4.0, 2.0]))
        whole, thinned = how.outside_costs(offsets, 8), fewer.outside_costs(offsets, 4)
        assert_allclose(thinned, [whole[:4].sum(), whole[4:].sum()])


def test_labels_know_no_balance_and_keep_their_kernel(gaussian_bags):
    bags, y = gaussian_bags(n_bags=16)
    model = AnnealedSVM("labels", kernel="linear", tune=True, cooling=10.0, random_state=0)
    assert [len(list(settings(None))) for settings in model._rounds(1.0)] == [3]
    assert model.fit(bags, y).kernel_ == "linear"


@pytest.mark.slow
def test_tuning_chooses_the_share_that_the_bags_have(gaussian_bags):
    bags, y = gaussian_bags(n_bags=16, all_witnesses=True)  # every instance of a positive bag is positive
    model = AnnealedSVM("labels-prior", tune=True, positive_share=0.1, cooling=4.0, gamma=0.5, random_state=0)
    model.fit(bags, y)
    assert model.positive_share_ in (0.2, 0.5, 0.8)
    assert model.score(bags, y) == 1


def test_bad_input_is_refused(gaussian_bags):
    bags, y = gaussian_bags(n_bags=6)
    with pytest.raises(InvalidParameterError, match="'objective' parameter of AnnealedSVM must be"):
        AnnealedSVM("all").fit(bags, y)
    with pytest.raises(InvalidParameterError, match="'cooling' parameter of AnnealedSVM must be"):
        AnnealedSVM(cooling=1.0).fit(bags, y)
    with pytest.raises(InvalidParameterError, match="'positive_share' parameter of AnnealedSVM must be"):
        AnnealedSVM(positive_share=0.0).fit(bags, y)
    with pytest.raises(BagValidationError, match=r"each of the 6 bags, got shape \(2,\)"):
        AnnealedSVM().fit(bags, y, groups=[0, 1])


@pytest.mark.slow
def test_musk1():
    bags, y = gmil.load_musk1(return_X_y=True)
    assert gmil.cross_validate(AnnealedSVM(C=100.0), bags, y).accuracy() > 0.78
