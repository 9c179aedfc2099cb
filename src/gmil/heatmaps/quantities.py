"""What the score of an instance means, in words, and where it is the log-odds of a probability."""

from __future__ import annotations

from typing import Any, NamedTuple

from gmil.greedy.codebook_classifier import CodebookClassifier
from gmil.model_selection.folds import last_step
from gmil.weighted import WeightedGMIL


class Quantity(NamedTuple):
    """What a map shows.

    Parameters
    ----------
    meaning : str
        Of a score, for legends.
    label : str
        The class that scores are about.
    is_log_odds : bool
        Whether a score is the log-odds of a probability of its patch.
    """

    meaning: str = ""
    label: str = ""
    is_log_odds: bool = False


def quantity_of(model: Any, label: str = "") -> Quantity:
    """Return what the scores of a fitted model mean, about one class."""
    inner = _inside(model)
    log_odds = isinstance(inner, WeightedGMIL) and inner.witnesses_ is not None
    return Quantity(meaning_of(model), label, log_odds)


def meaning_of(model: Any) -> str:
    """Return what a fitted model gives an instance."""
    inner = _inside(model)
    if isinstance(inner, CodebookClassifier):
        if getattr(inner, "threshold_", None) is not None:
            return "how much nearer than the threshold the instance is to C+"
        return "the distance to C− minus the distance to C+"
    if isinstance(inner, WeightedGMIL):
        if inner.witnesses_ is not None:
            return "log-odds that the instance is a witness, one that makes its bag positive"
        return "the decision about the bag minus that about the bag without the instance, in log-odds"
    return f"what {type(model).__name__} gives an instance; higher is more positive"


def _inside(model: Any) -> Any:
    inner = last_step(getattr(model, "best_estimator_", model))[1]
    return getattr(inner, "estimator_", inner)
