"""The likelihood of diverse density, its gradient and its minimisation, on plain arrays.

A concept is a point t with a scale s for every feature. An instance x is of the concept with the probability
p = exp(-a), a = sum_d s_d^2 (x_d - t_d)^2; a bag is positive unless all of its instances are not.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from gmil.engine import resolve
from gmil.methods.density.lockstep import in_step

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from gmil.engine.arrays import Booleans, Floats, Instances, Integers

    _Function = Callable[[Floats], tuple[float, Floats]]

LEAST_EXPONENT = 1e-9
"""An instance on the concept point has this exponent in place of 0, where a negative one would cost infinity."""

_FAR = 30.0
"""Beyond this exponent 1 - p is 1 in double precision, and the probability of a bag is the sum over its instances."""

_TOLERANCE = 1e-5
"""L-BFGS ends where a step improves the likelihood by less than this share of it."""

_LEAST_GAIN = 1e-3
"""EM-DD ends where a round improves the likelihood by less than this share of it."""


MANY_NUMBERS = 1 << 21
"""Numbers of the instances above which it takes longer to read them than to wait for other searches."""


class Concept(NamedTuple):
    """A point, the scale of every feature, the negative log-likelihood of the training bags, and how it was found."""

    point: Floats  # (n_features,)
    scales: Floats  # (n_features,)
    nll: float = np.inf
    n_iter: int = 0  # iterations of L-BFGS


class LabelledInstances(NamedTuple):
    """Instances of positive bags, then of negative bags.

    Every row holds the features and their squares: with both, exponents and gradients are one product each.
    """

    terms: Instances  # (n_instances, 2 * n_features)
    offsets: Integers  # (n_bags + 1,)
    n_positive: int  # positive bags, which come first

    @property
    def n_positive_instances(self) -> int:
        """The number of instances in positive bags."""
        return int(self.offsets[self.n_positive])

    @property
    def positive(self) -> Booleans:
        """Whether every bag is positive, (n_bags,)."""
        return np.arange(len(self.offsets) - 1) < self.n_positive

    def nearest(self, concept: Concept) -> Integers:
        """Return the instance of every bag that is most probably of the concept, (n_bags,): the E-step."""
        exponents = exponents_of(self.terms, concept.point, concept.scales)
        return resolve("auto", 1).bag_two_min(exponents, self.offsets).where

    def only(self, rows: Integers) -> LabelledInstances:
        """Return one instance of every bag, as bags of one."""
        return LabelledInstances(self.terms[rows], np.arange(len(rows) + 1), self.n_positive)


def labelled_instances(X: Instances, offsets: Integers, positive: Booleans) -> LabelledInstances:
    """Put the instances of positive bags before those of negative bags."""
    order = np.argsort(~positive, kind="stable")
    sizes = np.diff(offsets)
    new_offsets = np.concatenate([[0], np.cumsum(sizes[order])])
    rows = np.arange(X.shape[0]) + np.repeat(offsets[order] - new_offsets[:-1], sizes[order])
    picked = X[rows].astype(np.float64)
    both = [picked, picked**2]
    terms = sp.csr_array(sp.hstack(both, format="csr")) if sp.issparse(picked) else np.hstack(both)
    return LabelledInstances(terms, new_offsets, int(positive.sum()))


def exponents_of(terms: Instances, point: Floats, scales: Floats) -> Floats:
    """Return a of every instance, (n_instances,), from its features and their squares."""
    weights = scales**2
    exponents: Floats = terms @ np.concatenate([-2 * weights * point, weights])
    exponents += weights @ point**2
    return np.maximum(exponents, 0, out=exponents)


def log_not(exponents: Floats) -> Floats:
    """Return log(1 - p) without loss of digits, whether p is near 0 or near 1."""
    small = np.log(-np.expm1(-np.minimum(exponents, 1)))
    return np.where(exponents > 1, np.log1p(-np.exp(-np.maximum(exponents, 1))), small)


def bag_nll(exponents: Floats, offsets: Integers) -> tuple[Floats, Floats]:
    """Return -log P(positive) of every bag, and its derivative by the exponent of every instance.

    Far from the concept P is the sum of the probabilities, taken relative to the largest of them: there it would
    underflow, and the gradient with it.
    """
    starts, sizes = offsets[:-1], np.diff(offsets)
    exponents = np.maximum(exponents, LEAST_EXPONENT)
    nearest = np.minimum.reduceat(exponents, starts)
    relative = np.exp(np.repeat(nearest, sizes) - exponents)
    sums = np.add.reduceat(relative, starts)
    log_none = np.add.reduceat(log_not(exponents), starts)  # log of the product of 1 - p
    far = nearest > _FAR
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # of far bags, which are not used
        nll = np.where(far, nearest - np.log(sums), -np.log(-np.expm1(log_none)))
        close_weights = 1 / (np.repeat(np.expm1(-log_none), sizes) * np.expm1(exponents))
    weights = np.where(np.repeat(far, sizes), relative / np.repeat(sums, sizes), close_weights)
    return nll, weights


def nll_and_gradient(parameters: Floats, data: LabelledInstances) -> tuple[float, Floats]:
    """Return the negative log-likelihood of all bags and its gradient by the point and the scales."""
    exponents = exponents_of(data.terms, *_halves(parameters))
    total, weights = _nll_and_weights(exponents, data)
    return total, _gradient(parameters, weights @ data.terms, weights)


def nlls_and_gradients(parameters: Floats, data: LabelledInstances) -> tuple[Floats, Floats]:
    """Return the same for several concepts, (n_concepts,) and (n_concepts, 2 * n_features), by products of matrices."""
    points, scales = np.split(parameters, 2, axis=1)
    squares = scales**2
    exponents = np.concatenate([-2 * squares * points, squares], axis=1) @ data.terms.T
    exponents += (squares * points**2).sum(axis=1)[:, None]
    found = [_nll_and_weights(np.maximum(own, 0, out=own), data) for own in exponents]
    weights = np.array([own for _, own in found])
    sums = weights @ data.terms
    gradients = [_gradient(*parts) for parts in zip(parameters, sums, weights, strict=True)]
    return np.array([nll for nll, _ in found]), np.array(gradients)


def _nll_and_weights(exponents: Floats, data: LabelledInstances) -> tuple[float, Floats]:
    """Return the negative log-likelihood, and its derivative by the exponent of every instance."""
    inside = data.n_positive_instances
    nll, positive_weights = bag_nll(exponents[:inside], data.offsets[: data.n_positive + 1])
    outside = np.maximum(exponents[inside:], LEAST_EXPONENT)
    with np.errstate(over="ignore"):
        weights = np.concatenate([positive_weights, -1 / np.expm1(outside)])
    return float(nll.sum() - log_not(outside).sum()), weights


def _gradient(parameters: Floats, sums: Floats, weights: Floats) -> Floats:
    """Return the gradient by the point and the scales, from the weighted sums of features and of squares."""
    point, scales = _halves(parameters)
    by_features, by_squares = _halves(sums)
    mass = weights.sum()
    by_point = -2 * scales**2 * (by_features - point * mass)
    by_scales = 2 * scales * (by_squares - 2 * point * by_features + point**2 * mass)
    return np.concatenate([by_point, by_scales])


def _halves(values: Floats) -> tuple[Floats, Floats]:
    middle = len(values) // 2
    return values[:middle], values[middle:]


def maximise_likelihood(start: Concept, data: LabelledInstances, max_iter: int) -> Concept:
    """Improve point and scales by L-BFGS; its line search never accepts a concept worse than ``start``."""
    return likelihood_path(start, data, {max_iter})[max_iter]


def likelihood_path(
    start: Concept, data: LabelledInstances, stops: Collection[int], function: _Function | None = None
) -> dict[int, Concept]:
    """Improve point and scales by L-BFGS; return the concepts that it has after so many iterations at most.

    ``function``, if given, is `nll_and_gradient` of these data, of whatever rounding.
    """
    met: list[Floats] = []
    function = functools.partial(nll_and_gradient, data=data) if function is None else function

    def keep(x: Floats) -> None:
        met.append(np.copy(x) if len(met) + 1 in stops else x[:0])

    found = minimize(
        function,
        np.concatenate([start.point, start.scales]),
        jac=True,
        method="L-BFGS-B",
        callback=keep if len(stops) > 1 else None,
        options={"maxiter": max(stops), "ftol": _TOLERANCE},
    )
    ended = Concept(*_halves(found.x), float(found.fun), start.n_iter + int(found.nit))
    return {n: ended if n >= found.nit else _reached(met[n - 1], data, start.n_iter + n) for n in stops}


def likelihood_paths(
    starts: Sequence[Concept], data: LabelledInstances, stops: Collection[int]
) -> list[dict[int, Concept]]:
    """Return `likelihood_path` of every start, where all go in step."""
    function = functools.partial(nlls_and_gradients, data=data)
    return in_step(lambda start, own: likelihood_path(start, data, stops, own), starts, function)


def _reached(parameters: Floats, data: LabelledInstances, n_iter: int) -> Concept:
    return Concept(*_halves(parameters), nll_and_gradient(parameters, data)[0], n_iter)


def concept_nll(concept: Concept, data: LabelledInstances) -> float:
    """Return the negative log-likelihood of the bags."""
    return nll_and_gradient(np.concatenate([concept.point, concept.scales]), data)[0]


def alternate(start: Concept, data: LabelledInstances, max_iter: int, max_rounds: int) -> Concept:
    """Run EM-DD: choose an instance from every bag, fit a concept to them, and so on while that helps.

    What must improve is the likelihood of the instances chosen. It may get worse when negative bags choose anew; then
    the concept before is kept. The likelihood returned is that of whole bags.
    """
    best, rows = start, data.nearest(start)
    least = concept_nll(best, data.only(rows))
    for _ in range(max_rounds):
        found = maximise_likelihood(best, data.only(rows), max_iter)
        chosen = data.nearest(found)
        nll = concept_nll(found, data.only(chosen))
        if nll >= least:
            break
        settled = np.array_equal(chosen, rows) or nll > least - _LEAST_GAIN * abs(least)
        best, rows, least = found, chosen, nll
        if settled:
            break
    return best._replace(nll=concept_nll(best, data))
