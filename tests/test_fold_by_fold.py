"""Cross-validation of estimators that cannot work on all folds at once, and labels of unusual shape."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import DataConversionWarning

import gmil
from gmil import cross_validate


@pytest.fixture(scope="module")
def data():
    return gmil.make_bags(30, n_features=3, random_state=2, return_X_y=True)


class OnlyLabels(ClassifierMixin, BaseEstimator):
    """Says of every bag that it has the second label alone."""

    def fit(self, X, y):  # noqa: ARG002
        self.classes_ = np.arange(y.shape[1])
        return self

    def predict(self, X):
        return np.tile((self.classes_ == 1).astype(int), (len(X), 1))


class Probabilities(OnlyLabels):
    """Is surer of labels with larger numbers."""

    def predict_proba(self, X):
        return np.tile(self.classes_ / 10, (len(X), 1))


@pytest.mark.parametrize("n_labels", [2, 3])
def test_several_labels_need_no_decision_function(data, n_labels):
    bags, y = data
    labels = np.column_stack([y, 1 - y, y])[:, :n_labels]
    labels[0] = 1
    found = cross_validate(Probabilities(), bags, labels, cv=3)
    np.testing.assert_array_equal(found.decisions, np.tile(np.arange(n_labels) / 10, (1, 1, 30, 1)))
    assert found.auc() == 0.5
    assert np.isnan(cross_validate(OnlyLabels(), bags, labels, cv=3).decisions).all()


def test_labels_may_be_a_column(data):
    bags, y = data
    expected = cross_validate(gmil.GMIL(4), bags, y, cv=3)
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        found = cross_validate(gmil.GMIL(4), bags, y[:, None], cv=3)
    np.testing.assert_array_equal(found.decisions, expected.decisions)


@pytest.mark.parametrize("rule", ["nearest", "vote"], ids=["all folds at once", "fold by fold"])
@pytest.mark.parametrize("labels", [[0, 1], [1, 0]])
def test_decisions_speak_of_one_class_whatever_a_setting_calls_positive(data, rule, labels):
    bags, y = data
    grid = {"pos_label": labels}
    found = cross_validate(gmil.GMIL(4, rule=rule), bags, y, cv=3, param_grid=grid)
    alone = [cross_validate(gmil.GMIL(4, rule=rule, pos_label=label), bags, y, cv=3) for label in labels]
    assert found.positive_label == labels[0]
    np.testing.assert_array_equal(found.auc(), [one.auc() for one in alone])
    np.testing.assert_array_equal(found.predictions[:, 0], [one.predictions[0, 0] for one in alone])


class Threads(gmil.CitationKNN):
    """Notes how many threads every fit has."""

    seen: ClassVar[list] = []

    def _learn(self, training):
        self.seen.append(training.backend.n_threads)
        super()._learn(training)


def test_threads_belong_to_fits_and_processes_to_folds(data):
    bags, y = data
    expected = cross_validate(Threads(), bags, y, cv=3)
    Threads.seen.clear()
    found = cross_validate(Threads(), bags, y, cv=3, n_jobs=2)
    assert Threads.seen == [2, 2, 2]
    assert found == expected
    for n in (1, 2):
        model = gmil.GMIL(4) if n == 2 else Threads()
        assert cross_validate(model, bags, y, cv=3, n_processes=n) == cross_validate(model, bags, y, cv=3)
