"""Whether probabilities are true, and the model right where it is sure: reliability, risk against coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gmil.model_selection.metrics import risk_coverage
from gmil.reporting.assessment.content import ClassReliability
from gmil.reporting.plots.reliability import Reliability

if TYPE_CHECKING:
    from gmil.reporting.assessment.held_out import HeldOut

_MOST_POINTS = 200


def class_reliability(held: HeldOut) -> list[ClassReliability]:
    """Return how true the probabilities of the classes are; nothing where there are none."""
    if held.probabilities is None:
        return []
    found = []
    for column in held.shown_classes:
        given = held.probabilities[:, column]
        known = ~np.isnan(given)
        if known.any():
            curve = Reliability.of(given[known], held.truth[known, column])
            points = [[mean, share, float(n)] for mean, share, n in curve.points()]
            found.append(ClassReliability(held.classes[column], points, curve.gap()))
    return found


def risk_curve(held: HeldOut) -> list[list[float]]:
    """Return [share of bags answered, share of wrong answers], the surest bags first; by the first repeat.

    Bags are sure where the best class is far before the second, by probabilities or else by decisions.
    """
    scores = held.decisions[0] if held.probabilities is None else held.probabilities
    if held.several or scores.shape[1] < 2 or np.isnan(scores).any():
        return []
    best = np.sort(scores, axis=1)
    answered, risk = risk_coverage(best[:, -1] - best[:, -2], held.wrong[0])
    some = np.unique(np.linspace(0, len(risk) - 1, min(len(risk), _MOST_POINTS)).round().astype(int))
    return [[float(answered[i]), float(risk[i])] for i in some]
