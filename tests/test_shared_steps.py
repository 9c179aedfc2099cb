"""Settings that share steps of training give what each of them gives alone."""

from __future__ import annotations

import numpy as np
import pytest

from gmil import MILES, FisherVectorClassifier, VLADClassifier, cross_validate, make_bags
from gmil.fold_work import EACH_ALONE, SharedSteps
from gmil.model_selection import shared_steps

GRIDS = [
    (MILES(max_prototypes=60), {"C": [1.0, 10.0], "scale": ["minmax", None]}),
    (MILES(), {"gamma": ["median", 0.5], "tune": [False, True]}),
    (VLADClassifier(), {"C": [1.0, 0.1], "n_clusters": [2, 3], "scale": ["minmax", "standard"]}),
    (FisherVectorClassifier(), {"C": [1.0, 10.0], "n_gaussians": [1, 2], "n_components": ["auto", 2]}),
    (FisherVectorClassifier(sample_size=50), {"n_gaussians": [1, 3], "max_iter": [1, 50]}),
]


@pytest.mark.parametrize(("estimator", "grid"), GRIDS)
@pytest.mark.parametrize(("n_classes", "most_bytes"), [(2, 1 << 30), (3, 1 << 30), (2, 0)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_settings_together_are_those_alone(estimator, grid, n_classes, most_bytes, monkeypatch):
    monkeypatch.setattr(shared_steps, "SharedSteps", lambda: SharedSteps(most_bytes))
    bags, y = make_bags(36, n_features=4, separation=2, random_state=0, return_X_y=True)
    y = y if n_classes == 2 else np.arange(36) % 3
    groups = np.arange(36) // 2
    together = cross_validate(estimator, bags, y, cv=3, param_grid=grid, groups=groups, repeats=2)
    assert len(together.params) > 1
    for i, setting in enumerate(together.params):
        alone = cross_validate(
            estimator,
            bags,
            y,
            cv=3,
            param_grid={name: [value] for name, value in setting.items()},
            groups=groups,
            repeats=2,
        )
        np.testing.assert_array_equal(together.decisions[i], alone.decisions[0])
        np.testing.assert_array_equal(together.predictions[i], alone.predictions[0])


@pytest.mark.parametrize("pos_label", [0, 1])
def test_decisions_are_about_the_same_class(pos_label):
    bags, y = make_bags(30, n_features=3, separation=4, random_state=1, return_X_y=True)
    estimator, grid = VLADClassifier(pos_label=pos_label), {"C": [1.0, 10.0]}
    together = cross_validate(estimator, bags, y, cv=3, param_grid=grid)
    in_processes = cross_validate(estimator, bags, y, cv=3, param_grid=grid, n_processes=2)
    np.testing.assert_array_equal(together.decisions, in_processes.decisions)
    np.testing.assert_array_equal(together.predictions, in_processes.predictions)


def test_a_shared_step_is_taken_once_and_leaves_the_generator_where_it_was():
    steps, calls = SharedSteps(), []
    one, other = np.random.default_rng(0), np.random.default_rng(0)

    def step(generator):
        calls.append(1)
        return generator.integers(100)

    assert steps.once("a", lambda: step(one), one) == steps.once("a", lambda: step(other), other)
    assert one.integers(1 << 30) == other.integers(1 << 30)
    assert len(calls) == 1
    EACH_ALONE.once("a", lambda: step(one), one)
    EACH_ALONE.once("a", lambda: step(one), one)
    assert len(calls) == 3


def test_what_was_not_used_for_long_is_forgotten_where_memory_is_short():
    steps, calls = SharedSteps(most_bytes=2 * 80), []

    def take(key):
        def step():
            calls.append(key)
            return None, np.zeros(10)

        steps.once(key, step)

    for key in "abacb":  # a was used after b, when c came
        take(key)
    assert calls == ["a", "b", "c", "b"]
    steps.once("large", lambda: np.zeros(1000))
    assert list(steps._taken) == ["large"]  # what is in use is kept, however large


def test_progress_counts_every_fit():
    bags, y = make_bags(20, n_features=2, random_state=0, return_X_y=True)
    seen = []
    cross_validate(
        VLADClassifier(), bags, y, cv=2, param_grid={"C": [1.0, 2.0]}, progress=lambda *done: seen.append(done)
    )
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
