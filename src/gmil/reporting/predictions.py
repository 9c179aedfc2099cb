"""What a model predicts for bags, about one class, whatever the kind of model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.errors import BagValidationError, count_of
from gmil.model_selection.scoring import Outputs, outputs_of

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats
    from gmil.model_selection.result import CVResult


class Predictions(NamedTuple):
    """What a model predicts for bags."""

    label: str  # the class that decisions and scores are about
    column: int  # its place among the decisions of several classes
    decisions: Floats | None  # (n_bags,)
    predicted: list[str]
    given: list[str] | None
    positive: Booleans  # (n_bags,), by the labels where they are known, else by the predictions
    right: Booleans | None  # (n_bags,), where labels are known


def unwrap(model: Any, bags: Bags) -> tuple[Any, Bags]:
    """Return the classifier inside pipelines and searches, and the bags as it gets them."""
    if hasattr(model, "best_estimator_"):
        return unwrap(model.best_estimator_, bags)
    if hasattr(model, "steps"):
        before, last = model[:-1], model[-1]
        return unwrap(last, before.transform(bags) if len(before) else bags)
    return (model.estimator_, bags) if type(model).__name__ == "GMILCV" else (model, bags)


def refuse_no_classifier(model: Any) -> None:
    """Refuse what predicts nothing."""
    if not hasattr(model, "predict"):
        msg = f"A report needs a fitted classifier, but {type(model).__name__} has no predict. Fit one on the bags."
        raise BagValidationError(msg)


def outputs_of_result(result: CVResult, probabilities: Floats | None = None) -> Outputs:
    """Return what the first repeat of a cross-validation tells of bags, under its first setting."""
    classes = np.arange(result.y.shape[1]) if result.y.ndim == 2 else np.unique(result.y)
    decisions = result.decisions[0, 0]
    known = None if np.isnan(decisions).all() else decisions
    return Outputs(classes, result.predictions[0, 0], known, probabilities, result.positive_label, result.grades)


def predict_bags(model: Any, bags: Bags, y: Any, label: Any) -> Predictions:
    """Predict bags; ``label`` is the class to show, by default the positive of two, else the commonest."""
    refuse_no_classifier(model)
    return about_one_class(outputs_of(model, bags), y, label)


def about_one_class(outputs: Outputs, y: Any, label: Any) -> Predictions:
    """Return what is predicted about one class, ``label``, by default the positive of two, else the commonest."""
    predicted = outputs.labels
    given = None if y is None else np.asarray(y)
    if given is not None and len(given) != len(predicted):
        labels, bags = count_of(len(given), "label"), count_of(len(predicted), "bag")
        msg = f"y has {labels}, but X has {bags}. Give one label per bag, or none."
        raise BagValidationError(msg)
    focus, column = _focus(outputs, predicted if given is None else given, label)
    decisions = outputs.decisions
    if decisions is not None and decisions.ndim == 2:
        decisions = decisions[:, column]
    elif decisions is not None and column == 0:
        decisions = -decisions  # they are about the second of two classes
    known = predicted if given is None else given
    positive = known[:, column] > 0 if known.ndim == 2 else known == focus
    right = None if given is None else (_rows(predicted) == _rows(given)).all(axis=1)
    texts = None if given is None else _texts(given)
    return Predictions(str(focus), column, decisions, _texts(predicted), texts, np.asarray(positive), right)


def _focus(outputs: Outputs, labels: Any, label: Any) -> tuple[Any, int]:
    classes = outputs.classes
    if label is not None:
        # A command has the class as a text.
        found = [column for column, name in enumerate(classes.tolist()) if label in (name, str(name))]
        if not found:
            msg = f"label={label!r} is not a class; the classes are {classes.tolist()}."
            raise BagValidationError(msg)
        return classes[found[0]], found[0]
    if outputs.positive is not None:
        return outputs.positive, int(np.flatnonzero(classes == outputs.positive)[0])
    counts = labels.sum(axis=0) if labels.ndim == 2 else [(labels == c).sum() for c in classes]
    column = int(np.argmax(counts))
    return classes[column], column


def _rows(labels: Any) -> Any:
    return labels.reshape(len(labels), -1)


def _texts(labels: Any) -> list[str]:
    if labels.ndim == 1:
        return [str(label) for label in labels.tolist()]
    return [", ".join(str(i) for i in np.flatnonzero(row)) or "none" for row in labels]
