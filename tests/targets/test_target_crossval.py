"""Cross-validation of values and times: folds, measures, intervals, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge
from sklearn.metrics import cohen_kappa_score, mean_absolute_error, r2_score, root_mean_squared_error

import gmil
from gmil.checks.targets import _size_finding
from gmil.model_selection import target_metrics
from gmil.model_selection.target_crossval import target_of
from gmil.target_checks import Outcomes, kind_of_target


@pytest.fixture(scope="module")
def made():
    return gmil.make_bags(80, target="regression", n_features=3, witness_rate=0.5, random_state=0)


@pytest.fixture(scope="module")
def times():
    return gmil.make_bags(80, target="survival", n_features=3, witness_rate=0.5, random_state=0)


def test_intervals_are_about_one_model_and_not_about_the_mean_of_all_repeats(made, times):
    noise = np.random.default_rng(3).normal(size=80)
    result = gmil.cross_validate(gmil.PrimeInstanceRegressor(), made.bags, noise, cv=5, repeats=10)
    low, high = result.intervals()["r2"]
    assert low < result.r2() < high
    everyone = replace(result, predictions=result.predictions.mean(axis=1, keepdims=True))
    assert everyone.r2() > result.r2() + 0.1  # what the interval was about
    risks = np.random.default_rng(0).normal(size=(1, 30, 80))
    found = gmil.cross_validate(gmil.BagCox(penalty=1.0), times.bags, times.y, cv=5, repeats=30)
    found = replace(found, predictions=risks, curves=None)
    low, high = found.intervals()["concordance"]
    assert high - low < 0.1  # of one repeat of random risks it is wider
    assert low < found.concordance() < high


def test_measures_are_those_of_scikit_learn(made):
    result = gmil.cross_validate(gmil.BagRegressor(), made.bags, made.y, cv=5, repeats=2)
    assert isinstance(result, gmil.TargetResult)
    assert result.predictions.shape == (1, 2, 80)
    for own, theirs in (("r2", r2_score), ("mae", mean_absolute_error), ("rmse", root_mean_squared_error)):
        expected = np.mean([theirs(made.y, row) for row in result.predictions[0]])
        assert getattr(result, own)() == pytest.approx(expected)
    assert 0 < result.spearman() <= 1
    assert "r2 0." in repr(result)
    for name, (low, high) in result.intervals().items():
        assert low < result.figures()[name] < high
    with pytest.raises(ValueError, match="concordance is a measure of survival"):
        result.concordance()


def test_predictions_are_of_models_that_never_saw_the_bag(made):
    result = gmil.cross_validate(gmil.BagRegressor(), made.bags, made.y, cv=4)
    test = result.folds[0] == 2
    model = gmil.BagRegressor().fit(made.bags[~test], made.y[~test])
    assert_allclose(result.predictions[0, 0, test], model.predict(made.bags[test]))
    assert_array_equal(np.bincount(result.folds[0]), [20] * 4)


def test_groups_settings_pipelines_and_several_targets(made):
    groups = np.arange(80) // 4
    y = np.column_stack([made.y, -made.y])
    pipeline = gmil.make_pipeline(gmil.BagSummaries(), Ridge())
    result = gmil.cross_validate(
        pipeline, made.bags, y, cv=5, groups=groups, param_grid={"ridge__alpha": [0.1, 1e6]}, random_state=3
    )
    assert result.predictions.shape == (2, 1, 80, 2)
    assert all(len(np.unique(result.folds[0][groups == group])) == 1 for group in range(20))
    good, bad = result.r2()
    assert good > bad
    narrow = gmil.cross_validate(pipeline, made.bags, y, cv=5).intervals()["r2"]
    assert narrow[0] < narrow[1]


def test_times_are_measured_within_folds(times):
    result = gmil.cross_validate(gmil.BagCox(random_state=0), times.bags, times.y, cv=4)
    assert result.target == "survival"
    right = total = 0.0
    for fold in range(4):
        rows = np.flatnonzero(result.folds[0] == fold)
        assert 0 < times.y["event"][rows].sum() < len(rows)
        for i in rows:
            for j in rows:
                if times.y["event"][i] and times.y["time"][i] < times.y["time"][j]:
                    total += 1
                    right += result.predictions[0, 0, i] > result.predictions[0, 0, j]
    assert result.concordance() == pytest.approx(right / total)
    low, high = result.intervals()["concordance"]
    assert low < result.concordance() < high
    assert result.curves.shape == (1, 1, 80, 50)
    assert 0 < result.brier() < 0.25
    low, high = result.intervals()["brier"]
    assert low < result.brier() < high
    assert result.figures()["brier_interval"] == [low, high]
    assert "brier" not in replace(result, curves=None, times=None).intervals()


def test_grades_have_a_kappa():
    made = gmil.make_bags(60, target="ordinal", n_classes=3, n_features=3, random_state=0)
    names = np.array(["low", "middle", "high"])
    model = gmil.WeightedGMILOrdinal(grades=names.tolist(), scales=("standard",), witness_model=False)
    result = gmil.cross_validate(model, made.bags, names[made.y], cv=3)
    rank = {name: i for i, name in enumerate(names)}
    predicted = np.array([rank[name] for name in result.predictions[0, 0]])
    assert result.kappa() == pytest.approx(target_metrics.quadratic_kappa(made.y, predicted))
    expected = target_metrics.resampled_interval(target_metrics.quadratic_kappa, made.y, predicted)
    assert result.kappa_interval() == pytest.approx(expected)
    assert expected[0] < result.kappa() < expected[1]


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(15), 2)])
def test_intervals_of_grades_and_times_without_an_error_have_a_width(groups):
    grades = np.tile([0.0, 1.0, 2.0], 10)
    low, high = target_metrics.kappa_interval(grades, grades[:, None], groups)
    assert high == 1
    # 11.35 % of 30 bags, or 20.39 % of 15 groups, may be wrong (Wilson); one grade each, of a variance of two thirds.
    assert low == pytest.approx(1 - (0.1135 if groups is None else 0.2039) * 0.75, abs=1e-4)
    total = np.triu(np.ones((30, 30)), 1)
    assert target_metrics.concordance_interval(total, total, groups) == pytest.approx(
        (1 - (0.1135 if groups is None else 0.2039), 1.0), abs=1e-4
    )


def test_what_an_estimator_predicts_and_what_a_column_is():
    assert target_of(gmil.WeightedGMIL()) == "classes"
    assert target_of(gmil.make_pipeline(gmil.BagSummaries(), Ridge())) == "regression"
    assert target_of(gmil.WeightedGMILOrdinal()) == "ordinal"
    assert target_of(gmil.BagCox()) == "survival"
    assert kind_of_target(np.arange(30))[0] == "regression"
    assert kind_of_target(np.arange(30) % 5)[0] == "classes"
    assert kind_of_target(gmil.make_bags(5, target="survival").y)[0] == "survival"


def test_what_cannot_be_validated_is_refused(made):
    with pytest.raises(gmil.BagValidationError, match="at least 2 and at most 80"):
        gmil.cross_validate(gmil.BagRegressor(), made.bags, made.y, cv=81)
    with pytest.raises(gmil.BagValidationError, match="Leave out instance_y"):
        gmil.cross_validate(gmil.BagRegressor(), made.bags, made.y, instance_y=made.instance_y)
    with pytest.raises(gmil.BagValidationError, match="target must be one of"):
        gmil.check_data(made.bags, made.y, target="values")
    with pytest.raises(gmil.BagValidationError, match="one value per bag"):
        gmil.check_data(made.bags, np.column_stack([made.y, made.y]), target="regression")


def test_python_compares_too(made):
    found = gmil.compare({"a": gmil.BagRegressor(), "b": gmil.PrimeInstanceRegressor()}, made.bags, made.y, cv=3)
    assert found.best == "a"
    assert set(found.results) == {"a", "b", "mean", "bag-size"}
    assert found.to_pandas().shape[0] == 4
    assert "worse" in str(found)
    assert "TargetComparison" in repr(found)


def test_a_comparison_has_one_interval_and_one_order_of_grades(made):
    both = np.column_stack([made.y, 1000 + np.random.default_rng(0).normal(size=80)])
    found = gmil.compare({"a": gmil.PrimeInstanceRegressor()}, made.bags, both, cv=3, repeats=3)
    (row,) = (row for row in found.rows if row["method"] == "a")
    assert (row["low"], row["high"]) == pytest.approx(found.results["a"].intervals()["r2"])
    grades = np.array(["low", "middle", "high"])
    y = grades[np.digitize(made.y, np.quantile(made.y, [1 / 3, 2 / 3]))]
    told = gmil.WeightedGMILOrdinal(grades=grades, scales=("standard",), witness_model=False)
    found = gmil.compare({"told": told, "b": gmil.BagStatistics()}, made.bags, y, cv=3, repeats=1)
    expected = cohen_kappa_score(y, found.results["b"].predictions[0, 0], labels=grades, weights="quadratic")
    assert next(row["value"] for row in found.rows if row["method"] == "b") == pytest.approx(expected)


def test_noise_is_no_better_than_chance():
    rng = np.random.default_rng(0)
    bags = gmil.Bags(rng.normal(size=(120, 3)), np.arange(0, 121, 3))
    assert gmil.check_data(bags, rng.normal(size=40), target="regression").verdict.startswith("no better than")


def test_what_cannot_be_assessed_is_said(made, times):
    def verdict(bags, y, **how):
        return gmil.check_data(bags, y, **how).verdict

    few = verdict(made.bags[:8], made.y[:8], target="regression")
    assert few == "not assessable: there are 8 bags, and 5 folds need 10"
    grouped = verdict(made.bags, made.y, target="regression", groups=np.arange(80) % 3)
    assert grouped == "not assessable: all bags are in 3 groups, and 5 folds need 5"
    holes = gmil.Bags(np.where(made.bags.instances > 1, np.inf, made.bags.instances), made.bags.offsets)
    assert "values are infinite" in verdict(holes, made.y, target="regression")
    last = np.column_stack([times.y["time"] == times.y["time"].max(), times.y["time"]])
    assert verdict(times.bags, last, target="survival").startswith("not assessable: in no fold is it known")
    one = np.column_stack([np.arange(80) == 7, times.y["time"]])  # one event, and few folds that have it
    assert "better than" in verdict(times.bags, one, target="survival")
    zeros = np.where(np.arange(80) < 3, made.y, 0.0)  # nearly all values are equal
    assert "better than" in verdict(made.bags, zeros, target="regression")


@pytest.mark.parametrize("target", ["regression", "survival"])
def test_a_lead_over_the_size_of_bags_must_be_more_than_luck(target):
    rng = np.random.default_rng(0)
    values, folds, by_size = rng.normal(size=60), np.arange(60) % 3, np.zeros(60)
    truth = values if target == "regression" else Outcomes(np.ones(60, dtype=bool), np.exp(-values))
    lucky = np.where(np.arange(60) < 2, values, 0.0)
    found = _size_finding(truth, lucky, by_size, folds, None, 0)
    assert found.value > 0
    assert found.level == "warning"
    assert _size_finding(truth, values / 2, by_size, folds, None, 0).level == "ok"


class ForestOfAnother(BaseEstimator):
    """A model of times with the methods of scikit-survival."""

    def fit(self, X, y):
        self.direction_ = -np.corrcoef(X.T, y["time"])[-1, :-1]
        return self

    def predict(self, X):
        return X @ self.direction_

    def predict_survival_function(self, X, return_array=False):
        raise NotImplementedError


def test_models_of_others_predict_risks_of_summaries():
    made = gmil.make_bags(60, target="survival", n_features=3, bag_size=(2, 4), random_state=0)
    model = gmil.make_pipeline(gmil.BagSummaries(), ForestOfAnother())
    found = gmil.cross_validate(model, made.bags, made.y, cv=3)
    assert found.target == "survival"
    assert found.concordance() > 0.5
    assert found.curves is None
    assert "other" in gmil.compare({"other": model}, made.bags, made.y, cv=3, repeats=1).results


def test_random_survival_forests_of_scikit_survival():
    ensemble = pytest.importorskip("sksurv.ensemble")
    made = gmil.make_bags(80, target="survival", n_features=3, bag_size=(2, 4), random_state=0)
    model = gmil.make_pipeline(gmil.BagSummaries(), ensemble.RandomSurvivalForest(20, random_state=0))
    assert gmil.cross_validate(model, made.bags, made.y, cv=3).concordance() > 0.55
