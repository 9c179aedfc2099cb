"""What a model predicts for bags, about one class, whatever the kind of model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.errors import BagValidationError
from gmil.model_selection.fold_by_fold import positive_class

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats


class Predictions(NamedTuple):
    """What a model predicts for bags."""

    label: str  # the class that decisions and scores are about
    column: int  # its place among the decisions of several classes
    decisions: Floats | None  # (n_bags,)
    predicted: list[str]
    given: list[str] | None
    positive: Booleans  # (n_bags,), by the labels where they are known, else by the predictions
    n_right: int | None


def unwrap(model: Any, bags: Bags) -> tuple[Any, Bags]:
    """Return the classifier inside pipelines and searches, and the bags as it gets them."""
    if hasattr(model, "best_estimator_"):
        return unwrap(model.best_estimator_, bags)
    if hasattr(model, "steps"):
        before, last = model[:-1], model[-1]
        return unwrap(last, before.transform(bags) if len(before) else bags)
    return (model.estimator_, bags) if type(model).__name__ == "GMILCV" else (model, bags)


def predict_bags(model: Any, bags: Bags, y: Any, label: Any) -> Predictions:
    """Predict bags; ``label`` is the class to show, by default the positive of two, else the commonest."""
    if not hasattr(model, "predict"):
        msg = f"A report needs a fitted classifier, but {type(model).__name__} has no predict. Fit one on the bags."
        raise BagValidationError(msg)
    predicted = np.asarray(model.predict(bags))
    given = None if y is None else np.asarray(y)
    if given is not None and len(given) != len(bags):
        msg = f"y has {len(given)} labels, but there are {len(bags)} bags. Give one label per bag, or none."
        raise BagValidationError(msg)
    classes = np.asarray(getattr(model, "classes_", np.unique(predicted)))
    focus, column = _focus(model, classes, predicted if given is None else given, label)
    decisions = _decisions(model, bags)
    if decisions is not None and decisions.ndim == 2:
        decisions = decisions[:, column]
    elif decisions is not None and column == 0:
        decisions = -decisions  # they are about the second of two classes
    known = predicted if given is None else given
    positive = known[:, column] > 0 if known.ndim == 2 else known == focus
    right = None if given is None else int((_rows(predicted) == _rows(given)).all(axis=1).sum())
    texts = None if given is None else _texts(given)
    return Predictions(str(focus), column, decisions, _texts(predicted), texts, np.asarray(positive), right)


def _focus(model: Any, classes: Any, labels: Any, label: Any) -> tuple[Any, int]:
    if label is not None:
        found = np.flatnonzero(classes == label)
        if len(found) == 0:
            msg = f"label={label!r} is not a class; the classes are {classes.tolist()}."
            raise BagValidationError(msg)
        return classes[found[0]], int(found[0])
    if len(classes) == 2 and labels.ndim == 1:
        positive = positive_class(model)
        return positive, int(np.flatnonzero(classes == positive)[0])
    counts = labels.sum(axis=0) if labels.ndim == 2 else [(labels == c).sum() for c in classes]
    column = int(np.argmax(counts))
    return classes[column], column


def _decisions(model: Any, bags: Bags) -> Floats | None:
    for name in ("decision_function", "predict_proba"):
        if hasattr(model, name):
            return np.asarray(getattr(model, name)(bags), dtype=np.float64)
    return None


def _rows(labels: Any) -> Any:
    return labels.reshape(len(labels), -1)


def _texts(labels: Any) -> list[str]:
    if labels.ndim == 1:
        return [str(label) for label in labels.tolist()]
    return [", ".join(str(i) for i in np.flatnonzero(row)) or "none" for row in labels]
