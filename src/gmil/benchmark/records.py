"""Records: of every method one file with its decisions on every bag; figures are made of these, and of nothing else.

A file is Parquet, one row for every cell and repeat. ``sets.parquet`` has what all methods share: the labels of bags,
and of instances, which bags belong together, and the sizes. It stays where the data is, as labels are data too, and is
made again from the data where it is missing. No file has features. Every file has a hash of its content.

Decisions and scores are of single precision, which is half of a file. A row that would lose figures by that has them in
double precision, in a column of its own.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.checks.controls import BENCHMARK_CONTROLS
from gmil.errors import FormatError
from gmil.paper.runs.fingerprints import canonical_json
from gmil.safety.atomic import replacing
from gmil.safety.guard import parsing

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pyarrow as pa

FORMAT = 1
_KEY = b"gmil.benchmark"
_TEXTS = "dataset data setting params identity job code status reason chosen versions machine finished_at"
_NUMBERS = "cpu_seconds gpu_seconds peak_bytes"
_ARRAYS = ("folds", "predictions", "decisions", "instance_scores", "y", "groups", "sizes", "instance_y")
_DOUBLE = {"decisions": "double_decisions", "instance_scores": "double_instance_scores"}
_LATER = ("asked", *_DOUBLE.values())
"""Columns that a file has where some row needs them; files of earlier versions have none of them."""
_MOST_LOST = 0.001
"""The share of distinct values that may become equal in single precision."""


@dataclass(frozen=True)
class MethodRecords:
    """All that is on record of a method.

    Attributes
    ----------
    method, label : str
    rows : list of dict
        One for every cell and repeat: names and hashes; ``folds``, ``predictions``, ``decisions`` of every bag;
        ``instance_scores`` of the first repeat, where a set has labels of instances; what it cost; versions.
    """

    method: str
    label: str
    rows: list[dict[str, Any]]

    @property
    def is_control(self) -> bool:
        """Whether it is what methods must beat."""
        return self.method in BENCHMARK_CONTROLS

    def cells(self) -> dict[tuple[str, str], list[dict[str, Any]]]:
        """Return the rows of every set and setting, by repeat."""
        found: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in sorted(self.rows, key=lambda row: row["repeat"]):
            found.setdefault((row["dataset"], row["setting"]), []).append(row)
        return found


def _schema(later: Iterable[str] = ()) -> pa.Schema:
    import pyarrow as pa

    fields = [(name, pa.string()) for name in _TEXTS.split()]
    fields += [(name, pa.int32()) for name in ("n_folds", "repeat", "seed")]
    fields += [(name, pa.float64()) for name in _NUMBERS.split()]
    fields += [(name, pa.list_(pa.int8())) for name in ("folds", "predictions")]
    fields += [(name, pa.list_(pa.float32())) for name in _DOUBLE]
    return pa.schema(fields + [(name, pa.string() if name == "asked" else pa.list_(pa.float64())) for name in later])


def _sets_schema() -> pa.Schema:
    import pyarrow as pa

    lists = {"y": pa.int8(), "groups": pa.int32(), "sizes": pa.int32(), "instance_y": pa.int8()}
    plain = {"dataset": pa.string(), "data": pa.string(), "n_features": pa.int64(), "sparse": pa.bool_()}
    return pa.schema([*plain.items(), *((name, pa.list_(kind)) for name, kind in lists.items())])


def content_hash(rows: Iterable[dict[str, Any]]) -> str:
    """Return a hash of rows, whatever file holds them."""
    digest, later = hashlib.sha256(), tuple(_DOUBLE.values())
    for row in rows:
        plain = {name: value for name, value in row.items() if name not in (*_ARRAYS, *later)}
        digest.update(canonical_json(plain).encode())
        for name in (*_ARRAYS, *(name for name in later if name in row)):
            values = row.get(name)
            digest.update(f"{name}:".encode())
            digest.update(b"" if values is None else np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def write_records(path: Path, records: MethodRecords) -> None:
    """Write the file of a method in one step."""
    rows = sorted(records.rows, key=lambda row: (row["dataset"], row["setting"], row["repeat"]))
    rows = [_in_single_precision(row) for row in rows]
    later = [name for name in _LATER if any(row.get(name) is not None for row in rows)]
    _write(path, {"kind": "method", "method": records.method, "label": records.label}, rows, _schema(later))


def read_records(path: Path) -> MethodRecords:
    """Read the file of a method; one that is damaged, or whose content is not that of its hash, is refused."""
    about, rows = _read(path)
    return MethodRecords(str(about.get("method")), str(about.get("label")), [_in_any_precision(row) for row in rows])


def write_sets(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write what the records of all methods share, in one step."""
    _write(path, {"kind": "sets"}, rows, _sets_schema())


def read_sets(path: Path) -> list[dict[str, Any]]:
    """Read what the records of all methods share."""
    return _read(path)[1]


def _in_single_precision(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as its file has it: in double precision is what would lose figures."""
    found = dict(row)
    for name, double in _DOUBLE.items():
        if row.get(name) is not None:
            found |= {name: row[name].astype(np.float32)} if _is_single(row[name]) else {name: None, double: row[name]}
    return found


def _in_any_precision(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of a file as figures are made of it."""
    found = {name: value for name, value in row.items() if name not in _DOUBLE.values()}
    return found | {name: row[double] for name, double in _DOUBLE.items() if row.get(double) is not None}


def _is_single(values: Any) -> bool:
    """Tell whether nearly all numbers that differ do so in single precision, and none becomes infinite."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    n_lost = len(np.unique(values)) - len(np.unique(single))
    return n_lost <= _MOST_LOST * len(values) and bool((np.isfinite(single) == np.isfinite(values)).all())


def _write(path: Path, about: dict[str, Any], rows: list[dict[str, Any]], schema: pa.Schema) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{field.name: row.get(field.name) for field in schema} for row in rows]
    about = {"format": FORMAT, **about, "sha256": content_hash(rows)}
    table = pa.Table.from_pylist(rows, schema=schema.with_metadata({_KEY: json.dumps(about)}))
    with replacing(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", compression_level=19, write_page_checksum=True)


def _read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    import pyarrow.parquet as pq

    with parsing(path, "records of a benchmark"), pq.ParquetFile(path, page_checksum_verification=True) as file:
        found = file.schema_arrow
        about = json.loads(found.metadata[_KEY])
        later = [name for name in _LATER if name in found.names]
        wanted = _sets_schema() if about["kind"] == "sets" else _schema(later)
        if about["format"] != FORMAT or not found.equals(wanted):
            msg = f"{path} has other columns than records have. Write it again with this version of gmil."
            raise FormatError(msg)
        table = file.read()
        arrays = (*_ARRAYS, *_DOUBLE.values())
        kinds = {field.name: field.type.value_type.to_pandas_dtype() for field in wanted if field.name in arrays}
        rows = [_with_arrays(row, kinds) for row in table.to_pylist()]
    if content_hash(rows) != about["sha256"]:
        msg = f"The content of {path} is not that of its hash: it was changed by hand. Measure the method again."
        raise FormatError(msg)
    return about, rows


def _with_arrays(row: dict[str, Any], kinds: dict[str, Any]) -> dict[str, Any]:
    return {
        name: np.array(value, dtype=kinds[name]) if name in kinds and value is not None else value
        for name, value in row.items()
    }
