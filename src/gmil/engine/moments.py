"""Means and deviations of bags, measured from the first instance of every bag.

They lose no digits where features are far from zero, and where the instances of a bag are equal, the mean is what they
are and the deviation is zero, exactly: rounding would become a feature in whatever stretches columns to deviation one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gmil.engine.resident import is_tensor

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats, Integers
    from gmil.engine.backends import Backend


def bag_mean(values: Floats, offsets: Integers, backend: Backend) -> Floats:
    """Return the mean over every bag, column by column."""
    first, moved = _from_first(values, offsets)
    return (first + backend.bag_mean(moved, offsets)).astype(values.dtype, copy=False)


def bag_deviation(values: Floats, offsets: Integers, backend: Backend) -> Floats:
    """Return the root mean squared deviation from the mean over every bag, column by column."""
    return backend.bag_deviation(_from_first(values, offsets)[1], offsets).astype(values.dtype, copy=False)


def moment_table(values: Floats, offsets: Integers, backend: Backend) -> Floats:
    """Return size, mean and sum of squared deviations of every bag, (n_bags, 3, n_features); of a tensor, as one."""
    if is_tensor(values):
        from gmil.engine.torch.kernels import segments

        return cast("Any", segments(offsets, cast("Any", values).device).moments(cast("Any", values)))
    first, moved = _from_first(values, offsets)
    means = backend.bag_mean(moved, offsets)
    sizes = np.broadcast_to(np.diff(offsets)[:, None], means.shape)
    squares = np.square(backend.bag_deviation(moved, offsets)) * sizes
    return np.stack([sizes, first + means, squares], axis=1)


def join_moments(one: Floats, other: Floats) -> Floats:
    """Return the moments of two pieces of a bag together; each is a row of `moment_table`."""
    size = one[0] + other[0]
    apart = other[1] - one[1]
    share = other[0] / size
    return np.stack([size, one[1] + share * apart, one[2] + other[2] + one[0] * share * np.square(apart)])


def _from_first(values: Floats, offsets: Integers) -> tuple[Floats, Floats]:
    """Return the first instance of every bag, and all instances measured from it, in double precision."""
    first = values[offsets[:-1]].astype(np.float64)
    return first, values - np.repeat(first, np.diff(offsets), axis=0)
