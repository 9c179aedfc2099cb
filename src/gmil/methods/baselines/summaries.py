"""A bag as one vector of statistics of its features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.engine import moments
from gmil.methods.shared.sparse_parts import dense

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers

_BLOCK_ENTRIES = 1 << 22
"""How many features of instances are looked at at once, where bags are not larger: 32 MiB in double precision."""


def summarize(X: Instances, offsets: Integers, names: Sequence[str], backend: Backend) -> Floats:
    """Return the named statistics of every feature over every bag, side by side, (n_bags, n_names * n_features)."""
    parts = [
        np.concatenate([STATISTICS[name](block, cut, backend) for name in names], axis=1)
        for block, cut in dense_bags(X, offsets)
    ]
    return np.ascontiguousarray(np.concatenate(parts))


def dense_bags(X: Any, offsets: Integers) -> Iterator[tuple[Floats, Integers]]:
    """Yield dense instances of some whole bags and the offsets of these bags, one block after the other."""
    rows = max(1, _BLOCK_ENTRIES // X.shape[1])
    first = 0
    while first < len(offsets) - 1:
        fitting = int(np.searchsorted(offsets, offsets[first] + rows, side="right")) - 1
        last = max(fitting, first + 1)
        block = X[offsets[first] : offsets[last]]
        yield dense(block), offsets[first : last + 1] - offsets[first]
        first = last


def _min(X: Floats, offsets: Integers, backend: Backend) -> Floats:
    return backend.bag_min(X, offsets)


def _max(X: Floats, offsets: Integers, backend: Backend) -> Floats:
    return backend.bag_max(X, offsets)


def _mean(X: Floats, offsets: Integers, backend: Backend) -> Floats:
    return moments.bag_mean(X, offsets, backend)


def _sd(X: Floats, offsets: Integers, backend: Backend) -> Floats:
    return moments.bag_deviation(X, offsets, backend)


STATISTICS: dict[str, Callable[[Floats, Integers, Backend], Floats]] = {
    "min": _min,
    "mean": _mean,
    "max": _max,
    "sd": _sd,
}
"""Name to the statistic of the features of every bag, (n_bags, n_features); "sd" divides by the size of the bag."""
