"""How well a fitted model predicts bags whose labels are known: measures with intervals, and the confusion matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.metrics import confusion_matrix

from gmil.errors import BagValidationError, listed
from gmil.model_selection.fold_by_fold import positive_class
from gmil.model_selection.metrics import auc, bootstrap_interval, mean_interval, wilson_interval

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats, Integers

_RESAMPLES = 2000
_NO_WIDTH = 1e-9


class Measured(NamedTuple):
    """A measure, and the limits of its 95 % interval; NaN where it cannot be measured."""

    value: float
    low: float
    high: float


class Scores(NamedTuple):
    """What `score_model` measures."""

    accuracy: Measured
    balanced_accuracy: Measured
    auc: Measured
    """Of two classes; of more, the mean over classes, each against all others."""
    brier: Measured
    """The mean squared error of probabilities: of the positive of two classes, or summed over several."""
    majority: float
    """The share of the commonest class, which every accuracy must beat."""
    classes: list[Any]
    confusion: Integers  # (n_classes, n_classes), rows are labels, columns predictions
    positive: Any  # the positive of two classes, else None


def score_model(model: Any, bags: Any, y: Any, groups: Any = None) -> Scores:
    """Compare the predictions of a fitted classifier with labels.

    Intervals are by bootstrap over bags, or over ``groups`` where bags belong together. They never collapse: where all
    resamples agree, Wilson's interval is taken.

    Parameters
    ----------
    model : fitted classifier of bags
    bags : Bags
    y : array of shape (n_bags,)
    groups : array of shape (n_bags,), optional
    """
    classes, y = np.asarray(model.classes_), np.asarray(y)
    _refuse_other_labels(y, classes)
    predictions = model.predict(bags)
    if predictions.ndim > 1:
        msg = "Scores are of models that give every bag one label, but this model gives several."
        raise BagValidationError(msg)
    places = np.searchsorted(classes, y)
    correct = (predictions == y).astype(np.float64)
    counts = np.bincount(places, minlength=len(classes))
    return Scores(
        Measured(float(correct.mean()), *mean_interval(correct, groups)),
        _resampled(lambda rows: _balanced(places[rows], correct[rows]), counts, groups, len(y)),
        _area(model, bags, places, groups),
        _brier(model, bags, places, groups),
        float(counts.max() / len(y)),
        classes.tolist(),
        confusion_matrix(y, predictions, labels=classes),
        positive_class(model) if len(classes) == 2 else None,
    )


def _refuse_other_labels(y: NDArray[Any], classes: NDArray[Any]) -> None:
    others = [repr(label) for label in np.unique(y).tolist() if label not in set(classes.tolist())]
    if others:
        msg = (
            f"The data has the labels {listed(others)}, which the model does not know; its classes are "
            f"{listed([repr(label) for label in classes.tolist()])}. Rename the labels."
        )
        raise BagValidationError(msg)


def _balanced(places: Integers, correct: Floats) -> float:
    """Return the mean, over the classes that are there, of the share of bags that are right; NaN of one class."""
    counts = np.bincount(places)
    present = counts > 0
    shares = np.bincount(places, weights=correct)[present] / counts[present]
    return float(shares.mean()) if len(shares) > 1 else float("nan")


def _area(model: Any, bags: Any, places: Integers, groups: Any) -> Measured:
    decisions = model.decision_function(bags) if hasattr(model, "decision_function") else model.predict_proba(bags)
    columns = {1: decisions} if decisions.ndim == 1 else dict(enumerate(decisions.T))

    def mean_area(rows: Any) -> float:
        areas = [auc(places[rows] == column, own[rows]) for column, own in columns.items()]
        return float(np.mean(areas))

    return _resampled(mean_area, np.bincount(places, minlength=len(model.classes_)), groups, len(places))


def _brier(model: Any, bags: Any, places: Integers, groups: Any) -> Measured:
    if not hasattr(model, "predict_proba"):
        return Measured(*[float("nan")] * 3)
    errors: Floats = (model.predict_proba(bags) - np.eye(len(model.classes_))[places]) ** 2
    of_bags = errors[:, 1] if errors.shape[1] == 2 else errors.sum(axis=1)
    return Measured(float(of_bags.mean()), *bootstrap_interval(of_bags, groups))


def _resampled(measure: Callable[[Any], float], counts: Integers, groups: Any, n_bags: int) -> Measured:
    """Return a measure of chosen bags for all of them, with the percentile interval of a bootstrap."""
    value = measure(np.arange(n_bags))
    if np.isnan(value):
        return Measured(value, value, value)
    _, numbers = np.unique(np.arange(n_bags) if groups is None else np.asarray(groups), return_inverse=True)
    members = [np.flatnonzero(numbers == number) for number in range(numbers.max() + 1)]
    generator = np.random.default_rng(0)
    drawn = (generator.integers(0, len(members), size=len(members)) for _ in range(_RESAMPLES))
    values = [measure(np.concatenate([members[group] for group in some])) for some in drawn]
    low, high = np.nanquantile(values, [0.025, 0.975])
    if high - low < _NO_WIDTH:  # as certain as a share of the rarest class can be
        low, high = wilson_interval(value, int(counts[counts > 0].min()))
    return Measured(value, float(min(low, value)), float(max(high, value)))
