"""Records: of every method one file with its decisions on every bag; figures are made of these, and of nothing else.

A file is Parquet, one row for every cell and repeat. ``sets.parquet`` has what all methods share: the labels of bags,
and of instances, which bags belong together, and the sizes. It stays where the data is, as labels are data too, and is
made again from the data where it is missing. No file has features. Every file has a hash of its content.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.benchmark.cells import finished_rows, identity, load_sets
from gmil.checks.controls import BENCHMARK_CONTROLS
from gmil.errors import DatasetError, FormatError, MissingFileError
from gmil.paper.runs.fingerprints import canonical_json
from gmil.safety.atomic import replacing
from gmil.safety.guard import parsing

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from gmil.benchmark.cells import Cell
    from gmil.benchmark.specification import Benchmark
    from gmil.paper.runs.data import Dataset
    from gmil.paper.runs.jobs import Job
    from gmil.paper.runs.store import Store

FORMAT = 1
SETS_FILE = "sets.parquet"
_KEY = b"gmil.benchmark"
_TEXTS = "dataset data setting params identity job code status reason chosen versions machine finished_at"
_NUMBERS = "cpu_seconds gpu_seconds peak_bytes"
_ARRAYS = ("folds", "predictions", "decisions", "instance_scores", "y", "groups", "sizes", "instance_y")


class Known(NamedTuple):
    """What the runner asks of a k-fold on record: its CPU seconds, infinitely many where it failed; what it was of."""

    seconds: float
    code: str
    method: str
    data: tuple[str, str, int]
    """The set, the fingerprint of its data, and the number of folds."""
    setting: str


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


class Shelf:
    """The records of a leaderboard: a folder with a file for every method, and one of the sets.

    Parameters
    ----------
    folder : path
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path(self, method: str) -> Path:
        """Return the file of a method; an own one is named ``package.module:Class``."""
        return self.folder / "methods" / f"{method.replace(':', '.')}.parquet"

    def methods(self) -> list[MethodRecords]:
        """Return the records of all methods, by name."""
        return [read_records(path) for path in sorted((self.folder / "methods").glob("*.parquet"))]

    def sets(self) -> dict[str, dict[str, Any]]:
        """Return what methods share, by the name of the set, as far as it is on record."""
        path = self.folder / SETS_FILE
        return {row["dataset"]: row for row in _read(path)[1]} if path.exists() else {}

    def all_sets(self, benchmark: Benchmark) -> tuple[dict[str, dict[str, Any]], list[str]]:
        """Return the same of every set of a benchmark that was measured, and the names of those that are not here.

        What is not on record is made from the data. Generated sets always are: what is on record may be of other bags.
        """
        spec = benchmark.spec
        measured = self._measured() & set(spec.datasets)
        found = {n: row for n, row in self.sets().items() if n in measured and n not in spec.generated}
        missing = measured - found.keys()
        if missing:
            loaded = [data for name in sorted(missing) for data in _loaded(benchmark.restricted(None, [name]))]
            found |= {data.name: set_row(data) for data in loaded}
        return found, sorted(missing - found.keys())

    def _measured(self) -> set[str]:
        return {row["dataset"] for records in self.methods() for row in records.rows}

    def known(self) -> dict[str, Known]:
        """Return the k-folds that are on record, by the identity of their jobs."""
        return {row["identity"]: _known(records.method, row) for records in self.methods() for row in records.rows}

    def take(self, benchmark: Benchmark, cells: Iterable[Cell], sets: dict[str, Dataset], store: Store) -> None:
        """Put what a store has of cells on record; what is there of other cells stays."""
        new: dict[str, dict[str, dict[str, Any]]] = {}
        for cell in cells:
            rows = {row["identity"]: row for row in _rows_of(cell, store)}
            new.setdefault(cell.case.method, {}).update(rows)
        for method, rows in new.items():
            path = self.path(method)
            old = {row["identity"]: row for row in read_records(path).rows} if path.exists() else {}
            if any(_version(old.get(key, {})) != _version(row) for key, row in rows.items()):
                write_records(path, MethodRecords(method, benchmark.labels[method], [*(old | rows).values()]))
        shared = self.sets() | {name: set_row(data) for name, data in sets.items()}
        used = sorted(self._measured() & shared.keys())
        _write(self.folder / SETS_FILE, {"kind": "sets"}, [shared[name] for name in used], _sets_schema())


def _known(method: str, row: dict[str, Any]) -> Known:
    seconds = float("inf") if row["status"] == "failed" else row["cpu_seconds"]
    data = row["dataset"], row["data"], row["n_folds"]
    return Known(seconds, row["code"], method, data, row["setting"])


def _loaded(benchmark: Benchmark) -> list[Dataset]:
    try:
        return [*load_sets(benchmark)[0].values()]
    except (DatasetError, MissingFileError):  # it is not here
        return []


def _version(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return what differs where a k-fold was measured again: its code, its outcome or its time."""
    return tuple(row.get(name) for name in ("job", "status", "finished_at"))


def set_row(data: Dataset) -> dict[str, Any]:
    """Return what the records of all methods on a set share."""
    groups = None if data.groups is None else np.unique(data.groups, return_inverse=True)[1].astype(np.int32)
    labels = None if data.instance_y is None else np.asarray(data.instance_y).astype(np.int8)
    sparse = not isinstance(data.bags.instances, np.ndarray)
    return {
        "dataset": data.name,
        "data": data.fingerprint,
        "n_features": data.bags.n_features,
        "sparse": sparse,
        "y": np.asarray(data.y).astype(np.int8),
        "groups": groups,
        "sizes": data.bags.sizes.astype(np.int32),
        "instance_y": labels,
    }


def _rows_of(cell: Cell, store: Store) -> Iterator[dict[str, Any]]:
    for job in cell.jobs:
        table = finished_rows(store, job)
        if table is not None:
            yield _row(cell, job, table)


def _row(cell: Cell, job: Job, table: pa.Table) -> dict[str, Any]:
    """Return the rows of the folds of a job as one row: what belongs to a bag stands in the order of the bags."""
    folds = table.sort_by("fold").to_pylist()
    first = folds[0]
    row = {
        **{name: first[name] for name in ("dataset", "status", "reason", "versions", "machine", "finished_at")},
        "data": job.data,
        "setting": cell.setting,
        "params": canonical_json(job.params),
        "identity": identity(job),
        "job": job.hash,
        "code": job.code,
        "n_folds": job.folds,
        "repeat": job.repeat,
        "seed": job.seed,
        "peak_bytes": first["peak_bytes"],
        **{name: _total(folds, name) for name in ("cpu_seconds", "gpu_seconds")},
    }
    return row if first["status"] == "failed" else row | _of_bags(cell, job, folds)


def _total(folds: list[dict[str, Any]], name: str) -> float | None:
    values = [fold[name] for fold in folds]
    return None if None in values else float(sum(values))


def _of_bags(cell: Cell, job: Job, folds: list[dict[str, Any]]) -> dict[str, Any]:
    sizes = cell.data.bags.sizes
    number, predicted = np.empty(len(sizes), dtype=np.int8), np.empty(len(sizes), dtype=np.int8)
    decisions, scores = np.empty(len(sizes), dtype=np.float32), np.empty(sizes.sum(), dtype=np.float32)
    for fold in folds:
        bags = np.array(fold["bags"])
        number[bags], decisions[bags] = fold["fold"], fold["decisions"]
        predicted[bags] = [text == fold["positive_label"] for text in fold["predictions"]]
        if job.scores_instances:
            scores[np.repeat(np.isin(np.arange(len(sizes)), bags), sizes)] = fold["instance_scores"]
    chosen = [fold["chosen"] for fold in folds]
    found: dict[str, Any] = {"folds": number, "predictions": predicted, "decisions": decisions}
    found["chosen"] = None if None in chosen else json.dumps(chosen)
    # Scores of all repeats would be most of a file, and the figures of one repeat are nearly those of five.
    return found | ({"instance_scores": scores} if job.scores_instances and job.repeat == 0 else {})


# ---------------------------------------------------------------------------------------------- files


def _schema() -> pa.Schema:
    import pyarrow as pa

    fields = [(name, pa.string()) for name in _TEXTS.split()]
    fields += [(name, pa.int32()) for name in ("n_folds", "repeat", "seed")]
    fields += [(name, pa.float64()) for name in _NUMBERS.split()]
    fields += [(name, pa.list_(pa.int8())) for name in ("folds", "predictions")]
    return pa.schema(fields + [(name, pa.list_(pa.float32())) for name in ("decisions", "instance_scores")])


def _sets_schema() -> pa.Schema:
    import pyarrow as pa

    lists = {"y": pa.int8(), "groups": pa.int32(), "sizes": pa.int32(), "instance_y": pa.int8()}
    plain = {"dataset": pa.string(), "data": pa.string(), "n_features": pa.int64(), "sparse": pa.bool_()}
    return pa.schema([*plain.items(), *((name, pa.list_(kind)) for name, kind in lists.items())])


def content_hash(rows: Iterable[dict[str, Any]]) -> str:
    """Return a hash of rows, whatever file holds them."""
    digest = hashlib.sha256()
    for row in rows:
        plain = {name: value for name, value in row.items() if name not in _ARRAYS}
        digest.update(canonical_json(plain).encode())
        for name in _ARRAYS:
            values = row.get(name)
            digest.update(f"{name}:".encode())
            digest.update(b"" if values is None else np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def write_records(path: Path, records: MethodRecords) -> None:
    """Write the file of a method in one step."""
    rows = sorted(records.rows, key=lambda row: (row["dataset"], row["setting"], row["repeat"]))
    _write(path, {"kind": "method", "method": records.method, "label": records.label}, rows, _schema())


def read_records(path: Path) -> MethodRecords:
    """Read the file of a method; one that is damaged, or whose content is not that of its hash, is refused."""
    about, rows = _read(path)
    return MethodRecords(str(about.get("method")), str(about.get("label")), rows)


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
        about = json.loads(file.schema_arrow.metadata[_KEY])
        wanted = _sets_schema() if about["kind"] == "sets" else _schema()
        if about["format"] != FORMAT or not file.schema_arrow.equals(wanted):
            msg = f"{path} has other columns than records have. Write it again with this version of gmil."
            raise FormatError(msg)
        table = file.read()
        kinds = {field.name: field.type.value_type.to_pandas_dtype() for field in wanted if field.name in _ARRAYS}
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
