"""Times that may stand side by side: measured in one go, in turn, several times, with the threads fixed.

Unlike accuracies, times are never taken from an earlier run: the machine of another moment was another machine.
"""

from __future__ import annotations

import time
import uuid
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from gmil.datasets import make_bags
from gmil.model_selection.crossval import cross_validate
from gmil.paper.runs import environment
from gmil.paper.runs.data import Dataset, load_datasets
from gmil.paper.runs.execution import one_line
from gmil.paper.runs.fingerprints import canonical_json
from gmil.paper.runs.jobs import Case, cases_of, measured_params
from gmil.paper.runs.parsing import as_spec
from gmil.safety.atomic import replacing

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping

    from gmil.paper.runs.specification import Spec

THREADS = 1


@dataclass(frozen=True)
class Timings:
    """Seconds of whole k-folds.

    Attributes
    ----------
    rows : list of dict
        One per case and round: dataset, method, column, label, params (JSON), folds, round, seconds (of the
        clock), cpu_seconds, status, reason, threads, versions, machine, started_at.
    file : path
        The Parquet file with these rows.
    notes : tuple of str
    datasets : tuple of str
    """

    rows: list[dict[str, Any]]
    file: Path
    notes: tuple[str, ...]
    datasets: tuple[str, ...]

    def seconds(self, dataset: str, method: str, column: str, label: str | None = None) -> list[float]:
        """Return the CPU seconds of every round of one case; none where it failed or was not measured.

        CPU time is what the paper reports, and on one thread it is what the work costs; the clock also counts
        what else the machine did.
        """
        return [row["cpu_seconds"] for row in self._of(dataset, method, column, label) if row["status"] == "ok"]

    def clock_seconds(self, dataset: str, method: str, column: str, label: str | None = None) -> list[float]:
        """Return the seconds by the clock of every round of one case."""
        return [row["seconds"] for row in self._of(dataset, method, column, label) if row["status"] == "ok"]

    def median(self, dataset: str, method: str, column: str, label: str | None = None) -> float | None:
        """Return the median CPU seconds over rounds, None where a case failed or was not measured."""
        found = self.seconds(dataset, method, column, label)
        return float(np.median(found)) if found else None

    def failure(self, dataset: str, method: str, column: str, label: str | None = None) -> str | None:
        """Return why a case failed, or None."""
        reasons = [row["reason"] for row in self._of(dataset, method, column, label) if row["status"] == "failed"]
        return reasons[0] if reasons else None

    def _of(self, dataset: str, method: str, column: str, label: str | None) -> Iterator[dict[str, Any]]:
        for row in self.rows:
            names = (row["dataset"], row["method"], row["column"])
            if names == (dataset, method, column) and label in (None, row["label"]):
                yield row


def measure(
    spec: Spec | str | os.PathLike[str],
    *,
    output: str | os.PathLike[str],
    data: Mapping[str, tuple[Any, ...]] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Timings:
    """Measure the seconds of a whole k-fold for every method and timed sweep of an experiment.

    Everything is measured now and in this process, on one thread, once in every round (the repeats of the
    protocol) and in turn, so that what else the machine does falls on all alike. The rows go to a new file in
    ``<output>/timings``.

    Parameters
    ----------
    spec, output, data
        As in `run`.
    progress : callable, optional
        Called with the number of k-folds done and of all.
    """
    spec = as_spec(spec)
    datasets, notes = load_datasets(spec, data)
    cases = [case for name in datasets for case in cases_of(spec, name) if case.timed]
    folder = Path(output) / "timings"
    folder.mkdir(parents=True, exist_ok=True)
    started = datetime.now(UTC)
    with threadpool_limits(limits=THREADS):
        _warm_up(cases)
        rows = _rounds(cases, datasets, spec, progress)
    shared = {
        "spec": spec.name,
        "threads": THREADS,
        **environment.as_columns(),
        "started_at": started.isoformat(timespec="seconds"),
    }
    rows = [{**shared, **row} for row in rows]
    file = folder / f"{spec.name}-{started:%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:8]}.parquet"
    _write(rows, file)
    return Timings(rows, file, tuple(notes), tuple(datasets))


def _warm_up(cases: list[Case]) -> None:
    """Use every method once."""
    for case in {case.method: case for case in cases}.values():
        warm_up(case)


def warm_up(case: Case) -> None:
    """Use a method once: the first use of a library pays for loading it."""
    bags, y = make_bags(40, bag_size=10, random_state=0, return_X_y=True)
    _timed(case, Dataset("warm-up", bags, y), folds=2, seed=0)


def _rounds(
    cases: list[Case], datasets: Mapping[str, Dataset], spec: Spec, progress: Callable[[int, int], None] | None
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    failed: set[int] = set()
    # Another order in every round: a moment when the machine is busy must not always meet the same neighbours.
    rng = np.random.default_rng(spec.protocol.seed)
    turns = [(r, i) for r in range(spec.protocol.repeats) for i in rng.permutation(len(cases)).tolist()]
    for done, (number, i) in enumerate(turns, start=1):
        case = cases[i]
        if i not in failed:  # what failed once fails again
            found = _timed(case, datasets[case.dataset], spec.protocol.folds, spec.protocol.seed)
            rows.append({**_names(case), "folds": spec.protocol.folds, "round": number, **found})
            failed |= {i} if found["status"] == "failed" else set()
        if progress is not None:
            progress(done, len(turns))
    return rows


def _names(case: Case) -> dict[str, Any]:
    names = {name: getattr(case, name) for name in ("dataset", "method", "column", "label")}
    return {**names, "params": canonical_json(measured_params(case.estimator))}


def _timed(case: Case, dataset: Dataset, folds: int, seed: int) -> dict[str, Any]:
    start, cpu = time.perf_counter(), time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are kept with the accuracies
            cross_validate(
                case.estimator,
                dataset.bags,
                dataset.y,
                cv=folds,
                groups=dataset.groups,
                random_state=seed,
                n_processes=THREADS,
            )
    except Exception as error:  # what a method raises is up to the method
        return {"seconds": None, "cpu_seconds": None, "status": "failed", "reason": one_line(error)}
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "status": "ok", "reason": None}


def _write(rows: list[dict[str, Any]], file: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with replacing(file) as temporary:
        pq.write_table(pa.Table.from_pylist(rows), temporary, write_page_checksum=True)
