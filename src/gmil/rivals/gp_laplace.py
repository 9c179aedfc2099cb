"""Laplace's approximation: the most likely values of the instances, and a Gaussian around them.

The values are f = K alpha. Bags see f through their soft maxima alone, and with the Fisher information as curvature
the posterior is that of a Gaussian process on bags with covariance C = R K R', R being the shares of instances in bags.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats
    from gmil.rivals.gp_gram import Gram
    from gmil.rivals.gp_likelihood import LabelledBags, LocalLikelihood

_MAX_STEPS = 100
_NEAR = 1e-2
"""Below this decrement a step is Newton's own: the expected curvature alone would end slowly."""

_CONVERGED = 1e-10
_SHORTEST = 2.0**-20


class Mode(NamedTuple):
    """The most likely f, and what its surroundings look like."""

    alpha: Floats  # (n_instances,)
    local: LocalLikelihood
    objective: float  # log p(y | f) - f' K^-1 f / 2
    n_steps: int


class Surroundings(NamedTuple):
    """The Gaussian around the mode, seen from bags."""

    lifted: Floats  # (n_basis, n_bags), `lift` of the shares
    covariance: Floats  # (n_bags, n_bags), C, prior covariance of the soft maxima
    root: Floats  # (n_bags, n_bags): root' root = (A^-1 + C)^-1, A the curvatures
    log_determinant: float  # log |I + A C|

    @property
    def precision(self) -> Floats:
        """(A^-1 + C)^-1."""
        return self.root.T @ self.root

    @property
    def posterior_variances(self) -> Floats:
        """The variance of every soft maximum given all labels, (n_bags,)."""
        reduction: Floats = ((self.root @ self.covariance) ** 2).sum(axis=0)
        return np.diag(self.covariance) - reduction


def surroundings(gram: Gram, local: LocalLikelihood) -> Surroundings:
    """Return the Gaussian around f, with the expected curvature."""
    lifted = gram.lift_shares(local)
    covariance = (local.matrix @ gram.cross) @ lifted
    covariance = (covariance + covariance.T) / 2
    sizes = np.sqrt(local.curvatures)
    balanced = sizes[:, None] * covariance * sizes
    balanced.flat[:: len(balanced) + 1] += 1
    lower = cholesky(balanced, lower=True, overwrite_a=True)
    root = solve_triangular(lower, np.diag(sizes), lower=True)
    return Surroundings(lifted, covariance, root, 2 * float(np.log(np.diag(lower)).sum()))


def find_mode(gram: Gram, bags: LabelledBags, near: Floats | None = None) -> Mode:
    """Climb to the most likely f by damped Newton steps, from f = 0 or from values that lie ``near`` it.

    At first the curvature is the expected one, which always points uphill; close to the mode it is the exact one, so
    that the last steps square the error. A step is halved until it climbs.
    """
    mode = _at(gram, bags, np.zeros(int(bags.offsets[-1])))
    if near is not None:
        start = _at(gram, bags, _expected_target(gram, bags.around(near)))
        mode = max(mode, start, key=lambda mode: mode.objective)
    decrement = np.inf
    for n_steps in range(1, _MAX_STEPS + 1):
        target = _newton_target(gram, mode) if decrement < _NEAR else None
        found = None if target is None else _climb(gram, bags, mode, target)
        if found is None:
            found = _climb(gram, bags, mode, _expected_target(gram, mode.local))
        if found is None:
            break
        decrement = found.objective - mode.objective
        mode = found._replace(n_steps=n_steps)
        if decrement < _CONVERGED:
            break
    return mode


def _at(gram: Gram, bags: LabelledBags, alpha: Floats) -> Mode:
    local = bags.around(gram.cross @ gram.lift(alpha))
    return Mode(alpha, local, local.log_likelihood - 0.5 * float(alpha @ local.f), 0)


def _expected_target(gram: Gram, local: LocalLikelihood) -> Floats:
    """Return the alpha of the mode if the likelihood were as curved as expected."""
    around = surroundings(gram, local)
    pull = local.curvatures * (local.matrix @ local.f) + local.residuals
    weights = pull - around.precision @ (around.covariance @ pull)
    return local.spread(weights) * local.shares


def _newton_target(gram: Gram, mode: Mode) -> Floats:
    """Return the alpha of the mode if the likelihood were as curved as it is here."""
    local = mode.local
    return gram.solve_curved(local, local.hessian_times(local.f) + local.gradient)


def _climb(gram: Gram, bags: LabelledBags, mode: Mode, target: Floats) -> Mode | None:
    """Go towards ``target``, less far while that does not climb; None where it never does."""
    step, f = target - mode.alpha, mode.local.f
    rise = gram.cross @ gram.lift(step)
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
