"""Training of MICA: a linear program for the plane, then the best point of every positive bag, in turns.

Rows are arranged as `gmil.methods.svm.kernels.Arrangement` says: those of positive bags first, cut by ``offsets``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from gmil.errors import GmilError
from gmil.methods.svm.kernels import Plane, first_maxima, hinge
from gmil.methods.svm.training import bag_means, one_of_each

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers

_SOLVERS = (("highs", False), ("highs-ds", True), ("highs-ipm", True))
"""Methods of `scipy.optimize.linprog`, and whether to simplify first. Dense rows have nothing to simplify, and looking
for it takes half the time; but now and then the simplex method gets lost, and the next one does not."""
_FIRST_ROWS = 1000
"""Negative instances that the first program holds; those that it gets wrong follow."""

_MOST_ROWS = 3000
"""Programs of dense rows, up to so many, are left to the compiled simplex method where there is one. It takes a step
for every row that has slack, most of which SciPy's method passes over."""
_MOST_ENTRIES = 1 << 22
"""And up to so many numbers, 32 MiB: it knows nothing of zeros."""

_GAP = 1e-7
"""How far a compiled solution may be from what duality proves, and from its constraints, relative to their size."""

_TOLERANCE = 1e-6
"""Below the feasibility tolerance of the solver nothing counts as violated, or as beyond the margin."""


class SlackCosts(NamedTuple):
    """What a unit of slack costs, next to the 1-norm of the weights."""

    points: Floats  # (n_points,), of the point of every positive bag
    negatives: Floats  # (n_negatives,), of every negative instance


def slack_costs(nu: float, bag_weights: Floats, negative_counts: Floats, balance: bool) -> SlackCosts:
    """Return costs under which the mean slack of positive bags costs nu.

    Balanced, that of negative instances costs as much; else each of them costs as much as a bag. ``bag_weights`` says
    how often each positive bag counts, ``negative_counts`` how many negative instances each row stands for, so that a
    sample costs what all do.
    """
    point = nu / bag_weights.sum()
    return SlackCosts(point * bag_weights, (nu / negative_counts.sum() if balance else point) * negative_counts)


def train_mica(
    X: Instances, offsets: Integers, costs: SlackCosts, max_iter: int, tol: float, backend: Backend
) -> Plane:
    """Train MICA from the means of positive bags; neither step can raise the objective.

    Parameters
    ----------
    X : (n_rows, n_features)
    offsets : (n_positive_bags + 1,)
    costs : SlackCosts
    max_iter : int
    tol : float
        Training ends where the objective falls by less than this share.
    backend : Backend
    """
    inside, negatives = X[: offsets[-1]], X[offsets[-1] :]
    mixture = bag_means(offsets, int(offsets[-1]))
    active: Integers = np.unique(np.linspace(0, negatives.shape[0] - 1, _FIRST_ROWS).astype(np.int64))
    objectives: list[float] = []
    reason = "iterations"
    for _ in range(max_iter):
        points = mixture @ inside
        found = solve_compiled(points, negatives, costs, backend)
        if found is None:
            weights, threshold, active = solve_plane(points, negatives, costs, active)
        else:
            weights, threshold = found
        scores, negative_scores = np.asarray(inside @ weights), np.asarray(negatives @ weights)
        chosen = mixture @ scores
        objectives.append(plane_objective(weights, threshold, chosen, negative_scores, costs))
        if len(objectives) > 1 and objectives[-2] - objectives[-1] <= tol * abs(objectives[-2]):
            reason = "converged"
            break
        best = first_maxima(scores, offsets, backend)
        moved = best_threshold(scores[best], negative_scores, costs)
        # Many points are on the margin exactly, where rounding must not decide. They move too: a point there
        # holds the plane where it is, and its bag may have a better one, so that the objective can fall further.
        fails = chosen - moved < 1 + _TOLERANCE
        if not (fails & (scores[best] > chosen)).any():
            reason = "converged"
            break
        mixture = _replaced(mixture, one_of_each(best, len(scores)), fails)
    return Plane(weights, -threshold, np.array(objectives), reason)


def plane_objective(
    weights: Floats, threshold: float, chosen: Floats, negative_scores: Floats, costs: SlackCosts
) -> float:
    """Return the 1-norm of the weights plus the cost of the slacks of points of positive bags and of negatives."""
    by_points = (costs.points * hinge(chosen - threshold)).sum()
    return float(np.abs(weights).sum() + by_points + costs.negatives @ hinge(threshold - negative_scores))


def solve_compiled(
    points: Any, negatives: Instances, costs: SlackCosts, backend: Backend
) -> tuple[Floats, float] | None:
    """Solve for the plane as `solve_plane` does, in a fraction of the time; return weights and threshold.

    None where the backend has no such kernel, where the program is not for it, or where its solution is not proven.
    """
    kernel = getattr(backend, "margin_program", None)
    n_rows, n_columns = points.shape[0] + negatives.shape[0], points.shape[1] + 1
    if kernel is None or sp.issparse(negatives) or n_rows > _MOST_ROWS or n_rows * n_columns > _MOST_ENTRIES:
        return None
    sides = np.repeat([1.0, -1.0], [points.shape[0], negatives.shape[0]])
    rows, most = np.column_stack([np.concatenate([points, -negatives]), sides]), np.concatenate(costs)
    found = kernel(rows, most)
    if found is None:
        return None
    prices, shares = found
    excess = np.abs(shares @ rows) - np.append(np.ones(n_columns - 1), 0)
    outside = max(float((-shares).max()), float((shares - most).max()), float(excess.max()))
    objective = np.abs(prices[:-1]).sum() + most @ hinge(rows @ prices)
    # No plane costs less than shares that keep to their constraints add up to.
    proven = outside <= _GAP and abs(objective - shares.sum()) <= _GAP * max(1.0, objective)
    return (prices[:-1], -float(prices[-1])) if proven else None


def solve_plane(
    points: Any, negatives: Instances, costs: SlackCosts, active: Integers
) -> tuple[Floats, float, Integers]:
    """Solve for the plane between given points of positive bags and all negatives.

    The program is solved with the ``active`` negatives; those outside that the plane violates join them, until there is
    none. That is the solution of the whole, as the negatives left out have no slack. Returns weights, threshold and the
    active negatives.
    """
    n_negatives = negatives.shape[0]
    while True:
        weights, threshold = _solve_program(points, negatives[active], costs.points, costs.negatives[active])
        margins = threshold - np.asarray(negatives @ weights)
        violated = np.setdiff1d(np.flatnonzero(margins < 1 - _TOLERANCE), active)
        if len(violated) == 0:
            return weights, threshold, np.flatnonzero(margins < 1 + _TOLERANCE) if n_negatives > _FIRST_ROWS else active
        worst = violated[np.argsort(margins[violated])[: max(_FIRST_ROWS, len(active))]]
        active = np.concatenate([active, worst])


def _solve_program(points: Any, negatives: Any, by_point: Floats, by_negative: Floats) -> tuple[Floats, float]:
    """Solve one linear program; weights and threshold are the prices of its dual, which is several times faster.

    The dual has a share for every row, at most what its slack costs. The shares of both sides sum to the same, their
    sum is as large as can be, and no feature differs by more than 1 between the two weighted sums of rows.
    """
    n_points, n_features = points.shape
    n_rows = n_points + negatives.shape[0]
    differences = sp.csc_array(sp.vstack([sp.csr_array(points), -sp.csr_array(negatives)]).T)
    sides = np.concatenate([np.ones(n_points), -np.ones(n_rows - n_points)])
    most = np.concatenate([by_point, by_negative])
    program = {
        "c": -np.ones(n_rows),
        "A_ub": sp.vstack([differences, -differences]),
        "b_ub": np.ones(2 * n_features),
        "A_eq": sides[None, :],
        "b_eq": [0],
        "bounds": np.column_stack([np.zeros(n_rows), most]),
    }
    for method, presolve in _SOLVERS:
        found = linprog(**program, method=method, options={"presolve": presolve})
        if found.x is not None:
            break
    else:
        msg = f"The linear program of MICA was not solved: {found.message} Scale the features, or change nu."
        raise GmilError(msg)
    above, below = np.split(found.ineqlin.marginals, 2)
    return below - above, float(found.eqlin.marginals[0])


def best_threshold(positive_scores: Floats, negative_scores: Floats, costs: SlackCosts) -> float:
    """Return the threshold with the least cost of slacks for given scores; the middle of several.

    The cost is convex and bends where a slack vanishes: at a positive score less one, and at a negative score plus one.
    """
    bends = np.concatenate([positive_scores - 1, negative_scores + 1])
    rises = np.concatenate([costs.points, costs.negatives])
    order = np.argsort(bends, kind="stable")
    slopes = np.cumsum(rises[order]) - costs.negatives.sum()  # to the right of every bend
    level = np.abs(slopes) <= 1e-12 * rises.sum()
    if level.any():
        first = int(level.argmax())
        return float(bends[order[first : first + 2]].mean())
    return float(bends[order[int((slopes > 0).argmax())]])


def _replaced(mixture: Any, best: Any, fails: Booleans) -> Any:
    """Return the mixtures with those that fail replaced by the best instance."""
    keep, change = sp.diags_array((~fails).astype(float)), sp.diags_array(fails.astype(float))
    return sp.csr_array(keep @ mixture + change @ best)
