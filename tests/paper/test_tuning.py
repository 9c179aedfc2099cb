"""Controls and tuning: fitted and chosen on training bags, by one rule."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gmil
from gmil import Bags, base
from gmil.checks.controls import BagSize, MajorityClass
from gmil.model_selection.folds import estimator_seed, fold_numbers
from gmil.paper import parse_spec, run
from gmil.paper.tables.tuning import Tuned


def test_the_majority_class_is_that_of_the_training_bags():
    bags = Bags.from_list([[[0.0]]] * 5)
    model = MajorityClass().fit(bags, ["b", "a", "b", "b", "a"])
    assert model.predict(bags[:2]).tolist() == ["b", "b"]
    assert MajorityClass().fit(bags[:4], [1, 0, 1, 0]).predict(bags).tolist() == [0] * 5
    assert model.decision_function(bags[:2]).tolist() == [1, 1]


def test_bag_size_sees_the_size_and_nothing_else():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 30, 40)
    y = (sizes + rng.normal(0, 4, 40) > 12).astype(int)
    bags = Bags(rng.normal(size=(sizes.sum(), 3)), np.concatenate([[0], np.cumsum(sizes)]))
    other = bags.with_instances(np.zeros_like(bags.instances))
    predicted = BagSize().fit(bags, y).predict(bags)
    assert (predicted == y).mean() > 0.8
    assert BagSize().fit(other, y).predict(bags).tolist() == predicted.tolist()


def test_controls_are_no_public_estimators():
    names = {name for name, _ in gmil.all_estimators()} | set(base.methods())
    assert not names & {"MajorityClass", "BagSize", "NoiseFeatures", "Tuned", "majority", "bag-size", "noise"}


SETTINGS = ({"n_clusters": 2}, {"n_clusters": 12}, {"n_clusters": 5})


@pytest.fixture
def bags_and_labels():
    return gmil.make_bags(40, n_features=4, separation=3.0, random_state=3, return_X_y=True)


def test_the_most_accurate_setting_inside_is_chosen_and_ties_go_to_the_first(bags_and_labels):
    bags, y = bags_and_labels
    grid = [{"n_clusters": [s["n_clusters"]]} for s in SETTINGS]
    inner = gmil.cross_validate(gmil.GMIL(), bags, y, cv=4, param_grid=grid, random_state=11)
    model = Tuned(gmil.GMIL(random_state=11), SETTINGS, inner_folds=4, random_state=11).fit(bags, y)
    assert model.best_params_ == SETTINGS[int(np.argmax(inner.accuracy()))]
    alone = gmil.GMIL(random_state=11).set_params(**model.best_params_).fit(bags, y)
    np.testing.assert_array_equal(model.decision_function(bags), alone.decision_function(bags))
    same = ({"n_clusters": 5}, {"n_clusters": 5, "max_iter": 300})
    assert Tuned(gmil.GMIL(random_state=1), same, inner_folds=3).fit(bags, y).best_params_ == same[0]


def test_choosing_leaves_out_whole_groups_and_tells_the_estimator():
    """One instance per bag, the mark of its patient: one neighbour is always right where a patient is in both folds."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(24), 4)
    y = rng.permutation(np.arange(24) % 2)[groups]
    marks = rng.normal(size=(24, 8))[groups] + rng.normal(0, 0.001, (96, 8)) + 0.7 * y[:, None]
    bags = Bags(marks, np.arange(97))
    settings = ({"n_references": 9, "n_citers": 9}, {"n_references": 1, "n_citers": 1})
    model = Tuned(gmil.CitationKNN(scale=None), settings, inner_folds=6)
    assert model.fit(bags, y).best_params_ == settings[1]
    assert model.fit(bags, y, groups=groups).best_params_ == settings[0]
    few = np.arange(96) % 3  # fewer groups than inner folds
    assert model.fit(bags, y, groups=few).best_params_ in settings
    outer = gmil.cross_validate(model, bags, y, cv=4, groups=groups)
    for fold in range(4):
        inside = outer.folds[0] != fold
        seeded = Tuned(model.estimator, settings, inner_folds=6, random_state=estimator_seed(0, 0, fold))
        seeded.fit(bags[inside], y[inside], groups=groups[inside])
        np.testing.assert_array_equal(seeded.decision_function(bags[~inside]), outer.decisions[0, 0, ~inside])


def test_a_setting_that_cannot_be_fitted_is_never_chosen(bags_and_labels):
    bags, y = bags_and_labels
    model = Tuned(gmil.GMIL(), ({"n_clusters": 10_000}, {"n_clusters": 5}), inner_folds=3).fit(bags, y)
    assert model.best_params_ == {"n_clusters": 5}
    with pytest.raises(ValueError, match="n_clusters=10000 is above"):
        Tuned(gmil.GMIL(), ({"n_clusters": 10_000},), inner_folds=3).fit(bags, y)


def test_tuned_never_sees_the_test_bags(bags_and_labels, tmp_path):
    bags, y = bags_and_labels
    document = {
        "datasets": ["mine"],
        "protocol": {"folds": 4, "repeats": 1, "inner_folds": 3, "max_settings": 12},
        "method": [{"name": "gmil", "columns": ["tuned"]}],
    }
    spec = parse_spec(document, "leak")
    before = run(spec, output=tmp_path, data={"mine": (bags, y)}).rows("mine", "gmil", "tuned")
    folds = fold_numbers(4, y, None, 0)
    chosen = set()
    for fold in range(4):
        changed = bags.instances.copy()
        changed[(folds == fold)[bags.segment_ids]] = 1e3  # these bags are test bags in this fold only
        data = {"mine": (bags.with_instances(changed), y)}
        after = run(spec, output=tmp_path, data=data).rows("mine", "gmil", "tuned")
        assert after[fold]["job"] != before[fold]["job"]
        assert after[fold]["chosen"] == before[fold]["chosen"]
        chosen |= {row["chosen"] for row in after}
    assert len(chosen) > 1  # there was something to choose
    assert all(set(json.loads(text)) <= set(gmil.GMIL().get_params()) for text in chosen)


def test_a_tuned_method_scores_instances_as_its_choice_does():
    """Sets with labels of instances are measured with scores, tuned methods too."""
    made = gmil.make_bags(24, n_features=3, random_state=0)
    model = Tuned(gmil.GMIL(random_state=0), SETTINGS, inner_folds=3)
    result = gmil.cross_validate(model, made.bags, made.y, cv=3, instance_y=made.instance_y)
    assert 0 <= result.instances.auc() <= 1
    model.fit(made.bags, made.y)
    np.testing.assert_array_equal(model.score_instances(made.bags), model.best_estimator_.score_instances(made.bags))
    assert not hasattr(Tuned(MajorityClass()), "score_instances")
