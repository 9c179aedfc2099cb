"""Measures of what cross-validation found, of two classes, several classes and several labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import KFold

import gmil
from gmil import GMIL, cross_validate, metrics


@pytest.fixture(scope="module")
def data():
    return gmil.make_bags(60, n_features=3, random_state=2, return_X_y=True)


def test_a_result_shows_itself_in_a_line():
    bags, y = gmil.make_bags(20, n_features=3, random_state=0, return_X_y=True)
    one = cross_validate(GMIL(5), bags, y, cv=4, repeats=2)
    assert repr(one) == f"CVResult(2 x 4-fold of 20 bags, accuracy {one.accuracy():.3f})"
    two = cross_validate(GMIL(), bags, y, cv=4, param_grid={"n_clusters": [2, 9]})
    low, high = sorted(two.accuracy())
    assert repr(two) == f"CVResult(2 settings, 1 x 4-fold of 20 bags, accuracy {low:.3f} to {high:.3f})"


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6))
def test_measures_agree_with_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 40))
    y = rng.integers(0, 2, n)
    decisions = rng.integers(-3, 4, (2, 3, n)).astype(float)  # few values, many ties
    folds = np.array([rng.permutation(np.arange(n) % 4) for _ in range(3)])
    result = gmil.CVResult(y, (decisions > 0).astype(int), decisions, folds, *np.zeros((2, 2, 3, 4)), [{}, {}], 1)
    for s in range(2):
        for r in range(3):
            for f in range(4):
                test = folds[r] == f
                hits = result.predictions[s, r, test] == y[test]
                assert result.fold_accuracies()[s, r, f] == pytest.approx(hits.mean())
                balanced = metrics.balanced_accuracy_by_fold(result.correct, y, folds, 4)[s, r, f]
                recalls = [hits[y[test] == c].mean() for c in np.unique(y[test])]
                assert balanced == pytest.approx(np.mean(recalls))
                if len(np.unique(y[test])) == 2:
                    assert balanced == pytest.approx(balanced_accuracy_score(y[test], result.predictions[s, r, test]))
                    expected = roc_auc_score(y[test], decisions[s, r, test])
                    assert result.fold_aucs()[s, r, f] == pytest.approx(expected)


def test_the_interval_is_a_bootstrap_over_bags():
    rates = np.array([1.0, 1.0, 0.0, 0.5] * 25)
    low, high = metrics.bootstrap_interval(rates, n_resamples=20_000)
    spread = 1.96 * rates.std() / np.sqrt(len(rates))  # what the central limit theorem says
    assert low == pytest.approx(rates.mean() - spread, abs=0.01)
    assert high == pytest.approx(rates.mean() + spread, abs=0.01)
    assert metrics.bootstrap_interval(np.ones(10)) == (1.0, 1.0)
    assert metrics.bootstrap_interval(rates) == metrics.bootstrap_interval(rates)


def test_the_interval_of_groups_is_a_bootstrap_over_groups(data):
    rates = np.array([1.0, 1.0, 0.0, 0.5] * 25)
    assert metrics.bootstrap_interval(rates, np.arange(100)) == metrics.bootstrap_interval(rates)
    # Four bags that are always right or wrong together are worth one.
    together = metrics.bootstrap_interval(np.repeat(rates, 4), np.repeat(np.arange(100), 4))
    assert together == pytest.approx(metrics.bootstrap_interval(rates))
    # By hand: of two groups with 1 and 3 bags, drawn twice, the mean is 1, (1 + 0) / 4 or 0.
    uneven = metrics.bootstrap_interval(np.array([1.0, 0, 0, 0]), np.array(["a", "b", "b", "b"]), level=0.4)
    assert uneven == (0.25, 0.25)
    bags, y = data
    groups = np.arange(60) // 6
    for estimator in (GMIL(5), GMIL(5, rule="vote")):  # all folds at once, and fold by fold
        found = cross_validate(estimator, bags, y, cv=3, groups=groups)
        expected = metrics.bootstrap_interval(found.correct[0].mean(axis=0), groups)
        assert found.accuracy_interval() == expected
        assert expected != metrics.bootstrap_interval(found.correct[0].mean(axis=0))


def test_one_class_against_all_others(data):
    bags, y = gmil.make_bags(60, n_features=3, n_classes=3, random_state=2, return_X_y=True)
    result = cross_validate(GMIL(10), bags, y, cv=4, repeats=2)
    for label in range(3):
        binary = result.one_vs_rest(label)
        assert np.array_equal(binary.y, y == label)
        assert np.array_equal(binary.predictions, result.decisions[..., label] > 0)
        hits, areas, precisions = [], [], []
        for repeat, folds in enumerate(result.folds):
            for fold in range(4):
                test = folds == fold
                decided = result.decisions[0, repeat, test, label]
                hits.append((decided > 0)[y[test] == label].mean())
                areas.append(roc_auc_score(y[test] == label, decided))
                precisions.append(average_precision_score(y[test] == label, decided))
        assert binary.recall() == pytest.approx(np.mean(hits))
        assert binary.auc() == pytest.approx(np.mean(areas))
        assert binary.average_precision() == pytest.approx(np.mean(precisions))
    with pytest.raises(ValueError, match=r"recall is for two classes. Call result.one_vs_rest"):
        result.recall()
    with pytest.raises(ValueError, match=r"must be one of \[0, 1, 2\], got 7"):
        result.one_vs_rest(7)


def test_of_two_classes_either_may_be_the_one(data):
    bags, y = data
    result = cross_validate(GMIL(10), bags, y, cv=4)
    assert result.one_vs_rest(1).auc() == pytest.approx(result.auc())
    assert result.one_vs_rest(0).auc() == pytest.approx(result.auc())
    assert result.one_vs_rest(1).recall() == pytest.approx(result.recall())


@pytest.mark.parametrize("estimator", [GMIL(10, 2, 3), gmil.WeightedGMIL(views=["nearest"], scales=["l2"])], ids=str)
def test_an_indicator_matrix_is_one_problem_a_column(data, estimator):
    bags, y = data
    indicator = np.column_stack([y, np.arange(len(y)) % 3 == 0]).astype(int)
    folds = KFold(4, shuffle=True, random_state=0)
    result = cross_validate(estimator, bags, indicator, cv=folds)
    assert result.predictions.shape == result.decisions.shape == (1, 1, 60, 2)
    alone = [cross_validate(estimator, bags, column, cv=folds) for column in indicator.T]
    for column, expected in enumerate(alone):
        if isinstance(estimator, GMIL):  # one clustering serves both
            np.testing.assert_allclose(result.decisions[..., column], expected.decisions)
        assert result.one_vs_rest(column).auc() == pytest.approx(metrics_mean(result, indicator, column))
    assert result.auc() == pytest.approx(np.mean([result.one_vs_rest(i).auc() for i in range(2)]))
    assert result.accuracy() == pytest.approx(np.mean([result.one_vs_rest(i).accuracy() for i in range(2)]))
    assert result.balanced_accuracy() == pytest.approx(
        np.mean([result.one_vs_rest(i).balanced_accuracy() for i in range(2)])
    )
    assert result.auc_folds_dropped() == 0
    assert 0.5 <= result.majority_accuracy() <= 1


def metrics_mean(result, indicator, column):
    folds = result.folds[0]
    return np.mean(
        [
            roc_auc_score(indicator[folds == f, column], result.decisions[0, 0, folds == f, column])
            for f in range(folds.max() + 1)
        ]
    )


def test_folds_of_an_indicator_matrix_are_balanced_by_combinations(data):
    bags, y = data
    indicator = np.column_stack([y, np.arange(len(y)) % 2]).astype(int)
    indicator[7] = [1, 1]
    result = cross_validate(GMIL(6), bags, indicator, cv=5)
    combination = indicator @ [2, 1]
    counts = np.array([np.bincount(combination[result.folds[0] == f], minlength=4) for f in range(5)])
    assert (counts.max(axis=0) - counts.min(axis=0) <= 1).all()
