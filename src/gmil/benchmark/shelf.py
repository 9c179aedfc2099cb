"""The shelf of a leaderboard: which records there are, and putting on record what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.benchmark.cells import asked_of, finished_rows, identity, load_sets
from gmil.benchmark.records import MethodRecords, read_records, read_sets, write_records, write_sets
from gmil.errors import DatasetError, MissingFileError
from gmil.own_methods import own_methods
from gmil.paper.runs.fingerprints import canonical_json
from gmil.safety.locking import locked
from gmil.safety.temporaries import remove_leftovers

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from gmil.benchmark.cells import Cell
    from gmil.benchmark.specification import Benchmark
    from gmil.paper.runs.data import Dataset
    from gmil.paper.runs.jobs import Job
    from gmil.paper.runs.store import Store

SETS_FILE = "sets.parquet"
_OTHER_DEFAULTS = "the class had other defaults"


class Known(NamedTuple):
    """What the runner asks of a k-fold on record: its CPU seconds, infinitely many where it failed; what it was of."""

    seconds: float
    code: str
    method: str
    data: tuple[str, str, int]
    """The set, the fingerprint of its data, and the number of folds."""
    setting: str


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

    def clean(self) -> None:
        """Remove half-written files that killed runs left."""
        for folder in (self.folder, self.folder / "methods"):
            remove_leftovers(folder)

    def methods(self) -> list[MethodRecords]:
        """Return the records of all methods, by name."""
        return [read_records(path) for path in sorted((self.folder / "methods").glob("[!.]*.parquet"))]

    def sets(self) -> dict[str, dict[str, Any]]:
        """Return what methods share, by the name of the set, as far as it is on record."""
        path = self.folder / SETS_FILE
        return {row["dataset"]: row for row in read_sets(path)} if path.exists() else {}

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
        by_method: dict[str, list[Cell]] = {}
        for cell in cells:
            by_method.setdefault(cell.case.method, []).append(cell)
        with locked(store.folder):  # two runs would each lose what the other puts there meanwhile
            for method, own in by_method.items():
                self._take_method(benchmark, method, own, store)
            shared = self.sets() | {name: set_row(data) for name, data in sets.items()}
            used = sorted(self._measured() & shared.keys())
            write_sets(self.folder / SETS_FILE, [shared[name] for name in used])

    def _take_method(self, benchmark: Benchmark, method: str, cells: list[Cell], store: Store) -> None:
        path = self.path(method)
        before = {row["identity"]: row for row in read_records(path).rows} if path.exists() else {}
        after = before | {row["identity"]: row for cell in cells for row in _rows_of(cell, store)}
        if method in own_methods():
            after = _with_asked(after, benchmark, cells)
        if any(_version(before.get(key, {})) != _version(row) for key, row in after.items()):
            write_records(path, MethodRecords(method, benchmark.labels[method], [*after.values()]))


def _with_asked(rows: dict[str, dict[str, Any]], benchmark: Benchmark, cells: list[Cell]) -> dict[str, dict[str, Any]]:
    """Return rows of an own method with what the specification says of it, which is how others find them.

    Rows of the same words whose parameters are others, as the class has other defaults now, do not count any more. A
    method has the same parameters on all sets.
    """
    method, now = cells[0].case.method, canonical_json(cells[0].jobs[0].params)
    found = {}
    for key, row in rows.items():
        today = asked_of(benchmark, method, row["dataset"])
        is_present, is_older = row["params"] == now, row.get("asked") in (None, today)
        asked = today if is_present else _OTHER_DEFAULTS if is_older else row["asked"]
        found[key] = {**row, "asked": asked}
    return found


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
    """Return what differs where a k-fold was measured again, or asked for in other words."""
    return tuple(row.get(name) for name in ("job", "status", "finished_at", "asked"))


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
    decisions, scores = np.empty(len(sizes)), np.empty(sizes.sum())
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
