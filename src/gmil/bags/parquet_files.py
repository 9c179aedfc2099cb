"""Parquet files: every page is written with a checksum, and checked against it where it has one."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmil.bags import tables
from gmil.errors import FormatError, GmilError
from gmil.safety.guard import first_line, opening, refuse_false_size, refuse_impossible_size

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    import numpy as np
    import pyarrow as pa

_SMALL = 1 << 28  # bytes that any file may claim: a column of one value takes nearly no place


def open_parquet(path: str | os.PathLike[str], metadata: Any = None, coded: Sequence[str] = ()) -> Any:
    """Return a ``pyarrow.parquet.ParquetFile`` whose names are texts and whose size can be true.

    Texts of the columns ``coded`` are read as numbers and the text of each.
    """
    import pyarrow.parquet as pq

    with reading_parquet(path):
        file = pq.ParquetFile(path, metadata=metadata, read_dictionary=list(coded), page_checksum_verification=True)
        _ = file.schema_arrow.names  # they are decoded here, and not later
        _refuse_more_than(path, "the table", _claimed(file.metadata))
    return file


def read_parquet(path: str | os.PathLike[str]) -> pa.Table:
    """Read a Parquet file or folder; a file that is none is one clear error."""
    import pyarrow.parquet as pq

    if not Path(path).is_dir():
        refuse_impossible_size(Path(path), "the table", _claimed(open_parquet(path).metadata), _SMALL)
        return read_columns(path)
    for part in Path(path).rglob("*.parquet"):
        open_parquet(part)
    with reading_parquet(path):
        schema = pq.ParquetDataset(path).schema
        texts = _texts_of(schema, schema.names)
        coded = pq.read_table(path, read_dictionary=texts, page_checksum_verification=True)
        return _decoded(path, coded, schema, texts)


def read_columns(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    groups: range | None = None,
    metadata: Any = None,
) -> pa.Table:
    """Read columns of some row groups, by default all of all; their texts are UTF-8, and no longer than can be true."""
    schema = read_schema(path, metadata)
    names = schema.names if columns is None else list(columns)
    texts = _texts_of(schema, names)
    file = open_parquet(path, metadata, texts)
    with reading_parquet(path):
        chosen = range(file.num_row_groups) if groups is None else groups
        return _decoded(path, file.read_row_groups(chosen, columns=names).select(names), schema, texts)


def _texts_of(schema: pa.Schema, names: Sequence[str]) -> list[str]:
    """Return those of some columns that hold texts; every column needs a name of its own."""
    tables.refuse_equal_names(schema.names)
    return [name for name in names if _is_text(schema.field(name).type)]


def _decoded(path: str | os.PathLike[str], coded: pa.Table, schema: pa.Schema, texts: Sequence[str]) -> pa.Table:
    """Return a table with its texts in place of their numbers, as ``schema`` has them, if they fit the file."""
    import pyarrow as pa

    coded.validate(full=True)
    for name in texts:
        _refuse_more_than(path, f"the column {name!r}", _decoded_size(coded.column(name)))
    fields = [schema.field(name) for name in coded.column_names]
    return coded.cast(pa.schema(fields, metadata=coded.schema.metadata))


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):  # categories; wherever they are decoded, each takes its whole text
        kind = kind.value_type
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(kind) for test in tests)


def _decoded_size(coded: pa.ChunkedArray) -> int:
    """Return the bytes of texts of which a file may store one for many rows."""
    import pyarrow.compute as pc

    lengths = [pc.binary_length(chunk.dictionary).take(chunk.indices) for chunk in coded.chunks]
    return sum(pc.sum(length).as_py() or 0 for length in lengths)


def _claimed(metadata: Any) -> int:
    """Return about how many bytes the rows of a file take in memory, as its footer says."""
    leaves = [metadata.schema.column(i) for i in range(metadata.num_columns)]
    widths = [max(4, leaf.length or 0) for leaf in leaves]  # values of one length may be long
    in_lists = [i for i, leaf in enumerate(leaves) if leaf.max_repetition_level]
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)] if in_lists else []
    listed = sum(widths[i] * group.column(i).num_values for group in groups for i in in_lists)
    return metadata.num_rows * (sum(widths) - sum(widths[i] for i in in_lists)) + listed


def _refuse_more_than(path: str | os.PathLike[str], what: str, n_bytes: int) -> None:
    """Refuse what a file of this size cannot hold; a little may be anything, for equal values take nearly no place."""
    if n_bytes > _SMALL:
        files = Path(path).rglob("*") if Path(path).is_dir() else [Path(path)]
        refuse_false_size(Path(path), what, n_bytes, sum(file.stat().st_size for file in files))


def read_schema(path: str | os.PathLike[str], metadata: Any = None) -> pa.Schema:
    """Return the columns of a file."""
    return open_parquet(path, metadata).schema_arrow


def write_parquet(table: pa.Table, path: str | os.PathLike[str], **how: Any) -> None:
    """Write a table; ``how`` is passed on to ``pyarrow.parquet.write_table``."""
    import pyarrow.parquet as pq

    pq.write_table(table, path, write_page_checksum=True, **how)


def parquet_writer(path: str | os.PathLike[str], schema: pa.Schema, **how: Any) -> Any:
    """Return a ``pyarrow.parquet.ParquetWriter``, for a file that is written a table at a time."""
    import pyarrow.parquet as pq

    return pq.ParquetWriter(path, schema, write_page_checksum=True, **how)


@contextlib.contextmanager
def reading_parquet(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what Arrow says about a damaged file into one clear error that names it; a pipe is not opened."""
    import pyarrow as pa

    try:
        with opening(Path(path)):
            yield
    except GmilError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        msg = f"{path} cannot be read as Parquet: {first_line(error)}. Write the file again."
        raise FormatError(msg) from error


def parquet_header(path: str | os.PathLike[str], features: str | Sequence[str]) -> tuple[int, int, np.dtype[Any]]:
    """Return rows, features and their type of a Parquet file, from its first row and its footer."""
    import pyarrow as pa

    file = open_parquet(path)
    columns = [features] if isinstance(features, str) else list(features)
    with reading_parquet(path):
        first = next(file.iter_batches(1, columns=columns), None)
    if first is None:
        msg = f"{path} has no rows; at least one instance is needed."
        raise FormatError(msg)
    matrix = tables.feature_matrix(pa.Table.from_batches([first]), features)
    return file.metadata.num_rows, matrix.shape[1], matrix.dtype
