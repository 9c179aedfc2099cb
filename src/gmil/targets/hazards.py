"""Baseline hazards, residuals of times, and the slope of a risk score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize_scalar

from gmil.targets.losses import Cox

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats
    from gmil.target_checks import Outcomes

_STEEPEST = 10.0


def cumulative_hazard(outcomes: Outcomes, risk: Floats) -> tuple[Floats, Floats]:
    """Return the times of events, and the cumulative baseline hazard from each on (Breslow).

    Parameters
    ----------
    outcomes : Outcomes
    risk : array of shape (n_bags,)
        Log-hazard ratios; zeros give the Nelson-Aalen estimate.

    Examples
    --------
    >>> from gmil.target_checks import Outcomes
    >>> cumulative_hazard(Outcomes(np.array([True, True]), np.array([1.0, 2.0])), np.zeros(2))[1].tolist()
    [0.5, 1.5]
    """
    event, time = outcomes
    times, n_events = np.unique(time[event], return_counts=True)
    order = np.argsort(time)
    still = np.cumsum(np.exp(risk[order])[::-1])[::-1]  # at risk from each time on
    at_risk = still[np.searchsorted(time[order], times)]
    return times, np.cumsum(n_events / at_risk)


def hazard_at(times: Floats, hazard: Floats, wanted: Any) -> Floats:
    """Return a cumulative hazard, a step function, at other times."""
    return np.concatenate([[0.0], hazard])[np.searchsorted(times, wanted, side="right")]


def martingale_residuals(outcomes: Outcomes) -> Floats:
    """Return events less those that were to be expected up to then, without any knowledge of the bags."""
    expected = hazard_at(*cumulative_hazard(outcomes, np.zeros(len(outcomes.time))), outcomes.time)
    return np.asarray(outcomes.event - expected)


def risk_slope(outcomes: Outcomes, scores: Floats) -> float:
    """Return what scores are multiplied with to be log-hazard ratios, not below zero."""
    size = float(scores.std())
    if size == 0:
        return 0.0
    loss = Cox(outcomes.table, np.ones(len(scores)))
    # A normal prior of width one keeps the slope finite where scores order all events.
    found: Any = minimize_scalar(
        lambda slope: loss(slope * scores / size)[0] + slope**2 / 2, bounds=(0.0, _STEEPEST), method="bounded"
    )
    return float(found.x / size)
