"""Laplace's approximation: the most likely values of the instances, and a Gaussian around them.

The values are f = K alpha. Bags see f through their soft maxima alone, and with the Fisher information as curvature
the posterior is that of a Gaussian process on bags with covariance C = R K R', R being the shares of instances in bags.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import cholesky, qr, solve_triangular

from gmil.methods.gaussian_process.curved import solve_curved
from gmil.methods.gaussian_process.gram import times

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats
    from gmil.methods.gaussian_process.gram import Gram
    from gmil.methods.gaussian_process.likelihood import LabelledBags, LocalLikelihood

_MAX_STEPS = 100
_NEAR = 1e-2
"""Below this decrement a step is Newton's own: the expected curvature alone would end slowly."""

_CONVERGED = 1e-10
_SHORTEST = 2.0**-20
_STEP_PRECISION = 1e-6
"""Of a step: the last is far below 1e-4, and what is left of it does not show."""


class Mode(NamedTuple):
    """The most likely f, and what its surroundings look like."""

    alpha: Floats  # (n_instances,)
    local: LocalLikelihood
    objective: float  # log p(y | f) - f' K^-1 f / 2
    n_steps: int


class Surroundings(NamedTuple):
    """The Gaussian around the mode, seen from bags: A are their curvatures, C the prior covariance of their maxima."""

    shared: Floats  # (n_bags, n_basis), the shares times ``cross``
    lifted: Floats  # (n_basis, n_bags), `lift` of the shares
    factor: Floats  # (n_bags, rank): times its transpose the posterior covariance (C^-1 + A)^-1
    curvatures: Floats  # (n_bags,), A
    log_determinant: float  # log |I + A C|

    @property
    def posterior_variances(self) -> Floats:
        """The variance of every soft maximum given all labels, (n_bags,)."""
        return np.asarray((self.factor**2).sum(axis=1))

    def gain_times(self, values: Floats) -> Floats:
        """Return (C + A^-1)^-1 times a matrix (n_bags, any number) or vector: how observed maxima would move others."""
        curvatures = self.curvatures.reshape(-1, *[1] * (values.ndim - 1))
        weighed = curvatures * values
        return weighed - curvatures * (self.factor @ (self.factor.T @ weighed))

    def times(self, weights: Floats) -> Floats:
        """Return the weights of the basis that give the posterior mean where these, (n_basis,), give the prior's."""
        return weights - self.lifted @ self.gain_times(self.shared @ weights)

    @property
    def root(self) -> Floats:
        """What times its transpose is the gain, lifted on both sides; at most square, (n_basis, ...)."""
        sizes = np.sqrt(self.curvatures)
        # The gain is sizes (I - U U') sizes, and the root of I - U U' follows from the eigenvectors of U' U.
        U = sizes[:, None] * self.factor
        eigenvalues, vectors = np.linalg.eigh(U.T @ U)
        shrink = 1 / (1 + np.sqrt(np.clip(1 - eigenvalues, 0, 1)))  # (1 - sqrt(1 - x)) / x
        turned = U @ vectors
        lifted = self.lifted * sizes
        root = lifted - (lifted @ turned) * shrink @ turned.T
        return qr(root.T, mode="economic")[1].T if root.shape[1] > root.shape[0] else root


def surroundings(gram: Gram, local: LocalLikelihood) -> Surroundings:
    """Return the Gaussian around f, with the expected curvature; the work is linear in the number of bags or cubic.

    With C = P P' it is that of I + P' A P, which is as large as there are inducing points; without them, as bags.
    """
    shared, lifted, prior = gram.bag_factor(local)
    balanced = prior.T @ (local.curvatures[:, None] * prior)
    balanced.flat[:: len(balanced) + 1] += 1
    lower = cholesky(balanced, lower=True, overwrite_a=True)
    factor = solve_triangular(lower, prior.T, lower=True).T
    return Surroundings(shared, lifted, factor, local.curvatures, 2 * float(np.log(np.diag(lower)).sum()))


def find_mode(gram: Gram, bags: LabelledBags, near: Floats | None = None) -> Mode:
    """Climb to the most likely f by damped Newton steps, from f = 0 or from values that lie ``near`` it.

    At first the curvature is the expected one, which always points uphill; close to the mode it is the exact one, so
    that the last steps square the error. A step is halved until it climbs.
    """
    mode = _at(gram, bags, np.zeros(int(bags.offsets[-1])))
    if near is not None:
        local = bags.around(near)
        start = _at(gram, bags, _expected_target(local, surroundings(gram, local)))
        mode = max(mode, start, key=lambda mode: mode.objective)
    decrement, around = np.inf, None
    for n_steps in range(1, _MAX_STEPS + 1):
        found = None
        if around is not None and decrement < _NEAR:
            found = _climb(gram, bags, mode, _newton_target(gram, mode, around))
        if found is None:
            around = surroundings(gram, mode.local)
            found = _climb(gram, bags, mode, _expected_target(mode.local, around))
        if found is None:
            break
        decrement = found.objective - mode.objective
        mode = found._replace(n_steps=n_steps)
        if decrement < _CONVERGED:
            break
    return mode


def _at(gram: Gram, bags: LabelledBags, alpha: Floats) -> Mode:
    local = bags.around(times(gram, alpha))
    return Mode(alpha, local, local.log_likelihood - 0.5 * float(alpha @ local.f), 0)


def _expected_target(local: LocalLikelihood, around: Surroundings) -> Floats:
    """Return the alpha of the mode if the likelihood were as curved as expected."""
    pull = local.curvatures * local.averages(local.f) + local.residuals
    weights = pull - local.curvatures * (around.factor @ (around.factor.T @ pull))
    return local.spread(weights) * local.shares


def _newton_target(gram: Gram, mode: Mode, around: Surroundings) -> Floats:
    """Return the alpha of the mode if the likelihood were as curved as it is here; ``around`` is from a step before."""
    return mode.alpha + solve_curved(gram, mode.local, around, mode.local.gradient - mode.alpha, _STEP_PRECISION)


def _climb(gram: Gram, bags: LabelledBags, mode: Mode, target: Floats) -> Mode | None:
    """Go towards ``target``, less far while that does not climb; None where it never does."""
    step, f = target - mode.alpha, mode.local.f
    rise = times(gram, step)
    slope = float((mode.local.gradient - mode.alpha) @ rise)
    if not slope > 0:
        return None
    length = 1.0
    while length > _SHORTEST:
        alpha, local = mode.alpha + length * step, bags.around(f + length * rise)
        objective = local.log_likelihood - 0.5 * float(alpha @ local.f)
        if objective > mode.objective + 1e-4 * length * slope:
            return Mode(alpha, local, objective, mode.n_steps)
        length /= 2
    return None
