"""Cross-validation with labels of instances: held-out scores, what labels may be, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold

import gmil
from gmil import BagValidationError, cross_validate
from gmil.model_selection.folds import estimator_seed
from gmil.model_selection.instance_labels import check_instance_labels


@pytest.fixture(scope="module")
def made():
    return gmil.make_bags(30, n_features=3, bag_size=(2, 7), separation=3, random_state=2)


@pytest.fixture(scope="module")
def several():
    return gmil.make_bags(36, n_features=4, bag_size=(2, 7), separation=4, n_classes=3, random_state=2)


class Bags(ClassifierMixin, BaseEstimator):
    """Knows how to score bags, and not instances."""

    def fit(self, X, y):  # noqa: ARG002
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def held_out_scores(estimator, bags, y, folds):
    """Return scores of instances, (n_repeats, n_instances), by a loop over repeats and folds."""
    scores = np.full((len(folds), bags.n_instances), np.nan)
    for repeat, row in enumerate(folds):
        for fold in np.unique(row):
            test, params = row == fold, estimator.get_params()
            params |= {"random_state": estimator_seed(0, repeat, fold)} if "random_state" in params else {}
            model = type(estimator)(**params).fit(bags[~test], y[~test])
            scores[repeat, np.repeat(test, bags.sizes)] = model.score_instances(bags[test])
    return scores


@pytest.mark.parametrize("estimator", [gmil.GMIL(4), gmil.SingleInstance(), gmil.WeightedGMIL(n_centers=5)], ids=str)
def test_instances_are_scored_by_the_model_that_never_saw_their_bag(made, estimator):
    found = cross_validate(estimator, made.bags, made.y, cv=3, repeats=2, instance_y=made.instance_y)
    scores = held_out_scores(estimator, made.bags, made.y, found.folds)
    np.testing.assert_allclose(found.instance_scores[0], scores)
    assert found.instances.auc() == pytest.approx(np.mean([roc_auc_score(made.instance_y, row) for row in scores]))
    without = cross_validate(estimator, made.bags, made.y, cv=3, repeats=2)
    assert without.instances is without.instance_scores is None
    np.testing.assert_allclose(found.decisions, without.decisions, atol=1e-9)  # bags are decided about as ever


def test_labels_of_instances_are_never_learnt_from(made):
    other = np.where(np.arange(made.bags.n_instances) % 3 == 0, 1, 0)
    one, two = (cross_validate(gmil.GMIL(4), made.bags, made.y, cv=3, instance_y=y) for y in (made.instance_y, other))
    np.testing.assert_array_equal(one.instance_scores, two.instance_scores)
    assert one.instances.auc() != two.instances.auc()
    assert one == cross_validate(gmil.GMIL(4), made.bags, made.y, cv=3, instance_y=made.instance_y)
    assert one != two


def test_the_positive_class_is_what_scores_are_about(made):
    y = np.array(["witness", "none"])[1 - made.y]
    found = cross_validate(
        gmil.GMIL(4, pos_label="witness"), made.bags, y, cv=StratifiedKFold(3), instance_y=made.instance_y
    )
    upright = cross_validate(gmil.GMIL(4), made.bags, made.y, cv=StratifiedKFold(3), instance_y=made.instance_y)
    np.testing.assert_allclose(found.instance_scores, upright.instance_scores)
    other = found.one_vs_rest("none").instances
    np.testing.assert_array_equal(other.scores, -found.instances.scores)
    assert other.auc() == pytest.approx(found.instances.auc())


def test_unknown_labels_are_left_out(made):
    labels = made.instance_y.astype(float)
    labels[::2] = np.nan
    as_numbers = np.where(np.isnan(labels), -1, labels).astype(int)
    one, two = (cross_validate(gmil.GMIL(4), made.bags, made.y, cv=3, instance_y=y) for y in (labels, as_numbers))
    assert one == two
    known = ~np.isnan(labels)
    expected = roc_auc_score(labels[known], one.instance_scores[0, 0, known])
    assert one.instances.auc() == pytest.approx(expected)


def test_several_classes_are_set_one_against_the_others(several):
    found = cross_validate(gmil.GMIL(4), several.bags, several.y, cv=3, instance_y=several.instance_y)
    scores = found.instance_scores
    assert scores.shape == (1, 1, several.bags.n_instances, 3)
    each = [roc_auc_score(several.instance_y == c, scores[0, 0, :, c]) for c in range(3)]
    assert found.instances.auc() == pytest.approx(np.mean(each))
    assert found.one_vs_rest(2).instances.auc() == pytest.approx(each[2])
    background = np.where(several.instance_y == 0, 9, several.instance_y)  # no class of bags: against all classes
    found = cross_validate(gmil.GMIL(4), several.bags, several.y, cv=3, instance_y=background)
    assert found.instances.auc() == pytest.approx(np.mean(each[1:]))


def test_bags_with_several_labels_have_instances_with_several(made):
    indicator, of_instances = np.column_stack([made.y, 1 - made.y]), np.column_stack([made.instance_y] * 2)
    indicator[:4] = 1
    found = cross_validate(gmil.WeightedGMIL(n_centers=5), made.bags, indicator, cv=3, instance_y=of_instances)
    assert found.instance_scores.shape == (1, 1, made.bags.n_instances, 2)
    with pytest.raises(BagValidationError, match="one label per instance"):
        cross_validate(gmil.WeightedGMIL(), made.bags, indicator, cv=3, instance_y=made.instance_y)


@pytest.mark.parametrize("estimator", [gmil.GMIL(4), gmil.WeightedGMIL(n_centers=5)], ids=str)
def test_bags_on_disk_are_scored_by_models_of_their_own_fold(made, estimator):
    lazy = gmil.LazyBags.like(made.bags, made.bags.instances)
    found = cross_validate(estimator, lazy, made.y, cv=3, instance_y=made.instance_y)
    np.testing.assert_allclose(found.instance_scores[0], held_out_scores(estimator, lazy, made.y, found.folds))


def test_settings_pipelines_and_searches(made):
    given = {"cv": 3, "instance_y": made.instance_y}
    found = cross_validate(gmil.GMIL(), made.bags, made.y, param_grid={"n_clusters": [2, 4]}, **given)
    alone = [cross_validate(gmil.GMIL(k), made.bags, made.y, **given) for k in (2, 4)]
    np.testing.assert_array_equal(found.instances.auc(), [one.instances.auc() for one in alone])
    pipeline = gmil.make_pipeline(gmil.GMIL(4))
    assert cross_validate(pipeline, made.bags, made.y, **given).instances.auc() == alone[1].instances.auc()
    search = GridSearchCV(gmil.GMIL(), {"n_clusters": [2, 4]}, cv=2)
    assert cross_validate(search, made.bags, made.y, **given).instance_scores.shape == (1, 1, made.bags.n_instances)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (lambda y, _: y[:-1], "one label per instance"),
        (lambda _, bags: np.zeros(len(bags)), "one per bag"),
        (lambda y, _: np.where(y == 1, 1, -1), "0 negative ones. Write 0"),
        (lambda y, _: y + 1, "1 for instances of the positive class, 0 for others.* got 2"),
        (lambda y, _: np.where(y == 1, "yes", "no"), "got no"),
        (lambda y, _: y[:, None], "one label per instance"),
    ],
    ids=["too few", "of bags", "only one kind", "other numbers", "texts", "a column"],
)
def test_wrong_labels_are_refused(made, labels, message):
    with pytest.raises(BagValidationError, match=message):
        cross_validate(gmil.GMIL(4), made.bags, made.y, cv=3, instance_y=labels(made.instance_y, made.bags))


def test_wrong_classes_are_refused(several):
    with pytest.raises(BagValidationError, match="must name classes of y, 0, 1, 2, but no instance"):
        check_instance_labels(several.instance_y + 7, several.bags, several.y)
    with pytest.raises(BagValidationError, match="-1 is a class of y"):
        check_instance_labels(several.instance_y, several.bags, several.y - 1)
    names = np.array(["", "a", "b"])
    found = check_instance_labels(names[several.instance_y], several.bags, np.array(["c", "a", "b"])[several.y])
    np.testing.assert_array_equal((found == -1).all(axis=1), several.instance_y == 0)


def test_an_estimator_without_scores_is_refused(made):
    for estimator in (Bags(), GridSearchCV(Bags(), {})):
        with pytest.raises(BagValidationError, match="score_instances, but Bags has none"):
            cross_validate(estimator, made.bags, made.y, cv=3, instance_y=made.instance_y)


def test_scores_of_another_shape_are_refused(several):
    class OneScore(Bags):
        def score_instances(self, X):
            return np.zeros(X.n_instances)

    with pytest.raises(BagValidationError, match="score_instances of OneScore must return scores of shape"):
        cross_validate(OneScore(), several.bags, several.y, cv=3, instance_y=several.instance_y)
