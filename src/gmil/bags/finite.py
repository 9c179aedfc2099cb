"""Every value of a bag must be a finite number, and small enough that sums of squares are finite too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from gmil.errors import MISSING, BagValidationError, count_of

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from gmil.bags.bags import Bags
    from gmil.engine.arrays import Booleans, Instances, Integers

_ROOM = 8.0
"""Distances are made of sums and differences of squares: a value this many times smaller than the root is safe."""


def refuse_non_finite(
    bags: Bags, numbers: Integers | None = None, *, allow_large: bool = False, allow_nan: bool = False
) -> None:
    """Refuse infinity and, unless they are allowed, NaN and values whose squares overflow.

    The first bag, instance and column that holds one is named; ``numbers`` are those of the bags.
    """
    if are_usable(bags.instances):
        return
    stored = _stored(bags.instances)
    wrong = np.isinf(stored) if allow_nan else ~np.isfinite(stored)
    if wrong.any():
        _refuse_values(bags, wrong, numbers)
    if not allow_large:
        _refuse_large(bags, numbers)


def _refuse_values(bags: Bags, wrong: Booleans, numbers: Integers | None) -> None:
    value, place = _first(bags, wrong, numbers)
    missing, found = bool(np.isnan(value)), count_of(int(wrong.sum()), "such value")
    msg = (
        f"X contains {'NaN' if missing else 'infinity'}: in {place} ({found} in all). "
        "Every value must be a finite number."
    )
    if missing:
        fix = "Fill or drop them: gmil.make_pipeline(gmil.Impute(), ...), or gmil.Impute('drop')."
        raise BagValidationError(msg, parameter=MISSING, fix=fix)
    raise BagValidationError(msg, fix="Write a number, or NaN where the value is not known.")


def are_usable(X: Instances) -> bool:
    """Tell, in one pass, whether every value is finite and small enough; a few that are get a False too."""
    flat = _stored(X).ravel()
    # The sum of all squares is not below any of them, and NaN and infinity stay in it.
    with np.errstate(over="ignore", invalid="ignore"):
        # Not by BLAS, whose threads spin for tens of milliseconds when such a small product is done.
        return bool(np.einsum("i,i", flat, flat) < largest_value(X.shape[1], flat.dtype) ** 2)


def largest_value(n_features: int, dtype: DTypeLike) -> float:
    """Return the largest absolute value that bags may hold: about 2e18 (float32) or 2e153 (float64), over sqrt(d).

    >>> f"{largest_value(100, np.float32):.1e}"
    '2.3e+17'
    """
    return float(np.sqrt(float(np.finfo(dtype).max) / max(1, n_features))) / _ROOM


def _refuse_large(bags: Bags, numbers: Integers | None) -> None:
    limit = largest_value(bags.n_features, bags.dtype)
    large = np.abs(_stored(bags.instances)) > limit
    if not large.any():
        return
    value, place = _first(bags, large, numbers)
    wider, found = " or pass float64" if bags.dtype == np.float32 else "", count_of(int(large.sum()), "such value")
    msg = (
        f"X contains a value that is too large: {value:g} in {place} ({found} in all). The "
        f"squares of {bags.n_features} features must add up in {bags.dtype}, so no value may be beyond {limit:.1e}. "
        f"Rescale the column{wider}."
    )
    raise BagValidationError(msg)


def _first(bags: Bags, wrong: Booleans, numbers: Integers | None) -> tuple[float, str]:
    """Return the first stored value that is wrong, and where it is."""
    if sp.issparse(bags.instances):
        entry = int(wrong.argmax())
        row = int(np.searchsorted(bags.instances.indptr, entry, side="right")) - 1
        feature = int(bags.instances.indices[entry])
        value = bags.instances.data[entry]
    else:
        row, feature = (int(i) for i in np.argwhere(wrong)[0])
        value = bags.instances[row, feature]
    bag = int(np.searchsorted(bags.offsets, row, side="right")) - 1
    instance = row - bags.offsets[bag]
    return float(value), f"{name_of_bag(bags, bag, numbers)}, instance {instance}, {name_of_feature(bags, feature)}"


def _stored(X: Any) -> Any:
    return X.data if sp.issparse(X) else X


def name_of_bag(bags: Any, position: int, numbers: Integers | None = None) -> str:
    """Return how an error speaks of a bag: its position, or its number, and, where it has one, its id."""
    number = position if numbers is None else numbers[position]
    return f"bag {number}" if bags.bag_ids is None else f"bag {number} ({bags.bag_ids[position]!s})"


def name_of_feature(bags: Bags, position: int) -> str:
    """Return how an error speaks of a feature: its position and, where it has one, its name."""
    names = bags.feature_names
    return f"column {position}" if names is None else f"column {position} ({names[position]})"
