"""Witnesses: the fewest instances of a bag that carry its decision."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.errors import BagValidationError
from gmil.witnesses.smoothing import smooth_scores

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.scale import LazyBags

_TIE = 1e-9
"""How far apart, relative to themselves, two scores may be and still count as equal."""


def find_witnesses(
    self: Any, X: Any, share: float = 0.9, *, label: Any = None, smooth: float | None = None
) -> list[Integers]:
    """Return the witnesses of every bag: the fewest instances that have a share of the evidence for its class.

    The evidence of an instance is the positive part of its score; of scores that are log-odds it is -log(1 - p), which
    adds up over the instances of a bag to -log(1 - P(bag)) where one witness makes a bag positive (noisy-or).

    Parameters
    ----------
    X : Bags, list of 2-D arrays, 3-D array, or 2-D array
        Bags of the same features as the training bags; `LazyBags` where the method reads them.
    share : float, default=0.9
        The part of the evidence of a bag that its witnesses have at least, above 0 and at most 1. Witnesses of a
        smaller share are among those of a larger one.
    label : label, optional
        The class to find witnesses of, in every bag, whatever is predicted for it. By default the predicted class; of
        two classes the positive one, and a bag that is predicted negative has no witnesses.
    smooth : float, optional
        The bandwidth of `gmil.smooth_scores`, over ``time``, or ``x`` and ``y``, of ``instance_info``. By default
        scores are taken as they are.

    Returns
    -------
    list of arrays
        For every bag the numbers of its witnesses among its instances, most evidence first. A bag that is predicted to
        be of the class has one at least: where no score is above zero, those with the highest.
    """
    bags = self._new_bags(X)
    evidence = evidence_for(self, bags, label, smooth)
    return [carriers(evidence[start:stop], share) for start, stop in pairwise(bags.offsets.tolist())]


def carriers(evidence: Floats, share: float) -> Integers:
    """Return the fewest instances of a bag that have a share of its evidence, the most important first.

    >>> carriers(np.array([0.0, 1.0, 6.0, 3.0]), 0.9).tolist()
    [2, 3]
    """
    if not 0 < share <= 1:
        msg = f"must be above 0 and at most 1, got {share!r}."
        raise BagValidationError(msg, parameter="share")
    order = np.argsort(-evidence, kind="stable")
    reached = np.cumsum(evidence[order])
    enough = int(np.searchsorted(reached, share * reached[-1])) + 1
    return order[: enough if reached[-1] > 0 else 0]


def evidence_for(model: Any, bags: Bags | LazyBags, label: Any = None, smooth: float | None = None) -> Floats:
    """Return the evidence of every instance for a class, (n_instances,); zeros in bags that have no witnesses of it."""
    scores = model.score_instances(bags)
    if smooth is not None:
        scores = smooth_scores(scores, bags, smooth)
    scores, called = _of_class(model, bags, scores, label)
    evidence: Floats = model._evidence(scores)
    best = np.repeat(np.maximum.reduceat(scores, bags.offsets[:-1]), bags.sizes)
    has_none = np.repeat((np.maximum.reduceat(evidence, bags.offsets[:-1]) <= 0) & called, bags.sizes)
    evidence = np.where(has_none, scores >= best - _TIE * np.abs(best), evidence)
    return evidence if label is not None else np.where(np.repeat(called, bags.sizes), evidence, 0.0)


def _of_class(model: Any, bags: Bags | LazyBags, scores: Floats, label: Any) -> tuple[Floats, Booleans]:
    """Return scores for one class, or for the predicted one of every bag, and which bags are predicted to be of it."""
    predicted = model.predict(bags)
    if scores.ndim == 1:
        wanted = model.pos_label_ if label is None else model.classes_[class_number(model, label)]
        return (scores if wanted == model.pos_label_ else -scores), predicted == wanted
    if label is not None:
        column = class_number(model, label)
        called = predicted[:, column] > 0 if predicted.ndim == 2 else predicted == model.classes_[column]
        return scores[:, column], called
    if predicted.ndim == 2:
        msg = "Bags have several labels, so witnesses must be those of one of them."
        raise BagValidationError(msg, parameter="label", fix="Choose one of the columns with {label}")
    columns = np.repeat(np.searchsorted(model.classes_, predicted), bags.sizes)
    return scores[np.arange(len(scores)), columns], np.ones(len(bags), dtype=bool)


def class_number(model: Any, label: Any) -> int:
    """Return the position of a label among the classes."""
    found = np.flatnonzero(model.classes_ == label)
    if len(found) == 0:
        msg = f"label={label!r} is not a class; the classes are {model.classes_.tolist()}."
        raise BagValidationError(msg)
    return int(found[0])
