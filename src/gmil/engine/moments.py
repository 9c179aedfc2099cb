"""Means and deviations of bags from their moments, see `gmil.engine.reference.bag_moments`.

Rounding would become a feature in whatever stretches columns to deviation one: of equal instances there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats, Integers
    from gmil.engine.backends import Backend


def bag_mean(values: Floats, offsets: Integers, backend: Backend) -> Floats:
    """Return the mean over every bag, column by column."""
    return backend.bag_moments(values, offsets)[:, 1].astype(values.dtype, copy=False)


def bag_deviation(values: Floats, offsets: Integers, backend: Backend) -> Floats:
    """Return the root mean squared deviation from the mean over every bag, column by column."""
    sizes, _, squares = np.moveaxis(backend.bag_moments(values, offsets), 1, 0)
    return np.sqrt(squares / sizes).astype(values.dtype, copy=False)


def join_moments(one: Floats, other: Floats) -> Floats:
    """Return the moments of two pieces of a bag together; each is a row of `bag_moments`."""
    size = one[0] + other[0]
    apart = other[1] - one[1]
    share = other[0] / size
    return np.stack([size, one[1] + share * apart, one[2] + other[2] + one[0] * share * np.square(apart)])
