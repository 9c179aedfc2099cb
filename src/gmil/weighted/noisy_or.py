"""Logistic regression of instances under noisy-or, learnt from the labels of bags alone.

An instance is a witness with probability ``q``, and a bag is positive where any of its instances is one:
``P(bag) = 1 - prod(1 - q)``.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import log_expit

from gmil.engine.lbfgs import minimize
from gmil.engine.resident import is_tensor
from gmil.weighted.spread import spread_starts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine.arrays import Booleans, Floats, Integers

STEPS = 60
TOLERANCE = 1e-4
"""A fit ends where a step lowers the loss by less than this share of it."""
MOST_COLUMNS = 2000
"""With more columns a fit starts from zero alone: other starts need variances of all pairs of columns."""
LEAST_HAZARD = 1e-12
"""The least hazard of a bag: a bag of instances that are surely none has a probability, too."""


def bag_log_probabilities(scores: Floats, offsets: Integers) -> Floats:
    """Return the log of the probability that a bag has a witness, from the log-odds of its instances.

    >>> np.exp(bag_log_probabilities(np.zeros(3), np.array([0, 1, 3]))).round(3)
    array([0.5 , 0.75])
    """
    hazards = np.maximum(-np.add.reduceat(log_expit(-scores), offsets[:-1], axis=0), LEAST_HAZARD)
    return np.log(-np.expm1(-hazards))


class Jobs(NamedTuple):
    """Fits of one set of instances: each learns one problem from some of the bags."""

    weights: Floats  # (n_jobs, n_bags), balanced; 0 for bags that a fit does not learn from
    positive: Booleans  # (n_jobs, n_bags)
    start: Floats  # (n_jobs, n_columns + 1)
    can_learn: Booleans  # (n_jobs,): whether there are bags of both classes

    @classmethod
    def of(
        cls, n_columns: int, sizes: Integers, inside: Sequence[Booleans], positive: Booleans, weights: Floats
    ) -> Jobs:
        """Return a job for every choice of bags and every problem, the problems of a choice next to each other."""
        own = np.stack([_weights_of(some, each, weights) for some in inside for each in positive.T])
        start = np.zeros((len(own), n_columns + 1))
        # With this intercept alone a bag is about as likely positive as not.
        levels = [np.log(np.log(2) / sizes[some].mean()) for some in inside]
        can_learn = np.asarray(own.any(axis=1))
        start[:, -1] = np.where(can_learn, np.repeat(levels, positive.shape[1]), 0.0)
        return cls(own, np.tile(positive.T, (len(inside), 1)), start, can_learn)

    def started_at(self, starts: Sequence[Floats]) -> Jobs:
        """Return every job once for each of several starts, (n_jobs, n_columns + 1)."""
        times = (len(starts), 1)
        many = np.tile(self.weights, times), np.tile(self.positive, times), np.concatenate(starts)
        return Jobs(*many, np.tile(self.can_learn, len(starts)))

    def sorted_by_choice(self, found: Floats, n_choices: int) -> list[tuple[Floats, Floats]]:
        """Return coefficients, (n_columns, n_problems), and intercepts, (n_problems,), for every choice of bags."""
        found = np.where(self.can_learn[:, None], found, 0.0).reshape(n_choices, -1, found.shape[1])
        return [(own[:, :-1].T, own[:, -1]) for own in found]


def fit_noisy_or(
    features: Any,
    offsets: Integers,
    inside: Sequence[Booleans],
    positive: Booleans,
    weights: Floats,
    *,
    several_starts: bool = False,
) -> list[tuple[Floats, Floats]]:
    """Return coefficients, (n_columns, n_problems), and intercepts, (n_problems,), for every choice of bags.

    They make the labels of the bags most likely; coefficients have a normal prior, and both classes weigh alike. Where
    there is one class only, every instance has log-odds of zero. All fits go on together: a product with the features
    costs little more for several of them than for one.

    Parameters
    ----------
    features : array, sparse array or torch.Tensor of shape (n_instances, n_columns)
    offsets : array of shape (n_bags + 1,)
    inside : sequence of arrays of shape (n_bags,)
        The bags that a fit learns from.
    positive : array of shape (n_bags, n_problems)
    weights : array of shape (n_bags,)
    several_starts : bool
        Whether to start not from zero alone (`gmil.weighted.spread`), and to take the most likely end: the likelihood
        has several peaks. Of dense features with few columns only.
    """
    jobs = Jobs.of(features.shape[1], np.diff(offsets), inside, positive, weights)
    if several_starts and not sp.issparse(features) and features.shape[1] <= MOST_COLUMNS:
        others = spread_starts(features, offsets, jobs.weights > 0, jobs.positive, jobs.start)
        found = _best(*_fit(features, offsets, jobs.started_at([jobs.start, *others])), len(jobs.start))
    else:
        found, _ = _fit(features, offsets, jobs)
    return jobs.sorted_by_choice(found, len(inside))


def _fit(features: Any, offsets: Integers, jobs: Jobs) -> tuple[Floats, Floats]:
    """Return the parameters of every job, (n_jobs, n_columns + 1), and the negative log-posterior there."""
    if is_tensor(features):
        from gmil.weighted.on_device.noisy_or import fit_on_device

        return fit_on_device(features, offsets, jobs)
    loss = functools.partial(_loss, features, offsets, jobs)
    found = minimize(loss, jobs.start, max_iter=STEPS, tolerance=TOLERANCE)
    return found, loss(np.arange(len(found)), found)[0]


def _best(found: Floats, losses: Floats, n_jobs: int) -> Floats:
    """Return, for every job, the end with the least loss; jobs come once for every start."""
    best = losses.reshape(-1, n_jobs).argmin(axis=0)
    return np.asarray(found.reshape(-1, n_jobs, found.shape[1])[best, np.arange(n_jobs)])


def _loss(features: Any, offsets: Integers, fits: Jobs, jobs: Integers, parameters: Floats) -> tuple[Floats, Floats]:
    """Return the negative log-posterior of some fits, (n_jobs,), and its gradient, (n_jobs, n_columns + 1)."""
    coefficients, positive, weights = parameters[:, :-1], fits.positive[jobs], fits.weights[jobs]
    # In the precision of the features, which is that of the products; sums over bags and instances in double.
    scores = _scores(coefficients.astype(features.dtype), features)  # (n_jobs, n_instances)
    scores += parameters[:, -1:].astype(features.dtype)
    softplus, pull = _softplus_and_slope(scores)
    hazards = np.add.reduceat(softplus, offsets[:-1], axis=1, dtype=np.float64)
    hazards = np.maximum(hazards, LEAST_HAZARD)
    chances = -np.expm1(-hazards)
    likelihood = np.where(positive, np.log(chances), -hazards)
    # The slope of the log-likelihood over the hazard, which grows with every score by the probability of it.
    slopes = weights * np.where(positive, np.exp(-hazards) / chances, -1.0)
    pull *= np.repeat(-slopes.astype(pull.dtype), np.diff(offsets), axis=1)
    value = np.square(coefficients).sum(axis=1) / 2 - (weights * likelihood).sum(axis=1)
    gradient = _times(pull, features) + coefficients
    return value, np.column_stack([gradient, pull.sum(axis=1, dtype=np.float64)])


def _softplus_and_slope(scores: Floats) -> tuple[Floats, Floats]:
    """Return log(1 + exp(x)) and its slope 1 / (1 + exp(-x)), in single precision, too, as exact as it is."""
    small = np.exp(-np.abs(scores))
    total = 1 + small
    # log1p(x) is not vectorised; with u = 1 + x it is log(u) - ((u - 1) - x) / u.
    log1p = np.log(total) - ((total - 1) - small) / total
    return np.maximum(scores, 0) + log1p, np.exp(np.minimum(scores, 0)) / total


def _scores(rows: Floats, features: Any) -> Floats:
    """Return the product of few rows with every instance, (n_rows, n_instances).

    Instances come first: the other way round BLAS takes three times as long for the same numbers.
    """
    if sp.issparse(features):
        return np.ascontiguousarray((features @ rows.T).T)
    return np.ascontiguousarray((features @ _by_four(rows).T).T[: len(rows)])


def _times(rows: Floats, features: Any) -> Floats:
    """Return sums over instances, (n_rows, n_columns)."""
    if sp.issparse(features):
        return np.ascontiguousarray((features.T @ rows.T).T)
    return np.asarray((_by_four(rows) @ features)[: len(rows)])


def _by_four(rows: Floats) -> Floats:
    """Return rows with some of zeros below them: a product of two or three takes longer than one of four."""
    if len(rows) % 4 < 2:
        return rows
    return np.concatenate([rows, np.zeros((-len(rows) % 4, rows.shape[1]), dtype=rows.dtype)])


def _weights_of(inside: Booleans, positive: Booleans, weights: Floats) -> Floats:
    """Return balanced weights of the bags that are inside; none where they are all of one class.

    Together they weigh as much as all bags: beside the prior, a fit to some of the bags has the evidence of a fit to
    all. Else levels of scores would differ, and what some tell of the others would not be what all tell of new bags.
    """
    found = np.zeros(len(weights))
    if positive[inside].any() and not positive[inside].all():
        found[inside] = balanced(weights[inside], positive[inside]) * (len(weights) / inside.sum())
    return found


def balanced(weights: Floats, positive: Booleans) -> Floats:
    """Return weights of mean one of which positive bags have half."""
    totals = np.where(positive, weights[positive].sum(), weights[~positive].sum())
    return np.asarray(weights / totals * len(weights) / 2)
