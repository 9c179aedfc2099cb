"""The leaderboard: all figures and statistics, made of records; what is published is this, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.benchmark.counting import counted
from gmil.benchmark.figures import MEASURES, cross_validation, figures
from gmil.benchmark.ranking import Scores, against, ranks, verdicts_on_set
from gmil.benchmark.specification import SETTINGS
from gmil.benchmark.traits import traits_of
from gmil.datasets import dataset_names, describe
from gmil.errors import MissingFileError
from gmil.paper.runs.output import write_json
from gmil.paper.tables.grids import has_grid
from gmil.safety.guard import parsing
from gmil.templating.json_text import finite

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from gmil.benchmark.counting import Counted
    from gmil.benchmark.records import MethodRecords
    from gmil.benchmark.specification import Benchmark
    from gmil.engine.arrays import Floats

FILE = "leaderboard.json"
RANKED = ("auc", "accuracy", "balanced_accuracy", "brier")


def leaderboard(benchmark: Benchmark, folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the leaderboard of the records in a folder; JSON can say all of it.

    Parameters
    ----------
    benchmark : Benchmark
        Says which cells there should be; rows on record of other plans do not count.
    folder : path
    """
    return leaderboard_of(benchmark, counted(benchmark, folder))


def leaderboard_of(benchmark: Benchmark, of: Counted) -> dict[str, Any]:
    """Return the leaderboard of records that were read."""
    of.refuse_absent()
    records, shared = of.records, of.shared
    cells = [cell for one in records.values() for cell in _cells(one, shared)]
    settings = [s for s in SETTINGS.values() if any(cell["setting"] == s for cell in cells)]
    return finite(
        {
            "title": benchmark.spec.title,
            "reference": benchmark.reference,
            "protocol": _protocol(benchmark),
            "measures": MEASURES,
            "methods": [_method(name, label, records) for name, label in benchmark.labels.items()],
            "sets": [_set(benchmark, name, shared) for name in benchmark.spec.datasets],
            "cells": cells,
            "not_measured": _not_measured(benchmark, cells),
            "not_repeated": _not_repeated(benchmark, of),
            "statistics": {setting: _statistics(benchmark, records, shared, cells, setting) for setting in settings},
        }
    )


def write_leaderboard(found: dict[str, Any], folder: str | os.PathLike[str]) -> Path:
    """Write the leaderboard beside the records; return the file."""
    path = Path(folder) / FILE
    write_json(found, path)
    return path


def read_leaderboard(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a leaderboard that was written."""
    path = Path(folder) / FILE
    if not path.exists():
        todo = "`gmil benchmark run SPEC` measures, and goes on where it was stopped"
        msg = f"There are no figures yet: there is no {path}. {todo}."
        raise MissingFileError(msg)
    with parsing(path, "leaderboard"):
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def present_leaderboard(benchmark: Benchmark, folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the leaderboard that was written; where the specification was edited since, that of what still counts.

    Without the labels of a set no figures can be made: what was written is all there is.
    """
    found, of = read_leaderboard(folder), counted(benchmark, folder)
    if of.absent:
        return found
    written = {job for cell in found["cells"] for job in cell["jobs"]}
    is_present = (
        written == of.jobs
        and _asked_by(found) == _asks(benchmark)
        and found["not_measured"] == _not_measured(benchmark, found["cells"])
        and found["not_repeated"] == _not_repeated(benchmark, of)
    )
    return found if is_present else leaderboard_of(benchmark, of)


def _asks(benchmark: Benchmark) -> tuple[Any, ...]:
    """Return what a leaderboard has of its specification."""
    sets = [(name, name in benchmark.chose_defaults) for name in benchmark.spec.datasets]
    return benchmark.spec.title, benchmark.reference, _protocol(benchmark), benchmark.labels, sets


def _asked_by(found: dict[str, Any]) -> tuple[Any, ...]:
    """Return the same of a leaderboard that was written."""
    labels = {method["name"]: method["label"] for method in found["methods"]}
    sets = [(about["name"], about["chose_default"]) for about in found["sets"]]
    return found["title"], found["reference"], found["protocol"], labels, sets


def _protocol(benchmark: Benchmark) -> dict[str, Any]:
    protocol, budget = benchmark.spec.protocol, benchmark.budget
    names = ("folds", "repeats", "tuned_repeats", "seed", "inner_folds", "max_settings")
    limits = ("once_minutes", "most_minutes", "most_gib")
    return {name: getattr(protocol, name) for name in names} | {name: getattr(budget, name) for name in limits}


def _cells(records: MethodRecords, shared: dict[str, Any]) -> Iterable[dict[str, Any]]:
    for (name, setting), rows in records.cells().items():
        yield {
            "method": records.method,
            "set": name,
            "setting": setting,
            **figures(rows, shared[name]),
            "jobs": [row["job"] for row in rows],
        }


def _method(name: str, label: str, records: dict[str, MethodRecords]) -> dict[str, Any]:
    one = records.get(name)
    rows = [] if one is None else one.rows
    versions = sorted({row["versions"] for row in rows})
    return {
        "name": name,
        "label": label,
        "control": one.is_control if one is not None else False,
        "versions": [json.loads(text) for text in versions],
        "codes": sorted({row["code"][:12] for row in rows}),
    }


def _set(benchmark: Benchmark, name: str, shared: dict[str, Any]) -> dict[str, Any]:
    about: dict[str, Any] = {"name": name, "title": name, "chose_default": name in benchmark.chose_defaults}
    if name in dataset_names():
        card = describe(name)
        about |= {"title": card.title, "licence": card.licence, "folding": card.folding, "defects": card.defects}
    return about | {"traits": traits_of(shared[name]) if name in shared else None}


def _not_measured(benchmark: Benchmark, cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return on how many sets of the specification a method in a setting was not tried yet, where there are such."""
    there = {(cell["method"], cell["set"], cell["setting"]) for cell in cells}
    found = []
    for entry in benchmark.spec.methods:
        for column in entry.columns:
            missing = [s for s in benchmark.spec.datasets if (entry.name, s, SETTINGS[column]) not in there]
            if missing and (column != "tuned" or has_grid(entry.name)):
                found.append({"method": entry.name, "setting": SETTINGS[column], "n_sets": len(missing)})
    return found


def n_not_measured(found: dict[str, Any]) -> int:
    """Return how many cells of a leaderboard nobody has tried yet."""
    return sum(row["n_sets"] for row in found["not_measured"])


def _not_repeated(benchmark: Benchmark, of: Counted) -> int:
    """Return how many cells have fewer repeats than the protocol asks for, though the budget allows them."""
    entries = {entry.name: entry for entry in benchmark.spec.methods}
    columns = {setting: column for column, setting in SETTINGS.items()}
    asked = benchmark.spec.protocol.repeats_of
    return sum(
        all(row["status"] == "ok" and row["cpu_seconds"] <= 60 * benchmark.budget.once_minutes for row in rows)
        and len(rows) < asked(columns[setting], entries[one.method].repeats)
        for one in of.records.values()
        for (_, setting), rows in one.cells().items()
    )


def _statistics(
    benchmark: Benchmark,
    records: dict[str, MethodRecords],
    shared: dict[str, Any],
    cells: list[dict[str, Any]],
    setting: str,
) -> dict[str, Any]:
    of = [c for c in cells if c["setting"] == setting and not records[c["method"]].is_control]
    names = [name for name in benchmark.spec.datasets if any(cell["set"] == name for cell in of)]
    unseen = [name for name in names if name not in benchmark.chose_defaults]
    by_measure = {measure: scores_of(of, measure, names) for measure in RANKED}
    return {
        "measures": {
            measure: {
                "all": _views(scores, benchmark.reference),
                "without_sets_that_chose_a_default": _views(scores.of(scores.methods, unseen), benchmark.reference),
            }
            for measure, scores in by_measure.items()
        },
        "by_set": {name: _by_set(records, shared, name, setting, benchmark.reference) for name in names},
    }


def _views(scores: Scores, reference: str) -> dict[str, Any]:
    return {
        "ranks": ranks(scores.ready(), reference),
        "ranks_of_complete_rows": ranks(scores.complete(), reference),
        "against_reference": against(scores, reference),
    }


def scores_of(cells: list[dict[str, Any]], measure: str, sets: list[str]) -> Scores:
    """Return one figure of all methods on all sets; what a method does not have, such as decisions, is not empty."""
    methods = list(dict.fromkeys(cell["method"] for cell in cells))
    values = np.full((len(sets), len(methods)), np.nan)
    empty = np.zeros(values.shape, dtype=bool)
    for cell in cells:
        at = sets.index(cell["set"]), methods.index(cell["method"])
        values[at] = np.nan if cell[measure] is None else cell[measure]
        empty[at] = cell["reason"] is not None
    return Scores(measure, tuple(methods), tuple(sets), values, empty)


def _by_set(
    records: dict[str, MethodRecords], shared: dict[str, Any], name: str, setting: str, reference: str
) -> dict[str, Any]:
    folds: dict[str, Floats] = {}
    for method, one in records.items():
        rows = one.cells().get((name, setting), [])
        if rows and all(row["status"] == "ok" for row in rows):
            folds[method] = cross_validation(rows, shared[name]).fold_accuracies()[0]
    controls = {method for method in folds if records[method].is_control}
    found: dict[str, Any] = {}
    for family in (folds.keys() - controls, controls):  # Holm's correction is for the number of methods alone
        own = {method: one for method, one in folds.items() if method in {*family, reference}}
        found |= verdicts_on_set(own, reference, len(shared[name]["y"]))
    return found
