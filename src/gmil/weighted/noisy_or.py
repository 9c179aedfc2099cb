"""Logistic regression of instances under noisy-or, learnt from the labels of bags alone.

An instance is a witness with probability ``q``, and a bag is positive where any of its instances is one:
``P(bag) = 1 - prod(1 - q)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit

if TYPE_CHECKING:
    from gmil.engine.arrays import Booleans, Floats, Integers

STEPS = 60
TOLERANCE = 1e-5
"""A fit ends where a step lowers the loss by less than this share of it."""
LEAST_HAZARD = 1e-12
"""The least hazard of a bag: a bag of instances that are surely none has a probability, too."""


def bag_log_probabilities(scores: Floats, offsets: Integers) -> Floats:
    """Return the log of the probability that a bag has a witness, from the log-odds of its instances.

    >>> np.exp(bag_log_probabilities(np.zeros(3), np.array([0, 1, 3]))).round(3)
    array([0.5 , 0.75])
    """
    hazards = np.maximum(-np.add.reduceat(log_expit(-scores), offsets[:-1], axis=0), LEAST_HAZARD)
    return np.log(-np.expm1(-hazards))


def fit_noisy_or(features: Floats, offsets: Integers, positive: Booleans, weights: Floats) -> tuple[Floats, float]:
    """Return coefficients and intercept that make the labels of bags most likely; coefficients have a normal prior.

    Both classes weigh alike. Where there is one class only, every instance has log-odds of zero.

    Parameters
    ----------
    features : array of shape (n_instances, n_columns)
    offsets : array of shape (n_bags + 1,)
    positive : array of shape (n_bags,)
    weights : array of shape (n_bags,)
    """
    start = np.zeros(features.shape[1] + 1)
    if positive.all() or not positive.any():
        return start[:-1], 0.0
    weights = balanced(weights, positive)
    sizes = np.diff(offsets)
    start[-1] = np.log(np.log(2) / sizes.mean())  # a bag is then about as likely positive as not

    def loss(parameters: Floats) -> tuple[float, Floats]:
        coefficients, intercept = parameters[:-1], parameters[-1]
        scores = np.asarray(features @ coefficients.astype(features.dtype), dtype=np.float64) + intercept
        hazards = np.maximum(-np.add.reduceat(log_expit(-scores), offsets[:-1]), LEAST_HAZARD)
        likelihood = np.where(positive, np.log(-np.expm1(-hazards)), -hazards)
        # The slope of the log-likelihood over the hazard, which grows with every score by the probability of it.
        slopes = weights * np.where(positive, np.exp(-hazards) / -np.expm1(-hazards), -1.0)
        pull = -np.repeat(slopes, sizes) * expit(scores)
        value = coefficients @ coefficients / 2 - weights @ likelihood
        return float(value), np.append(features.T @ pull.astype(features.dtype) + coefficients, pull.sum())

    found: Any = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS, "ftol": TOLERANCE})
    return found.x[:-1], float(found.x[-1])


def balanced(weights: Floats, positive: Booleans) -> Floats:
    """Return weights of mean one of which positive bags have half."""
    totals = np.where(positive, weights[positive].sum(), weights[~positive].sum())
    return np.asarray(weights / totals * len(weights) / 2)
