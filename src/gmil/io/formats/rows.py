"""The last step of every reader: from rows, one an instance, to bags and one label a bag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags import Bags, tables
from gmil.bags.parts import checked_names, group_rows
from gmil.bags.roles import roles_of, rows_of
from gmil.errors import BagValidationError, LabelError, count_of

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from gmil.bags.roles import Named, Rows
    from gmil.engine.arrays import Integers


_FLAGS = {"true": 1, "True": 1, "TRUE": 1, "false": 0, "False": 0, "FALSE": 0}


def table_rows(table: pa.Table, named: Named, *, from_text: bool = False) -> Rows:
    """Take a table apart; ``from_text`` says that texts may be numbers in disguise."""
    rows = rows_of(table, roles_of(table.schema, named))
    if not from_text:
        return rows
    labels = rows.labels
    if labels is not None and labels.dtype.kind == "O" and all(isinstance(text, str) and text for text in labels):
        labels = labels_from_text(labels)
    return rows._replace(ids=ids_from_text(rows.ids), labels=labels)


def rows_to_bags(rows: Rows) -> tuple[Bags, NDArray[Any] | None]:
    """Group rows into bags in the order of their first appearance; labels must agree within a bag."""
    matrix, ids, info = rows.matrix, rows.ids, rows.info
    refuse_other_length(len(ids), matrix.shape[0], "bag ids")
    bag_ids: NDArray[Any] | None
    order, offsets, bag_ids = group_rows(ids.astype(np.int64) if tables.are_whole(ids) else ids)
    places = np.arange(len(ids)) if order is None else order
    if rows.bag_names is not None:
        bag_ids = rows.bag_names[places[offsets[:-1]]]
    elif rows.is_numbered and np.array_equal(bag_ids, np.arange(len(offsets) - 1)):
        bag_ids = None
    if order is not None:
        matrix = matrix[order]
        info = None if info is None else info.take(order)
    names = None if rows.feature_names is None else checked_names(rows.feature_names, matrix.shape[-1])
    bags = Bags(matrix, offsets, bag_ids, names, info)
    if rows.labels is None:
        return bags, None
    refuse_other_length(len(rows.labels), len(ids), "labels")
    try:
        return bags, _labels_of_bags(rows.labels, places, bags)
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
        all_of_them = count_of(missing.sum(), "row has", "rows have")
        msg = f"The label of bag {_name_at(at, bags)} is missing (row {rows[at]}; {all_of_them} none)."
        fix = "Fill it in or drop the bag, or name another column with {label}"
        raise LabelError(msg, parameter="label", fix=fix)
    grouped = tidy_labels(labels)[rows]
    y = grouped[bags.offsets[:-1]]
    differs = grouped != np.repeat(y, bags.sizes)
    if differs.any():
        at = int(differs.argmax())
        first = np.repeat(y, bags.sizes)[at].item()
        msg = (
            f"The label of bag {_name_at(at, bags)} varies: {first!r} and {grouped[at].item()!r} (row "
            f"{rows[at]}). A label belongs to the whole bag."
        )
        raise LabelError(msg, parameter="label", fix="Correct it, or name another with {label}")
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
    order, offsets, positions = group_rows(ids)
    n_bags = len(positions)
    if len(values) == n_rows and (rows_first or n_bags != n_rows):
        return values
    if len(values) != n_bags:
        there = f"{count_of(n_bags, 'bag')} and {count_of(n_rows, 'instance')}"
        msg = f"{what} has {count_of(len(values), 'entry', 'entries')}, but there are {there}. Give one per bag."
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


# -------------------------------------------------------------------------------- labels and ids


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where a label is missing: None, NaN, or an empty text."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "O":
        return np.array([v is None or v == "" or v != v for v in values], dtype=bool)
    if values.dtype.kind == "U":
        return np.asarray(values == "")
    return np.zeros(len(values), dtype=bool)


def tidy_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels as strings, as integers where all are whole, else as floats."""
    if labels.dtype.kind == "O":
        labels = np.array(labels.tolist())
    if labels.dtype.kind in "biu":
        return labels.astype(np.int64)
    if labels.dtype.kind == "f":
        whole = np.isfinite(labels).all() and np.all(labels == np.rint(labels))
        return labels.astype(np.int64) if whole else labels.astype(np.float64)
    if labels.dtype.kind in "US":
        return tables.texts_of_bytes(labels)
    msg = f"Labels must be strings or numbers, got {labels.dtype} data."
    raise BagValidationError(msg, parameter="label", fix="Name another with {label}")


def labels_from_text(texts: NDArray[Any]) -> NDArray[Any]:
    """Return labels read from a text file as numbers where every one is a number, or every one true or false."""
    flags = [_FLAGS.get(text) for text in texts]
    if None not in flags:
        return np.array(flags, dtype=np.int64)
    try:
        numbers = np.array([_number(text) for text in texts], dtype=np.float64)
    except ValueError:
        return np.array(texts.tolist(), dtype=np.str_)
    if not np.isfinite(numbers).all():  # a class may well be called "nan" or "inf"
        return np.array(texts.tolist(), dtype=np.str_)
    return tidy_labels(numbers)


def ids_from_text(texts: NDArray[Any]) -> NDArray[Any]:
    """Return ids read from a text file as integers where every one is written as such: not 007."""
    try:
        numbers = [int(text) for text in texts]
        if all(str(n) == text for n, text in zip(numbers, texts, strict=True)):
            return np.array(numbers, dtype=np.int64)
    except (ValueError, TypeError, OverflowError):
        pass
    return texts


def _number(text: str) -> float:
    if "_" in text:  # Python reads 1_0 as 10
        msg = f"{text!r} is no number"
        raise ValueError(msg)
    return float(text)
