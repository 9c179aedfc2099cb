"""Numbers behind the colours: percentile ranks, smoothing, and the two ends of a scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata

from gmil.errors import BagValidationError
from gmil.witnesses.smoothing import gaussian_means

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats
    from gmil.heatmaps.places import Places

_ENDS = (1.0, 99.0)
"""The percentiles of scores at the two ends of the colours: one extreme patch does not darken all others."""
_MANY = 100
"""Of fewer patches the ends are the lowest and the highest score."""


def percentile_ranks(scores: Floats) -> Floats:
    """Return the mean rank of every score in per cent of their number; NaN where there is none.

    >>> percentile_ranks(np.array([1.0, 5.0, 5.0, 9.0])).tolist()
    [25.0, 62.5, 62.5, 100.0]
    """
    known, found = np.isfinite(scores), np.full(len(scores), np.nan)
    found[known] = 100 * rankdata(scores[known]) / max(known.sum(), 1)
    return found


def colour_limits(scores: Floats, colors: str = "viridis") -> tuple[float, float]:
    """Return the values at the two ends of the colours; of a diverging map they are as far from 0."""
    finite = scores[np.isfinite(scores)]
    ends = _ENDS if len(finite) >= _MANY else (0, 100)
    low, high = np.percentile(finite, ends).tolist() if len(finite) else (0.0, 1.0)
    if colors == "diverging":
        low, high = -max(abs(low), abs(high)), max(abs(low), abs(high))
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def checked_limits(limits: tuple[float, float]) -> tuple[float, float]:
    """Return two ends that were given; they must differ."""
    low, high = (float(limit) for limit in limits)
    if not high > low:
        msg = f"must be two numbers, the second above the first, got {limits!r}."
        raise BagValidationError(msg, parameter="limits")
    return low, high


def smoothed(scores: Floats, places: Places, bandwidth: float) -> Floats:
    """Return Gaussian means over neighbours; patches without a score give none and get none."""
    if not (np.isfinite(bandwidth) and bandwidth > 0):
        msg = f"must be a number above 0, got {bandwidth!r}."
        raise BagValidationError(msg, parameter="bandwidth")
    known, found = np.isfinite(scores), np.array(scores)
    if known.any():
        corners = np.column_stack([places.x, places.y])[known]
        found[known] = gaussian_means(scores[known], corners / bandwidth)
    return found
