"""From rows, one an instance, to bags and one label a bag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags import Bags, tables
from gmil.bags.parts import checked_names
from gmil.errors import BagValidationError, LabelError
from gmil.io.formats.columns import is_missing, tidy_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from gmil.engine.arrays import Instances, Integers


def rows_to_bags(
    matrix: Instances,
    ids: NDArray[Any],
    labels: NDArray[Any] | None,
    *,
    bag_names: NDArray[Any] | None = None,
    feature_names: Sequence[str] | NDArray[Any] | None = None,
    info: pa.Table | None = None,
) -> tuple[Bags, NDArray[Any] | None]:
    """Group rows into bags in the order of their first appearance.

    ``ids``, ``labels``, ``bag_names`` and ``info`` have one entry per row. Labels must agree within a bag.
    """
    refuse_other_length(len(ids), matrix.shape[0], "bag ids")
    order, offsets, bag_ids = tables.group_rows(ids.astype(np.int64) if tables.are_whole(ids) else ids)
    rows = np.arange(len(ids)) if order is None else order
    if bag_names is not None:
        bag_ids = bag_names[rows[offsets[:-1]]]
    if order is not None:
        matrix = matrix[order]
        info = None if info is None else info.take(order)
    names = None if feature_names is None else checked_names(feature_names, matrix.shape[-1])
    bags = Bags(matrix, offsets, bag_ids, names, info)
    if labels is None:
        return bags, None
    refuse_other_length(len(labels), len(ids), "labels")
    try:
        return bags, _labels_of_bags(labels, rows, bags)
    except LabelError as error:
        error.bags = bags
        raise


def refuse_other_length(found: int, wanted: int, what: str) -> None:
    """Refuse ids or labels that are not one per instance, and no instances at all."""
    if wanted == 0:
        msg = "There are no instances; at least one is needed."
        raise BagValidationError(msg)
    if found != wanted:
        msg = f"There are {found} {what}, but {wanted} instances. Give one per instance."
        raise BagValidationError(msg)


def _labels_of_bags(labels: NDArray[Any], rows: Integers, bags: Bags) -> NDArray[Any]:
    missing = is_missing(labels)
    if missing.any():
        at = int(missing[rows].argmax())
        msg = (
            f"The label of bag {_name_at(at, bags)} is missing (row {rows[at]}; {missing.sum()} rows have none). "
            "Fill it in or drop the bag, or name another column with label=..."
        )
        raise LabelError(msg)
    grouped = tidy_labels(labels)[rows]
    y = grouped[bags.offsets[:-1]]
    differs = grouped != np.repeat(y, bags.sizes)
    if differs.any():
        at = int(differs.argmax())
        first = np.repeat(y, bags.sizes)[at].item()
        msg = (
            f"The label of bag {_name_at(at, bags)} varies: {first!r} and {grouped[at].item()!r} (row "
            f"{rows[at]}). A label belongs to the whole bag. Correct it, or name another with label=..."
        )
        raise LabelError(msg)
    return y


def _name_at(instance: int, bags: Bags) -> str:
    bag = int(np.searchsorted(bags.offsets, instance, side="right")) - 1
    return repr(bag if bags.bag_ids is None else bags.bag_ids[bag].item())


def one_per_row(values: NDArray[Any], ids: NDArray[Any], what: str, *, rows_first: bool = False) -> NDArray[Any]:
    """Return values that come one per bag (or one per row already) as one per row.

    Numbered bags (0, 1, ... or 1, 2, ...) count from the smallest number; other bags come in the order of
    their first appearance. ``rows_first`` settles what one-instance bags mean.
    """
    n_rows = len(ids)
    order, offsets, positions = tables.group_rows(ids)
    n_bags = len(positions)
    if len(values) == n_rows and (rows_first or n_bags != n_rows):
        return values
    if len(values) != n_bags:
        msg = f"{what} has {len(values)} entries, but there are {n_bags} bags and {n_rows} instances. Give one per bag."
        raise BagValidationError(msg)
    rank = _rank_of_bags(positions, what)
    grouped = np.repeat(values[rank], np.diff(offsets))
    if order is None:
        return grouped
    back = np.empty(n_rows, dtype=np.int64)
    back[order] = np.arange(n_rows)
    return grouped[back]


def _rank_of_bags(positions: NDArray[Any], what: str) -> Integers:
    """Return, for bags in the order of their first appearance, where their entry lies."""
    n_bags = len(positions)
    if positions.dtype.kind not in "iuf" or bool(np.all(np.diff(positions) > 0)):
        return np.arange(n_bags)
    smallest = positions.min()
    if smallest in (0, 1) and positions.max() - smallest == n_bags - 1:
        return np.asarray(positions - smallest, dtype=np.int64)
    msg = (
        f"{what} has one entry per bag, but the bag numbers are neither in order nor 1, 2, ..., {n_bags}, "
        "so that no one can tell whose each is. Give one per instance."
    )
    raise BagValidationError(msg)
