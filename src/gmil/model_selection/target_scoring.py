"""How well a fitted model predicts the values or times of new bags."""

from __future__ import annotations

from typing import Any

import numpy as np

from gmil.model_selection.survival import times_to_measure
from gmil.model_selection.target_crossval import has_curves
from gmil.model_selection.target_result import TargetResult
from gmil.target_checks import check_outcomes, check_values, outcomes_of


def score_values(model: Any, bags: Any, y: Any, target: str, groups: Any = None) -> TargetResult:
    """Compare the predictions of a fitted model with the values, or the times, of bags.

    Parameters
    ----------
    model : fitted regressor of bags, or what predicts risks
    bags : Bags
    y : array of shape (n_bags,) or (n_bags, n_targets), or events and times
    target : {"regression", "survival"}
    groups : array of shape (n_bags,), optional
        Intervals are by bootstrap over these, where bags belong together.
    """
    predictions = np.asarray(model.predict(bags), dtype=np.float64)[None, None]
    seconds, folds = np.zeros((1, 1, 1)), np.zeros((1, len(bags)), dtype=np.int64)
    known: dict[str, Any] = {"groups": None if groups is None else np.asarray(groups)}
    if target == "regression":
        return TargetResult(check_values(y, bags, model), predictions, folds, seconds, seconds, target, **known)
    outcomes = outcomes_of(*check_outcomes(y, bags))
    if has_curves(model):
        times = times_to_measure(outcomes, outcomes)
        known |= {"times": times, "curves": model.predict_survival_function(bags, times)[None, None]}
    return TargetResult(outcomes, predictions, folds, seconds, seconds, target, **known)
