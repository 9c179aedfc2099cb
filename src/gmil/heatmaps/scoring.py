"""Bags to scores of patches: one bag at a time, about one class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.errors import BagValidationError
from gmil.heatmaps.quantities import Quantity, quantity_of
from gmil.model_selection.folds import last_step
from gmil.model_selection.scoring import outputs_of

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Floats
    from gmil.model_selection.scoring import Outputs


class Outcome(NamedTuple):
    """What a model predicts for a bag.

    Parameters
    ----------
    predicted : str
    label : str
        The class that scores of patches are about.
    probability : float or None
        Of that class.
    certainty : float
        How far the decision is from the other class: the distance of the highest probability to 1 / n_classes, or the
        size of the decision where a model has no probabilities.
    """

    predicted: str
    label: str
    probability: float | None
    certainty: float


class ScoredBag(NamedTuple):
    """Scores of the patches of a bag, what they mean, and what is predicted."""

    scores: Floats
    quantity: Quantity
    outcome: Outcome


def refuse_no_scores(model: Any) -> None:
    """Refuse a model that has no scores of instances."""
    if not hasattr(model, "score_instances"):
        msg = f"{type(last_step(model)[1]).__name__} has no scores of instances, which a map shows."
        raise BagValidationError(msg, parameter="model", fix="Fit another method.")


def class_named(model: Any, text: str | None) -> Any:
    """Return the class of a model that is written so; None stays None."""
    classes = np.asarray(getattr(model, "classes_", []))
    found = [label for label in classes.tolist() if str(label) == text]
    if text is None or found:
        return found[0] if found else None
    msg = f"{text!r} is not a class of the model; its classes are {', '.join(map(str, classes.tolist()))}."
    raise BagValidationError(msg, parameter="label", fix="Name another with {label}")


def score_bag(model: Any, bag: Bags, label: Any = None) -> ScoredBag:
    """Score the patches of one bag.

    Parameters
    ----------
    model : fitted classifier
    bag : Bags
        Of a single bag.
    label : label, optional
        The class that scores are about; by default the positive of two, of several the one that is predicted.
    """
    outputs = outputs_of(model, bag)
    column = _column(outputs, label)
    scores = np.asarray(model.score_instances(bag), dtype=np.float64)
    quantity = quantity_of(model, str(outputs.classes[column]))
    if scores.ndim == 2:
        scores = scores[:, column]
    elif outputs.positive is not None and outputs.classes[column] != outputs.positive:
        scores = -scores  # they are about the positive class
        quantity = quantity._replace(meaning=f"less the score for {outputs.positive}, {quantity.meaning}")
    return ScoredBag(scores, quantity, _outcome(outputs, column))


def _column(outputs: Outputs, label: Any) -> int:
    wanted = label if label is not None else outputs.positive
    if wanted is None:
        best = outputs.labels[0]
        return int(np.argmax(best)) if np.ndim(best) else int(np.flatnonzero(outputs.classes == best)[0])
    return int(np.flatnonzero(outputs.classes == wanted)[0])


def _outcome(outputs: Outputs, column: int) -> Outcome:
    first = outputs.labels[0]
    label = str(outputs.classes[column])
    predicted = str(first) if np.ndim(first) == 0 else ", ".join(map(str, outputs.classes[np.asarray(first) > 0]))
    if outputs.probabilities is not None:
        chances = outputs.probabilities[0]
        return Outcome(predicted, label, float(chances[column]), float(chances.max() - 1 / len(chances)))
    size = 0.0 if outputs.decisions is None else float(np.abs(outputs.decisions[0]).max())
    return Outcome(predicted, label, None, size)
