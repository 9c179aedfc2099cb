"""Units of features, learnt from training instances or from a summary of them that was read in blocks."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from sklearn.utils.sparsefuncs import mean_variance_axis

from gmil.engine import resolve
from gmil.engine.resident import as_array, is_tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances
    from gmil.scale import LazyBags

SCALINGS = ("standard", "minmax", "l2", "standard+l2", "minmax+l2", "global")

_ROUNDING_STEPS = 4
"""Columns that differ by no more than so many roundings count as constant."""


class ColumnSummary(NamedTuple):
    """All that a scaling has to know of training instances, each of shape (n_features,)."""

    mean: Floats
    variance: Floats
    low: Floats
    high: Floats
    dtype: np.dtype[Any]


def is_fitted_on_columns(how: str | None) -> bool:
    """Tell whether a scaling looks at training instances at all: no scaling and "l2" do not."""
    return how not in (None, "l2")


def column_units(X: Instances | ColumnSummary, how: str) -> tuple[Floats, Floats]:
    """Return the shift and the divisor of every feature under "standard", "minmax" or "global"."""
    return _COLUMN_UNITS[how](X)


def safe_units(shift: Floats, divisor: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return units of columns in which rounding does not become a feature.

    A constant column is moved to zero, exactly, and one that differs by rounding alone is not stretched. ``low`` and
    ``high`` are the range of every column, in the precision of the data.
    """
    varies = (low < high) & (divisor > rounding_of(low, high))
    return np.where(low < high, shift, low), np.where(varies, divisor, 1)


def rounding_of(low: Floats, high: Floats) -> Floats:
    """Return by how much the values of columns with this range may differ without saying anything."""
    return _ROUNDING_STEPS * np.finfo(low.dtype).eps * np.maximum(np.abs(low), np.abs(high))


def _standard(X: Any) -> tuple[Floats, Floats]:
    if isinstance(X, ColumnSummary):
        mean, variance = X.mean, X.variance
    elif sp.issparse(X):
        mean, variance = mean_variance_axis(X.astype(np.float64), axis=0)
    else:
        deviations = X.astype(np.float64)
        mean = deviations.mean(axis=0)
        deviations -= mean
        variance = np.einsum("ij,ij->j", deviations, deviations) / X.shape[0]
    return safe_units(mean, np.sqrt(variance), *_column_range(X))


def _minmax(X: Any) -> tuple[Floats, Floats]:
    low, high = _column_range(X)
    return safe_units(low, high - low, low, high)


def _global(X: Any) -> tuple[Floats, Floats]:
    low, high = _column_range(X)
    n_features = len(low)
    width = (high.max() - low.min()) * np.sqrt(n_features)
    return np.full(n_features, low.min()), np.full(n_features, width if width > 0 else 1)


def _column_range(X: Any) -> tuple[Floats, Floats]:
    if isinstance(X, ColumnSummary):
        return X.low, X.high
    if sp.issparse(X):
        return X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
    return X.min(axis=0), X.max(axis=0)


_COLUMN_UNITS = {"standard": _standard, "minmax": _minmax, "global": _global}


def rank_knots(X: Floats, most_knots: int = 2000) -> Floats:
    """Return the values of every feature in order, (n_features, n_knots); of many, ``most_knots`` quantiles."""
    if is_tensor(X):
        from gmil.engine.torch.kernels import quantiles_of_columns

        return as_array(quantiles_of_columns(cast("Any", X), most_knots))
    ordered = np.array(X.T, order="C")
    ordered.sort(axis=1)  # along rows, which is much faster than along columns
    n_values = ordered.shape[1]
    if n_values > most_knots:
        ordered = ordered[:, np.linspace(0, n_values - 1, most_knots).round().astype(int)]
    return np.ascontiguousarray(ordered)


def tensor_summary(X: Any) -> ColumnSummary:
    """Return mean, variance and range of every feature of a tensor of PyTorch."""
    from gmil.engine.torch.kernels import column_moments

    low, high = as_array(X.amin(dim=0)), as_array(X.amax(dim=0))
    mean, variance = map(as_array, column_moments(X))
    return ColumnSummary(mean, variance, low, high, low.dtype)


# -------------------------------------------------------------------------------- bags that are read in blocks


def summarize_columns(bags: LazyBags, training: Sequence[Booleans], backend: Backend) -> list[ColumnSummary]:
    """Read all bags once; return mean, variance and range of every feature over each set of training bags."""
    shift = bags.take([0])[0].astype(np.float64)
    function = functools.partial(_column_sums, shift=shift, backend=resolve(backend.name, 1))
    joins = (np.add, np.add, np.minimum, np.maximum)
    sums, squares, low, high = bags.reduce(function, joins, n_threads=backend.n_threads)
    summaries = []
    for inside in training:
        n_instances = int(bags.sizes[inside].sum())
        mean = sums[inside].sum(axis=0) / n_instances
        variance = np.maximum(squares[inside].sum(axis=0) / n_instances - mean**2, 0)
        extremes = low[inside].min(axis=0), high[inside].max(axis=0)
        summaries.append(ColumnSummary(mean + shift, variance, *extremes, bags.dtype))
    return summaries


def _column_sums(block: Bags, shift: Floats, backend: Backend) -> tuple[Any, ...]:
    """Return sums, sums of squares, minima and maxima of bags; sums around a point of the data lose no digits."""
    moved = block.instances - shift
    sizes = block.sizes[:, None]
    return (
        backend.bag_mean(moved, block.offsets) * sizes,
        backend.bag_mean(np.square(moved), block.offsets) * sizes,
        backend.bag_min(block.instances, block.offsets),
        backend.bag_max(block.instances, block.offsets),
    )
