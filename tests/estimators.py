"""Estimators that are fitted fast, and fitted once, for what is tested of every estimator.

Tests of a convention fit each estimator many times. The defaults are fitted in tests/test_persistence.py and in the
modules of the methods.
"""

from __future__ import annotations

import copy

from sklearn.base import clone
from tests.conftest import make_gaussian_bags, target_for

SMALL_NETWORK = {"hidden": (16,), "epochs": 12, "batch_size": 12, "learning_rate": 0.02, "dropout": 0.1}
SMALL = {
    "DiverseDensity": {"n_start_bags": 3, "n_starts_per_bag": 3},
    "EMDD": {"n_start_bags": 3, "n_starts_per_bag": 3, "n_concepts": 3},
    "GMILCV": {"param_grid": {"n_clusters": [2, 4, 6]}, "cv": 3},
}

_fitted: dict = {}


def small(cls, **given):
    """Return an estimator of a class that is fitted fast; what is given comes first."""
    own = SMALL_NETWORK if "epochs" in cls().get_params() else SMALL.get(cls.__name__, {})
    return cls().set_params(**{**own, **given})


def seeded(estimator, seed=0):
    """Return a copy with a seed, where it takes one."""
    estimator = clone(estimator)
    return estimator.set_params(random_state=seed) if "random_state" in estimator.get_params() else estimator


def fitted(estimator, **options):
    """Return a copy of the estimator that was fitted once to ``make_gaussian_bags(**options)``, and bags and labels."""
    key = (repr(estimator), repr(sorted(options.items())))
    if key not in _fitted:
        bags, y = make_gaussian_bags(**options)
        y = target_for(estimator, y)
        _fitted[key] = seeded(estimator).fit(bags, y), bags, y
    model, bags, y = _fitted[key]
    return copy.deepcopy(model), bags, y
