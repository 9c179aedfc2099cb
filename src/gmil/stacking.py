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
_STEEPEST = 5.0
"""The logarithm of the largest slope of a calibration curve, for decisions of size one; its negative is the least."""
_PRECISION = 1e-9
"""Of the gradient of a calibration curve: the same curve, to all digits that are shown, on every machine."""


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
    # Steeper or flatter than this no curve can be told from a step, or from a constant.
    middle, spread = float(decisions.mean()), float(decisions.std()) or 1.0
    least, most = np.exp([-_STEEPEST, _STEEPEST]) * spread / size
    design = np.column_stack([(decisions - middle) / spread, np.ones(len(decisions))])
    slope, shift = map(float, _logistic_curve(design, goal, weights))
    if not least <= slope <= most:  # the loss is convex: the best of all others has the slope that is nearest
        slope = float(np.clip(slope, least, most))
        shift = float(_logistic_curve(design[:, 1:], goal, weights, slope * design[:, 0])[0])
    return slope / spread, shift - slope * middle / spread


def _logistic_curve(design: Floats, goal: Floats, weights: Floats, offset: Floats | float = 0.0) -> Floats:
    """Return the parameters with the least cross-entropy to soft targets, by Newton's steps in a trust region."""
    shares = weights / weights.sum()

    def loss(parameters: Floats) -> tuple[float, Floats]:
        odds = design @ parameters + offset
        value = -shares @ (goal * log_expit(odds) + (1 - goal) * log_expit(-odds))
        return float(value), design.T @ (shares * (expit(odds) - goal))

    def curvature(parameters: Floats) -> Floats:
        odds = design @ parameters + offset
        return design.T @ ((shares * expit(odds) * expit(-odds))[:, None] * design)

    start = np.zeros(design.shape[1])
    found: Any = minimize(loss, start, jac=True, hess=curvature, method="trust-exact", options={"gtol": _PRECISION})
    return np.asarray(found.x)


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
