"""Parzen windows around candidate points: how many instances they hold, and how wide they should be (Eq. 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from gmil.engine.backends import resolve
from gmil.engine.distances import distances
from gmil.engine.sparse_rows import rows_beside, sparse_chebyshev

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gmil.engine.arrays import Booleans, Floats, Instances, Integers

KERNELS = ("box", "gaussian")

_BLOCK_ENTRIES = 1 << 22
_MOST_POINTS_OF_A_RULE = 200
_MOST_INSTANCES_OF_A_RULE = 10_000
_HALVINGS = 60


def window_sums(points: Instances, X: Instances, groups: Booleans, kernel: str, width: float) -> tuple[Floats, Floats]:
    """Sum the window around every point over two groups of instances: the two sums of Eq. 2.

    Parameters
    ----------
    points : (n_points, n_features)
        Sparse where the instances are.
    X : (n_instances, n_features)
    groups : (n_instances,)
        Whether an instance is of the first group.
    kernel : {"box", "gaussian"}
    width : float
        The edge of the box, or the standard deviation.

    Returns
    -------
    inside, outside : (n_points,)
        Sums over the first and over the other group.
    """
    sums = np.zeros((points.shape[0], 2))
    member = np.column_stack([groups, ~groups]).astype(np.float64)
    for rows in _row_blocks(points, X):
        heights = window_heights(window_distances(points, X, rows, kernel), kernel, width)  # (n_points, n_rows)
        sums += heights @ member[rows]
    return sums[:, 0], sums[:, 1]


def window_distances(points: Instances, X: Instances, rows: slice, kernel: str) -> Floats:
    """Return distances as the window sees them: the largest difference in a feature, or the Euclidean distance."""
    instances = X[rows].astype(np.float64)
    if kernel == "box":
        if sp.issparse(points):
            return sparse_chebyshev(points, instances)
        return np.asarray(cdist(points, rows_beside(points, instances, slice(None)), "chebyshev"))
    return distances(instances, points, resolve("numpy")).T


def window_heights(far: Floats, kernel: str, width: float) -> Floats:
    """Return phi(distance / width): 1 inside a box and 0 outside, or a Gaussian of height 1."""
    if kernel == "box":
        return (far < width / 2).astype(np.float64)
    return np.exp(-0.5 * np.square(far / width))


def choose_width(
    points: Instances, X: Instances, kernel: str, generator: np.random.Generator, share: float | None = None
) -> float:
    """Return the width at which the window of the median point holds a share of the instances.

    By default that is the root of their number: such neighbours grow without bound while their share goes to zero,
    which is what a density estimate needs. The rule looks at 200 points and 10 000 instances at most, drawn at random.
    """
    n_instances = X.shape[0]
    points = points[_drawn(points.shape[0], _MOST_POINTS_OF_A_RULE, generator)]
    X = X[_drawn(n_instances, _MOST_INSTANCES_OF_A_RULE, generator)]
    far = np.concatenate([window_distances(points, X, rows, kernel) for rows in _row_blocks(points, X)], axis=1)
    share = 1 / np.sqrt(n_instances) if share is None else share
    if kernel == "box":
        nth = min(int(np.ceil(share * far.shape[1])), far.shape[1] - 1)
        width = 2 * float(np.median(np.partition(far, nth, axis=1)[:, nth]))
    else:
        width = _gaussian_width(far, share)
    return width or 2 * float(far.mean()) or 1.0


def _gaussian_width(far: Floats, share: float) -> float:
    """Return the width of the median point, by halving: its share of instances grows with the width."""
    low, high = 0.0, 2 * float(far.max())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        held = float(np.median(window_heights(far, "gaussian", middle).mean(axis=1)))
        low, high = (low, middle) if held >= share else (middle, high)
    return high


def choose_apart(points: Instances, order: Integers, n_targets: int, kernel: str, width: float) -> Integers:
    """Return the first points in ``order`` whose windows do not overlap, ``n_targets`` at most.

    Two boxes overlap where their centres are nearer than an edge in every feature; Gaussians are taken to overlap
    where their centres are nearer than two standard deviations.
    """
    reach = width if kernel == "box" else 2 * width
    chosen: list[int] = []
    free = np.ones(points.shape[0], dtype=bool)
    for place in order:
        if len(chosen) == n_targets:
            break
        if free[place]:
            chosen.append(int(place))
            free &= window_distances(points[place : place + 1], points, slice(None), kernel)[0] >= reach
    return np.array(chosen)


def _row_blocks(points: Instances, X: Instances) -> Iterator[slice]:
    """Return rows of ``X`` that meet all points at once; sparse ones are never made dense."""
    n_columns = points.shape[0] if sp.issparse(points) else max(points.shape)
    rows = max(1, _BLOCK_ENTRIES // n_columns)
    return (slice(start, start + rows) for start in range(0, X.shape[0], rows))


def _drawn(n_rows: int, most: int, generator: np.random.Generator) -> Integers | slice:
    if n_rows <= most:
        return slice(None)
    return np.sort(generator.choice(n_rows, most, replace=False))
