"""Doing one job: a whole k-fold, or the reason why there is none."""

from __future__ import annotations

import json
import warnings
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from gmil.experiments import environment
from gmil.experiments.fingerprints import canonical_json
from gmil.experiments.store import table_of
from gmil.experiments.tuning import Choice, Tuned
from gmil.folds import estimator_seed
from gmil.model_selection import cross_validate

if TYPE_CHECKING:
    import pyarrow as pa
    from sklearn.base import BaseEstimator

    from gmil.cv_result import CVResult
    from gmil.experiments.data import Dataset
    from gmil.experiments.jobs import Job

_LONGEST_REASON = 400


def execute(job: Job, estimator: BaseEstimator, dataset: Dataset) -> pa.Table:
    """Return the rows of a job, one per fold. A fit that fails is rows with the reason, and not an error."""
    choices: list[Choice] = []
    # One thread, whatever the number of processes: rounding, and so the result, must not depend on it.
    with threadpool_limits(limits=1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            result = _cross_validate(job, estimator, dataset, choices)
        except Exception as error:  # what a method raises is up to the method
            rows = [{"fold": fold, "status": "failed", "reason": one_line(error)} for fold in range(job.folds)]
        else:
            rows = [_fold_row(job, result, fold, choices) for fold in range(job.folds)]
    shared = {**_shared(job), "warnings": json.dumps(sorted({one_line(w.message) for w in caught}))}
    return table_of([{**shared, **row} for row in rows])


def one_line(error: Any) -> str:
    r"""Return an error as one line.

    >>> one_line(ValueError("two\n  lines"))
    'ValueError: two lines'
    """
    text = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return text if len(text) <= _LONGEST_REASON else f"{text[: _LONGEST_REASON - 3]}..."


def _cross_validate(job: Job, estimator: BaseEstimator, dataset: Dataset, choices: list[Choice]) -> CVResult:
    model = estimator
    if job.settings is not None:
        model = Tuned(estimator, job.settings, int(job.inner_folds or 0), choices.append)  # type: ignore[arg-type]
    bags, y, groups = dataset.bags, dataset.y, dataset.groups
    return cross_validate(model, bags, y, cv=job.folds, groups=groups, random_state=job.seed, n_jobs=1)


def _shared(job: Job) -> dict[str, Any]:
    return {
        "job": job.hash,
        "spec": job.spec,
        "dataset": job.dataset,
        "method": job.method,
        "label": job.label,
        "column": job.column,
        "params": canonical_json(job.params),
        "folds": job.folds,
        "repeat": job.repeat,
        "seed": job.seed,
        "versions": environment.as_json(environment.versions()),
        "machine": environment.as_json(environment.machine()),
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _fold_row(job: Job, result: CVResult, fold: int, choices: list[Choice]) -> dict[str, Any]:
    bags = np.flatnonzero(result.folds[0] == fold)
    chosen = next((c for c in choices if c.seed == estimator_seed(job.seed, 0, fold)), None)
    tune_seconds = 0.0 if chosen is None else chosen.seconds
    # In the store, decisions of two classes are about the positive one: their order as texts may be another.
    about_positive = result if result.decisions.ndim == 4 else result.one_vs_rest(result.positive_label)
    return {
        "fold": fold,
        "status": "ok",
        "bags": bags,
        "labels": _texts(result.y[bags]),
        "predictions": _texts(result.predictions[0, 0, bags]),
        "decisions": np.asarray(about_positive.decisions[0, 0, bags], dtype=np.float64).ravel(),
        "classes": _texts(np.unique(result.y)),
        "positive_label": str(result.positive_label),
        "accuracy": float(result.correct[0, 0, bags].mean()),
        "fit_seconds": float(result.fit_seconds[0, 0, fold]) - tune_seconds,
        "predict_seconds": float(result.predict_seconds[0, 0, fold]),
        "tune_seconds": None if chosen is None else tune_seconds,
        "chosen": None if chosen is None else canonical_json(chosen.params),
    }


def _texts(labels: Any) -> list[str]:
    """Return labels as texts: 0 and 1, "yes" and "no" then live in one column."""
    return [str(label) for label in np.asarray(labels).tolist()]
