"""Data frames taken apart into plain columns, and put together again.

Frames of any library come in through narwhals and live on as Arrow tables. Heavy libraries are imported where
they are used: ``import gmil`` needs none of them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.errors import BagValidationError, count_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import DTypeLike, NDArray

    from gmil.engine.arrays import Floats

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
        return pa.table({name: np.asarray(unmasked(column)) for name, column in frame.items()})
    import narwhals as nw

    try:
        wrapped = nw.from_native(frame, eager_only=True)
    except TypeError:
        msg = f"A table must be a pandas, polars or pyarrow table or a dict of columns, got {type(frame).__name__}."
        msg += " Call collect() first." if hasattr(frame, "collect") else ""
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


def id_values(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return bag ids; numbers that are whole become integers."""
    ids = values(column)
    return ids.astype(np.int64) if are_whole(ids) else ids


def are_whole(numbers: NDArray[Any]) -> bool:
    """Tell whether floating-point numbers are integers, of a size that int64 holds exactly."""
    if numbers.dtype.kind != "f":
        return False
    return bool(np.all(np.abs(numbers) < 2**53) and np.all(numbers == np.rint(numbers)))


def values(chunked: pa.ChunkedArray) -> NDArray[Any]:
    """Return a column as a NumPy array, categories as what they stand for, bytes as the texts that they are."""
    import pyarrow as pa

    if pa.types.is_dictionary(chunked.type):
        chunked = chunked.cast(chunked.type.value_type)
    if pa.types.is_binary(chunked.type) or pa.types.is_large_binary(chunked.type):
        try:
            chunked = chunked.cast(pa.large_string())
        except pa.ArrowInvalid as error:
            raise _no_texts() from error
    return chunked.to_numpy()


def texts_of_bytes(values: NDArray[Any]) -> NDArray[np.str_]:
    """Return an array of texts; bytes, as C programs write them, must be UTF-8."""
    if values.dtype.kind != "S":
        return values.astype(np.str_)
    try:
        return np.char.decode(values, "utf-8")
    except UnicodeDecodeError as error:
        raise _no_texts() from error


def _no_texts() -> BagValidationError:
    return BagValidationError("Bag ids and labels that are bytes must be UTF-8 texts, got others. Save them as texts.")


def feature_matrix(table: pa.Table, features: str | Sequence[str]) -> Floats:
    """Return the features of every row, (n_rows, n_features): one list column, or several columns of numbers."""
    dtype = matrix_type(table.schema, features)
    if isinstance(features, str):
        return _list_matrix(table.column(features), features).astype(dtype, copy=False)
    matrix = np.empty((table.num_rows, len(features)), dtype=dtype)
    for i, name in enumerate(features):
        matrix[:, i] = _numbers(table.column(name))
    return matrix


def _numbers(chunked: pa.ChunkedArray) -> NDArray[Any]:
    """Return a column as numbers; those that are missing are NaN, and false and true are 0 and 1."""
    import pyarrow as pa

    if pa.types.is_decimal(chunked.type):
        chunked = chunked.cast(pa.float64())
    if pa.types.is_boolean(chunked.type):
        chunked = chunked.cast(pa.int8())
    return chunked.to_numpy()


def matrix_type(schema: pa.Schema, features: str | Sequence[str]) -> np.dtype[Any]:
    """Return float32 where that holds every number that the columns can have, else float64."""
    import pyarrow as pa

    if isinstance(features, str):
        kinds = [schema.field(features).type.value_type]
    else:
        kinds = [schema.field(name).type for name in features]
    found = [np.dtype(np.float64 if pa.types.is_decimal(kind) else kind.to_pandas_dtype()) for kind in kinds]
    return float_type(np.result_type(*found))


def float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type that numbers of this type have as instances of bags: that of 16 or 32 bits is float32."""
    is_narrow = dtype.kind == "f" and dtype.itemsize <= 4
    return np.dtype(np.float32 if is_narrow else np.float64)


NAMES_KEY = b"gmil_feature_names"
"""Where gmil's Parquet files keep the names of the features: in the metadata of the list column."""


def feature_names(schema: pa.Schema, features: str | Sequence[str]) -> list[str] | None:
    """Return the names of features: of columns, or those a list column carries; foreign metadata is no error."""
    if not isinstance(features, str):
        return list(features)
    field = schema.field(features)
    try:
        names = json.loads((field.metadata or {})[NAMES_KEY])
    except (KeyError, ValueError, RecursionError):
        return None
    width = getattr(field.type, "list_size", -1)
    fits = isinstance(names, list) and len(names) == width
    return [str(name) for name in names] if fits else None


def is_number(kind: pa.DataType) -> bool:
    """Tell whether a column can be a feature: integers, floats, the decimals of databases, and false and true."""
    import pyarrow as pa

    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    return any(test(kind) for test in tests)


def is_nested(kind: pa.DataType) -> bool:
    """Tell whether a column holds several values a row: lists, structs or maps."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_nested(kind))


def refuse_equal_names(names: Sequence[str]) -> None:
    """Refuse two columns of one name."""
    if len(set(names)) == len(names):
        return
    name = Counter(names).most_common(1)[0][0]
    msg = f"The column {name!r} is there twice. Every column needs a name of its own."
    raise BagValidationError(msg)


def is_row_number(name: str) -> bool:
    """Tell whether a column is called as the index of a data frame is."""
    return _ROW_NUMBERS.fullmatch(name) is not None


def is_list(kind: pa.DataType) -> bool:
    """Tell whether a column holds a list of values a row."""
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
            f"Row {wrong} of the features column {name!r} has {count_of(lengths[wrong].as_py(), 'number')}, "
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


def unmasked(values: Any) -> Any:
    """Return an array without a mask: a masked entry is a missing one, never the value beneath it."""
    if isinstance(values, (list, tuple)) and any(isinstance(row, np.ma.MaskedArray) for row in values):
        values = np.ma.array(values)
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.is_masked(values):
        return np.asarray(values)
    kind = values.dtype.kind
    plain = np.array(values.data, dtype=values.dtype if kind in "fmM" else np.float64 if kind in "biu" else object)
    plain[np.ma.getmaskarray(values)] = np.nan if kind in "biuf" else "NaT" if kind in "mM" else None
    return plain


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
