"""From a table, one instance a row, to bags and labels: shared by frames and all tabular files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmil.bags.roles import roles_of, rows_of
from gmil.io.formats.columns import ids_from_text, labels_from_text
from gmil.io.formats.rows import rows_to_bags

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from gmil.bags import Bags


def table_to_bags(table: pa.Table, *, from_text: bool = False, **roles: Any) -> tuple[Bags, NDArray[Any] | None]:
    """Turn a table into bags and labels; ``from_text`` says that texts may be numbers in disguise.

    ``roles`` are those of `gmil.bags.roles.roles_of`.
    """
    rows = rows_of(table, roles_of(table.schema, **roles))
    ids, labels = rows.ids, rows.labels
    if from_text:
        ids = ids_from_text(ids)
        labels = labels_from_text(labels) if labels is not None and _all_texts(labels) else labels
    return rows_to_bags(rows.matrix, ids, labels, feature_names=rows.feature_names, info=rows.info)


def _all_texts(labels: NDArray[Any]) -> bool:
    return labels.dtype.kind == "O" and all(isinstance(text, str) and text for text in labels)
