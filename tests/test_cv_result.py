"""Measures of what cross-validation found, of two classes, several classes and several labels."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import average_precision_score, balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import KFold

import gmil
from gmil import GMIL, cross_validate
from gmil.model_selection import metrics


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


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_measures_agree_with_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 40))
    y = rng.integers(0, 2, n)
    decisions = rng.integers(-3, 4, (2, 3, n)).astype(float)  # few values, many ties
    folds = np.array([rng.permutation(np.arange(n) % 4) for _ in range(3)])
    result = gmil.CVResult(y, (decisions > 0).astype(int), decisions, folds, *np.zeros((2, 2, 3, 4)), [{}, {}], 1)
    accuracies, aucs = result.fold_accuracies(), result.fold_aucs()
    balanced = metrics.balanced_accuracy_by_fold(result.correct, y, folds, 4)
    for s, r, f in np.ndindex(2, 3, 4):
        test = folds[r] == f
        hits = result.predictions[s, r, test] == y[test]
        assert accuracies[s, r, f] == pytest.approx(hits.mean())
        recalls = [hits[y[test] == c].mean() for c in np.unique(y[test])]
        assert balanced[s, r, f] == pytest.approx(np.mean(recalls))
        if len(np.unique(y[test])) == 2:
            found = balanced_accuracy_score(y[test], result.predictions[s, r, test])
            assert balanced[s, r, f] == pytest.approx(found)
            assert aucs[s, r, f] == pytest.approx(roc_auc_score(y[test], decisions[s, r, test]))


def test_the_interval_is_a_bootstrap_over_bags():
    rates = np.array([1.0, 1.0, 0.0, 0.5] * 25)
    low, high = metrics.bootstrap_interval(rates, n_resamples=20_000)
    spread = 1.96 * rates.std() / np.sqrt(len(rates))  # what the central limit theorem says
    assert low == pytest.approx(rates.mean() - spread, abs=0.01)
    assert high == pytest.approx(rates.mean() + spread, abs=0.01)
    assert metrics.bootstrap_interval(rates) == metrics.bootstrap_interval(rates)
    assert metrics.mean_interval(rates) == metrics.bootstrap_interval(rates)  # enough bags are right, and wrong


def test_wilson_is_that_of_scipy():
    for n in (1, 2, 7, 60, 92):
        for right in range(n + 1):
            for level in (0.8, 0.95, 0.99):
                expected = stats.binomtest(right, n).proportion_ci(level, "wilson")
                found = metrics.wilson_interval(right / n, n, level=level)
                assert found == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert metrics.wilson_interval(1.0, 60)[1] == 1
    assert metrics.wilson_interval(0.0, 60)[0] == 0


def test_an_accuracy_of_one_is_not_certain():
    low, high = metrics.mean_interval(np.ones(60))
    assert (low, high) == metrics.wilson_interval(1.0, 60)
    assert low == pytest.approx(60 / (60 + 1.959963984540054**2))  # by hand: n / (n + z^2)
    # One wrong bag, by hand: the resamples reach 1, and Wilson reaches further down.
    low, high = metrics.mean_interval(np.arange(60) > 0)
    assert (low, high) == (metrics.wilson_interval(59 / 60, 60)[0], 1.0)
    # Bags of one group err together: twelve groups are twelve.
    assert metrics.mean_interval(np.ones(60), np.arange(60) % 12) == metrics.wilson_interval(1.0, 12)
    # Every bag is right in one repeat of two.
    assert metrics.mean_interval(np.full(60, 0.5)) == metrics.wilson_interval(0.5, 60)


@settings(max_examples=100)
@given(
    st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]), min_size=2, max_size=40),
    st.integers(1, 40),
    st.sampled_from([0.5, 0.9, 0.95, 0.99]),
)
def test_an_interval_holds_the_estimate_and_never_collapses(values, n_groups, level):
    rates = np.array(values)
    for groups in (None, np.arange(len(rates)) % n_groups):
        low, high = metrics.mean_interval(rates, groups, level=level, n_resamples=200)
        assert 0 <= low <= rates.mean() <= high <= 1
        assert high - low > 0.005
        more = metrics.mean_interval(rates, groups, level=0.999, n_resamples=200)
        assert more[0] <= low
        assert high <= more[1]


def test_the_interval_holds_the_accuracy_as_often_as_it_says():
    """Exact, over all numbers of right bags: percentiles of the bootstrap of a share are those of a binomial."""
    n = 60
    intervals = [metrics.mean_interval(np.arange(n) < right) for right in range(n + 1)]
    for share in np.linspace(0.7, 0.99, 30):
        chance = stats.binom.pmf(np.arange(n + 1), n, share)
        inside = [low <= share <= high for low, high in intervals]
        assert chance[inside].sum() > 0.9  # the bootstrap alone has 0.45 at 0.99


def test_the_accuracy_is_in_its_interval_where_folds_are_of_unequal_size():
    y, folds = np.array([0, 1] * 10), np.zeros((1, 20), dtype=int)
    folds[0, 0] = 1
    predictions = y.copy()
    predictions[0] = 1  # half of the folds, one of twenty bags
    result = gmil.CVResult(y, predictions[None, None], np.zeros((1, 1, 20)), folds, *np.zeros((2, 1, 1, 2)))
    low, high = result.accuracy_interval()
    assert result.accuracy() == 0.5
    assert low <= 0.5 < high


def test_a_bootstrap_of_many_bags_takes_little_memory():
    rates = np.random.default_rng(0).random(10_000)
    rng, rows = np.random.default_rng(3), 2000
    expected = np.quantile([rates[rng.integers(0, 10_000, 10_000)].mean() for _ in range(rows)], [0.025, 0.975])
    tracemalloc.start()
    found = metrics.bootstrap_interval(rates, random_state=3)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 8 << 20
    assert found == pytest.approx(tuple(expected))


def test_the_deviation_over_repeats_divides_by_one_less(data):
    result = cross_validate(GMIL(5), *data, cv=4, repeats=3)
    one, two, three = result.fold_accuracies()[0].mean(axis=1)
    mean = (one + two + three) / 3
    by_hand = np.sqrt(((one - mean) ** 2 + (two - mean) ** 2 + (three - mean) ** 2) / 2)
    assert result.accuracy_std() == pytest.approx(by_hand)
    assert np.isnan(cross_validate(GMIL(5), *data, cv=4).accuracy_std())  # one repeat has no deviation
    grid = cross_validate(GMIL(5), *data, cv=4, param_grid={"n_clusters": [3, 5]})
    assert np.isnan(grid.accuracy_std()).tolist() == [True, True]


def test_results_are_equal_by_what_they_hold_but_for_the_seconds(data):
    bags, y = data
    grid = {"n_clusters": [4, 5]}
    one, same = (cross_validate(GMIL(), bags, y, cv=3, param_grid=grid) for _ in range(2))
    other = cross_validate(GMIL(), bags, y, cv=3, param_grid=grid, random_state=1)
    assert one == same
    assert one != other
    assert one != "a result"
    nothing = replace(one, decisions=np.full_like(one.decisions, np.nan))
    assert nothing == replace(nothing)
    assert nothing != one
    assert replace(one, groups=y) != one
    assert replace(one, params=[{"n_clusters": 4}]) != one
    assert one == replace(one, fit_seconds=one.fit_seconds + 1)
    grouped = replace(one, params=[{"prior": np.ones(2)}, {}])
    assert grouped == replace(one, params=[{"prior": np.ones(2)}, {}])
    assert one in [other, same]
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


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
        expected = metrics.mean_interval(found.correct[0].mean(axis=0), groups)
        assert found.accuracy_interval() == expected
        assert expected != metrics.mean_interval(found.correct[0].mean(axis=0))


def test_one_class_against_all_others():
    bags, y = gmil.make_bags(60, n_features=3, n_classes=3, random_state=2, return_X_y=True)
    result = cross_validate(GMIL(10), bags, y, cv=4, repeats=2)
    for label in range(3):
        binary = result.one_vs_rest(label)
        assert np.array_equal(binary.y, y == label)
        assert np.array_equal(binary.predictions, result.predictions == label)
        hits, areas, precisions = [], [], []
        for repeat, folds in enumerate(result.folds):
            for fold in range(4):
                test = folds == fold
                decided = result.decisions[0, repeat, test, label]
                hits.append((result.predictions[0, repeat, test] == label)[y[test] == label].mean())
                areas.append(roc_auc_score(y[test] == label, decided))
                precisions.append(average_precision_score(y[test] == label, decided))
        assert binary.recall() == pytest.approx(np.mean(hits))
        assert binary.auc() == pytest.approx(np.mean(areas))
        assert binary.average_precision() == pytest.approx(np.mean(precisions))
    with pytest.raises(ValueError, match=r"recall is for two classes. Call result.one_vs_rest"):
        result.recall()
    with pytest.raises(ValueError, match=r"must be one of \[0, 1, 2\], got 7"):
        result.one_vs_rest(7)


class Shares(ClassifierMixin, BaseEstimator):
    """A forest on the means of bags: its decisions are shares of votes, positive from one half on."""

    def fit(self, X, y):
        self.forest_ = RandomForestClassifier(20, random_state=0).fit(self.means(X), y)
        self.classes_ = self.forest_.classes_
        return self

    def means(self, X):
        return np.array([bag.mean(axis=0) for bag in X])

    def predict(self, X):
        return self.forest_.predict(self.means(X))

    def predict_proba(self, X):
        found = self.forest_.predict_proba(self.means(X))
        return found if isinstance(found, np.ndarray) else np.column_stack([column[:, 1] for column in found])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_are_those_predicted_where_decisions_are_shares(n_classes):
    bags, y = gmil.make_bags(60, n_features=3, n_classes=n_classes, random_state=2, return_X_y=True)
    result = cross_validate(Shares(), bags, y, cv=4)
    assert (result.decisions >= 0).all()
    for label in range(n_classes):
        binary = result.one_vs_rest(label)
        right = (result.predictions == label) == (y == label)
        assert binary.accuracy() == pytest.approx(metrics.mean_by_fold(right, result.folds, 4).mean())
        assert np.array_equal(binary.correct, right)
    if n_classes == 2:
        assert result.one_vs_rest(1).accuracy() == result.one_vs_rest(0).accuracy() == result.accuracy()


def test_labels_of_several_are_those_predicted_where_decisions_are_shares(data):
    bags, y = data
    indicator = np.column_stack([y, 1 - y])
    folds = KFold(4, shuffle=True, random_state=0)
    result = cross_validate(Shares(), bags, indicator, cv=folds)
    expected = [balanced_accuracy_score(indicator[test, column], result.predictions[0, 0, test, column])
                for _, test in folds.split(y) for column in range(2)]  # fmt: skip
    assert result.accuracy() > 0.6
    assert result.balanced_accuracy() == pytest.approx(np.mean(expected))


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
