"""Parquet files: every page is written with a checksum, and checked against it where it has one."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from gmil import tables
from gmil.errors import FormatError
from gmil.guard import first_line

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    import numpy as np
    import pyarrow as pa

_SMALL = 1 << 28  # bytes that any file may claim: a column of one value takes nearly no place


def open_parquet(path: str | os.PathLike[str], metadata: Any = None) -> Any:
    """Return a ``pyarrow.parquet.ParquetFile`` whose names are texts and whose size can be true."""
    import pyarrow.parquet as pq

    with reading_parquet(path):
        file = pq.ParquetFile(path, metadata=metadata, page_checksum_verification=True)
        _ = file.schema_arrow.names  # the names are decoded here, and not later
    return file


def read_parquet(path: str | os.PathLike[str]) -> pa.Table:
    """Read a Parquet file or folder; a file that is none is one clear error."""
    import pyarrow.parquet as pq

    with reading_parquet(path):
        table = pq.read_table(path, page_checksum_verification=True)
        table.validate(full=True)  # texts are UTF-8 then
        _ = table.column_names
    return table


def read_schema(path: str | os.PathLike[str]) -> pa.Schema:
    """Return the columns of a file."""
    return open_parquet(path).schema_arrow


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
    """Turn what Arrow says about a damaged file into one clear error that names it."""
    import pyarrow as pa

    try:
        yield
    except (FileNotFoundError, PermissionError):
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
