"""Solves with the exact curvature of the likelihood, by conjugate gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gmil.methods.gaussian_process.gram import row_values
from gmil.methods.gaussian_process.merging import RowCurvature

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats
    from gmil.methods.gaussian_process.gram import Gram
    from gmil.methods.gaussian_process.laplace import Surroundings
    from gmil.methods.gaussian_process.likelihood import LocalLikelihood

_MAX_ITERATIONS = 150
"""More than these take longer than a dense solve."""

_PRECISION = 1e-9
"""By how much the residual is to fall where the answer is final."""

_GROWTH = 1e5
"""By how much it may rise before: times the rounding of a double this is well below the precision."""


def solve_curved(
    gram: Gram, local: LocalLikelihood, around: Surroundings, values: Floats, precision: float = _PRECISION
) -> Floats:
    """Return (I + W K)^-1 values, W being minus the exact Hessian of the likelihood.

    ``around`` is what the expected curvature leaves, at f or not far from it: the closer, the fewer iterations. The
    residual falls by ``precision``.
    """
    target, curvature = gram.lift(gram.merging.collect(values)), RowCurvature.of(local, gram.merging)
    found = _conjugate_gradients(gram, curvature, around, target, precision)
    if found is None:
        found = gram.solve_densely(curvature, target)
    return values - local.hessian_times(gram.merging.spread(gram.cross @ found))


def _conjugate_gradients(
    gram: Gram, curvature: RowCurvature, around: Surroundings, target: Floats, precision: float
) -> Floats | None:
    """Return h with h + lift(W cross h) = target, W being the curvature; None where that takes too long.

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
        if size <= precision**2 * first:
            return solution
        direction, seen = turned + size / last * direction, seen_turned + size / last * seen
        f = row_values(gram, direction, seen)
        curved = curvature.times(f)
        bend = float(direction @ seen + f @ curved)
        if not size <= _GROWTH**2 * first or bend == 0:
            return None
        solution = solution + size / bend * direction
        residual = residual - size / bend * (direction + gram.lift(curved))
    return None
