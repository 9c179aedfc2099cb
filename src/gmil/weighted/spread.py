"""Where models of instances start: the direction in which instances of positive bags spread more than others.

In large bags a few witnesses hardly move the mean of a bag, but they spread it: within positive bags the variance is
larger towards them. From there a fit finds witnesses that it misses from zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import eigh
from scipy.special import logsumexp

from gmil.engine.resident import as_array, beside, is_tensor, take_rows

if TYPE_CHECKING:
    from gmil.engine.arrays import Booleans, Floats, Integers

STEEPNESS = 2.0
"""Standard deviation of the log-odds of instances at the start: few of them stand out."""


def spread_starts(
    features: Any, offsets: Integers, inside: Booleans, positive: Booleans, start: Floats
) -> tuple[Floats, Floats]:
    """Return two starts for every job, (n_jobs, n_columns + 1) each, in both senses of its direction.

    Parameters
    ----------
    features : array or torch.Tensor of shape (n_instances, n_columns)
    offsets : array of shape (n_bags + 1,)
    inside, positive : arrays of shape (n_jobs, n_bags)
        The bags that a job learns from, and which bags are positive; a job without bags of both classes stays as it is.
    start : array of shape (n_jobs, n_columns + 1)
        Coefficients of zero, and intercepts with which bags are about as likely positive as not.
    """
    sizes, sides = np.diff(offsets), np.stack([inside & positive, inside & ~positive])
    scatters = _Scatters(centre_bags(features, offsets), sizes, sides)
    starts = start.copy(), start.copy()
    for job, some in enumerate(inside):
        if not sides[:, job].any(axis=1).all():
            continue
        direction = widest(scatters.of(0, job), scatters.of(1, job), int(sizes[sides[1, job]].sum()))
        values = as_array(features @ beside(direction.astype(np.float32), features))[np.repeat(some, sizes)].astype(
            np.float64
        )
        steep = STEEPNESS / max(float(values.std()), 1e-12)
        for own, sense in zip(starts, (steep, -steep), strict=True):
            own[job, :-1] = sense * direction
            own[job, -1] -= logsumexp(sense * values) - np.log(len(values))  # the mean hazard stays as it was
    return starts


def centre_bags(features: Any, offsets: Integers) -> Any:
    """Return instances less the mean of their bag.

    >>> centre_bags(np.array([[1.0], [3.0], [7.0]]), np.array([0, 2, 3])).ravel().tolist()
    [-1.0, 1.0, 0.0]
    """
    sizes = np.diff(offsets)
    if is_tensor(features):
        from gmil.engine.torch.kernels import segments

        bags = segments(offsets, features.device)
        return features - bags.mean(features).to(features.dtype)[bags.bag_of]
    means = np.add.reduceat(features, offsets[:-1], axis=0) / sizes[:, None].astype(features.dtype)
    return features - np.repeat(means, sizes, axis=0)


class _Scatters:
    """Variances of the instances on each of two sides of every job, in all pairs of columns.

    Jobs of several classes and folds share most bags: bags that are on the same side of every job are summed once,
    unless that would be more sums than sides.
    """

    def __init__(self, centred: Any, sizes: Integers, sides: Booleans) -> None:
        """Take instances less the mean of their bag, and which bags are on each side, (2, n_jobs, n_bags)."""
        self._centred, self._sizes, self._sides = centred, sizes, sides
        patterns, cell_of = np.unique(sides.reshape(-1, len(sizes)), axis=1, return_inverse=True)
        self._cells: list[tuple[Booleans, Floats]] = []
        if patterns.shape[1] <= len(patterns):
            members = (cell_of.ravel() == cell for cell in range(patterns.shape[1]))
            is_on = np.moveaxis(patterns.reshape(*sides.shape[:2], -1), -1, 0)
            self._cells = [(own, self._sum(bags)) for own, bags in zip(is_on, members, strict=True)]

    def of(self, side: int, job: int) -> Floats:
        """Return the variances of one side of a job, (n_columns, n_columns)."""
        bags = self._sides[side, job]
        parts = [table for is_on, table in self._cells if is_on[side, job]] if self._cells else [self._sum(bags)]
        total = np.zeros(parts[0].shape)
        for part in parts:
            total += part
        return total / int(self._sizes[bags].sum())

    def _sum(self, bags: Booleans) -> Floats:
        rows = take_rows(self._centred, np.flatnonzero(np.repeat(bags, self._sizes)))
        return as_array(rows.T @ rows)


def widest(one: Floats, other: Floats, n_others: int) -> Floats:
    """Return the direction of the largest ratio of two tables of variances, (n_columns,).

    The second is that of so many instances.

    >>> widest(np.diag([1.0, 9.0, 4.0]), np.diag([1.0, 2.0, 2.0]), 1000).round(2).tolist()
    [0.0, 0.71, 0.0]
    """
    n_columns = len(one)
    # With few instances the variance is uncertain: so much of it is taken as the same in all directions.
    share = n_columns / (n_columns + n_others)
    level = max(float(np.trace(other)) / n_columns, 1e-12)
    other = (1 - share) * other + share * level * np.eye(n_columns)
    return np.asarray(eigh(one, other, subset_by_index=[n_columns - 1, n_columns - 1])[1][:, 0])
