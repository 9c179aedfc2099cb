"""Estimators inside an estimator: which class is positive."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from gmil.model_selection.folds import last_step


def with_positive_class(estimator: Any, label: Any) -> Any:
    """Return a copy that takes ``label`` as positive, unless it has a positive class of its own or knows of none."""
    copied = clone(estimator)
    prefix, _ = last_step(copied)
    if copied.get_params().get(f"{prefix}pos_label", False) is None:
        copied.set_params(**{f"{prefix}pos_label": label})
    return copied


def own_positive_class(estimator: Any) -> Any:
    """Return the ``pos_label`` of an estimator, or of the last step of a pipeline; None where it has none."""
    return estimator.get_params().get(f"{last_step(estimator)[0]}pos_label")
