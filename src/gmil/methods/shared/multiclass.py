"""Classifiers of vectors from scikit-learn: their decisions about two or more classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from gmil.errors import BagValidationError
from gmil.model_selection.folds import fit_with_groups

if TYPE_CHECKING:
    from collections.abc import Callable

    from gmil.engine.arrays import Floats, Integers


def check_decisions(estimator: Any, n_classes: int) -> None:
    """Refuse a model that cannot say how much of every class it sees."""
    if not (hasattr(estimator, "decision_function") or hasattr(estimator, "predict_proba")):
        msg = f"The estimator must have decision_function or predict_proba, but {type(estimator).__name__} has neither."
        raise BagValidationError(msg)
    shapes = [value for name, value in estimator.get_params().items() if name.endswith("decision_function_shape")]
    if n_classes > 2 and "ovo" in shapes:
        msg = "decision_function_shape='ovo' gives decisions on pairs of classes. Pass 'ovr', one for every class."
        raise BagValidationError(msg)


def fit_decider(estimator: Any, default: Callable[[], Any], X: Any, labels: Integers, groups: Any) -> Any:
    """Fit a clone of the estimator, or where it is None what ``default`` makes, that can decide about every class."""
    model = default() if estimator is None else clone(estimator)
    check_decisions(model, int(labels.max()) + 1)
    return fit_with_groups(model, X, labels, groups)


def class_decisions(model: Any, rows: Any) -> Floats:
    """Return decisions of a fitted scikit-learn classifier, (n_rows,) for two classes, else (n_rows, n_classes)."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(rows))
    probabilities = np.asarray(model.predict_proba(rows))
    # Above zero where the positive class is more likely than not.
    return probabilities[:, 1] - 0.5 if probabilities.shape[1] == 2 else probabilities
