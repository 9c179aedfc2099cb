"""From a table, one instance a row, to bags and labels: shared by frames and all tabular files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gmil import tables
from gmil.datasets.formats.columns import (
    BAG_NAMES,
    LABEL_NAMES,
    choose,
    ids_from_text,
    labels_from_text,
    require,
)
from gmil.datasets.formats.rows import rows_to_bags
from gmil.errors import BagValidationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from gmil.bags import Bags

NAMES_KEY = b"gmil_feature_names"
"""Where gmil's Parquet files keep the names of the features: in the metadata of the list column."""


def choose_roles(
    names: Sequence[str],
    bag: str | None,
    label: str | None,
    features: str | Sequence[str] | None,
    info: Sequence[str],
) -> tuple[str, str | None]:
    """Return the names of the bag column and of the label column, None where there is no label."""
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        msg = f"The column {twice[0]!r} is there twice. Every column needs a name of its own."
        raise BagValidationError(msg)
    named = {*info, *([features] if isinstance(features, str) else features or ())}
    taken = named | ({label} if label is not None else set())
    bag_name = require(choose(names, bag, BAG_NAMES, "bag", taken=taken), names, "bag")
    return bag_name, choose(names, label, LABEL_NAMES, "label", taken=named | {bag_name})


def table_to_bags(
    table: pa.Table,
    *,
    bag: str | None = None,
    label: str | None = None,
    features: str | Sequence[str] | None = None,
    info: Sequence[str] = (),
    from_text: bool = False,
) -> tuple[Bags, NDArray[Any] | None]:
    """Turn a table into bags and labels; ``from_text`` says that texts may be numbers in disguise."""
    bag, label = choose_roles(table.column_names, bag, label, features, info)
    for name in info:
        tables.column(table, name, "info")
    other_ids = [name for name in table.column_names if name.casefold() in BAG_NAMES]
    reserved = {bag, *info, *other_ids} | ({label} if label is not None else set())
    matrix, feature_names = tables.feature_matrix(table, features, reserved)
    ids = _plain(table.column(bag))
    labels = None if label is None else _plain(table.column(label))
    if from_text:
        ids = ids_from_text(ids)
        labels = labels_from_text(labels) if labels is not None and _all_texts(labels) else labels
    carried = _carried(table, {bag, label}, feature_names, features, info)
    if feature_names is None:
        feature_names = kept_names(table.schema, features or tables.FEATURES_COLUMN)
    return rows_to_bags(
        matrix,
        ids,
        labels,
        feature_names=feature_names,
        info=table.select(carried) if carried else None,
    )


def _plain(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return a column as an array, categories as what they stand for."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return tables.values(column)


def _all_texts(labels: NDArray[Any]) -> bool:
    return labels.dtype.kind == "O" and all(isinstance(text, str) and text for text in labels)


def _carried(
    table: pa.Table,
    used: set[str | None],
    feature_names: Sequence[str] | None,
    features: str | Sequence[str] | None,
    info: Sequence[str],
) -> list[str]:
    """Return the columns for ``instance_info``: those named, and those that cannot be features.

    Beside a list column of features, every other column is information about the instance.
    """
    if feature_names is None:
        used = used | {features if isinstance(features, str) else tables.FEATURES_COLUMN}
        return [name for name in table.column_names if name not in used]
    used = used | set(feature_names)
    return [
        field.name
        for field in table.schema
        if field.name in info
        or (field.name not in used and (field.name in BAG_NAMES or not tables.is_number(field.type)))
    ]


def kept_names(schema: pa.Schema, features: str | Sequence[str]) -> list[str] | None:
    """Return the feature names that a list column carries; another writer's metadata is no error."""
    if not isinstance(features, str):
        return None
    field = schema.field(features)
    try:
        names = json.loads((field.metadata or {})[NAMES_KEY])
    except (KeyError, ValueError):
        return None
    width = getattr(field.type, "list_size", -1)
    fits = isinstance(names, list) and len(names) == width
    return [str(name) for name in names] if fits else None
