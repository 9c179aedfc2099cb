"""Data frames and Parquet files taken apart into plain columns, and put together again.

Frames of any library come in through narwhals and live on as Arrow tables. Heavy libraries are imported where
they are used: ``import gmil`` needs none of them.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.errors import BagValidationError, FormatError, listed

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import DTypeLike, NDArray

    from gmil.engine.arrays import Floats, Integers

FEATURES_COLUMN = "features"
"""The fixed-size-list column that holds all features in gmil's own Parquet files."""
_ROW_NUMBERS = re.compile(r"|Unnamed: 0|__index_level_\d+__")
"""What the index of a data frame is called once it is in a CSV or Parquet file."""


def to_arrow(frame: Any) -> pa.Table:
    """Turn a pandas, polars or pyarrow table, or a mapping of columns, into an Arrow table."""
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, dict):
        return pa.table({name: np.asarray(column) for name, column in frame.items()})
    import narwhals as nw

    try:
        wrapped = nw.from_native(frame, eager_only=True)
    except TypeError:
        msg = f"A table must be a pandas, polars or pyarrow table or a dict of columns, got {type(frame).__name__}."
        raise BagValidationError(msg) from None
    except nw.exceptions.DuplicateError:
        name = Counter(frame.columns).most_common(1)[0][0]
        msg = f"The column {name!r} is there twice. Every column needs a name of its own."
        raise BagValidationError(msg) from None
    try:
        # The index of a pandas frame is no column of it.
        return nw.maybe_reset_index(wrapped).to_arrow()
    except (pa.ArrowException, TypeError) as error:
        # Arrow names the column last.
        reason = "; ".join(str(part) for part in reversed(error.args))
        msg = f"A column of the table holds what is neither numbers nor texts alone: {reason}. Convert or drop it."
        raise BagValidationError(msg) from error


def read_parquet(path: str | os.PathLike[str]) -> pa.Table:
    """Read a Parquet file or folder; a file that is none is one clear error."""
    import pyarrow.parquet as pq

    with reading_parquet(path):
        return pq.read_table(path)


@contextlib.contextmanager
def reading_parquet(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what Arrow says about a damaged file into one clear error that names it."""
    import pyarrow as pa

    try:
        yield
    except (FileNotFoundError, PermissionError):
        raise
    except (pa.ArrowException, OSError) as error:
        msg = f"{path} cannot be read as Parquet: {_first_line(error)} Write the file again."
        raise FormatError(msg) from error


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".") + "."


def column(table: pa.Table, name: str, role: str) -> pa.ChunkedArray:
    """Return a column; an unknown name is an error that lists the names there are."""
    if name not in table.column_names:
        msg = (
            f"The {role} column {name!r} is not in the table; its columns are "
            f"{listed([repr(c) for c in table.column_names], most=12)}. Name the column with {role}=..."
        )
        raise BagValidationError(msg)
    if table.column_names.count(name) > 1:
        msg = f"The {role} column {name!r} is there twice. Every column needs a name of its own."
        raise BagValidationError(msg)
    return table.column(name)


def values(chunked: pa.ChunkedArray) -> NDArray[Any]:
    """Return a column as a NumPy array."""
    return chunked.to_numpy()


def feature_matrix(
    table: pa.Table, features: str | Sequence[str] | None, reserved: set[str]
) -> tuple[Floats, list[str] | None]:
    """Return the features of every row, and their names where every feature is a column of its own.

    ``features`` names one list column or several number columns. By default it is the list column
    ``features`` where there is one, else every number column that is not reserved for another role.
    """
    import pyarrow as pa

    if features is None:
        features = default_features(table.schema, reserved)
    if isinstance(features, str):
        chosen = column(table, features, "features")
        if _is_list(chosen.type):
            return _list_matrix(chosen, features), None
        features = [features]
    matrix_columns = []
    for feature in features:
        chosen = column(table, feature, "features")
        if not is_number(chosen.type):
            msg = (
                f"The features column {feature!r} must hold numbers, got {chosen.type}. "
                "Leave it out with features=[...]."
            )
            raise BagValidationError(msg)
        is_decimal = pa.types.is_decimal(chosen.type)
        matrix_columns.append(values(chosen.cast(pa.float64()) if is_decimal else chosen))
    if not matrix_columns:
        msg = (
            "No features column was found: no number column is left beside the bag and the label. "
            "Name them with features=[...]."
        )
        raise BagValidationError(msg)
    return np.column_stack(matrix_columns), [str(feature) for feature in features]


def parquet_header(
    path: str | os.PathLike[str], features: str | Sequence[str] | None, reserved: set[str]
) -> tuple[int, int, np.dtype[Any]]:
    """Return rows, features and their type of a Parquet file, from its first row and its footer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with reading_parquet(path):
        file = pq.ParquetFile(path)
        first = next(file.iter_batches(1), None)
    if first is None:
        msg = f"{path} has no rows; at least one instance is needed."
        raise FormatError(msg)
    matrix, _ = feature_matrix(pa.Table.from_batches([first]), features, reserved)
    return file.metadata.num_rows, matrix.shape[1], matrix.dtype


def default_features(schema: pa.Schema, reserved: set[str]) -> str | list[str]:
    """Return the list column ``features`` where there is one, else every number column not reserved.

    The index that pandas or R wrote along is no feature: rows that are sorted by class would give the class away.
    """
    if FEATURES_COLUMN in schema.names and _is_list(schema.field(FEATURES_COLUMN).type):
        return FEATURES_COLUMN
    return [
        field.name
        for field in schema
        if field.name not in reserved and not is_row_number(field.name) and is_number(field.type)
    ]


def is_number(kind: pa.DataType) -> bool:
    """Tell whether a column can be a feature: integers, floats, and the decimals that databases write."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_row_number(name: str) -> bool:
    """Tell whether a column is called as the index of a data frame is."""
    return _ROW_NUMBERS.fullmatch(name) is not None


def _is_list(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _list_matrix(chunked: pa.ChunkedArray, name: str) -> Floats:
    import pyarrow as pa
    import pyarrow.compute as pc

    array = chunked.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], type=chunked.type)
    if len(array) == 0:
        msg = f"The features column {name!r} has no rows; at least one instance is needed."
        raise BagValidationError(msg)
    lengths = pc.list_value_length(array)
    if array.null_count or pc.min(lengths).as_py() != pc.max(lengths).as_py():
        wanted = lengths[0].as_py()
        wrong = next(i for i, n in enumerate(lengths.to_pylist()) if n != wanted or n is None)
        msg = (
            f"Row {wrong} of the features column {name!r} has {lengths[wrong].as_py()} numbers, "
            f"but row 0 has {wanted}. All instances must share the same features."
        )
        raise BagValidationError(msg)
    return np.asarray(array.flatten().to_numpy(zero_copy_only=False)).reshape(len(array), -1)


def to_table(
    columns: Mapping[str, Any],
    instances: Floats,
    feature_names: Sequence[str] | None,
    info: pa.Table | None,
) -> pa.Table:
    """Put columns, info and one wide column a feature together."""
    import pyarrow as pa

    names = list(feature_names) if feature_names is not None else [f"f{i}" for i in range(instances.shape[1])]
    uses = Counter([*columns, *names])
    clash = [name for name in names if uses[name] > 1]
    if clash:
        msg = f"The feature {clash[0]!r} has the name of another column. Rename it in feature_names."
        raise BagValidationError(msg)
    parts = {name: pa.array(np.asarray(part)) for name, part in columns.items()}
    parts |= _info_columns(info, set(parts) | set(names))
    parts |= {name: pa.array(instances[:, i]) for i, name in enumerate(names)}
    return pa.table(parts)


def to_list_table(
    columns: Mapping[str, Any],
    instances: Floats,
    info: pa.Table | None,
    dtype: DTypeLike = np.float32,
) -> pa.Table:
    """Put columns, info and one list column of all features together, the layout of gmil's Parquet files."""
    import pyarrow as pa

    flat = pa.array(np.ascontiguousarray(instances, dtype=dtype).ravel())
    parts = {name: pa.array(np.asarray(part)) for name, part in columns.items()}
    parts |= _info_columns(info, {*parts, FEATURES_COLUMN})
    # Lists and numbers that are never missing are read more than twice as fast.
    kind = pa.list_(pa.field("element", flat.type, nullable=False), instances.shape[1])
    parts[FEATURES_COLUMN] = pa.FixedSizeListArray.from_arrays(flat, type=kind)
    schema = pa.schema([pa.field(name, part.type, nullable=name != FEATURES_COLUMN) for name, part in parts.items()])
    return pa.table(parts, schema=schema)


def _info_columns(info: pa.Table | None, taken: set[str]) -> dict[str, pa.ChunkedArray]:
    if info is None:
        return {}
    clash = [name for name in info.column_names if name in taken]
    if clash:
        msg = f"The instance_info column {clash[0]!r} has the name of another column. Rename it in instance_info."
        raise BagValidationError(msg)
    return {name: info.column(name) for name in info.column_names}


def native(table: pa.Table, library: str) -> Any:
    """Turn an Arrow table into a frame of ``library``: "pandas", "polars" or "pyarrow"."""
    if library == "pyarrow":
        return table
    if library == "pandas":
        return table.to_pandas()
    if library == "polars":
        import polars as pl

        return pl.from_arrow(table)
    msg = f"library must be 'pandas', 'polars' or 'pyarrow', got {library!r}."
    raise ValueError(msg)


def group_rows(ids: NDArray[Any]) -> tuple[Integers | None, Integers, NDArray[Any]]:
    """Group rows by id, bags in the order of their first appearance and rows in their order.

    Returns the order of rows (None where they are grouped already), the offsets of the bags and their ids.
    """
    if ids.ndim != 1:
        msg = f"Bag ids must be one per instance in a 1-D array, got shape {ids.shape}."
        raise BagValidationError(msg)
    refuse_missing_ids(ids)
    try:
        unique, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    except TypeError:
        msg = "Bag ids must all be of one kind, strings or numbers, got a mixture. Turn them into strings."
        raise BagValidationError(msg) from None
    by_appearance = np.argsort(first, kind="stable")
    rank = np.empty(len(unique), dtype=np.int64)
    rank[by_appearance] = np.arange(len(unique))
    position = rank[inverse]  # (n_rows,), the bag of every row
    offsets = np.concatenate([[0], np.cumsum(np.bincount(position, minlength=len(unique)))]).astype(np.int64)
    order = None if np.all(np.diff(position) >= 0) else np.argsort(position, kind="stable")
    return order, offsets, unique[by_appearance]


def refuse_missing_ids(ids: NDArray[Any]) -> None:
    """Refuse rows that belong to no bag."""
    missing = missing_entries(ids)
    if missing.any():
        msg = f"Row {int(missing.argmax())} has no bag id ({missing.sum()} rows have none). Drop or fill them."
        raise BagValidationError(msg)


def missing_entries(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which entries of ids or labels are missing: NaN, NaT, None or the NA of a data frame."""
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind in "mM":
        return np.isnat(column)
    if column.dtype.kind == "O":
        return np.array([_is_missing(value) for value in column], dtype=bool)
    return np.zeros(len(column), dtype=bool)


def _is_missing(value: object) -> bool:
    """Tell whether a value is missing: NaN and NaT differ from themselves, NA answers neither yes nor no."""
    if value is None:
        return True
    try:
        return not value == value  # noqa: SIM201
    except TypeError:
        return True
