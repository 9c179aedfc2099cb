"""Parquet: ``bag``, ``label``, info columns, and all features in one list column."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from gmil.bags import tables
from gmil.bags.parquet_files import read_parquet, write_parquet
from gmil.io.formats.rows import table_rows

if TYPE_CHECKING:
    from pathlib import Path

    from gmil.bags.roles import Named, Rows
    from gmil.io.formats.contents import Contents


KIND = "Parquet"


def read(path: Path, named: Named) -> Rows:
    """Read a Parquet file, list column or wide, grouped or not."""
    return table_rows(read_parquet(path), named)


def write(path: Path, contents: Contents) -> None:
    """Write the layout of gmil: the features as float32 unless another type is asked for."""
    instances = contents.dense(contents.dtype or np.float32)
    info, names = contents.bags.instance_info, contents.bags.feature_names
    table = tables.to_list_table(contents.columns(), instances, info, instances.dtype)
    if names is not None:
        at = table.column_names.index(tables.FEATURES_COLUMN)
        field = table.schema.field(at).with_metadata({tables.NAMES_KEY: json.dumps(names).encode()})
        table = table.set_column(at, field, table.column(at))
    write_parquet(table, path, compression="zstd")
