"""Scaling of features, fitted on training instances: it decides more than any other choice the paper leaves open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize
from sklearn.utils.sparsefuncs import mean_variance_axis

from gmil.errors import BagValidationError

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats, Instances

SCALINGS = ("standard", "minmax", "l2", "standard+l2", "minmax+l2", "global")


class Scaling(NamedTuple):
    """``(x - shift) / divisor`` per feature, then every instance to unit length where ``unit_length``."""

    shift: Floats | None
    divisor: Floats | None
    unit_length: bool


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


def has_unit_length(how: str | None) -> bool:
    """Tell whether a scaling brings every instance to length 1."""
    return how is not None and how.endswith("l2")


def fit_scaling(X: Instances | ColumnSummary, how: str | None) -> Scaling:
    """Learn a scaling from training instances.

    Parameters
    ----------
    X : array or sparse array of shape (n_instances, n_features), or ColumnSummary
    how : str or None
        "standard" (mean 0, deviation 1), "minmax" (range [0, 1]), "l2" (every instance to length 1), a
        combination of the first two with "+l2", "global" (the range of the whole matrix to [0, 1], then
        divided by the root of the number of features, so that distances are root mean squares), or None.
    """
    if how is None:
        return Scaling(None, None, unit_length=False)
    column_part, _, length_part = how.partition("+")
    if column_part == "l2":
        return Scaling(None, None, unit_length=True)
    shift, divisor = _COLUMN_SCALINGS[column_part](X)
    if sp.issparse(X):
        if length_part:
            msg = f"scale={how!r} moves the origin, which would make sparse instances dense. Use scale='l2'."
            raise BagValidationError(msg)
        # Distances do not see a shift, so sparse instances stay sparse without it.
        return Scaling(None, divisor.astype(X.dtype), unit_length=False)
    return Scaling(shift.astype(X.dtype), divisor.astype(X.dtype), unit_length=bool(length_part))


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


def apply_scaling(X: Instances, scaling: Scaling) -> Instances:
    """Scale instances; ``X`` itself stays as it is."""
    is_ours = False  # whether X is a copy already, which the next step may overwrite
    if scaling.shift is not None:
        X, is_ours = X - scaling.shift, True
    if scaling.divisor is not None:
        X, is_ours = _divide_columns(X, scaling.divisor, in_place=is_ours), True
    if scaling.unit_length:
        X = _unit_length(X, in_place=is_ours)
    return X


def _unit_length(X: Any, *, in_place: bool) -> Any:
    if sp.issparse(X):
        return sp.csr_array(normalize(X))
    lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
    lengths[lengths == 0] = 1  # a zero instance stays zero
    return np.divide(X, lengths[:, None], out=X if in_place else None)


def _divide_columns(X: Any, divisor: Floats, *, in_place: bool) -> Any:
    if not sp.issparse(X):
        return np.divide(X, divisor, out=X if in_place else None)
    divided = X.copy()
    divided.data = divided.data / divisor[divided.indices]
    return divided


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


_COLUMN_SCALINGS = {"standard": _standard, "minmax": _minmax, "global": _global}


class RankScaling(NamedTuple):
    """Every feature replaced by its rank among training instances, by `Backend.column_ranks`."""

    knots: Floats  # (n_features, n_knots), quantiles of the training instances, ascending


def rank_scaling(X: Floats, most_knots: int = 2000) -> RankScaling:
    """Learn ranks from training instances; of more than ``most_knots`` every so manyth is kept."""
    ordered = np.array(X.T, order="C")
    ordered.sort(axis=1)  # along rows, which is much faster than along columns
    n_values = ordered.shape[1]
    if n_values > most_knots:
        ordered = ordered[:, np.linspace(0, n_values - 1, most_knots).round().astype(int)]
    return RankScaling(np.ascontiguousarray(ordered))
