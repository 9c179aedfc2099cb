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
    centred, sizes = centre_bags(features, offsets), np.diff(offsets)
    starts = start.copy(), start.copy()
    for job, (some, which) in enumerate(zip(inside, positive, strict=True)):
        if not (some & which).any() or not (some & ~which).any():
            continue
        direction = widest(centred, *(np.repeat(own, sizes) for own in (some & which, some & ~which)))
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


def widest(centred: Any, ours: Booleans, theirs: Booleans) -> Floats:
    """Return the direction of the largest ratio of the variances of two sets of instances, (n_columns,).

    >>> X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 3.0], [0.0, -3.0], [1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    >>> int(np.abs(widest(X, np.arange(7) < 4, np.arange(7) >= 4)).argmax())
    1
    """
    one, other = _scatter(centred, ours), _scatter(centred, theirs)
    n_columns = len(one)
    # With few instances the variance is uncertain: so much of it is taken as the same in all directions.
    share = n_columns / (n_columns + int(theirs.sum()))
    level = max(float(np.trace(other)) / n_columns, 1e-12)
    other = (1 - share) * other + share * level * np.eye(n_columns)
    return np.asarray(eigh(one, other, subset_by_index=[n_columns - 1, n_columns - 1])[1][:, 0])


def _scatter(centred: Any, chosen: Booleans) -> Floats:
    rows = take_rows(centred, np.flatnonzero(chosen))
    return as_array(rows.T @ rows).astype(np.float64) / max(int(chosen.sum()), 1)
