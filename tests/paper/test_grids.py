"""What "tuned" chooses from: every method has a grid or a reason to have none, and every setting works."""

from __future__ import annotations

import tomllib
import warnings
from importlib.resources import files

import pytest

import gmil
from gmil import base
from gmil.paper import load_spec
from gmil.paper.runs.jobs import make_estimator
from gmil.paper.tables.grids import expand_grid, has_grid, settings_of, why_untuned
from gmil.paper.tables.tuning import Tuned

MOST = load_spec("table1").protocol.max_settings
TUNED = sorted(name for name in base.methods() if has_grid(name))


@pytest.mark.parametrize("name", sorted(base.methods()))
def test_every_method_has_a_grid_or_a_reason_to_have_none(name):
    reason = why_untuned(name)
    assert has_grid(name) != (reason is not None)
    assert reason is None or len(reason.split()) >= 5


def test_every_entry_is_of_a_method_that_there_is():
    document = tomllib.loads(files("gmil.paper.tables").joinpath("grids.toml").read_text(encoding="utf-8"))
    reasons = document.pop("untuned")
    assert set(document) | set(reasons) <= set(base.methods())


@pytest.mark.parametrize("name", TUNED)
def test_no_grid_is_thinned_in_a_full_run(name):
    assert MOST == 30
    every = settings_of(name, most=10**6, seed=0)
    assert 1 <= len(every) <= MOST
    assert all(every.count(setting) == 1 for setting in every)


@pytest.mark.parametrize("name", sorted(set(TUNED) - {"gmil"}))
def test_the_defaults_come_first_and_win_ties(name):
    first = settings_of(name, most=MOST, seed=0)[0]
    if first != {"tune": True}:  # which is what tunes a method that chooses by itself
        defaults = make_estimator(name, {}).get_params()
        assert {key: _plain(defaults[key]) for key in first} == first


def _plain(value):
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("most", [3, pytest.param(MOST, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", sorted(set(TUNED) - {"gmil"}))
def test_every_setting_can_be_fitted(name, most):
    bags, y = gmil.make_bags(24, n_features=3, separation=6.0, random_state=1, return_X_y=True)
    for setting in settings_of(name, most=most, seed=0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what does not converge on so little
            model = make_estimator(name, setting).fit(bags, y)
        assert model.predict(bags).shape == (24,)


def test_a_single_setting_costs_no_inner_folds():
    class Counting(gmil.GMIL):
        n_fits = 0

        def fit(self, X, y):
            Counting.n_fits += 1
            return super().fit(X, y)

    bags, y = gmil.make_bags(30, random_state=0, return_X_y=True)
    model = Tuned(Counting(), ({"n_clusters": 4},), inner_folds=3).fit(bags, y)
    assert model.best_params_ == {"n_clusters": 4}
    assert Counting.n_fits == 1
    Tuned(Counting(), ({"n_clusters": 4}, {"n_clusters": 5}), inner_folds=3).fit(bags, y)
    assert Counting.n_fits == 1 + 2 * 3 + 1


def test_lists_may_be_values():
    assert expand_grid([{"statistics": [["min"], ["min", "max"]]}])[1] == {"statistics": ["min", "max"]}
