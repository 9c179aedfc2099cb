"""How well a fitted model predicts bags whose labels are known: measures with intervals, and the confusion matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import confusion_matrix

from gmil.base import BagClassifier
from gmil.errors import BagValidationError, listed
from gmil.model_selection.fold_by_fold import positive_class
from gmil.model_selection.folds import last_step
from gmil.model_selection.metrics import bootstrap_interval, draws, mean_interval, wilson_interval

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gmil.engine.arrays import Booleans, Floats, Integers

_RESAMPLES = 2000
_NO_WIDTH = 1e-9


class Measured(NamedTuple):
    """A measure, and the limits of its 95 % interval; NaN where it cannot be measured."""

    value: float
    low: float
    high: float


class Outputs(NamedTuple):
    """All that a classifier tells of bags."""

    classes: NDArray[Any]
    labels: NDArray[Any]  # (n_bags,), or an indicator matrix
    decisions: Floats | None  # (n_bags,) about the second of two classes, or (n_bags, n_classes)
    probabilities: Floats | None  # (n_bags, n_classes)
    positive: Any  # of two classes, else None
    grades: list[Any] | None = None  # the classes from the lowest to the highest, where they have an order

    def of(self, chosen: Any) -> Outputs:
        """Return what is told of some bags."""
        decisions, probabilities = (
            None if part is None else part[chosen] for part in (self.decisions, self.probabilities)
        )
        return self._replace(labels=self.labels[chosen], decisions=decisions, probabilities=probabilities)


def outputs_of(model: Any, bags: Any, *, probabilities: bool = True) -> Outputs:
    """Return all that a fitted classifier tells of bags; they are decided once where the rest follows from that."""
    decisions = decisions_of(model, bags)
    follow = isinstance(model, BagClassifier) and type(model).predict is BagClassifier.predict
    labels = np.asarray(model._labels_of(decisions) if follow else model.predict(bags))
    classes = np.asarray(getattr(model, "classes_", np.unique(labels)))
    chances = None
    if probabilities and hasattr(model, "predict_proba"):
        known = follow and hasattr(model, "_probabilities_of")
        found = np.asarray(model._probabilities_of(decisions) if known else model.predict_proba(bags))
        chances = found if found.shape == (len(labels), len(classes)) else None  # lists, of several labels
    is_one_problem = len(classes) == 2 and labels.ndim == 1
    positive = positive_class(model) if is_one_problem else None
    return Outputs(classes, labels, decisions, chances, positive, grades_of(model))


def grades_of(model: Any) -> list[Any] | None:
    """Return the classes of a fitted model from the lowest to the highest; None where they have no order."""
    ranks = getattr(last_step(model)[1], "order_", None)
    return None if ranks is None else np.asarray(model.classes_)[np.argsort(ranks)].tolist()


def shown_order(classes: NDArray[Any], grades: list[Any] | None) -> Integers:
    """Return the places of classes in the order in which tables show them: that of grades, others behind them.

    >>> shown_order(np.array(["high", "low", "middle"]), ["low", "middle", "high"])
    array([1, 2, 0])
    """
    ranks = {} if grades is None else {grade: rank for rank, grade in enumerate(grades)}
    return np.argsort([ranks.get(label, len(ranks)) for label in classes.tolist()], kind="stable")


def decisions_of(model: Any, bags: Any) -> Floats | None:
    """Return decisions, or probabilities where a classifier has no decisions; None where it has neither."""
    for name in ("decision_function", "predict_proba"):
        if hasattr(model, name):
            return np.asarray(getattr(model, name)(bags), dtype=np.float64)
    return None


_NOTHING = Measured(*[float("nan")] * 3)


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
    classes: list[Any]  # those of grades from the lowest to the highest
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
    return score_outputs(outputs_of(model, bags), y, groups)


def score_outputs(outputs: Outputs, y: Any, groups: Any = None) -> Scores:
    """Compare what a model tells of bags with labels, as `score_model` does."""
    classes, predictions, decisions, probabilities, positive, grades = outputs
    y = np.asarray(y)
    _refuse_other_labels(y, classes)
    if predictions.ndim > 1:
        msg = "Scores are of models that give every bag one label, but this model gives several."
        raise BagValidationError(msg)
    shown = classes[shown_order(classes, grades)]
    places = np.searchsorted(classes, y)
    correct = (predictions == y).astype(np.float64)
    counts = np.bincount(places, minlength=len(classes))
    return Scores(
        Measured(float(correct.mean()), *mean_interval(correct, groups)),
        _resampled(lambda weights: _balanced(places, correct, weights), counts, groups, len(y)),
        _area(decisions, places, counts, groups),
        _brier(probabilities, places, groups),
        float(counts.max() / len(y)),
        shown.tolist(),
        confusion_matrix(y, predictions, labels=shown),
        positive,
    )


def _refuse_other_labels(y: NDArray[Any], classes: NDArray[Any]) -> None:
    others = [repr(label) for label in np.unique(y).tolist() if label not in set(classes.tolist())]
    if others:
        msg = (
            f"The data has the labels {listed(others)}, which the model does not know; its classes are "
            f"{listed([repr(label) for label in classes.tolist()])}. Rename the labels."
        )
        raise BagValidationError(msg)


def _balanced(places: Integers, correct: Floats, weights: Floats) -> Floats:
    """Return the mean, over the classes that are there, of the share of bags that are right; NaN of one class.

    ``weights (n_resamples, n_bags)`` is how often every bag counts; there is one mean for every row.
    """
    members = np.eye(places.max() + 1)[places]  # (n_bags, n_classes)
    counts = weights @ members
    shares = np.divide(weights @ (members * correct[:, None]), counts, out=np.zeros_like(counts), where=counts > 0)
    present = (counts > 0).sum(axis=1)
    return np.where(present > 1, shares.sum(axis=1) / np.maximum(present, 1), np.nan)


def _area(decisions: Any, places: Integers, counts: Integers, groups: Any) -> Measured:
    if decisions is None:
        return _NOTHING
    columns = {1: decisions} if decisions.ndim == 1 else dict(enumerate(decisions.T))

    def mean_area(weights: Floats) -> Floats:
        return np.mean([_weighted_auc(places == column, own, weights) for column, own in columns.items()], axis=0)

    return _resampled(mean_area, counts, groups, len(places))


def _weighted_auc(positive: Booleans, decisions: Floats, weights: Floats) -> Floats:
    """Return what `auc` returns where bags count as often as ``weights (n_resamples, n_bags)`` says, a row each."""
    values, places = np.unique(decisions, return_inverse=True)
    at = sp.csr_array((np.ones(len(places)), (np.arange(len(places)), places)), (len(places), len(values)))
    up, down = (weights * positive) @ at, (weights * ~positive) @ at  # (n_resamples, n_values)
    below = np.cumsum(down, axis=1) - down / 2  # a tie is half
    pairs = up.sum(axis=1) * down.sum(axis=1)
    return np.divide((up * below).sum(axis=1), pairs, out=np.full(len(weights), np.nan), where=pairs > 0)


def fold_area(positive: Booleans, decisions: Floats, folds: Integers, groups: Any = None) -> Measured:
    """Return the mean area under the curve over test folds, with its interval by bootstrap over bags or groups.

    Parameters
    ----------
    positive : array of shape (n_bags,)
    decisions : array of shape (n_bags,)
        Made while the bag was in the test fold.
    folds : array of shape (n_bags,)
        The test fold; one without both classes has no area, and is left out.
    groups : array of shape (n_bags,), optional
    """
    tested = [folds == fold for fold in np.unique(folds)]

    def mean_area(weights: Floats) -> Floats:
        areas = np.stack([_weighted_auc(positive[test], decisions[test], weights[:, test]) for test in tested])
        known = ~np.isnan(areas)
        sums, counts = np.where(known, areas, 0.0).sum(axis=0), known.sum(axis=0)
        return np.divide(sums, counts, out=np.full(len(weights), np.nan), where=counts > 0)

    return _resampled(mean_area, np.bincount(positive.astype(np.int64), minlength=2), groups, len(positive))


def _brier(probabilities: Any, places: Integers, groups: Any) -> Measured:
    if probabilities is None:
        return _NOTHING
    errors: Floats = (probabilities - np.eye(probabilities.shape[1])[places]) ** 2
    of_bags = errors[:, 1] if errors.shape[1] == 2 else errors.sum(axis=1)
    return Measured(float(of_bags.mean()), *bootstrap_interval(of_bags, groups))


def _resampled(measure: Callable[[Floats], Floats], counts: Integers, groups: Any, n_bags: int) -> Measured:
    """Return a measure of bags, with the percentile interval of a bootstrap.

    ``measure`` takes how often every bag counts, (n_resamples, n_bags), and returns a value for every row.
    """
    value = float(measure(np.ones((1, n_bags)))[0])
    if np.isnan(value):
        return _NOTHING
    _, numbers = np.unique(np.arange(n_bags) if groups is None else np.asarray(groups), return_inverse=True)
    n_groups = int(numbers.max()) + 1
    blocks = (_how_often(rows, n_groups)[:, numbers] for rows in draws(n_groups, _RESAMPLES, 0))
    low, high = np.nanquantile(np.concatenate([measure(weights) for weights in blocks]), [0.025, 0.975])
    if high - low < _NO_WIDTH:  # as certain as a share of the rarest class can be
        low, high = wilson_interval(value, int(counts[counts > 0].min()))
    return Measured(value, float(min(low, value)), float(max(high, value)))


def _how_often(rows: Integers, n: int) -> Floats:
    """Return how often each of ``n`` was drawn in every row, (n_rows, n)."""
    shifted = rows + n * np.arange(len(rows))[:, None]
    return np.bincount(shifted.ravel(), minlength=n * len(rows)).reshape(len(rows), n).astype(np.float64)
