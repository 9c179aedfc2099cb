"""The specification of sums of the RBF kernel over the points of bags; other kernels are in `gmil.engine.reference`."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gmil.engine.sparse_rows import rows_beside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.engine.backends import Backend

_BLOCK_ROWS = 2048
"""Points of either side that meet at once: 32 MiB of kernel values."""

_TASK_ROWS = 256
"""Rows of a support that a thread takes at a time."""


class Points(NamedTuple):
    """Weighted points of bags; bag i has ``offsets[i]:offsets[i + 1]``, and may have none."""

    features: Instances  # (n_points, n_features)
    weights: Floats  # (n_points,)
    offsets: Integers  # (n_bags + 1,)


def block_rbf_sums(
    left: Points, right: Points, gammas: Sequence[float], sq_distances: Callable[[Instances, Instances], Floats]
) -> Floats:
    """Return `gmil.engine.reference.rbf_sums` by blocks of distances, which ``sq_distances`` computes."""
    sums = np.zeros((len(gammas), len(left.offsets) - 1, len(right.offsets) - 1))
    for columns, right_bags, right_cuts in _blocks(right):
        block = rows_beside(left.features, right.features, columns)
        for rows, left_bags, left_cuts in _blocks(left):
            if left is right and rows.start > columns.start:
                break
            squares = np.asarray(sq_distances(left.features[rows], block), dtype=np.float64)
            values = np.empty_like(squares)
            for total, gamma in zip(sums, gammas, strict=True):
                np.exp(np.multiply(squares, -gamma, out=values), out=values)
                by_left = np.add.reduceat(np.multiply(values, left.weights[rows, None], out=values), left_cuts, axis=0)
                part = np.add.reduceat(by_left * right.weights[columns], right_cuts, axis=1)
                total[left_bags[:, None], right_bags] += part
                if left is right and rows.start < columns.start:
                    total[right_bags[:, None], left_bags] += part.T
    return sums


def rbf_expansion(points: Points, support: Instances, dual: Floats, gamma: float, backend: Backend) -> Floats:
    """Return the weighted sum over the points of every bag of sum_j dual_j exp(-gamma |x - support_j|^2), (n_bags,)."""
    cuts = np.append(np.arange(0, len(dual), _TASK_ROWS), len(dual))
    return np.asarray(backend.rbf_sums(points, Points(support, dual, cuts), [gamma])[0].sum(axis=1))


def own_rbf_sums(points: Points, gamma: float, backend: Backend) -> Floats:
    """Return the weighted sum of the RBF kernel over all pairs of points of every bag with itself, (n_bags,)."""
    found = np.zeros(len(points.offsets) - 1)
    for i, (start, stop) in enumerate(pairwise(points.offsets.tolist())):
        if stop > start:
            size = np.array([0, stop - start])
            bag = Points(points.features[start:stop], points.weights[start:stop], size)
            found[i] = backend.rbf_sums(bag, bag, [gamma])[0, 0, 0]
    return found


def _blocks(points: Points) -> Iterator[tuple[slice, Integers, Integers]]:
    """Yield rows, the bags that have some of them, and where each begins among them; bags may be cut."""
    filled = np.flatnonzero(np.diff(points.offsets))
    begins = points.offsets[filled]
    n_points = points.features.shape[0]
    for start in range(0, n_points, _BLOCK_ROWS):
        stop = min(start + _BLOCK_ROWS, n_points)
        first, last = np.searchsorted(begins, start, side="right") - 1, np.searchsorted(begins, stop, side="left")
        yield slice(start, stop), filled[first:last], np.maximum(begins[first:last] - start, 0)
