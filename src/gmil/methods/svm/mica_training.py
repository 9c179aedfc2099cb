"""Training of MICA: a linear program for the plane, then the best point of every positive bag, in turns.

Rows are arranged as `gmil.methods.svm.kernels.Arrangement` says: those of positive bags first, cut by ``offsets``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from gmil.methods.svm.kernels import Plane, first_maxima, hinge
from gmil.methods.svm.mica_program import TOLERANCE, Separation, SlackCosts, solve_plane
from gmil.methods.svm.training import bag_means, one_of_each

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers


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
    found: Separation | None = None
    objectives: list[float] = []
    reason = "iterations"
    for _ in range(max_iter):
        found = solve_plane(mixture @ inside, negatives, costs, backend, found)
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
        fails = chosen - moved < 1 + TOLERANCE
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
