"""Bagging over bags: draws, majorities, and models inside a model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import gmil
from gmil import APR, EMDD, GMIL, CitationKNN, MILEnsemble, PerInstance, cross_validate
from gmil.methods.ensemble.estimator import draw_bags


class Counting(ClassifierMixin, BaseEstimator):
    """Call a bag positive where it has more instances than the training bags have on average."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.mean_ = X.sizes.mean()
        return self

    def predict(self, X):
        return self.classes_[(X.sizes > self.mean_).astype(int)]


# ------------------------------------------------------------------ paper and pencil


def test_the_majority_by_hand():
    bags = [np.zeros((size, 1)) for size in (1, 2, 3, 4, 5, 6)]
    model = MILEnsemble(Counting(), 5, random_state=0).fit(bags, [0, 0, 0, 1, 1, 1])
    thresholds = [member.mean_ for member in model.estimators_]
    sizes = np.arange(1, 8)
    for_positive = np.array([sum(size > threshold for threshold in thresholds) for size in sizes])
    new = [np.zeros((size, 1)) for size in sizes]
    assert_allclose(model.decision_function(new), (2 * for_positive - 5) / 5)
    assert_array_equal(model.predict(new), for_positive >= 3)


def test_an_even_vote_is_negative():
    model = MILEnsemble(Counting(), 2, random_state=0).fit([np.zeros((size, 1)) for size in (1, 2, 3, 4)], [0, 0, 1, 1])
    model.estimators_[0].mean_, model.estimators_[1].mean_ = 1.5, 3.5
    new = [np.zeros((size, 1)) for size in (1, 2, 4)]
    assert_array_equal(model.decision_function(new), [-1, 0, 1])
    assert_array_equal(model.predict(new), [0, 0, 1])


# ------------------------------------------------------------------ draws


@settings(max_examples=60)
@given(st.integers(0, 2**16), st.lists(st.integers(1, 5), min_size=2, max_size=4))
def test_draws_have_every_class_and_as_many_bags(seed, counts):
    labels = np.repeat(np.arange(len(counts)), counts)
    drawn = draw_bags(labels, np.random.default_rng(seed))
    assert len(drawn) == len(labels)
    assert set(labels[drawn]) == set(labels)


def test_a_draw_that_loses_a_class_is_drawn_again():
    class Rigged:
        def __init__(self):
            self.draws = iter([[0, 0, 1, 0], [2, 2, 1, 0]])

        def integers(self, *_, **__):
            return np.array(next(self.draws))

    assert_array_equal(draw_bags(np.array([0, 0, 1, 0]), Rigged()), [0, 1, 2, 2])


def test_too_many_rare_classes_are_refused():
    with pytest.raises(ValueError, match="No draw of 60 bags with replacement had all 60 classes"):
        draw_bags(np.arange(60), np.random.default_rng(0))


# ------------------------------------------------------------------ members


@pytest.mark.parametrize("base", [None, GMIL(5, 1, 1), APR(), EMDD(n_start_bags=1, n_starts_per_bag=2)], ids=str)
def test_any_estimator_may_be_a_member(base, gaussian_bags, tmp_path):
    bags, y = gaussian_bags(all_witnesses=True)
    model = MILEnsemble(base, 3, random_state=0).fit(bags, y)
    assert model.score(bags, y) > 0.8
    assert all(isinstance(member, type(base) if base is not None else CitationKNN) for member in model.estimators_)
    mean = np.mean([member.score_instances(bags) for member in model.estimators_], axis=0)
    assert_array_equal(model.score_instances(bags), mean)
    model.save(tmp_path / "model.gmil")
    loaded = gmil.load(tmp_path / "model.gmil")
    assert_array_equal(loaded.decision_function(bags), model.decision_function(bags))
    assert repr(loaded.estimator) == repr(model.estimator)


def test_pipelines_may_be_members(gaussian_bags):
    bags, y = gaussian_bags(all_witnesses=True)
    base = make_pipeline(PerInstance(StandardScaler()), CitationKNN(scale=None))
    assert MILEnsemble(base, 3, random_state=0).fit(bags, y).score(bags, y) > 0.8


def test_without_instance_scores_of_members_instances_have_their_effect_on_the_votes(gaussian_bags):
    bags, y = gaussian_bags(sizes=(1, 4))
    model = MILEnsemble(Counting(), 3, random_state=0).fit(bags, y)
    expected = []
    for i, bag in enumerate(bags):
        whole = model.decision_function(bags[[i]])[0]
        rest = [model.decision_function([np.delete(bag, j, axis=0)])[0] if len(bag) > 1 else 0 for j in range(len(bag))]
        expected.append(whole - np.array(rest))
    assert_array_equal(model.score_instances(bags), np.concatenate(expected))


def test_members_differ_and_the_seed_decides_all(gaussian_bags):
    bags, y = gaussian_bags()
    one, again, other = (MILEnsemble(n_estimators=4, random_state=seed).fit(bags, y) for seed in (0, 0, 1))
    assert len({member.radii_.tobytes() for member in one.estimators_}) == 4
    assert_array_equal(one.decision_function(bags), again.decision_function(bags))
    assert one.estimators_[0].radii_.tobytes() != other.estimators_[0].radii_.tobytes()


def test_members_trained_at_the_same_time_are_the_same(gaussian_bags):
    bags, y = gaussian_bags()
    alone = MILEnsemble(random_state=0).fit(bags, y)
    with parallel_config("threading"):  # processes take seconds to start
        together = MILEnsemble(n_processes=2, random_state=0).fit(bags, y)
    assert_array_equal(alone.decision_function(bags), together.decision_function(bags))


def test_several_classes_are_up_to_the_members(gaussian_bags):
    bags, y = gaussian_bags(n_bags=36, n_classes=3, all_witnesses=True)
    assert get_tags(MILEnsemble()).classifier_tags.multi_class
    assert not get_tags(MILEnsemble(APR())).classifier_tags.multi_class
    assert MILEnsemble(random_state=0).fit(bags, y).decision_function(bags).shape == (36, 3)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        MILEnsemble(APR()).fit(bags, y)
    with pytest.raises(ValueError, match="pos_label=1 names the positive class of two"):
        MILEnsemble(pos_label=1).fit(bags, y)


def test_the_positive_class_reaches_the_members(gaussian_bags):
    bags, y = gaussian_bags()
    model = MILEnsemble(pos_label="no", random_state=0).fit(bags, np.array(["no", "yes"])[y])
    assert {member.pos_label for member in model.estimators_} == {"no"}
    assert_array_equal(model.predict(bags), np.where(model.decision_function(bags) < 0, "no", "yes"))
    assert model.score(bags, np.array(["no", "yes"])[y]) > 0.6


def test_scores_of_instances_follow_the_positive_class_of_the_ensemble(gaussian_bags):
    bags, y = gaussian_bags()
    of_their_own = MILEnsemble(APR(pos_label=0), random_state=0).fit(bags, y)
    told = MILEnsemble(APR(), pos_label=0, random_state=0).fit(bags, y)
    assert_array_equal(of_their_own.decision_function(bags), told.decision_function(bags))
    assert_array_equal(of_their_own.score_instances(bags), -told.score_instances(bags))


def test_strings_warn_once(gaussian_bags):
    bags, y = gaussian_bags()
    with pytest.warns(UserWarning, match="'yes' is taken as the positive class") as caught:
        MILEnsemble(random_state=0).fit(bags, np.array(["no", "yes"])[y])
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_estimators": 0}, "'n_estimators' parameter of MILEnsemble must be"),
        ({"estimator": "apr"}, "'estimator' parameter of MILEnsemble must be"),
        ({"estimator": APR(tau=2.0)}, "'tau' parameter of APR must be"),
        ({"pos_label": 5}, "pos_label=5 is not a class of y"),
    ],
)
def test_bad_parameters_are_refused(parameters, message, gaussian_bags):
    with pytest.raises(ValueError, match=message):
        MILEnsemble(**parameters).fit(*gaussian_bags())


@pytest.mark.slow
@pytest.mark.parametrize("base", [CitationKNN(), APR()], ids=str)
def test_an_ensemble_is_about_as_good_as_its_members_on_musk1(base):
    bags, y = gmil.load_musk1(return_X_y=True)
    alone, together = (cross_validate(model, bags, y, repeats=2).accuracy() for model in (base, MILEnsemble(base)))
    assert together > alone - 0.05
