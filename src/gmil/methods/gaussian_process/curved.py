"""Solves with the exact curvature of the likelihood, by conjugate gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gmil.methods.gaussian_process.gram import values_by

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats
    from gmil.methods.gaussian_process.gram import Gram
    from gmil.methods.gaussian_process.laplace import Surroundings
    from gmil.methods.gaussian_process.likelihood import LocalLikelihood

_MAX_ITERATIONS = 150
"""More than these take longer than a dense solve."""

_PRECISION = 1e-9
"""By how much the residual is to fall."""

_GROWTH = 1e5
"""By how much it may rise before: times the rounding of a double this is well below the precision."""


def solve_curved(gram: Gram, local: LocalLikelihood, around: Surroundings, values: Floats) -> Floats:
    """Return (I + W K)^-1 values, W being minus the exact Hessian of the likelihood.

    ``around`` is what the expected curvature leaves, at f or not far from it: the closer, the fewer iterations.
    """
    target = gram.lift(values)
    found = _conjugate_gradients(gram, local, around, target)
    if found is None:
        found = gram.solve_densely(local, target)
    return values - local.hessian_times(values_by(gram, found, gram.inner @ found))


def _conjugate_gradients(gram: Gram, local: LocalLikelihood, around: Surroundings, target: Floats) -> Floats | None:
    """Return h with h + lift(W cross h) = target; None where that takes too long.

    The system is symmetric in the inner product of K_mm, and so is that with the expected curvature, whose inverse is
    known: they differ by the spread of f within bags alone, and few directions of that matter. Far from the mode some
    of them may curve upwards. That is no harm unless a step on the way is so long that rounding shows.
    """
    solution, residual = np.zeros_like(target), target
    direction = seen = np.zeros_like(target)
    size = first = np.inf
    for iteration in range(_MAX_ITERATIONS):
        turned = around.times(residual)
        seen_turned = gram.inner @ turned
        last, size = size, float(residual @ seen_turned)
        first = size if iteration == 0 else first
        if size <= _PRECISION**2 * first:
            return solution
        direction, seen = turned + size / last * direction, seen_turned + size / last * seen
        f = values_by(gram, direction, seen)
        curved = local.hessian_times(f)
        curvature = float(direction @ seen + f @ curved)
        if not size <= _GROWTH**2 * first or curvature == 0:
            return None
        solution = solution + size / curvature * direction
        residual = residual - size / curvature * (direction + gram.lift(curved))
    return None
