"""Noisy-or regression as it is written down: one fit at a time, by SciPy."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit


def loss(parameters, features, offsets, positive, weights, evidence=None):
    """Return the negative log-posterior of one fit to all bags and its gradient; both classes weigh alike.

    ``evidence`` is how much they weigh together; None is the number of bags.
    """
    totals = np.where(positive, weights[positive].sum(), weights[~positive].sum())
    shares = weights / totals * (evidence or len(weights)) / 2
    scores = features @ parameters[:-1] + parameters[-1]
    hazards = np.maximum(-np.add.reduceat(log_expit(-scores), offsets[:-1]), 1e-12)
    likelihood = np.where(positive, np.log(-np.expm1(-hazards)), -hazards)
    slopes = shares * np.where(positive, 1 / np.expm1(hazards), -1.0)
    pull = -np.repeat(slopes, np.diff(offsets)) * expit(scores)
    value = parameters[:-1] @ parameters[:-1] / 2 - shares @ likelihood
    return value, np.append(features.T @ pull + parameters[:-1], pull.sum())


def fit(features, offsets, positive, weights, evidence=None):
    """Return the coefficients and the intercept, (n_columns + 1,)."""
    start = np.append(np.zeros(features.shape[1]), np.log(np.log(2) / np.diff(offsets).mean()))
    known = features, offsets, positive, weights, evidence
    return minimize(loss, start, known, jac=True, method="L-BFGS-B", options={"ftol": 1e-12, "maxiter": 500}).x


def inside_only(features, offsets, inside):
    """Return the features and offsets of some bags."""
    sizes = np.diff(offsets)
    return features[np.repeat(inside, sizes)], np.concatenate([[0], np.cumsum(sizes[inside])])
