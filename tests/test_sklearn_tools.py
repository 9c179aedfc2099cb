"""scikit-learn's tools on bags: what splits, searches, resamples and permutes works as it does on arrays."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_predict, learning_curve, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import _safe_indexing, resample, shuffle

import gmil
from gmil import Bags


@pytest.fixture(scope="module")
def labelled():
    return gmil.make_bags(40, n_features=4, witness_rate=0.5, random_state=0, return_X_y=True)


@pytest.fixture
def model():
    return gmil.GMIL(8, random_state=0)


@pytest.mark.parametrize("key", [slice(3, 9), slice(None, None, -2), [5, 0, 5], np.arange(40) % 3 == 0, slice(0, 0)])
def test_length_iteration_and_indexing_agree(labelled, key):
    bags, _ = labelled
    positions = np.arange(40)[key]
    chosen = bags[key]
    assert len(chosen) == chosen.shape[0] == len(list(chosen)) == len(chosen.to_list()) == len(positions)
    assert chosen.sizes.tolist() == bags.sizes[positions].tolist()
    for bag, position in zip(chosen, positions, strict=True):
        np.testing.assert_array_equal(bag, bags[int(position)])
    for i, bag in enumerate(chosen):  # a second walk gives the same
        np.testing.assert_array_equal(bag, chosen[i])
    with pytest.raises(IndexError):
        chosen[len(positions)]
    assert len(_safe_indexing(bags, key)) == len(positions)


def test_an_integer_is_a_matrix_and_an_array_of_one_is_bags(labelled):
    bags, _ = labelled
    assert isinstance(bags[np.int64(3)], np.ndarray)
    assert isinstance(bags[-1], np.ndarray)
    assert isinstance(bags[[3]], Bags)
    np.testing.assert_array_equal(bags[-1], list(bags)[-1])


def test_bags_are_split_shuffled_and_resampled_with_their_labels(labelled):
    bags, y = labelled
    train, test, y_train, y_test = train_test_split(bags, y, test_size=10, stratify=y, random_state=0)
    assert (len(train), len(test), len(y_train), len(y_test)) == (30, 10, 30, 10)
    for tool in (shuffle, resample):
        chosen, labels, numbers = tool(bags, y, np.arange(40), random_state=0)
        assert labels.tolist() == y[numbers].tolist()
        np.testing.assert_array_equal(chosen.instances, bags[numbers].instances)


def test_cross_val_predict_is_one_prediction_per_bag(labelled, model):
    bags, y = labelled
    found = cross_val_predict(model, bags, y, cv=4)
    assert found.shape == y.shape
    assert (found == y).mean() > 0.5
    assert cross_val_predict(model, bags, y, cv=4, method="decision_function").shape == y.shape


def test_learning_curve_counts_bags(labelled, model):
    bags, y = labelled
    sizes, train, test = learning_curve(model, bags, y, cv=4, train_sizes=[0.5, 1.0], shuffle=True, random_state=0)
    assert sizes.tolist() == [15, 30]
    assert train.shape == test.shape == (2, 4)


def test_grid_search_refits_on_all_bags(labelled, model):
    bags, y = labelled
    search = GridSearchCV(model, {"n_clusters": [4, 8]}, cv=4).fit(bags, y)
    best = clone(model).set_params(**search.best_params_).fit(bags, y)
    np.testing.assert_array_equal(search.decision_function(bags), best.decision_function(bags))
    assert search.n_features_in_ == 4


def test_bagging_takes_the_numbers_of_bags(labelled, model):
    """BaggingClassifier makes one array of X before all else; numbers of bags are one, and a first step looks up."""
    bags, y = labelled
    with pytest.raises(TypeError, match="Bags have no single array"):
        BaggingClassifier(model).fit(bags, y)
    numbers = np.arange(len(bags)).reshape(-1, 1)
    on_bags = make_pipeline(FunctionTransformer(lambda chosen: bags[chosen[:, 0]]), model)
    bagging = BaggingClassifier(on_bags, n_estimators=5, random_state=0).fit(numbers[:30], y[:30])
    assert bagging.score(numbers[30:], y[30:]) > 0.5
    drawn = bagging.estimators_samples_[0]
    alone = clone(bagging.estimators_[0].steps[-1][1]).fit(bags[drawn], y[drawn])
    np.testing.assert_array_equal(bagging.estimators_[0].predict(numbers), alone.predict(bags))


def test_a_bootstrap_ensemble_of_bags_needs_no_numbers(labelled, model):
    bags, y = labelled
    assert gmil.MILEnsemble(model, n_estimators=3, random_state=0).fit(bags, y).score(bags, y) > 0.7


def test_permutation_importance_shuffles_a_feature_among_all_instances(model):
    """It makes one array of X too: that of all instances, which the scorer turns into bags again."""
    made = gmil.make_bags(60, n_features=3, witness_rate=0.5, separation=6, random_state=0)
    noise = np.random.default_rng(0).normal(size=(made.bags.n_instances, 2))
    bags = made.bags.with_instances(np.hstack([made.bags.instances, noise]))
    with pytest.raises(TypeError, match="Bags have no single array"):
        permutation_importance(model.fit(bags, made.y), bags, made.y)
    found = permutation_importance(
        model.fit(bags, made.y),
        bags.instances,
        made.y,
        scoring=lambda model, X, y: model.score(bags.with_instances(X), y),
        n_repeats=5,
        random_state=0,
    )
    assert found.importances.shape == (5, 5)
    assert found.importances_mean[:3].max() > 0.1 > np.abs(found.importances_mean[3:]).max()
