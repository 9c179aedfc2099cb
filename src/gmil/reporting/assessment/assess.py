"""Predictions and labels -> an assessment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import confusion_matrix, multilabel_confusion_matrix

from gmil.reporting.assessment.content import Assessment, Confusion, LabelCounts
from gmil.reporting.assessment.curves import class_curves
from gmil.reporting.assessment.difficult import difficult_bags
from gmil.reporting.assessment.trusting import class_reliability, risk_curve

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Integers
    from gmil.reporting.assessment.content import Figure, Importance
    from gmil.reporting.assessment.held_out import HeldOut
    from gmil.scale import LazyBags


def assess(
    held: HeldOut,
    figures: list[Figure],
    *,
    title: str,
    text: str,
    bags: Bags | LazyBags | None,
    numbers: Integers | None = None,
    importance: Importance | None = None,
    without_importance: str = "",
    explorer: int | None = None,
) -> Assessment:
    """Hold predictions against labels.

    Parameters
    ----------
    held : HeldOut
    figures : list of Figure
    title, text : str
    bags : Bags or LazyBags, optional
        All of the data, which have the names.
    numbers : array of shape (n_bags,), optional
        Which of them ``held`` is about; by default all.
    importance, without_importance, explorer
        As in `Assessment`.
    """
    numbers = np.arange(len(held.truth)) if numbers is None else numbers
    curves, without_curves = class_curves(held)
    difficult = difficult_bags(held, [bag_name(bags, number) for number in numbers.tolist()], numbers)
    return Assessment(
        title=title,
        text=text,
        n_bags=len(numbers),
        n_repeats=len(held.folds),
        n_folds=int(held.folds.max()) + 1,
        figures=figures,
        confusion=None if held.several else count_confusions(held),
        labels=count_labels(held) if held.several else [],
        curves=curves,
        without_curves=without_curves,
        reliability=class_reliability(held),
        risk=risk_curve(held),
        score_columns=difficult.columns,
        wrong=difficult.wrong,
        unsure=difficult.unsure,
        importance=importance,
        without_importance=without_importance,
        explorer=explorer,
    )


def bag_name(bags: Any, number: int) -> str:
    """Return the id of a bag, or its number where it has none."""
    ids = getattr(bags, "bag_ids", None)
    return str(number if ids is None else ids[number])


def count_confusions(held: HeldOut) -> Confusion:
    """Return how often every label got every prediction, over all repeats."""
    labels = np.tile(held.truth.argmax(axis=1), len(held.predicted))
    predicted = held.predicted.argmax(axis=-1).ravel()
    counts = confusion_matrix(labels, predicted, labels=np.arange(len(held.classes)))
    return Confusion(held.classes, counts.tolist())


def count_labels(held: HeldOut) -> list[LabelCounts]:
    """Return how often every label was right and wrong, over all repeats."""
    truth = np.tile(held.truth, (len(held.predicted), 1))
    counts = multilabel_confusion_matrix(truth, held.predicted.reshape(truth.shape))
    return [
        LabelCounts(name, int(tp), int(fp), int(fn), int(tn))
        for name, ((tn, fp), (fn, tp)) in zip(held.classes, counts.tolist(), strict=True)
    ]
