"""Intervals of predictions, from errors on bags that were left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gmil.errors import BagValidationError

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats


def conformal_width(errors: Floats, coverage: float) -> Floats:
    """Return half the width of intervals that hold a share of new values, by the errors on bags that were left out.

    It is the smallest error such that at least ``(n + 1) * coverage`` of n errors are no larger: a new error is as
    likely to have any rank among them. Infinite where there are too few.

    Parameters
    ----------
    errors : array of shape (n_bags,) or (n_bags, n_targets)
        Signs do not matter; rows with NaN are left out.
    coverage : float
        Above 0 and below 1.

    Examples
    --------
    >>> float(conformal_width(np.arange(1.0, 20.0), 0.9))
    18.0
    """
    if not 0 < coverage < 1:
        msg = f"must be above 0 and below 1, got {coverage!r}."
        raise BagValidationError(msg, parameter="coverage")
    known = np.abs(errors[~np.isnan(errors).reshape(len(errors), -1).any(axis=1)])
    rank = int(np.ceil((len(known) + 1) * coverage - 1e-9))
    if rank > len(known):
        return np.full(errors.shape[1:], np.inf)
    return np.asarray(np.sort(known, axis=0)[rank - 1])
