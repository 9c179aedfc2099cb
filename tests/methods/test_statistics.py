"""`BagStatistics` and `SingleInstance`: any scikit-learn classifier, of bags or of instances."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import gmil
from gmil import BagStatistics, BagValidationError, ModelFileError, SingleInstance
from gmil.methods.shared.multiclass import class_decisions

BOTH = [BagStatistics, SingleInstance]


class FirstFeature(ClassifierMixin, BaseEstimator):
    """Its decision is the first feature less 5."""

    def fit(self, X, y):  # noqa: ARG002
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0] - 5

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


class Labels(ClassifierMixin, BaseEstimator):
    """Has labels and nothing else."""

    def fit(self, X, y):  # noqa: ARG002
        return self

    def predict(self, X):
        return np.zeros(len(X))


# ------------------------------------------------------------------ on paper


def test_statistics_of_a_bag_on_paper():
    bags = [[[7.0, 1.0], [3.0, 0.0]], [[9.0, 2.0]]]
    model = BagStatistics(("min",), estimator=FirstFeature()).fit(bags, [0, 1])
    assert_allclose(model.decision_function(bags), [-2, 4])
    assert_array_equal(model.predict(bags), [0, 1])
    assert_allclose(
        BagStatistics(("mean",), estimator=FirstFeature()).fit(bags, [0, 1]).decision_function(bags), [0, 4]
    )
    assert_allclose(
        BagStatistics(("sd",), estimator=FirstFeature()).fit(bags, [0, 1]).decision_function(bags), [-3, -5]
    )


@pytest.mark.parametrize(("aggregate", "expected"), [("max", [2, 4]), ("mean", [0, 4])])
def test_scores_of_instances_on_paper(aggregate, expected):
    bags = [[[7.0], [3.0]], [[9.0]]]
    model = SingleInstance(FirstFeature(), aggregate=aggregate, scale=None).fit(bags, [0, 1])
    assert_allclose(model.score_instances(bags), [2, -2, 4])
    assert_allclose(model.decision_function(bags), expected)


# ------------------------------------------------------------------ against scikit-learn


def test_the_default_is_a_machine_on_standardised_statistics(gaussian_bags):
    bags, y = gaussian_bags()
    rows = np.array([np.ravel([bag.min(axis=0), bag.mean(axis=0), bag.max(axis=0), bag.std(axis=0)]) for bag in bags])
    oracle = make_pipeline(StandardScaler(), SVC(C=10)).fit(rows, y)
    assert_allclose(BagStatistics().fit(bags, y).decision_function(bags), oracle.decision_function(rows), atol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_instances_inherit_labels(gaussian_bags, n_classes):
    bags, y = gaussian_bags(n_classes=n_classes)
    model = SingleInstance().fit(bags, y)
    scaler = StandardScaler().fit(bags.instances)
    oracle = LogisticRegression(max_iter=10_000).fit(scaler.transform(bags.instances), y[bags.segment_ids])
    expected = oracle.decision_function(scaler.transform(bags.instances))
    assert_allclose(model.score_instances(bags), expected, atol=1e-6)
    largest = [part.max(axis=0) for part in np.split(expected, bags.offsets[1:-1])]
    assert_allclose(model.decision_function(bags), largest, atol=1e-6)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", [GaussianNB(), KNeighborsClassifier(3), RidgeClassifier()], ids=lambda e: str(e))
def test_any_classifier_may_learn(cls, estimator, n_classes, gaussian_bags):
    bags, y = gaussian_bags(n_bags=36, n_classes=n_classes, all_witnesses=True)
    model = cls(estimator=estimator).fit(bags, y)
    assert model.decision_function(bags).shape == ((36,) if n_classes == 2 else (36, 3))
    assert model.score(bags, y) >= 0.9
    assert not hasattr(estimator, "classes_"), "the estimator passed is cloned, never fitted"


def test_probabilities_become_decisions():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]
    model = KNeighborsClassifier(1).fit(X, y)
    assert_allclose(class_decisions(model, X), [-0.5, -0.5, 0.5, 0.5])


@pytest.mark.parametrize("cls", BOTH)
def test_the_positive_class_can_be_chosen(cls, gaussian_bags):
    bags, y = gaussian_bags(all_witnesses=True)
    model = cls(pos_label=0).fit(bags, y)
    assert_array_equal(model.decision_function(bags) < 0, model.predict(bags) == 0)
    assert model.score(bags, y) >= 0.9


# ------------------------------------------------------------------ refused


@pytest.mark.parametrize("cls", BOTH)
def test_a_model_that_cannot_be_loaded_safely_is_not_saved(cls, gaussian_bags, tmp_path):
    model = cls(estimator=RandomForestClassifier(2, random_state=0)).fit(*gaussian_bags())
    with pytest.raises(ModelFileError, match=r"attribute 'estimator_' of .* cannot be saved"):
        model.save(tmp_path / "model.gmil")


@pytest.mark.parametrize("cls", BOTH)
def test_an_estimator_without_decisions_is_refused(cls, gaussian_bags):
    with pytest.raises(BagValidationError, match="decision_function or predict_proba, but Labels has neither"):
        cls(estimator=Labels()).fit(*gaussian_bags())


@pytest.mark.parametrize("cls", BOTH)
def test_decisions_on_pairs_of_classes_are_refused(cls, gaussian_bags):
    estimator = make_pipeline(StandardScaler(), SVC(decision_function_shape="ovo"))
    with pytest.raises(BagValidationError, match="decision_function_shape='ovo'"):
        cls(estimator=estimator).fit(*gaussian_bags(n_classes=3))
    assert cls(estimator=estimator).fit(*gaussian_bags()).decision_function(gaussian_bags()[0]).ndim == 1


@pytest.mark.parametrize(
    ("statistics", "message"),
    [
        (("min", "median"), "some of min, mean, max, sd, got 'median'"),
        ((), "got none"),
        ("min", "'statistics' parameter"),
    ],
)
def test_unknown_statistics_are_refused(statistics, message, gaussian_bags):
    with pytest.raises(ValueError, match=message):
        BagStatistics(statistics).fit(*gaussian_bags())


@pytest.mark.slow
def test_accuracy_on_musk1():
    bags, y = gmil.load_musk1(return_X_y=True)
    assert gmil.cross_validate(BagStatistics(), bags, y, repeats=2).accuracy() > 0.86
    assert gmil.cross_validate(SingleInstance(aggregate="mean"), bags, y, repeats=2).accuracy() > 0.75
