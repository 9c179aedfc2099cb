"""Columns of a table of instances that say something about bags: one value for all instances of a bag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags.finite import name_of_bag
from gmil.bags.tables import missing_entries
from gmil.errors import BagValidationError, count_of

if TYPE_CHECKING:
    from gmil.bags.bags import Bags


def groups_of(bags: Bags, column: str | None, role: str = "group") -> Any:
    """Return the group of every bag from a column of its instances, which must agree; None where there is no column."""
    if column is None:
        return None
    table = bags.instance_info
    if table is None or column not in table.column_names:
        msg = f"The {role} {column!r} names no column of the data, or one of its features."
        raise BagValidationError(msg)
    values = table.column(column).to_numpy(zero_copy_only=False)
    groups = values[bags.offsets[:-1]]
    absent = missing_entries(groups) | (groups == "")
    if absent.any():
        bag = name_of_bag(bags, int(absent.argmax()))
        n_without = count_of(int(absent.sum()), "bag")
        msg = f"The {role} {column!r} of {bag} is missing ({n_without} without one). Fill it in, or drop the bag."
        raise BagValidationError(msg)
    mixed = values != np.repeat(groups, bags.sizes)
    if mixed.any():
        at = int(mixed.argmax())
        number = int(bags.segment_ids[at])
        msg = (
            f"The {role} {column!r} must be one for all instances of a bag, but {name_of_bag(bags, number)} has "
            f"{groups[number]!s} and {values[at]!s}. Correct it, or name another column."
        )
        raise BagValidationError(msg)
    return groups
