"""Which features matter: groups of features, exchanges between bags, and the fall of a measure."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.stats import spearmanr, t
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import roc_auc_score

import gmil
from gmil.reporting.assessment import folds, importance
from gmil.reporting.assessment.importance import (
    Unseen,
    exchanged_rows,
    feature_importance,
    group_features,
    with_exchanged,
)


class Largest(ClassifierMixin, BaseEstimator):
    """Decides by the largest value of the first feature in a bag, and by nothing else."""

    def fit(self, X, y):  # noqa: ARG002
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return np.array([bag[:, 0].max() for bag in X]) - 3

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


class OnlyLabels(Largest):
    """The same without decisions."""

    decision_function = property()

    def predict(self, X):
        return self.classes_[[int(bag[:, 0].max() > 3) for bag in X]]


# ------------------------------------------------------------------ groups


def test_features_that_correlate_are_one_group():
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 200))
    numbers, correlation = group_features(np.column_stack([a, b, np.exp(a), -a, c]))
    groups = {frozenset(np.flatnonzero(numbers == group).tolist()) for group in set(numbers.tolist())}
    assert groups == {frozenset({0, 2, 3}), frozenset({1}), frozenset({4})}  # by rank, and up or down
    assert correlation == pytest.approx(1)


def test_all_features_of_a_group_correlate_by_as_much_as_is_told():
    rng = np.random.default_rng(1)
    instances = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 12))
    numbers, correlation = group_features(instances)
    sizes = np.abs(spearmanr(instances).statistic)
    together = (numbers[:, None] == numbers) & ~np.eye(12, dtype=bool)
    assert together.any()
    assert sizes[together].min() == pytest.approx(correlation)
    assert correlation >= 0.7


def test_of_many_features_there_are_no_more_groups_than_wanted():
    instances = np.random.default_rng(0).normal(size=(100, 90))
    for most in (importance.MANY_GROUPS, importance.FEW_GROUPS):
        found = group_features(instances, most)
        assert found.n_groups == len(np.unique(found.numbers)) <= most
        assert found.correlation < 0.7


@pytest.mark.parametrize("columns", [[0], [0, 1], [0, 1, 1]])
def test_few_and_constant_features(columns):
    instances = np.column_stack([np.arange(9.0), np.ones(9)])[:, columns]
    numbers, correlation = group_features(instances)
    assert len(np.unique(numbers)) == len(columns)
    assert correlation is None


# ------------------------------------------------------------------ exchanges


@given(st.lists(st.integers(1, 7), min_size=1, max_size=9), st.integers(0, 999))
def test_every_bag_takes_rows_of_one_bag_and_all_of_them_where_there_is_room(sizes, seed):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    bags = gmil.Bags(np.arange(offsets[-1])[:, None].astype(float), offsets)
    rows = exchanged_rows(bags, np.random.default_rng(seed))
    donors = []
    for start, end in itertools.pairwise(offsets):
        owners = set(bags.segment_ids[rows[start:end]].tolist())
        assert len(owners) == 1
        donors += owners
        assert len(set(rows[start:end].tolist())) == min(end - start, bags.sizes[donors[-1]])
    assert sorted(donors) == list(range(len(sizes)))


def test_only_the_features_of_the_group_are_exchanged_dense_or_sparse(gaussian_bags):
    bags, _ = gaussian_bags()
    rows = exchanged_rows(bags, np.random.default_rng(0))
    features = np.array([True, False, True])
    mixed = with_exchanged(bags, rows, features)
    assert_array_equal(mixed.instances[:, [0, 2]], bags.instances[rows][:, [0, 2]])
    assert_array_equal(mixed.instances[:, 1], bags.instances[:, 1])
    sparse = gmil.Bags(sp.csr_array(bags.instances), bags.offsets)
    assert_array_equal(with_exchanged(sparse, rows, features).instances.toarray(), mixed.instances)


# ------------------------------------------------------------------ falls


@pytest.mark.parametrize(("method", "measure"), [(Largest, "AUC"), (OnlyLabels, "accuracy")])
def test_only_the_feature_that_decides_matters(gaussian_bags, method, measure):
    bags, y = gaussian_bags(n_bags=40)
    model = method().fit(bags, y)
    found, reason = feature_importance([Unseen(model, bags, y)], bags, 8)
    assert (reason, found.measure, found.n_repeats) == ("", measure, 8)
    assert found.base > 0.9
    first, *others = found.groups
    assert first.features == ["feature 0"]
    assert first.low > 0.2
    assert all((group.fall, group.low, group.high) == (0, 0, 0) for group in others)


def test_falls_and_intervals_are_those_of_the_definition(gaussian_bags):
    bags, y = gaussian_bags(n_bags=20)
    named = gmil.Bags(bags.instances, bags.offsets, feature_names=["width", "height", "depth"])
    model = Largest().fit(named, y)
    found, _ = feature_importance([Unseen(model, named, y)], named, 4)
    falls = []
    for repeat in range(4):
        rows = exchanged_rows(named, np.random.default_rng(repeat))
        mixed = with_exchanged(named, rows, np.array([True, False, False]))
        falls.append(found.base - roc_auc_score(y, model.decision_function(mixed)))
    group = found.groups[0]
    assert group.features == ["width"]
    assert group.fall == pytest.approx(np.mean(falls))
    half = t.ppf(0.975, 3) * np.std(falls, ddof=1) / 2
    assert (group.low, group.high) == pytest.approx((group.fall - half, group.fall + half))


def test_it_is_bounded_in_time_and_says_so(gaussian_bags, monkeypatch):
    bags, y = gaussian_bags()
    tested = [Unseen(Largest().fit(bags, y), bags, y)]
    monkeypatch.setattr(importance, "SECONDS", 1e-9)
    found, reason = feature_importance(tested, bags)
    assert found is None
    assert "it would take about" in reason
    assert "--importance 10" in reason
    steps = []
    found, _ = feature_importance(tested, bags, 1, lambda done, total: steps.append((done, total)))
    assert found.n_repeats == 1
    assert steps == [(1, 3), (2, 3), (3, 3)]
    assert found.groups[0].low == found.groups[0].high


def test_folds_are_fitted_again_only_where_that_is_cheap_or_asked_for(gaussian_bags, monkeypatch):
    bags, y = gaussian_bags()
    result = gmil.cross_validate(gmil.GMIL(5), bags, y, cv=3)
    monkeypatch.setattr(folds, "SECONDS", 0.0)
    (found,) = gmil.report(result, bags, estimator=gmil.GMIL(5)).summary.assessments
    assert found.importance is None
    assert "its 3 models would have to be fitted again" in found.without_importance
    (found,) = gmil.report(result, bags, estimator=gmil.GMIL(5), importance=2).summary.assessments
    assert found.importance.n_repeats == 2


def test_never_is_never_and_very_many_features_are_too_many(gaussian_bags):
    bags, y = gaussian_bags()
    tested = [Unseen(Largest().fit(bags, y), bags, y)]
    assert feature_importance(tested, bags, 0) == (None, "")
    wide = gmil.Bags(np.zeros((4, 3001)), [0, 2, 4])
    assert "more than 3000" in feature_importance(tested, wide)[1]


def test_one_bag_has_none_to_exchange_with(gaussian_bags):
    bags, y = gaussian_bags()
    tested = [Unseen(Largest().fit(bags, y), bags[:1], y[:1])]
    assert "one bag has none to exchange with" in feature_importance(tested, bags[:1])[1]


def test_sparse_bags_and_pipelines(gaussian_bags):
    bags, y = gaussian_bags()
    sparse = gmil.Bags(sp.csr_array(bags.instances), bags.offsets)
    model = gmil.GMIL(5, random_state=0).fit(sparse, y)
    assert gmil.report(model, sparse, y, importance=2).summary.assessments[0].importance.groups
    gaps = bags.instances.copy()
    gaps[::5, 2] = np.nan
    bags = bags.with_instances(gaps)
    for strategy in ("median", "drop"):
        pipeline = gmil.make_pipeline(gmil.Impute(strategy), gmil.GMIL(5, random_state=0)).fit(bags[:20], y[:20])
        assert gmil.report(pipeline, bags, y, importance=2).summary.assessments[0].importance.groups


def test_fewer_groups_are_taken_where_more_would_take_too_long(monkeypatch):
    rng = np.random.default_rng(0)
    bags, y = gmil.Bags(rng.normal(size=(60, 70)), np.arange(0, 61, 3)), np.arange(20) % 2
    tested = [Unseen(Largest().fit(bags, y), bags, y)]
    assert len(feature_importance(tested, bags, 1)[0].groups) > importance.FEW_GROUPS
    monkeypatch.setattr(importance, "_affordable", lambda _seconds, n: 4 if n <= importance.FEW_GROUPS else 1)
    found, _ = feature_importance(tested, bags)
    assert len(found.groups) <= importance.FEW_GROUPS
    assert found.n_repeats == 4
