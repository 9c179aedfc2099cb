"""What a score of bags is fitted by: squared errors of values, or the partial likelihood of times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.optimize import minimize

if TYPE_CHECKING:
    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.weighted.fitting import Learning

_NOISE = 0.5
"""The share of the variance of values that models of instances leave open: they are not to follow every bag."""


class Loss(Protocol):
    """A negative log-likelihood of scores of bags."""

    def __call__(self, scores: Floats) -> tuple[float, Floats]:
        """Return the loss of scores, (n_bags,), and its gradient."""


class Squared:
    """Values with normal noise of a known variance.

    Parameters
    ----------
    values, weights : arrays of shape (n_bags,)
    variance : float
        That of the noise.
    """

    def __init__(self, values: Floats, weights: Floats, variance: float = _NOISE) -> None:
        self.values, self.precision = values, weights / weights.mean() / variance

    def __call__(self, scores: Floats) -> tuple[float, Floats]:
        """Return the loss and its gradient."""
        pull = self.precision * (scores - self.values)
        return float(pull @ (scores - self.values) / 2), pull


class Cox:
    """Times that may be censored: the partial likelihood of proportional hazards, equal times by Breslow.

    Parameters
    ----------
    outcomes : array of shape (n_bags, 2)
        Whether something happened, and when, or until when nothing did.
    weights : array of shape (n_bags,)
    """

    def __init__(self, outcomes: Floats, weights: Floats) -> None:
        event, time = outcomes.T
        self.order = np.argsort(-time, kind="stable")  # the last first: who is at risk comes before
        ordered = time[self.order]
        # Of equal times all are at risk: they share the sum up to the last of them.
        self.last = np.searchsorted(-ordered, -ordered, side="right") - 1
        self.first = np.searchsorted(-ordered, -ordered, side="left")
        self.weights = (weights / weights.mean())[self.order]
        self.events = self.weights * event[self.order]

    def __call__(self, scores: Floats) -> tuple[float, Floats]:
        """Return the loss and its gradient."""
        own = scores[self.order]
        highest = own.max()
        risks = self.weights * np.exp(own - highest)
        at_risk = np.cumsum(risks)[self.last]
        value = self.events @ (np.log(at_risk) + highest - own)
        # A bag is at risk at every event that is not after its own time.
        shares = np.cumsum((self.events / at_risk)[::-1])[::-1][self.first]
        gradient = np.empty_like(own)
        gradient[self.order] = risks * shares - self.events
        return float(value), gradient


def loss_of(learning: Learning, problem: int, rows: Booleans | Integers | slice, variance: float = _NOISE) -> Loss:
    """Return what scores of some bags are fitted by, for one of the values that are to be predicted."""
    if learning.outcomes is not None:
        return Cox(learning.outcomes[rows], learning.weights[rows])
    return Squared(learning.goals[rows, problem], learning.weights[rows], variance)


def joint_weights(columns: Floats, loss: Loss, prior: Floats) -> tuple[Floats, float]:
    """Return a weight for every column, none negative, with an intercept behind them; and the loss of both.

    Weights have a normal prior of width one around ``prior``: few bags leave them there, many draw them to the best.
    """

    def total(parameters: Floats) -> tuple[float, Floats]:
        value, pull = loss(columns @ parameters[:-1] + parameters[-1])
        away = parameters[:-1] - prior
        return value + float(away @ away) / 2, np.append(columns.T @ pull + away, pull.sum())

    bounds = [(0, None)] * len(prior) + [(None, None)]
    found: Any = minimize(total, np.append(prior, 0.0), jac=True, method="L-BFGS-B", bounds=bounds)
    return np.asarray(found.x), float(found.fun)
