"""From a number back to its rows: seeds, versions and files, read from the store."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.reporting.summary import Source

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_COLUMNS = ["seed", "repeat", "folds", "fit_seconds", "predict_seconds", "tune_seconds", "versions", "finished_at"]


class Origin(NamedTuple):
    """The key of a source, and the seconds of one whole cross-validation where they are known."""

    key: str
    seconds: float | None


class Ledger:
    """All sources of a report; the same jobs are one source.

    Parameters
    ----------
    folder : path
        The output folder of a run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sources: list[Source] = []
        self.missing: list[str] = []
        self._known: dict[tuple[str, ...], Origin] = {}

    def jobs(self, jobs: Sequence[str], dataset: str, method: str, setting: str) -> Origin | None:
        """Enter the rows of finished jobs; None where there are none."""
        key = (dataset, method, setting, *jobs)
        if not jobs or key in self._known:
            return self._known.get(key)
        tables = [table for job in jobs if (table := self._read(f"rows/{job}.parquet")) is not None]
        repeats = [list(rows) for table in tables for _, rows in itertools.groupby(table, lambda row: row["repeat"])]
        firsts = [rows[0] for rows in repeats]
        seconds = [sum(map(_seconds, rows)) for rows in repeats]
        files = [f"rows/{job}.parquet" for job in jobs]
        known = [s for s in seconds if s > 0]
        return self._enter(
            key, (dataset, method, setting), firsts, files, float(np.median(known)) if known else None, "finished_at"
        )

    def timings(
        self, file: str, dataset: str, method: str, column: str, label: str | None = None, *, seed: int
    ) -> Origin | None:
        """Enter the rows of one case that was timed; None where there are none."""
        key = (file, dataset, method, column, label or "")
        if key in self._known:
            return self._known[key]
        table = self._read(file, columns=None) or []
        names = ("dataset", "method", "column")
        rows = [row for row in table if tuple(row[n] for n in names) == (dataset, method, column)]
        rows = [row for row in rows if label in (None, row["label"])]
        if not rows:
            return None
        firsts = [{**row, "seed": seed} for row in rows[:1]]
        what = (dataset, method, f"{f'{label}, ' if label else ''}{len({row['round'] for row in rows})} rounds timed")
        return self._enter(key, what, firsts, [file], None, "started_at")

    def summarized(
        self, found: dict[str, Any], dataset: str, method: str, setting: str, *, files: Sequence[str] = ()
    ) -> Origin:
        """Enter a summary that holds seeds and versions itself, with the files beside it that it was made from."""
        key = (found["experiment"], dataset, method, setting)
        if key in self._known:
            return self._known[key]
        self.missing += [name for name in files if not (self.folder / name).is_file()]
        protocol = found.get("protocol", {})
        first = {"folds": protocol.get("folds", 0), "versions": json.dumps(found["versions"]), "finished_at": ""}
        seed = protocol.get("seed", found.get("seed", 0))
        firsts = [{**first, "seed": seed + repeat} for repeat in range(protocol.get("repeats", 1))]
        every = [f"{found['experiment']}.json", *files]
        return self._enter(key, (dataset, method, setting), firsts, every, None, "finished_at")

    def _enter(
        self,
        key: tuple[str, ...],
        what: tuple[str, str, str],
        firsts: list[dict[str, Any]],
        files: list[str],
        seconds: float | None,
        when: str,
    ) -> Origin:
        versions = json.loads(firsts[0]["versions"]) if firsts else {}
        others = ", ".join(f"{name} {value}" for name, value in versions.items() if name != "gmil")
        origin = Origin(f"source-{len(self.sources) + 1}", seconds)
        self.sources.append(
            Source(
                key=origin.key,
                dataset=what[0],
                method=what[1],
                setting=what[2],
                seeds=[int(row["seed"]) for row in firsts],
                folds=int(firsts[0]["folds"]) if firsts else 0,
                gmil=versions.get("gmil", "unknown"),
                versions=others,
                files=files,
                finished_at=max((row[when] for row in firsts), default=""),
            )
        )
        self._known[key] = origin
        return origin

    def _read(self, name: str, columns: list[str] | None = _COLUMNS) -> list[dict[str, Any]] | None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            rows: list[dict[str, Any]] = pq.read_table(
                self.folder / name, columns=columns, page_checksum_verification=True
            ).to_pylist()
        except (OSError, pa.ArrowException):
            self.missing.append(name)
            return None
        return rows


def _seconds(row: dict[str, Any]) -> float:
    return sum(row[name] or 0.0 for name in ("fit_seconds", "predict_seconds", "tune_seconds"))
