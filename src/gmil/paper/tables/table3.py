"""Table 3: events in videos, one against all others."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import PredefinedSplit

from gmil.errors import BagValidationError
from gmil.model_selection.crossval import cross_validate
from gmil.model_selection.folds import fold_numbers
from gmil.model_selection.result import CVResult
from gmil.paper.events import LABELS, MED11, UCF, Videos, methods, why_not_in_memory
from gmil.paper.runs import environment
from gmil.paper.runs.fingerprints import canonical_json, code_fingerprint
from gmil.paper.tables.published import published
from gmil.safety.atomic import replacing
from gmil.scale import LazyBags

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from sklearn.base import BaseEstimator

    from gmil.engine.arrays import Floats, Integers

MEASURES = ("auc", "average_precision", "balanced_accuracy", "recall", "accuracy")
N_FOLDS = 10


def measure_table3(
    videos: Sequence[Videos],
    *,
    output: str | os.PathLike[str],
    repeats: int = 1,
    seed: int = 0,
    only: Sequence[str] | None = None,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Cross-validate every method on every data set and return the table; JSON can say all of it.

    A row is one method on one data set with a cell for every event: ``auc``, ``average_precision``,
    ``balanced_accuracy``, ``recall`` and ``accuracy``, means over folds and repeats. Decisions are kept in
    ``<output>/table3`` and found again by everything they depend on; ``files`` of a row names them.

    Parameters
    ----------
    videos : sequence of Videos
    output : path
    repeats, seed : int
    only : sequence of str, optional
        Names of methods.
    progress : callable, optional
        Called with a sentence before every method.
    """
    if repeats < 1:
        msg = f"must be at least 1, got {repeats}."
        raise BagValidationError(msg, parameter="repeats")
    folder = Path(output) / "table3"
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for data in videos:
        for name, estimator in _estimators().items():
            if only is None or name in only:
                if progress is not None:
                    progress(f"{LABELS[name]} on {data.name}")
                rows.append(_row(name, estimator, data, folder, repeats, seed))
        rows.append(_constant_row(data))
        if data.name == MED11:
            rows += _published_rows()
    return {
        "experiment": "table3",
        "title": "Table 3: events in videos, each against all others",
        "protocol": {"folds": N_FOLDS, "repeats": repeats, "seed": seed},
        "datasets": {data.name: _facts(data) for data in videos},
        "rows": rows,
        "notes": _notes(videos),
        "failures": [row for row in rows if row.get("failure")],
        **environment.as_facts(),
    }


def _estimators() -> dict[str, BaseEstimator]:
    """Return the methods; MI-SVM chooses C and balance inside the training videos, as it does in Table 1."""
    found = methods()
    found["mi-svm-witness"].set_params(tune=True)
    return found


def _facts(data: Videos) -> dict[str, Any]:
    bags = data.bags
    counts = dict(zip(data.events, data.indicator.sum(axis=0).tolist(), strict=True))
    return {"bags": len(bags), "instances": bags.n_instances, "features": bags.n_features, "positive": counts}


# -------------------------------------------------------------------------------- measuring


def _row(name: str, estimator: BaseEstimator, data: Videos, folder: Path, repeats: int, seed: int) -> dict[str, Any]:
    row: dict[str, Any] = {"dataset": data.name, "method": name, "label": LABELS[name], "cells": {}, "failure": None}
    if name == "mi-svm-witness" and (reason := why_not_in_memory(data.bags)) is not None:
        return {**row, "failure": f"not run: {reason}"}
    found = [_cached(name, estimator, data, folder, seed + repeat) for repeat in range(repeats)]
    for column, event in enumerate(data.events):
        results = [result.one_vs_rest(column) for result, _, _ in found]
        row["cells"][event] = {m: float(np.mean([getattr(r, m)() for r in results])) for m in MEASURES}
        row["cells"][event]["auc_spread"] = float(np.std([r.auc() for r in results], ddof=1)) if repeats > 1 else None
    return {
        **row,
        "mean": _mean(row["cells"]),
        "seconds": float(np.mean([seconds for _, seconds, _ in found])),
        "files": [f"{folder.name}/{file}" for _, _, file in found],
    }


def _mean(cells: dict[str, Any]) -> dict[str, float]:
    return {measure: float(np.mean([cell[measure] for cell in cells.values()])) for measure in MEASURES}


def _cached(name: str, estimator: BaseEstimator, data: Videos, folder: Path, seed: int) -> tuple[CVResult, float, str]:
    """Return decisions of a whole 10-fold, its seconds and its file, from an earlier run where there was the same."""
    folds = fold_numbers(N_FOLDS, data.shown, None, seed)
    facts = [data.fingerprint, canonical_json(estimator.get_params()), code_fingerprint(type(estimator)), seed]
    path = folder / f"{data.name}-{name}-{hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]}.npz"
    if path.exists():
        with np.load(path, allow_pickle=False) as kept:
            return _result(data, folds, kept["decisions"]), float(kept["seconds"]), path.name
    start = time.perf_counter()
    decisions = _decisions(estimator, data, folds, seed)
    seconds = time.perf_counter() - start
    with replacing(path) as temporary:
        np.savez(temporary, decisions=decisions, folds=folds, seconds=seconds)
    return _result(data, folds, decisions), seconds, path.name


def _decisions(estimator: BaseEstimator, data: Videos, folds: Integers, seed: int) -> Floats:
    """Return decisions about every event, (n_bags, n_events); what cannot share a fit has one for every event."""
    how: dict[str, Any] = {"cv": PredefinedSplit(folds), "random_state": seed}
    if type(estimator).__name__ != "WitnessSVM":
        return cross_validate(estimator, data.bags, data.indicator, **how).decisions[0, 0]
    bags = data.bags.load() if isinstance(data.bags, LazyBags) else data.bags
    return np.column_stack([cross_validate(estimator, bags, y, **how).decisions[0, 0] for y in data.indicator.T])


def _result(data: Videos, folds: Integers, decisions: Floats) -> CVResult:
    no_seconds = np.zeros((1, 1, N_FOLDS))
    predictions = (decisions > 0).astype(np.int64)[None, None]
    return CVResult(data.indicator, predictions, decisions[None, None], folds[None], no_seconds, no_seconds)


# -------------------------------------------------------------------------------- what stands beside


def _constant_row(data: Videos) -> dict[str, Any]:
    """Return what the majority class gets: the baseline of every accuracy."""
    cells = {}
    for column, event in enumerate(data.events):
        share = float(data.indicator[:, column].mean())
        cells[event] = {
            "auc": 0.5,
            "average_precision": share,
            "balanced_accuracy": 0.5,
            "recall": 0.0,
            "accuracy": 1 - share,
        }
    row = {"dataset": data.name, "method": "constant", "label": "always no", "cells": cells, "failure": None}
    return {**row, "mean": _mean(cells), "seconds": 0.0}


def _published_rows() -> list[dict[str, Any]]:
    rows = []
    for entry in published()["med11"]:
        cells = {event: {"accuracy": value / 100} for event, value in entry["printed"].items()}
        mean = {"accuracy": float(np.mean([cell["accuracy"] for cell in cells.values()]))}
        names = {"dataset": f"{MED11} (real)", "method": entry["method"], "label": f"{entry['label']}, published"}
        rows.append({**names, "cells": cells, "failure": None, "mean": mean, "seconds": None})
    return rows


def _notes(videos: Sequence[Videos]) -> list[str]:
    notes = [
        "The paper does not define its accuracy. With one event against four the majority-class baseline has 80 % "
        "accuracy, so AUC, average precision, balanced accuracy and recall are reported too.",
        "Every method predicts an event where its decision is above zero.",
        "MI-SVM tunes C and class weights by balanced accuracy on 5 inner folds of the training videos.",
    ]
    names = [data.name for data in videos]
    if UCF in names:
        notes.append(
            "UCF-Crime: negatives are all other videos, normal ones included; 64 features by PCA, fitted on all 830 "
            "videos without their labels."
        )
    if MED11 in names:
        notes.append(
            "med11: generated data of the size of TRECVID MED11 and nothing else in common; its figures do not compare "
            "with the published ones."
        )
    return notes


def flat_rows(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Return Table 3 with one line per data set, method and event, for CSV."""
    return [
        {"dataset": row["dataset"], "method": row["method"], "event": event, **{m: cell.get(m) for m in MEASURES}}
        for row in summary["rows"]
        for event, cell in (*row["cells"].items(), *([("mean", row["mean"])] if row["cells"] else []))
    ]
