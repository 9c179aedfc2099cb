"""GMILCV: a choice by inner cross-validation that equals a plain search."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import gmil
from gmil import GMIL, GMILCV, Bags, BagValidationError
from gmil.greedy import tuned
from gmil.model_selection.folds import complete_folds, fold_numbers
from gmil.sampling import make_generator


@pytest.fixture(scope="module")
def data():
    return gmil.make_bags(50, n_features=3, separation=6, random_state=4, return_X_y=True)


GRID = {"scale": [None, "standard"], "n_clusters": [4, 8], "n_positive": [1, 2], "n_negative": [0, 2]}


def test_the_choice_is_that_of_a_plain_search(data):
    bags, y = data
    model = GMILCV(GRID, cv=4, repeats=2, random_state=3).fit(bags, y)
    generator = make_generator(3)
    folds = [fold_numbers(4, y, None, seed) for seed in generator.integers(2**31 - 1, size=2).tolist()]
    seeds = [[int(generator.integers(2**31 - 1)) for _ in range(4)] for _ in range(2)]
    for setting, accuracy in zip(model.cv_results_["params"], model.cv_results_["accuracy"], strict=True):
        hits = 0
        for row, row_seeds in zip(folds, seeds, strict=True):
            for fold, seed in enumerate(row_seeds):
                test = row == fold
                fitted = GMIL(**setting, random_state=seed).fit(bags[~test], y[~test])
                hits += (fitted.predict(bags[test]) == y[test]).sum()
        assert accuracy == hits / 100
    best = int(model.cv_results_["accuracy"].argmax())
    assert model.best_params_ == model.cv_results_["params"][best]
    assert model.best_score_ == model.cv_results_["accuracy"][best]
    assert model.estimator_.n_clusters == model.best_params_["n_clusters"]


def test_it_speaks_with_the_voice_of_the_best_model(data):
    bags, y = data
    model = GMILCV(GRID, random_state=0).fit(bags, y)
    for method in ("decision_function", "predict", "predict_proba", "score_instances"):
        np.testing.assert_array_equal(getattr(model, method)(bags), getattr(model.estimator_, method)(bags))
    assert model.explain(bags[0]) == model.estimator_.explain(bags[0])


def test_it_beats_the_automatic_sizes(data):
    bags, y = data
    chosen = gmil.cross_validate(GMILCV(), bags, y, cv=5).accuracy()
    assert chosen > gmil.cross_validate(GMIL(), bags, y, cv=5).accuracy() + 0.1


def test_groups_stay_together_in_the_inner_folds(data, monkeypatch):
    bags, y = data
    groups = np.arange(50) // 5
    seen = []
    monkeypatch.setattr(tuned, "complete_folds", lambda *args: seen.append(complete_folds(*args)) or seen[-1])
    GMILCV(GRID, random_state=0).fit(bags, y, groups=groups)
    (folds,) = seen
    assert len(folds) == 5
    for test in folds:
        assert not set(groups[test]) & set(groups[~test])


def test_few_groups_make_few_inner_folds(data):
    bags, y = data
    assert GMILCV(GRID, cv=5).fit(bags, y, groups=np.arange(50) % 3).best_score_ > 0.5
    with pytest.raises(BagValidationError, match="groups must name at least 2 groups, but all bags are of one"):
        GMILCV(GRID).fit(bags, y, groups=np.zeros(50))


def test_inner_folds_that_train_without_a_class_do_not_count(data):
    bags, y = data
    groups = np.where(y == 1, 0, 1 + np.arange(50) % 4)  # the positive bags are one group: left out, none is known
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GMILCV(GRID, cv=5, random_state=0).fit(bags, y, groups=groups)
    assert 0 < model.best_score_ <= 1
    with pytest.raises(BagValidationError, match="groups leave a class out of every inner training fold"):
        GMILCV(GRID, cv=5).fit(bags, y, groups=y)


def test_the_automatic_grid_fits_the_data():
    for n_instances in (1, 2, 9, 30, 1000):
        for setting in tuned.automatic_settings(n_instances):
            assert setting["n_clusters"] <= max(1, n_instances)
            assert setting["n_positive"] <= setting["n_clusters"]
            assert setting["n_negative"] <= setting["n_clusters"]
    assert {s["n_clusters"] for s in tuned.automatic_settings(1000)} == {10, 20, 40, 80, 160}


def test_few_bags():
    bags = Bags.from_list([np.full((2, 1), float(i)) for i in range(6)])
    model = GMILCV(random_state=0).fit(bags, [0, 0, 0, 0, 1, 1])
    assert model.predict(bags).shape == (6,)
    with pytest.raises(BagValidationError, match="Class 1 has one bag, but GMILCV needs at least 2"):
        GMILCV().fit(bags, [0, 0, 0, 0, 0, 1])


def test_more_classes_and_the_positive_class(data):
    bags, y = data
    three = np.where(np.arange(50) < 15, 2, y)
    model = GMILCV(GRID, random_state=0).fit(bags, three)
    assert model.decision_function(bags).shape == (50, 3)
    turned = GMILCV(GRID, pos_label=0, random_state=0).fit(bags, y)
    assert (turned.predict(bags)[turned.decision_function(bags) < 0] == 0).all()


def test_settings_that_no_gmil_has_are_refused(data):
    bags, y = data
    with pytest.raises(ValueError, match="Invalid parameter 'clusters'"):
        GMILCV({"clusters": [3]}).fit(bags, y)
    with pytest.raises(ValueError, match="'scale' parameter of GMIL must be"):
        GMILCV({"scale": ["z"]}).fit(bags, y)
    with pytest.raises(BagValidationError, match="distance='max'"):
        GMILCV({"distance": ["max"]}).fit(bags, y)
