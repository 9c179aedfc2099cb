"""Mutations of Parquet files: of the table in them, of the footer, and of the pages."""

from __future__ import annotations

import functools
import io
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tools.fuzz.mutations.hostile import FLOATS, INTEGERS, PATHS, PICKLES, TEXTS
from tools.fuzz.mutations.plain import PLAIN
from tools.fuzz.mutations.trees import pick

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

    Mutate = Callable[[bytes, Generator], bytes]

_MANY_ROWS = 40_000_000
_LONGS = tuple(value for value in INTEGERS if -(2**63) <= value < 2**63)
_END = 8  # the length of the footer, and PAR1


def _written(table: pa.Table, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


def _on_table(change: Callable[[pa.Table, Generator], pa.Table]) -> Mutate:
    def mutate(data: bytes, rng: Generator) -> bytes:
        return _written(change(pq.read_table(io.BytesIO(data)), rng))

    return mutate


def _replaced(table: pa.Table, at: int, column: Any, name: str | None = None) -> pa.Table:
    return table.set_column(at, name or table.column_names[at], column)


def other_column(table: pa.Table, rng: Generator) -> pa.Table:
    """Put a column of another type there, of nulls, dates, lists, structures, texts or numbers out of range."""
    n = table.num_rows
    columns = (
        pa.nulls(n),
        pa.array([None] * (n - 1) + [1.5]),
        pa.array(["a"] * n),
        pa.array([pick(TEXTS[:10], rng) for _ in range(n)]),
        pa.array([b"\xff\xfe"] * n, pa.binary()),
        pa.array(range(n), pa.timestamp("us")),
        pa.array(range(n), pa.decimal128(38, 2)),
        pa.array([{"a": 1}] * n),
        pa.array([[1.0] * (i % 3) for i in range(n)]),
        pa.array([[[1.0]]] * n),
        pa.array([[1.0, None]] * n),
        pa.array([True] * n),
        pa.array([float(pick(FLOATS, rng)) for _ in range(n)]),
        pa.array([pick(_LONGS, rng) for _ in range(n)], pa.int64()),
        pa.array(np.ones(n, dtype=np.float16)),
        pa.array(["a"] * n).dictionary_encode(),
        pa.array([[("a", 1)]] * n, pa.map_(pa.string(), pa.int64())),
    )
    return _replaced(table, int(rng.integers(table.num_columns)), pick(columns, rng))


def change_cell(table: pa.Table, rng: Generator) -> pa.Table:
    """Change one value of a column."""
    at = int(rng.integers(table.num_columns))
    if pa.types.is_fixed_size_list(table.schema.field(at).type):
        return table  # old versions of pyarrow cannot write a missing one
    values = table.column(at).to_pylist()
    kinds = {float: FLOATS, int: _LONGS, str: TEXTS}
    place = int(rng.integers(len(values)))
    values[place] = pick((*kinds.get(type(values[place]), (None,)), None), rng)
    return _replaced(table, at, pa.array(values, table.schema.field(at).type))


def rename_column(table: pa.Table, rng: Generator) -> pa.Table:
    """Give a column another name, perhaps that of another."""
    names = list(table.column_names)
    names[int(rng.integers(len(names)))] = pick((*names, *PATHS, "bag", "label", "y", "__index_level_0__"), rng)
    return table.rename_columns(names)


def drop_column(table: pa.Table, rng: Generator) -> pa.Table:
    """Leave out a column."""
    return table.remove_column(int(rng.integers(table.num_columns)))


def shuffle_rows(table: pa.Table, rng: Generator) -> pa.Table:
    """Write the rows in another order, or none of them."""
    return table.take(rng.permutation(table.num_rows)[: int(pick((0, 1, table.num_rows), rng))])


def deep_type(table: pa.Table, rng: Generator) -> pa.Table:
    """Add a column of lists of lists of lists."""
    kind = pa.float64()
    for _ in range(int(pick((3, 50, 200), rng))):
        kind = pa.list_(kind)
    return table.append_column("deep", pa.nulls(table.num_rows, kind))


def many_columns(table: pa.Table, rng: Generator) -> pa.Table:
    """Add thousands of columns."""
    count = int(pick((100, 500), rng))
    more = {f"more{i}": np.zeros(table.num_rows, np.float32) for i in range(count)}
    return pa.table({**dict(zip(table.column_names, table.columns, strict=True)), **more})


def lying_metadata(table: pa.Table, rng: Generator) -> pa.Table:
    """Name an extension type that is unpickled, or spoil what pandas and Arrow keep beside the columns."""
    payload = pick(PICKLES, rng)
    if rng.random() < 0.5:
        at = int(rng.integers(table.num_columns))
        extension = {b"ARROW:extension:name": b"arrow.py_extension_type", b"ARROW:extension:metadata": payload}
        return table.cast(table.schema.set(at, table.schema.field(at).with_metadata(extension)))
    keys = (b"pandas", b"ARROW:schema", b"gmil")
    return table.replace_schema_metadata({pick(keys, rng): pick((payload, b"{", b"\xff" * 99, b"{}"), rng)})


def footer_bytes(data: bytes, rng: Generator) -> bytes:
    """Change bytes of the footer."""
    (length,) = struct.unpack("<I", data[-_END:-4])
    begin = max(4, len(data) - _END - length)
    footer = pick(PLAIN.values(), rng)(data[begin:-_END], rng)
    size = len(footer) if rng.random() < 0.8 else length
    return data[:begin] + footer + struct.pack("<I", size) + b"PAR1"


def footer_length(data: bytes, rng: Generator) -> bytes:
    """Lie about the length of the footer."""
    return data[:-_END] + struct.pack("<I", pick(INTEGERS, rng) % 2**32) + data[-4:]


def page_bit(data: bytes, rng: Generator) -> bytes:
    """Flip a bit of the values of a page, which its checksum tells."""
    group = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0)
    chunks = [group.column(i) for i in range(group.num_columns)]
    chunk = max(chunks, key=lambda c: c.total_compressed_size)
    end = chunk.data_page_offset + _pages_size(chunk)
    place = int(rng.integers(max(chunk.data_page_offset, end - 24), end))  # the header of the page is before these
    return data[:place] + bytes([data[place] ^ 1 << int(rng.integers(8))]) + data[place + 1 :]


def _pages_size(chunk: Any) -> int:
    """Return the bytes of the data pages, which lie behind that of the dictionary."""
    begin = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    return int(begin + chunk.total_compressed_size - chunk.data_page_offset)


def bomb(_data: bytes, rng: Generator) -> bytes:
    """Return a small file of many equal rows, or of one long text a million times."""
    return _bomb(int(rng.integers(3)))


@functools.lru_cache(maxsize=3)
def _bomb(kind: int) -> bytes:
    if kind == 0:  # many rows of one bag
        bags, values = pa.array(np.zeros(_MANY_ROWS, np.int8)), pa.array(np.zeros(_MANY_ROWS, np.float32))
        return _written(pa.table({"bag": bags, "f0": values}))
    n_rows = 1_000_000
    text = pa.DictionaryArray.from_arrays(np.zeros(n_rows, np.int8), pa.array(["a" * 1_000_000]))
    names = ("bag", "note") if kind == 1 else ("note", "bag")
    numbers = pa.array(np.arange(n_rows) // 2)
    columns = dict(zip(names, (text, numbers), strict=True))
    return _written(pa.table({**columns, "f0": np.zeros(n_rows)}), compression="zstd")


GUARDED = {"page bit"}
PARQUET: dict[str, Mutate] = {
    "column": _on_table(other_column),
    "cell": _on_table(change_cell),
    "column name": _on_table(rename_column),
    "column dropped": _on_table(drop_column),
    "rows": _on_table(shuffle_rows),
    "deep type": _on_table(deep_type),
    "many columns": _on_table(many_columns),
    "schema metadata": _on_table(lying_metadata),
    "footer": footer_bytes,
    "footer length": footer_length,
    "page bit": page_bit,
    "bomb": bomb,
}
