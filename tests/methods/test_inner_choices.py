"""Choices inside the training bags: whole groups are left out, labels of bags left out have no say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold

from gmil import (
    MILES,
    Bags,
    BagStatistics,
    BagValidationError,
    FisherVectorClassifier,
    MILEnsemble,
    SetKernelSVM,
    SingleInstance,
    VLADClassifier,
)
from gmil.methods.ensemble.estimator import draw_bags
from gmil.methods.shared import tuning
from gmil.methods.shared.tuning import MachineSetting, OnlyIfClear, Tuning, weighting_rounds
from gmil.model_selection.folds import inner_folds
from gmil.sampling import make_generator

TUNED = [
    SetKernelSVM(random_state=0),
    MILES(C=0.3, tune=True, random_state=0),
    VLADClassifier(tune=True, random_state=0),
    FisherVectorClassifier(tune=True, random_state=0),
]
ALL = [*TUNED, BagStatistics(), SingleInstance(), MILEnsemble(random_state=0)]


def name_of(estimator):
    return type(estimator).__name__


@given(seed=st.integers(0, 10_000), n_classes=st.integers(2, 4), n_groups=st.integers(1, 9))
@settings(max_examples=50)
def test_folds_keep_groups_whole_and_train_on_every_class(seed, n_classes, n_groups):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=16)])
    groups = rng.integers(n_groups, size=len(labels))
    folds = inner_folds(labels, 5, rng, groups)
    assert len(folds) <= min(5, n_groups)
    assert np.sum(folds, axis=0).max(initial=0) <= 1
    for test in folds:
        assert test.any()
        assert not set(groups[test]) & set(groups[~test])
        assert set(labels[~test]) == set(labels)


def test_rounds_keep_the_best_so_far_and_judge_nothing_twice():
    judged = []

    def decide(setting, test):
        judged.append(setting)
        return np.where(labels[test] == 1, 1.0, -1.0) * (1 if setting >= 2 else -1)

    labels = np.array([0, 1, 0, 1])
    folds = [np.arange(4) < 2, np.arange(4) >= 2]
    inner = Tuning(labels, np.ones(4), folds, np.random.default_rng(0))
    found = inner.choose_in_rounds([lambda start: [start, 2, 3], lambda best: [best, 9]], 1, decide)
    assert found == 2  # the first of equals, also where the others come later
    assert judged == [1, 1, 2, 2, 3, 3, 9, 9]
    assert inner._replace(folds=[]).choose_in_rounds([lambda _: [5]], 1, decide) == 1


def chosen_of(wrong, *, rounds=None, repeats=1, **more):
    """Return what is chosen of named settings, given first, from the bags of 20 that each gets wrong."""
    labels = np.arange(20) % 2
    folds = [np.arange(20) // 4 == fold for fold in range(5)] * repeats
    right = {name: np.where(np.isin(np.arange(20), bags), -1.0, 1.0) for name, bags in wrong.items()}

    def decide(setting, test):
        return np.where(labels == 1, 1.0, -1.0)[test] * right[setting][test]

    inner = Tuning(labels, np.ones(20), folds, np.random.default_rng(0))._replace(**more)
    return inner.choose_in_rounds(rounds or [OnlyIfClear(lambda _: wrong)], "given", decide)


@pytest.mark.parametrize("repeats", [1, 2])
def test_a_near_tie_keeps_the_given_setting_and_a_clear_win_changes_it(repeats):
    # One bag more: 5 points, with a standard error of 5. Two of them: 10 points, with one of 6.9.
    assert chosen_of({"given": [0, 1], "other": [0]}, repeats=repeats) == "given"
    assert chosen_of({"given": [0, 1], "other": []}, repeats=repeats) == "other"
    # Three gained and two lost: 5 points, with a standard error of 11.
    assert chosen_of({"given": [0, 1, 2], "other": [3, 4]}, repeats=repeats) == "given"
    plain = [lambda _: ["given", "other"]]
    assert chosen_of({"given": [0, 1, 2], "other": [3, 4]}, rounds=plain, repeats=repeats) == "other"


def test_of_several_clear_wins_the_best_is_chosen():
    wrong = {"given": [0, 1, 2, 3], "good": [0], "better": [], "lucky": [5, 6, 7]}
    assert chosen_of(wrong) == "better"
    # What is clear is the gain over the given setting, not that over the last winner.
    assert chosen_of({"given": [0, 1, 2, 3], "good": [0], "better": []}, repeats=2) == "better"


def test_bags_of_one_group_are_one_piece_of_evidence():
    wrong = {"given": [0, 1], "other": []}
    assert chosen_of(wrong, groups=np.arange(20) // 2) == "given"
    assert chosen_of(wrong, groups=np.arange(20) % 10) == "other"


def test_the_standard_error_is_that_of_the_mean_difference():
    rng = np.random.default_rng(1)
    ours, theirs = rng.integers(0, 2, (2, 20)).astype(float)
    inner = Tuning(np.zeros(20), np.ones(20), [np.ones(20, dtype=bool)], rng)
    differences = ours - theirs
    expected = differences.mean(), differences.std(ddof=1) / np.sqrt(20)
    assert inner._gain(ours, theirs, inner.weights) == pytest.approx(expected)
    # A weight of two is a second bag of the same group.
    twice = inner._replace(labels=np.zeros(40), groups=np.tile(np.arange(20), 2), folds=[np.ones(40, dtype=bool)])
    once = inner._gain(ours, theirs, np.full(20, 2.0))
    assert twice._gain(np.tile(ours, 2), np.tile(theirs, 2), np.ones(40)) == pytest.approx(once)


def test_kernel_and_balance_change_together_only_where_one_helps_alone():
    start = MachineSetting(1.0, 10.0)
    labels, tried = np.arange(20) % 2, []

    def choose(best):
        def decide(setting, test):
            tried.append((setting.kernel, setting.balance))
            flips = -1.0 if (setting.kernel, setting.balance) not in best else 1.0
            return np.where(labels == 1, 1.0, -1.0)[test] * flips

        tried.clear()
        inner = Tuning(labels, np.ones(20), [np.arange(20) >= 0], np.random.default_rng(0))
        found = inner.choose_in_rounds(weighting_rounds(start), start, decide)
        return found.kernel, found.balance

    assert choose([("linear", False)]) == ("rbf", True)
    assert len(tried) == 3
    assert choose([("linear", False), ("linear", True)]) == ("linear", True)
    assert len(tried) == 4
    assert choose([("rbf", False)]) == ("rbf", False)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", TUNED, ids=name_of)
def test_tuning_leaves_whole_groups_out(estimator, n_classes, gaussian_bags, monkeypatch):
    bags, y = gaussian_bags(n_classes=n_classes)
    groups = np.array(["a", "b", "c", "d", "e", "f"])[np.arange(len(y)) % 6]
    seen = []
    monkeypatch.setattr(tuning, "inner_folds", lambda *arguments: seen.append(inner_folds(*arguments)) or seen[-1])
    estimator.fit(bags, y, groups=groups)
    (folds,) = seen
    assert len(folds) in (4, 5)  # of six groups, older scikit-learn may leave a fold empty
    for test in folds:
        assert not set(groups[test]) & set(groups[~test])


@pytest.mark.parametrize("estimator", TUNED, ids=name_of)
def test_copies_of_a_bag_flatter_only_where_they_may_be_parted(estimator, monkeypatch):
    # Labels that nothing in the bags explains: only a copy of a bag knows its label.
    rng = np.random.default_rng(3)
    bags = Bags.from_list([part for part in rng.normal(size=(40, 2, 20)) for _ in range(3)])
    y, groups = np.repeat(np.arange(40) % 2, 3), np.repeat(np.arange(40), 3)
    measured, found = Tuning._rights, []
    monkeypatch.setattr(Tuning, "_rights", lambda *arguments: found.append(measured(*arguments)) or found[-1])
    estimator.fit(bags, y)
    parted = np.mean(found, axis=1).max()
    found.clear()
    estimator.fit(bags, y, groups=groups)
    assert parted > 0.9
    assert np.mean(found, axis=1).max() < 0.75


@pytest.mark.parametrize("estimator", TUNED, ids=name_of)
def test_without_tuning_groups_change_nothing(estimator, gaussian_bags):
    bags, y = gaussian_bags()
    fixed = type(estimator)(tune=False, random_state=0)
    expected = fixed.fit(bags, y).decision_function(bags)
    assert_array_equal(fixed.fit(bags, y, groups=np.arange(len(y)) // 2).decision_function(bags), expected)


@pytest.mark.parametrize("cls", [VLADClassifier, FisherVectorClassifier])
def test_the_price_of_encodings_is_chosen_among_multiples(cls, gaussian_bags):
    bags, y = gaussian_bags()
    assert cls(C=2.0, tune=True, random_state=0).fit(bags, y).C_ in (0.2, 2.0, 20.0)
    assert cls(C=2.0, random_state=0).fit(bags, y).C_ == 2.0
    assert cls(1, C=2.0, tune=True, random_state=0).fit(bags[:3], [0, 1, 0]).C_ == 2.0


@pytest.mark.parametrize("estimator", ALL, ids=name_of)
def test_groups_must_name_every_bag(estimator, gaussian_bags):
    bags, y = gaussian_bags()
    with pytest.raises(BagValidationError, match=rf"groups must name the group of each of the {len(bags)} bags"):
        estimator.fit(bags, y, groups=[0, 1])


@pytest.mark.parametrize("cls", [BagStatistics, SingleInstance])
def test_a_search_inside_is_told_the_groups(cls, gaussian_bags):
    bags, y = gaussian_bags()
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=GroupKFold(4))
    model = cls(estimator=search).fit(bags, y, groups=np.arange(len(y)) // 2)
    assert model.estimator_.n_splits_ == 4
    with pytest.raises(ValueError, match="'groups' parameter should not be None"):
        cls(estimator=search).fit(bags, y)
    groups = np.arange(len(y))  # an estimator that chooses nothing does not need them
    expected = cls().fit(bags, y).decision_function(bags)
    assert_array_equal(cls().fit(bags, y, groups=groups).decision_function(bags), expected)


@pytest.mark.parametrize("groups", [None, np.arange(20) // 2], ids=["none", "pairs"])
def test_members_of_an_ensemble_keep_copies_and_groups_together(groups, gaussian_bags, monkeypatch):
    bags, y = gaussian_bags(n_bags=20)
    seen = []
    monkeypatch.setattr(
        tuning,
        "inner_folds",
        lambda labels, n, rng, groups: seen.append(groups) or inner_folds(labels, n, rng, groups),
    )
    MILEnsemble(SetKernelSVM(), 3, random_state=0).fit(bags, y, groups=groups)
    generator = make_generator(0)
    drawn = [draw_bags(y, generator) for _ in range(3)]
    apart = np.arange(20) if groups is None else groups
    for found, rows in zip(seen, drawn, strict=True):
        assert len(np.unique(rows)) < 20  # some bags are there twice
        assert_array_equal(found, np.unique(apart[rows], return_inverse=True)[1])
