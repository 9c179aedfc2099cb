"""Table 2: seconds of a whole 10-fold, measured in one go, beside those that the paper prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.paper.runs import environment
from gmil.paper.runs.jobs import notes_on_unmeasured
from gmil.paper.runs.output import summary_of
from gmil.paper.runs.timing import THREADS
from gmil.paper.tables.published import published_seconds
from gmil.paper.tables.table1 import add_ranks

if TYPE_CHECKING:
    from gmil.paper.runs.specification import MethodEntry, Spec
    from gmil.paper.runs.timing import Timings

REFERENCE = "gmil"


def summarize(spec: Spec, timings: Timings) -> dict[str, Any]:
    """Return Table 2: a row per method with a cell per data set, and notes; JSON can say all of it.

    A cell has the median CPU ``seconds`` over rounds, their least and largest, ``clock_seconds``, ``ratio`` to GMIL
    measured at the same time, and what the paper printed: ``published`` seconds, ``published_ratio``, ``gave_up``.
    """
    with_print = spec.first_entries()
    rows = [_row(entry, timings, has_print=entry in with_print) for entry in spec.methods]
    _add_ratios(rows)
    add_ranks(rows, timings.datasets, "seconds", larger_is_better=False)
    return summary_of(
        spec,
        timings.datasets,
        threads=THREADS,
        rows=rows,
        rows_file=f"timings/{timings.file.name}",
        notes=_notes(spec, timings),
        failures=[row for row in timings.rows if row["status"] == "failed"],
    )


def _row(entry: MethodEntry, timings: Timings, *, has_print: bool) -> dict[str, Any]:
    cells = {}
    for dataset in timings.datasets:
        printed = published_seconds(entry.name, dataset) if has_print else None
        cells[dataset] = _cell((dataset, entry.name, "paper", entry.label), timings, printed)
    return {"method": entry.name, "label": entry.label, "variant": entry.variant, "cells": cells, "average_rank": None}


def _cell(case: tuple[str, str, str, str], timings: Timings, printed: tuple[float, bool] | None) -> dict[str, Any]:
    rounds, clock = timings.seconds(*case), timings.clock_seconds(*case)
    return {
        "seconds": timings.median(*case),
        "least": min(rounds, default=None),
        "largest": max(rounds, default=None),
        "clock_seconds": float(np.median(clock)) if clock else None,
        "rounds": len(rounds),
        "failure": timings.failure(*case),
        "published": None if printed is None else printed[0],
        "gave_up": False if printed is None else printed[1],
    }


def _add_ratios(rows: list[dict[str, Any]]) -> None:
    reference: dict[str, Any] = next((row["cells"] for row in rows if row["method"] == REFERENCE), {})
    for row in rows:
        for dataset, cell in row["cells"].items():
            ours = reference.get(dataset, {})
            cell["ratio"] = _ratio(cell["seconds"], ours.get("seconds"))
            cell["published_ratio"] = _ratio(cell["published"], ours.get("published"))


def _ratio(value: float | None, reference: float | None) -> float | None:
    return None if value is None or not reference else value / reference


def _notes(spec: Spec, timings: Timings) -> list[str]:
    facts = environment.machine()
    notes = [
        f"CPU seconds, as in the paper, measured in one go, in turn, the median of {spec.protocol.repeats} rounds; "
        f"{THREADS} thread for BLAS, OpenMP and engine; {facts['processor']}, {facts['cores']} cores, "
        f"backend {facts['backend']}.",
        "The folds of GMIL share work in one batch, as gmil.cross_validate does it, and those of Citation kNN share "
        "distances where the scaling allows it; other methods are fitted fold by fold.",
        "Published: Matlab on a Core 2 Duo at 2.26 GHz (arXiv:1205.0610, Table 2); the two machines do not compare, "
        "only ratios on the same machine do.",
    ]
    return [*notes, *notes_on_unmeasured(spec), *timings.notes]


def flat_rows(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Return Table 2 with one line per method and data set, for CSV."""
    return [
        {"method": row["method"], "label": row["label"], "average_rank": row["average_rank"], "dataset": d, **cell}
        for row in summary["rows"]
        for d, cell in row["cells"].items()
    ]
