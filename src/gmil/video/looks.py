"""Several looks at the same videos, and how much each of them counts for an event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine.arrays import Booleans, Floats, Integers


class LookWeights(NamedTuple):
    """What makes log-odds of those of several looks: a weighted sum and a shift for every event."""

    weights: Floats  # (n_looks, n_events), none negative
    shifts: Floats  # (n_events,)


def weigh_looks(left_out: Sequence[Floats], y: Integers, weights: Floats) -> LookWeights:
    """Return how much every look counts for every event: what predicts best the videos that were left out.

    The likelihood is that of logistic regression, with a normal prior around equal weights, as wide as these: with few
    videos the looks are averaged, with many the better one has its way, and the sum is as sure as it may be.

    Parameters
    ----------
    left_out : sequence of arrays of shape (n_videos, n_events)
        For every look the log-odds of the training videos from fits without them; NaN where there are none.
    y : array of shape (n_videos, n_events)
    weights : array of shape (n_videos, n_events)
        How much a video counts.
    """
    each = np.stack(left_out)
    known = np.isfinite(each).all(axis=(0, 2))
    found = [
        _weigh(each[:, known, event].T, np.asarray(y)[known, event] > 0, weights[known, event])
        for event in range(each.shape[2])
    ]
    return LookWeights(np.column_stack([own for own, _ in found]), np.array([shift for _, shift in found]))


def _weigh(odds: Floats, positive: Booleans, weights: Floats) -> tuple[Floats, float]:
    """Return the weights of looks, (n_looks,), and the shift for one event; ``odds`` are (n_videos, n_looks)."""
    n_looks = odds.shape[1]
    equal = np.full(n_looks, 1 / n_looks)
    if not positive.any() or positive.all():
        return equal, 0.0  # nothing to learn from
    signs = np.where(positive, 1.0, -1.0)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        margins = signs * (odds @ parameters[:-1] + parameters[-1])
        away = (parameters[:-1] - equal) / equal
        pull = -weights * signs * expit(-margins)
        slopes = np.append(odds.T @ pull + away / equal, pull.sum())
        return float(away @ away / 2 - weights @ log_expit(margins)), slopes

    bounds = [(0, None)] * n_looks + [(None, None)]
    found: Any = minimize(loss, np.append(equal, 0.0), jac=True, method="L-BFGS-B", bounds=bounds)
    return found.x[:-1], float(found.x[-1])
