"""Which rows on record count: those of the plan. A specification that was edited leaves rows of other plans behind."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gmil.benchmark.cells import asked_of, planned
from gmil.benchmark.shelf import Shelf
from gmil.benchmark.specification import SETTINGS
from gmil.errors import DatasetError, listed
from gmil.paper.runs.fingerprints import canonical
from gmil.paper.runs.jobs import known_methods

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from gmil.benchmark.records import MethodRecords
    from gmil.benchmark.specification import Benchmark
    from gmil.paper.runs.specification import MethodEntry


@dataclass(frozen=True)
class OnRecord:
    """What a plan asks of a set, without its instances."""

    name: str
    fingerprint: str
    instance_y: Any


@dataclass(frozen=True)
class Counted:
    """The records of a benchmark that figures are made of.

    Attributes
    ----------
    records : dict
        By method, with rows of the plan alone.
    shared : dict
        What methods share, by the name of the set.
    absent : tuple of str
        Measured sets whose labels are neither on record nor here.
    n_others : int
        Rows of other plans: they stay on record, and do not count.
    """

    records: dict[str, MethodRecords]
    shared: dict[str, dict[str, Any]]
    absent: tuple[str, ...]
    n_others: int

    @property
    def jobs(self) -> set[str]:
        """The jobs of all rows that count."""
        return {row["job"] for one in self.records.values() for row in one.rows}

    def notes(self) -> list[str]:
        """Return a note on rows that do not count, where there are such."""
        if not self.n_others:
            return []
        rows, they = ("row", "it stays") if self.n_others == 1 else ("rows", "they stay")
        text = (
            f"{self.n_others} {rows} of another plan (other methods, parameters, folds, seeds or data than the "
            f"specification has now) did not count; {they} on record."
        )
        return [text]

    def refuse_absent(self) -> None:
        """Refuse to make figures without labels."""
        if self.absent:
            raise DatasetError(self.why_no_figures())

    def why_no_figures(self) -> str:
        """Return a sentence on the labels that are not here."""
        return (
            f"Figures need the labels of {listed(self.absent)}, which are not here. Put files of yours where the "
            "specification says; for other sets, set GMIL_DATA_HOME to the folder that holds them."
        )


def counted(benchmark: Benchmark, folder: str | os.PathLike[str]) -> Counted:
    """Return the rows on record that are of the plan of a benchmark.

    Of a set that is not here, whose labels are not on record either, all data counts: nothing tells which it should be.

    Parameters
    ----------
    benchmark : Benchmark
    folder : path
    """
    shelf = Shelf(folder)
    everything = shelf.methods()
    shared, absent = shelf.all_sets(benchmark)
    rows = [row for one in everything for row in one.rows]
    plan = planned(benchmark, [*_known(shared), *_unknown(rows, absent)])
    entries = {entry.name: entry for entry in benchmark.spec.methods}
    kept = [_kept(one, plan, benchmark, entries.get(one.method), shared) for one in everything]
    n_others = len(rows) - sum(len(one.rows) for one in kept)
    return Counted({one.method: one for one in kept if one.rows}, shared, tuple(absent), n_others)


def _known(shared: dict[str, dict[str, Any]]) -> list[OnRecord]:
    return [OnRecord(name, about["data"], about["instance_y"]) for name, about in shared.items()]


def _unknown(rows: list[dict[str, Any]], absent: list[str]) -> Iterator[OnRecord]:
    """Yield sets that only rows tell of; whether their instances have labels these do not say."""
    for name, data in sorted({(row["dataset"], row["data"]) for row in rows if row["dataset"] in absent}):
        yield from (OnRecord(name, data, labels) for labels in (None, ()))


def _kept(
    records: MethodRecords,
    plan: set[str],
    benchmark: Benchmark,
    entry: MethodEntry | None,
    shared: dict[str, dict[str, Any]],
) -> MethodRecords:
    if entry is None:
        return replace(records, rows=[])
    if entry.name in known_methods():
        return replace(records, rows=[row for row in records.rows if row["identity"] in plan])
    return replace(records, rows=[row for row in records.rows if _looks_planned(row, benchmark, entry, shared)])


def _looks_planned(
    row: dict[str, Any], benchmark: Benchmark, entry: MethodEntry, shared: dict[str, dict[str, Any]]
) -> bool:
    """Tell the same of an own method that is not imported here: its other parameters are not known."""
    protocol, about = benchmark.spec.protocol, shared.get(row["dataset"])
    column = next(column for column, setting in SETTINGS.items() if setting == row["setting"])
    return (
        row["dataset"] in benchmark.spec.datasets
        and column in entry.columns
        and row["repeat"] < protocol.repeats_of(column, entry.repeats)
        and (row["n_folds"], row["seed"]) == (protocol.folds, protocol.seed + row["repeat"])
        and (about is None or about["data"] == row["data"])
        and _is_asked(row, benchmark, entry)
    )


def _is_asked(row: dict[str, Any], benchmark: Benchmark, entry: MethodEntry) -> bool:
    """Tell whether a row is of the parameters that a specification names; rows of earlier versions do not say it."""
    if row.get("asked") is not None:
        return bool(row["asked"] == asked_of(benchmark, entry.name, row["dataset"]))
    return bool(canonical(entry.params).items() <= json.loads(row["params"]).items())
