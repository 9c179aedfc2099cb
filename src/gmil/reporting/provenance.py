"""From a number back to its rows: seeds, versions and files, read from the store."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.paper.runs.results import cv_result
from gmil.paper.runs.store import is_failed
from gmil.reporting.summary import Provenance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pyarrow as pa

    from gmil.model_selection.result import CVResult

_SECONDS = ["fit_seconds", "predict_seconds", "tune_seconds"]
_COLUMNS = ["seed", "repeat", "folds", *_SECONDS, "versions", "finished_at"]


class Ledger:
    """The provenance of all numbers of a report; the same jobs are entered once.

    Parameters
    ----------
    folder : path
        The output folder of a run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.missing: list[str] = []
        self._known: dict[tuple[str, ...], Provenance | None] = {}

    @property
    def sources(self) -> list[Provenance]:
        """Everything that was entered, in order."""
        return [found for found in self._known.values() if found is not None]

    def jobs(self, jobs: Sequence[str], dataset: str, method: str, setting: str) -> Provenance | None:
        """Enter the rows of finished jobs; None where there are none."""

        def read() -> dict[str, Any]:
            files = [f"rows/{job}.parquet" for job in jobs]
            tables = [rows for file in files if (rows := self._read(file, _COLUMNS)) is not None]
            repeats = [
                list(rows) for table in tables for _, rows in itertools.groupby(table, lambda row: row["repeat"])
            ]
            seconds = [sum(row[name] or 0.0 for row in rows for name in _SECONDS) for rows in repeats]
            known = [s for s in seconds if s > 0]
            return {
                **_facts([rows[0] for rows in repeats]),
                "files": files,
                "seconds": float(np.median(known)) if known else None,
            }

        return self._enter((dataset, method, setting, *jobs), read) if jobs else None

    def cross_validation(self, jobs: Sequence[str]) -> CVResult | None:
        """Return what finished jobs predicted, as the result of one cross-validation; None where a file is missing."""
        import pyarrow as pa

        tables = [self._table(f"rows/{job}.parquet") for job in jobs]
        if not tables or any(table is None or is_failed(table) for table in tables):
            return None
        return cv_result(pa.concat_tables(tables).sort_by([("repeat", "ascending"), ("fold", "ascending")]))

    def timings(
        self, file: str, dataset: str, method: str, column: str, label: str | None = None, *, seed: int
    ) -> Provenance | None:
        """Enter the rows of one case that was timed; None where there are none."""

        def read() -> dict[str, Any] | None:
            wanted = {"dataset": dataset, "method": method, "column": column, **({"label": label} if label else {})}
            rows = [row for row in self._read(file) or [] if wanted.items() <= row.items()]
            if not rows:
                return None
            rounds = f"{len({row['round'] for row in rows})} rounds timed"
            setting = f"{label}, {rounds}" if label else rounds
            first = {**rows[0], "seed": seed, "finished_at": rows[0]["started_at"]}
            return {**_facts([first]), "setting": setting, "files": [file]}

        return self._enter((dataset, method, column, file, label or ""), read)

    def summarized(
        self, found: dict[str, Any], dataset: str, method: str, setting: str, *, files: Sequence[str] = ()
    ) -> Provenance | None:
        """Enter a summary that holds seeds and versions itself, with the files beside it that it was made from."""

        def read() -> dict[str, Any]:
            self.missing += [name for name in files if not (self.folder / name).is_file()]
            protocol = found.get("protocol", {})
            first = {"folds": protocol.get("folds", 0), "versions": json.dumps(found["versions"]), "finished_at": ""}
            seed = protocol.get("seed", found.get("seed", 0))
            firsts = [{**first, "seed": seed + repeat} for repeat in range(protocol.get("repeats", 1))]
            return {**_facts(firsts), "files": [f"{found['experiment']}.json", *files]}

        return self._enter((dataset, method, setting, found["experiment"]), read)

    def _enter(self, key: tuple[str, ...], read: Callable[[], dict[str, Any] | None]) -> Provenance | None:
        if key not in self._known:
            facts = read()
            named = dict(zip(("dataset", "method", "setting"), key, strict=False))
            number = len(self.sources) + 1
            self._known[key] = None if facts is None else Provenance(f"source-{number}", **{**named, **facts})
        return self._known[key]

    def _read(self, name: str, columns: list[str] | None = None) -> list[dict[str, Any]] | None:
        table = self._table(name, columns)
        return None if table is None else list(table.to_pylist())

    def _table(self, name: str, columns: list[str] | None = None) -> pa.Table | None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return pq.read_table(self.folder / name, columns=columns, page_checksum_verification=True)
        except (OSError, pa.ArrowException):
            self.missing.append(name)
            return None


def key_of(found: Provenance | None) -> str | None:
    """Return what numbers refer to rows by, None where there are none."""
    return None if found is None else found.key


def _facts(firsts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return seeds, folds and versions from the first row of every repeat."""
    versions = json.loads(firsts[0]["versions"]) if firsts else {}
    return {
        "seeds": [int(row["seed"]) for row in firsts],
        "folds": int(firsts[0]["folds"]) if firsts else 0,
        "gmil": versions.pop("gmil", "unknown"),
        "versions": ", ".join(f"{name} {value}" for name, value in versions.items()),
        "finished_at": max((row["finished_at"] for row in firsts), default=""),
    }
