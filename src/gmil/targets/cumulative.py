"""Cumulative logits: ordered grades from one score.

The odds of a grade above k are ``slope * score - threshold[k]``, with one slope for all thresholds, which ascend: the
probabilities of grades so have one peak, which moves up with the score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats, Integers

_LEAST = 1e-12
_STEEPEST = 5.0
"""The logarithm of the steepest slope, for scores of deviation one: it stays finite where scores order all bags."""


def fit_cumulative(scores: Floats, grades: Integers, n_grades: int) -> tuple[float, Floats]:
    """Return the slope, above zero, and the thresholds, (n_grades - 1,), that make the grades of bags most likely.

    Parameters
    ----------
    scores : array of shape (n_bags,)
    grades : array of shape (n_bags,)
        Numbers from 0; every one of them is there.
    n_grades : int
    """
    size = float(scores.std()) or 1.0
    scaled = (scores - scores.mean()) / size
    # Half a bag more in every grade keeps thresholds apart where few bags are.
    counts = np.bincount(grades, minlength=n_grades) + 0.5
    above = 1 - np.cumsum(counts)[:-1] / counts.sum()
    first = -np.log(above / (1 - above))
    start = np.concatenate([[0.0], first[:1], np.log(np.maximum(np.diff(first), 1e-3))])

    # Soft targets, as Platt's, keep the slope finite where scores order all bags.
    sizes = np.bincount(grades, minlength=n_grades)
    shares = np.where(np.eye(n_grades, dtype=bool), sizes[:, None] + 1, 1) / (sizes[:, None] + n_grades)
    weights, scaled = shares[grades].ravel(), np.repeat(scaled, n_grades)
    grades = np.tile(np.arange(n_grades), len(scores))

    def loss(parameters: Floats) -> tuple[float, Floats]:
        slope, thresholds = np.exp(parameters[0]), _thresholds(parameters[1:])
        edges = np.concatenate([[-np.inf], thresholds, [np.inf]])
        upper, lower = edges[grades + 1] - slope * scaled, edges[grades] - slope * scaled
        chance = np.maximum(expit(upper) - expit(lower), _LEAST)
        rise, fall = weights * _density(upper) / chance, weights * _density(lower) / chance
        of_edges = np.bincount(grades + 1, rise, n_grades + 1) - np.bincount(grades, fall, n_grades + 1)
        of_thresholds = of_edges[1:-1]
        # A threshold is the first and all gaps up to it.
        tails = np.cumsum(of_thresholds[::-1])[::-1]
        gaps = np.exp(parameters[2:])
        gradient = np.concatenate([[-slope * (scaled @ (rise - fall))], tails[:1], tails[1:] * gaps])
        return float(-weights @ np.log(chance)), -gradient

    bounds = [(-_STEEPEST, _STEEPEST), (-50, 50), *[(-10, 5)] * (n_grades - 2)]
    found: Any = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    slope = float(np.exp(found.x[0])) / size
    return slope, _thresholds(found.x[1:]) + slope * float(scores.mean())


def _thresholds(parameters: Floats) -> Floats:
    return parameters[0] + np.concatenate([[0.0], np.cumsum(np.exp(parameters[1:]))])


def _density(odds: Floats) -> Floats:
    return expit(odds) * expit(-odds)


def grade_probabilities(odds: Floats, thresholds: Floats) -> Floats:
    """Return the probability of every grade, (n_bags, n_grades), from scores times the slope, (n_bags,).

    >>> grade_probabilities(np.zeros(1), np.array([-1.0, 1.0])).round(3).tolist()
    [[0.269, 0.462, 0.269]]
    """
    # From whichever end is nearer, so that no small probability is lost.
    below, above = expit(thresholds - odds[:, None]), expit(odds[:, None] - thresholds)
    ends = np.zeros((len(odds), 1))
    by_below, by_above = np.diff(np.hstack([ends, below, ends + 1])), -np.diff(np.hstack([ends + 1, above, ends]))
    middle = np.hstack([ends, below]) < 0.5
    return np.maximum(np.where(middle, by_below, by_above), _LEAST)
