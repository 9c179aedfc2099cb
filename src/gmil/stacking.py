"""Stacking and calibration: weights of left-out decisions, and what makes log-odds of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize, minimize_scalar, nnls
from scipy.special import expit, log_expit, logsumexp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gmil.engine.arrays import Booleans, Floats, Integers

_SHRINKAGE = 0.1
"""How strongly `ridge_weights` draws the weights of models to equal ones, per bag."""


def ridge_weights(left_out: Floats, target: Floats, weights: Floats, noise: float = 1.0) -> Floats:
    """Return the weight of every model, none negative, with the least squared error on bags that were left out.

    Weights are drawn to equal ones: picking one model is worse than averaging, and so is an average of all.

    Parameters
    ----------
    left_out : array of shape (n, n_models)
    target : array of shape (n,)
    weights : array of shape (n,)
    noise : float
        The less of it, the less weights are drawn: what left-out bags tell about them is then sure.
    """
    n, n_models = left_out.shape
    root = np.sqrt(weights * n / weights.sum())
    pull = np.sqrt(_SHRINKAGE * noise * n)
    rows = np.vstack([root[:, None] * left_out, pull * np.eye(n_models)])
    goal = np.concatenate([root * target, np.full(n_models, pull / n_models)])
    found: Any = nnls(rows, goal)[0]
    return np.asarray(found)


def logistic_weights(
    left_out: Floats, positive: Booleans, weights: Floats, prior: Floats, width: float = 1.0
) -> tuple[Floats, float]:
    """Return the weight of every model, none negative, with the intercept of a logistic regression; and its loss.

    Weights have a normal prior: few bags leave them as they are, many draw them to the best.

    Parameters
    ----------
    left_out : array of shape (n, n_models)
    positive : array of shape (n,)
    weights : array of shape (n,)
    prior : array of shape (n_models,)
        The middle of the prior.
    width : float
        Its standard deviation.
    """
    signs = np.where(positive, 1.0, -1.0)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        margins = signs * (left_out @ parameters[:-1] + parameters[-1])
        away = (parameters[:-1] - prior) / width
        pull = -weights * signs * expit(-margins)
        value = away @ away / 2 - weights @ log_expit(margins)
        return float(value), np.append(left_out.T @ pull + away / width, pull.sum())

    bounds = [(0, None)] * len(prior) + [(None, None)]
    found: Any = minimize(loss, np.append(prior, 0.0), jac=True, method="L-BFGS-B", bounds=bounds)
    return np.asarray(found.x), float(found.fun)


def cross_fitted(
    columns: Floats, weights: Floats, folds: Sequence[Booleans], weigh: Callable[[Booleans], Floats]
) -> Floats:
    """Return the weighted sum of columns for every bag, (n,), with weights that were found on bags of other folds.

    Parameters
    ----------
    columns : array of shape (n, n_models)
        Left-out decisions.
    weights : array of shape (n_models + 1,)
        Of all bags, the intercept last: for bags that no fold tests.
    folds : sequence of arrays of shape (n,)
        Which bags each tests.
    weigh : callable
        Returns such weights, found on the bags that it is told, (n,).
    """
    found = columns @ weights[:-1] + weights[-1]
    for test in folds:
        own = weigh(~test)
        found[test] = columns[test] @ own[:-1] + own[-1]
    return np.asarray(found)


def calibrate(decisions: Floats, positive: Booleans, weights: Floats, share: float = 1.0) -> tuple[float, float]:
    """Return slope > 0 and shift such that ``slope * decision + shift`` are log-odds of being positive.

    Parameters
    ----------
    decisions : array of shape (n,)
    positive : array of shape (n,)
    weights : array of shape (n,)
    share : float
        The share of all bags that these are: they are as sure of themselves as all would be.
    """
    n_positive, n_negative = positive.sum() / share, (~positive).sum() / share
    # Soft targets, as Platt's, keep the slope finite where the classes are separated perfectly.
    goal = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    size = float(np.sqrt(np.mean(decisions**2))) or 1.0
    shares = weights / weights.sum()

    def loss(parameters: Floats) -> tuple[float, Floats]:
        slope, shift = np.exp(parameters[0]), parameters[1]
        odds = slope * decisions / size + shift
        value = -shares @ (goal * log_expit(odds) + (1 - goal) * log_expit(-odds))
        pull = shares * (expit(odds) - goal)
        return float(value), np.array([pull @ (slope * decisions / size), pull.sum()])

    found: Any = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=[(-5, 5), (-30, 30)])
    return float(np.exp(found.x[0]) / size), float(found.x[1])


def fit_slope(decisions: Floats, labels: Integers) -> float:
    """Return a > 0 such that a times the decisions are the best log-odds of the labels, with no intercept.

    Parameters
    ----------
    decisions : array of shape (n_bags,) or (n_bags, n_classes)
    labels : array of shape (n_bags,)
        The class number of every bag.
    """
    logits = np.column_stack([np.zeros(len(decisions)), decisions]) if decisions.ndim == 1 else decisions
    size = float(np.sqrt(np.mean(np.square(decisions, dtype=np.float64))))
    if size == 0:
        return 1.0
    n_bags, n_classes = logits.shape
    # Soft targets, as Platt's, keep the slope finite where training bags are separated perfectly.
    counts = np.bincount(labels, minlength=n_classes)
    targets = np.full((n_bags, n_classes), 1.0) / (counts[labels] + n_classes)[:, None]
    targets[np.arange(n_bags), labels] = (counts[labels] + 1) / (counts[labels] + n_classes)

    def loss(log_slope: float) -> float:
        scaled = np.exp(log_slope) / size * logits
        return float(-(targets * (scaled - logsumexp(scaled, axis=1, keepdims=True))).sum())

    best: Any = minimize_scalar(loss, bounds=(-7.0, 7.0), method="bounded")
    return float(np.exp(best.x) / size)
