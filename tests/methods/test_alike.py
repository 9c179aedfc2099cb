"""Settings that share work in a fold decide as they do alone."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gmil import APR, EMDD, Bags, DiverseDensity, cross_validate
from gmil.methods.shared.alike import once

SETTINGS = [
    (
        APR(),
        [
            {"scale": [None], "tau": [0.999, 0.9], "epsilon": [0.01, 0.1]},
            {"scale": ["standard"], "margin": [1.0, 0.5], "max_iter": [20, 1]},
        ],
    ),
    (
        DiverseDensity(n_start_bags=2),
        {"scale": ["standard", "minmax"], "max_iter": [6, 2, 100]},
    ),
    (
        EMDD(n_start_bags=2),
        {"scale": ["standard"], "n_concepts": [3, 1], "select": ["errors", "likelihood"], "max_iter": [25, 3]},
    ),
]


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(n, 6)) for n in rng.integers(2, 6, size=30)]
    y = np.arange(30) % 2
    for bag, label in zip(bags, y, strict=True):
        bag[0, :2] += 3 * label
    return Bags.from_list(bags), y


@pytest.mark.parametrize(("model", "grid"), SETTINGS, ids=lambda part: type(part).__name__)
@pytest.mark.parametrize("labels", [(0, 1), ("b", "a")])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_settings_together_decide_as_alone(problem, model, grid, labels, n_jobs):
    bags, y = problem[0], np.array(labels)[problem[1]]
    model.set_params(pos_label=labels[1])
    found = cross_validate(model, bags, y, cv=3, repeats=2, param_grid=grid, random_state=1, n_jobs=n_jobs)
    assert len(found.params) > 4
    for decisions, predictions, setting in zip(found.decisions, found.predictions, found.params, strict=True):
        alone = cross_validate(
            model,
            bags,
            y,
            cv=3,
            repeats=2,
            param_grid=[{name: [value] for name, value in setting.items()}],
            random_state=1,
        )
        assert_array_equal(decisions, alone.decisions[0])
        assert_array_equal(predictions, alone.predictions[0])


def test_three_classes_are_refused_as_ever(problem):
    bags, y = problem[0], np.arange(30) % 3
    with pytest.raises(ValueError, match="Only binary classification"):
        cross_validate(APR(), bags, y, cv=3, param_grid={"tau": [0.999, 0.9]}, random_state=1)


def test_work_is_done_once_in_a_fold_and_always_outside_of_one():
    class Model:
        _made = None

    model, done = Model(), []
    for _ in range(2):
        once(model, "work", lambda: done.append(1))
    assert len(done) == 2
    model._made = {}
    for key in ("work", "work", "other"):
        once(model, key, lambda: done.append(1))
    assert len(done) == 4
