"""Estimators inside an estimator: which class is positive, and their seeds."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone


def with_positive_class(estimator: Any, label: Any) -> Any:
    """Return a copy that takes ``label`` as positive, unless it has a positive class of its own or knows of none."""
    copied = clone(estimator)
    if copied.get_params().get("pos_label", False) is None:
        copied.set_params(pos_label=label)
    return copied


def has_other_positive_class(estimator: Any, label: Any) -> bool:
    """Tell whether an estimator takes another class than ``label`` as positive, by a ``pos_label`` of its own."""
    return estimator.get_params().get("pos_label") not in (None, label)


def with_seed(estimator: Any, seed: int) -> Any:
    """Return a copy with one seed wherever it takes one."""
    copied = clone(estimator)
    seeds = {name: seed for name in copied.get_params() if name.rpartition("__")[2] == "random_state"}
    return copied.set_params(**seeds)
