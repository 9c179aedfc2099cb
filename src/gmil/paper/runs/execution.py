"""Doing one job: whole k-folds, or the reason why there are none."""

from __future__ import annotations

import json
import warnings
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from gmil.model_selection.crossval import cross_validate
from gmil.model_selection.folds import estimator_seed
from gmil.paper.runs import environment
from gmil.paper.runs.fingerprints import canonical_json
from gmil.paper.runs.store import table_of
from gmil.paper.tables.tuning import Tuned

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from gmil.model_selection.result import CVResult
    from gmil.paper.runs.data import Dataset
    from gmil.paper.runs.jobs import Job

Choices = dict[int, tuple[dict[str, Any], float]]
"""What tuned fits chose, and in how many seconds, by their seeds."""
_LONGEST_REASON = 400


def execute(job: Job, dataset: Dataset, progress: Callable[[int, int], None] | None = None) -> pa.Table:
    """Return the rows of a job, one per repeat and fold. A fit that fails is rows with the reason, and not an error.

    ``progress`` is called with the number of folds done, and of all.
    """
    return measured(job, dataset, progress)[0]


def measured(
    job: Job, dataset: Dataset, progress: Callable[[int, int], None] | None = None
) -> tuple[pa.Table, CVResult | None]:
    """Return the rows of a job, and the cross-validation that they are of; None where a fit failed."""
    choices: Choices = {}
    # One thread, whatever the number of processes: rounding, and so the result, must not depend on it.
    with threadpool_limits(limits=1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            result = _cross_validate(job, dataset, choices, progress)
        except Exception as error:  # what a method raises is up to the method
            return failed_rows(job, one_line(error)), None
    rows = [_fold_row(job, result, repeat, fold, choices) for repeat, fold in _places(job)]
    rows = [row | _instance_scores(result, *place) for row, place in zip(rows, _places(job), strict=True)]
    return _table(job, rows, [one_line(w.message) for w in caught]), result


def failed_rows(job: Job, reason: str) -> pa.Table:
    """Return the rows of a job that has no result."""
    return _table(job, [{"status": "failed", "reason": reason}] * (job.repeats * job.folds), [])


def _table(job: Job, rows: list[dict[str, Any]], warned: list[str]) -> pa.Table:
    shared = {**_shared(job), "warnings": json.dumps(sorted(set(warned)))}
    numbers = [{"repeat": job.repeat + r, "seed": job.seed + r, "fold": fold} for r, fold in _places(job)]
    return table_of([{**shared, **number, **row} for number, row in zip(numbers, rows, strict=True)])


def _places(job: Job) -> list[tuple[int, int]]:
    """Return the numbers of the repeats, from 0, and of the folds of a job, in order."""
    return [(repeat, fold) for repeat in range(job.repeats) for fold in range(job.folds)]


def one_line(error: Any) -> str:
    r"""Return an error as one line.

    >>> one_line(ValueError("two\n  lines"))
    'ValueError: two lines'
    """
    text = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return text if len(text) <= _LONGEST_REASON else f"{text[: _LONGEST_REASON - 3]}..."


def _cross_validate(
    job: Job, dataset: Dataset, choices: Choices, progress: Callable[[int, int], None] | None
) -> CVResult:
    model = job.estimator

    def keep(seed: int, chosen: tuple[dict[str, Any], float]) -> None:
        choices[seed] = chosen

    if job.settings is not None:
        model = Tuned(job.estimator, job.settings, int(job.inner_folds or 0), keep)  # type: ignore[arg-type]
    return cross_validate(
        model,
        dataset.bags,
        dataset.y,
        cv=job.folds,
        repeats=job.repeats,
        groups=dataset.groups,
        instance_y=dataset.instance_y if job.scores_instances else None,
        random_state=job.seed,
        n_jobs=1,
        progress=progress,
    )


def _shared(job: Job) -> dict[str, Any]:
    return {
        "job": job.hash,
        **{name: getattr(job, name) for name in ("spec", "dataset", "method", "label", "column", "folds")},
        "params": canonical_json(job.params),
        **environment.as_columns(job.estimator),
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _fold_row(job: Job, result: CVResult, repeat: int, fold: int, choices: Choices) -> dict[str, Any]:
    bags = np.flatnonzero(result.folds[repeat] == fold)
    params, tune_seconds = choices.get(estimator_seed(job.seed, repeat, fold), (None, 0.0))
    classes = np.unique(result.y)
    # In the store, decisions of two classes are about the positive one: their order as texts may be another.
    sign = -1.0 if result.decisions.ndim == 3 and result.positive_label == classes[0] else 1.0
    return {
        "status": "ok",
        "bags": bags,
        "labels": _texts(result.y[bags]),
        "predictions": _texts(result.predictions[0, repeat, bags]),
        "decisions": sign * np.asarray(result.decisions[0, repeat, bags], dtype=np.float64).ravel(),
        "classes": _texts(classes),
        "positive_label": str(result.positive_label),
        "accuracy": float((result.predictions[0, repeat, bags] == result.y[bags]).mean()),
        "fit_seconds": float(result.fit_seconds[0, repeat, fold]) - tune_seconds,
        "predict_seconds": float(result.predict_seconds[0, repeat, fold]),
        "tune_seconds": None if params is None else tune_seconds,
        "chosen": None if params is None else canonical_json(params),
    }


def _instance_scores(result: CVResult, repeat: int, fold: int) -> dict[str, Any]:
    """Return the scores of the instances that a fold tests, bag after bag; of several classes all of each instance."""
    if result.instances is None:
        return {}
    tested = np.repeat(result.folds[repeat] == fold, np.diff(result.instances.offsets))
    return {"instance_scores": result.instances.scores[0, repeat, tested].ravel()}


def _texts(labels: Any) -> list[str]:
    """Return labels as texts: 0 and 1, "yes" and "no" then live in one column."""
    return [str(label) for label in np.asarray(labels).tolist()]
