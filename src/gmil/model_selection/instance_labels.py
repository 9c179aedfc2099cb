"""Labels of instances: what was passed as ``instance_y``, checked, as one column of 1, 0 and -1 for every class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags.tables import missing_entries, unmasked
from gmil.compat import BaseSearchCV
from gmil.errors import BagValidationError, count_of, listed
from gmil.model_selection.folds import is_indicator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.bags import Bags
    from gmil.engine.arrays import Integers
    from gmil.scale import LazyBags

UNKNOWN = -1


def check_instance_labels(instance_y: Any, bags: Bags | LazyBags, y: NDArray[Any]) -> Integers:
    """Return 1, 0 or -1 (unknown) for every instance and class, (n_instances, n_problems).

    Two classes are one problem: the positive class. With an indicator matrix ``y`` every label is a problem, and
    ``instance_y`` has a column for each. No problem may be without both kinds of instances, but of several classes
    those that have one kind only are all unknown.

    Parameters
    ----------
    instance_y : array of shape (n_instances,) or (n_instances, n_labels)
    bags : Bags or LazyBags
    y : array of shape (n_bags,) or (n_bags, n_labels)
    """
    labels = np.asarray(unmasked(instance_y))
    wanted = (bags.n_instances, *y.shape[1:])
    if labels.shape != wanted:
        got = f"but instance_y has shape {labels.shape}"
        msg = f"instance_y must be one label per instance, of shape {wanted}, {got}.{_guess(labels, bags)}"
        raise BagValidationError(msg)
    classes = np.unique(y)
    if is_indicator(y):
        found = np.column_stack([_kinds(column) for column in labels.T])
    elif len(classes) <= 2:
        found = _kinds(labels)[:, None]
    else:
        found = _members(labels, classes)
    return _with_both_kinds(found)


def _guess(labels: NDArray[Any], bags: Bags | LazyBags) -> str:
    if labels.ndim == 1 and len(labels) == len(bags):
        return f" It is one per bag, but the {len(bags)} bags have {count_of(bags.n_instances, 'instance')}."
    return ""


def _kinds(labels: NDArray[Any]) -> Integers:
    """Return labels that are 0 and 1, or truth, with -1 for those that are missing."""
    known = ~missing_entries(labels)
    try:
        numbers = labels[known].astype(np.float64)
    except (TypeError, ValueError):
        numbers = np.array([np.inf])
    wrong = ~np.isin(numbers, (0, 1, UNKNOWN))
    if wrong.any():
        example = labels[known][wrong][0] if len(numbers) == known.sum() else labels[known][0]
        msg = (
            f"instance_y must be 1 for instances of the positive class, 0 for others and -1 (or NaN) for unknown ones, "
            f"got {example!s}."
        )
        raise BagValidationError(msg)
    found = np.full(len(labels), UNKNOWN)
    found[known] = numbers
    return found


def _members(labels: NDArray[Any], classes: NDArray[Any]) -> Integers:
    """Return for every class which instances are of it; a label that is no class of bags is of none."""
    if UNKNOWN in classes.tolist():
        msg = "instance_y has -1 for unknown instances, but -1 is a class of y. Give that class another name."
        raise BagValidationError(msg)
    unknown = missing_entries(labels)
    unknown |= np.array([label in (UNKNOWN, "") for label in labels.tolist()], dtype=bool)
    found = np.array(labels[:, None] == classes, dtype=np.int64)
    if not found[~unknown].any():
        msg = (
            f"instance_y must name classes of y, {listed([str(label) for label in classes.tolist()])}, but no instance "
            "has such a label."
        )
        raise BagValidationError(msg)
    found[unknown] = UNKNOWN
    return found


def _with_both_kinds(found: Integers) -> Integers:
    has_both = (found == 1).any(axis=0) & (found == 0).any(axis=0)
    if not has_both.any():
        n_positive, n_negative = int((found == 1).sum()), int((found == 0).sum())
        msg = (
            f"instance_y must have positive and negative instances to tell apart, got {n_positive} positive and "
            f"{n_negative} negative ones. Write 0 for negative instances: -1 is unknown."
        )
        raise BagValidationError(msg)
    return np.where(has_both, found, UNKNOWN)


def refuse_without_scores(estimator: Any) -> None:
    """Refuse an estimator that cannot score instances, before anything is fitted."""
    inner = estimator.estimator if isinstance(estimator, BaseSearchCV) else estimator
    if not hasattr(inner, "score_instances"):
        msg = (
            f"instance_y needs an estimator with score_instances, but {type(inner).__name__} has none. Take another, "
            "or leave out instance_y."
        )
        raise BagValidationError(msg)
