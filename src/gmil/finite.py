"""Every value of a bag must be a finite number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from gmil.errors import BagValidationError

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Integers


def refuse_non_finite(bags: Bags, numbers: Integers | None = None) -> None:
    """Refuse NaN and infinity, naming the first bag and column that hold one; ``numbers`` are those of the bags."""
    stored = bags.instances.data if sp.issparse(bags.instances) else bags.instances
    # One sum is finite if and only if (overflow aside) every entry is: far cheaper than a mask of the data.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(stored)):
            return
    finite = np.isfinite(stored)
    if finite.all():
        return
    value, place = first_non_finite(bags, numbers)
    msg = (
        f"X contains {'NaN' if np.isnan(value) else 'infinity'}: in {place} ({int((~finite).sum())} such values in "
        "all). Every value must be a finite number. Fill or drop them, for example with "
        "gmil.PerInstance(SimpleImputer())."
    )
    raise BagValidationError(msg)


def first_non_finite(bags: Bags, numbers: Integers | None = None) -> tuple[float, str]:
    """Return the first value that is NaN or infinite, and where it is."""
    stored = bags.instances.data if sp.issparse(bags.instances) else bags.instances
    finite = np.isfinite(stored)
    if sp.issparse(bags.instances):
        entry = int((~finite).argmax())
        row = int(np.searchsorted(bags.instances.indptr, entry, side="right")) - 1
        feature = int(bags.instances.indices[entry])
        value = bags.instances.data[entry]
    else:
        row, feature = (int(i) for i in np.argwhere(~finite)[0])
        value = bags.instances[row, feature]
    bag = int(np.searchsorted(bags.offsets, row, side="right")) - 1
    instance = row - bags.offsets[bag]
    return float(value), f"{name_of_bag(bags, bag, numbers)}, instance {instance}, {_name_of_feature(bags, feature)}"


def name_of_bag(bags: Any, position: int, numbers: Integers | None = None) -> str:
    """Return how an error speaks of a bag: its position, or its number, and, where it has one, its id."""
    number = position if numbers is None else numbers[position]
    return f"bag {number}" if bags.bag_ids is None else f"bag {number} ({bags.bag_ids[position]!s})"


def _name_of_feature(bags: Bags, position: int) -> str:
    names = bags.feature_names
    return f"column {position}" if names is None else f"column {position} ({names[position]})"
