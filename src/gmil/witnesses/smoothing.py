"""Scores of neighbours in time or space, averaged where that is asked for."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.distance import cdist

from gmil.errors import BagValidationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from gmil.bags import Bags
    from gmil.engine.arrays import Floats
    from gmil.scale import LazyBags

_PLACES = (("time",), ("x", "y"))
"""The columns of ``instance_info`` that say where an instance is; the first that are there count."""

_SLIDE = "slide"
"""The column that tells slides of a bag apart."""
_FAR = 1e12
_BLOCK_ENTRIES = 1 << 22


def smooth_scores(
    scores: ArrayLike, bags: Bags | LazyBags, bandwidth: float, *, by: Sequence[str] | None = None
) -> Floats:
    """Return scores of instances, averaged with those of their neighbours in time or space.

    Every score becomes the mean of all scores of its bag, each with the weight exp(-d^2 / (2 bandwidth^2)) of its
    distance d. Other bags do not matter.

    Parameters
    ----------
    scores : array of shape (n_instances,) or (n_instances, n_classes)
        As ``score_instances`` returns them.
    bags : Bags or LazyBags
        The bags, with ``instance_info``.
    bandwidth : float
        How far neighbours count, in the unit of the columns; of dates and times in seconds.
    by : sequence of str, optional
        The columns of ``instance_info`` that distances are measured in. By default ``time``, or ``x`` and ``y`` where
        there is no time; a column ``slide`` keeps slides of one bag apart then.

    Returns
    -------
    array of the shape of ``scores``

    Examples
    --------
    >>> from gmil import Bags, smooth_scores
    >>> bags = Bags.from_list([[[1.0], [2.0], [3.0]]], instance_info={"time": [0.0, 1.0, 9.0]})
    >>> smooth_scores([1.0, 0.0, 0.0], bags, bandwidth=1.0).round(2).tolist()
    [0.62, 0.38, 0.0]
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim not in (1, 2) or len(values) != bags.n_instances:
        msg = f"must have one row for each of the {bags.n_instances} instances, got shape {values.shape}."
        raise BagValidationError(msg, parameter="scores")
    if not (np.isfinite(bandwidth) and bandwidth > 0):
        msg = f"must be a number above 0, got {bandwidth!r}."
        raise BagValidationError(msg, parameter="bandwidth")
    places = _places(bags, by) / bandwidth
    parts = [gaussian_means(values[start:stop], places[start:stop]) for start, stop in pairwise(bags.offsets.tolist())]
    return np.concatenate(parts)


def gaussian_means(values: Floats, places: Floats) -> Floats:
    """Return Gaussian means over one bag, where distances are in units of the bandwidth."""
    found = np.empty_like(values)
    rows = max(1, _BLOCK_ENTRIES // len(values))
    for start in range(0, len(values), rows):
        weights = np.exp(cdist(places[start : start + rows], places, "sqeuclidean") / -2)
        found[start : start + rows] = (weights / weights.sum(axis=1, keepdims=True)) @ values
    return found


def _places(bags: Bags | LazyBags, by: Sequence[str] | None) -> Floats:
    """Return where every instance is, (n_instances, n_columns)."""
    info = bags.instance_info
    there = [] if info is None else info.column_names
    choices = _PLACES if by is None else (tuple(by),)
    names = next((names for names in choices if names and set(names) <= set(there)), None)
    if info is None or names is None:
        wanted = " or ".join(" and ".join(map(repr, names)) for names in choices)
        got = f"its columns are {there}" if there else "there is none"
        msg = f"Smoothing needs instance_info with {wanted}, but {got}."
        fix = "Keep the columns when the bags are made, with info=[...]."
        raise BagValidationError(msg, parameter="by", fix=fix)
    columns = [_numbers(np.asarray(info.column(name)), name, bags) for name in names]
    if by is None and _SLIDE in there:
        # Slides of one patient lie in the same frame: a place on one is near to none on another.
        columns.append(np.unique(np.asarray(info.column(_SLIDE)), return_inverse=True)[1] * _FAR)
    return np.column_stack(columns)


def _numbers(column: NDArray[Any], name: str, bags: Bags | LazyBags) -> Floats:
    """Return a column as numbers, dates and durations in seconds; what is missing is refused."""
    if column.dtype.kind in "mM":
        missing = np.isnat(column)
        column = np.where(missing, np.nan, (column - column[0]) / np.timedelta64(1, "s"))
    if column.dtype.kind not in "biuf":
        msg = f"Smoothing needs numbers or times, but {name!r} of instance_info holds {column.dtype} data."
        raise BagValidationError(msg, parameter="by", fix="Convert the column.")
    numbers = column.astype(np.float64)
    missing = ~np.isfinite(numbers)
    if missing.any():
        row = int(missing.argmax())
        bag = int(bags.segment_ids[row])
        msg = f"{name!r} of instance_info is missing for instance {row - int(bags.offsets[bag])} of bag {bag}."
        raise BagValidationError(msg, parameter="by", fix="Fill it in, or leave the instance out.")
    return numbers
