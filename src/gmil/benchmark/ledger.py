"""What of a benchmark is done, and what the rest would cost."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from gmil.benchmark.cells import finished_rows, identity
from gmil.benchmark.watching import SURE_BY_DEFAULT
from gmil.paper.runs.store import is_failed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from gmil.benchmark.cells import Cell
    from gmil.benchmark.shelf import Known
    from gmil.paper.runs.jobs import Job
    from gmil.paper.runs.store import Store

_TRIED_BY_ITSELF = 20
"""How many times as long a method roughly takes that chooses its parameters by itself, where nothing is known of it."""

_ENOUGH_SETS = 3
"""So many sets with both settings say more about the cost of tuning than the number of fits."""


class Ledger:
    """Knows the k-folds that are done, in the store or on record: a clone has records, and no rows.

    Parameters
    ----------
    store : Store
    recorded : mapping
        What is on record, by the identity of jobs.
    cells : sequence of Cell
        All that are asked for.
    changed : bool
        Whether only what was measured with the code that is here is done.
    retry_failed : bool
        Whether what has no result is not done.
    """

    def __init__(
        self,
        store: Store,
        recorded: Mapping[str, Known],
        cells: Sequence[Cell],
        *,
        changed: bool = False,
        retry_failed: bool = False,
    ) -> None:
        self.store, self.recorded = store, recorded
        self.changed, self.retry_failed = changed, retry_failed
        self._jobs = {_place(cell): cell.jobs for cell in cells}
        self._known_ratios: dict[str, list[float]] = {}

    def is_done(self, cell: Cell) -> bool:
        """Tell whether nothing of a cell is missing: all its repeats, or as many as the budget allows."""
        for job in cell.jobs:
            seconds = self._seconds(job)
            if seconds is None:
                return False
            if seconds > 60 * cell.budget.once_minutes:
                return True
        return True

    def is_of_other_code(self, cell: Cell) -> bool:
        """Tell whether some repeat of a cell that is on record was measured with other code than that which is here."""
        return any(self._is_of_other_code(job) for job in cell.jobs)

    def missing_jobs(self, cell: Cell) -> tuple[Job, ...]:
        """Return the repeats of a cell that are not done."""
        return tuple(job for job in cell.jobs if self._seconds(job) is None)

    def expected_seconds(self, cell: Cell) -> float:
        """Return what a k-fold will cost, by the default setting: nothing of one that is new, as others wait for it.

        A tuned cell whose default setting is not known comes last.
        """
        found = self._by_default(cell)
        if found is None:
            return 0.0 if cell.setting == "default" else float("inf")
        return found[1] * (1.0 if cell.setting == "default" else self._times_as_long(cell, found[0])[0])

    def why_hopeless(self, cell: Cell) -> str | None:
        """Return why a tuned cell need not be begun: it is far too long, by what its default setting costs.

        A cell of which some repeat has a result is not too long.
        """
        found = self._by_default(cell)
        if cell.setting == "default" or found is None or self._has_result(cell):
            return None
        default, seconds = found
        if seconds == float("inf"):
            return "the default setting has no result"
        times, why = self._times_as_long(cell, default)
        minutes = seconds * times / 60
        if minutes <= SURE_BY_DEFAULT * cell.budget.most_minutes:
            return None
        return f"about {minutes:.0f} CPU minutes a k-fold: by default it takes {seconds:.0f} s, and {why}"

    def _has_result(self, cell: Cell) -> bool:
        known = [self._any_seconds(job) for job in self._jobs.get(_place(cell), cell.jobs)]
        return any(seconds is not None and math.isfinite(seconds) for seconds in known)

    def _times_as_long(self, cell: Cell, default: Job) -> tuple[float, str]:
        """Return how many times as long a tuned k-fold takes as one by default, and by what that is known.

        What other sets say of the method goes before the number of fits, which may share work.
        """
        ratios = self._ratios(cell.case.method)
        if len(ratios) >= _ENOUGH_SETS:
            times = statistics.median(ratios)
            return times, f"tuned {times:.0f} times as long, in the median of {len(ratios)} other sets"
        job = cell.jobs[0]
        # Of one setting the method chooses by itself, from about as many.
        if job.settings is not None and len(job.settings) == 1:
            return _TRIED_BY_ITSELF, f"tuned about {_TRIED_BY_ITSELF} times as long, as it tries about so many settings"
        return job.n_fits / default.n_fits, f"tuned it is fitted {job.n_fits} times, not {default.n_fits}"

    def _ratios(self, method: str) -> list[float]:
        """Return what tuned k-folds of a method cost, in units of its default setting, on every set that has both.

        Sets on record count too: a run of a few sets must give up no cell that a run of all sets would measure.
        """
        if method not in self._known_ratios:
            # Of the same data and folds alone: what was measured by another plan takes another time.
            seconds = {(k.data, k.setting): k.seconds for k in self.recorded.values() if k.method == method}
            for (name, _, setting), jobs in self._jobs.items():
                value = self._any_seconds(jobs[0]) if name == method else None
                if value is not None:
                    seconds[_data_of(jobs[0]), setting] = value
            pairs = [(seconds.get((d, "tuned")), seconds.get((d, "default"))) for d in {d for d, _ in seconds}]
            self._known_ratios[method] = [a / b for a, b in pairs if a and b and math.isfinite(a) and math.isfinite(b)]
        return self._known_ratios[method]

    def _by_default(self, cell: Cell) -> tuple[Job, float] | None:
        """Return the first k-fold of a method on a set with the default setting, and its seconds, where it is known."""
        jobs = self._jobs.get((cell.case.method, cell.case.dataset, "default"))
        seconds = None if jobs is None else self._any_seconds(jobs[0])
        return None if jobs is None or seconds is None else (jobs[0], seconds)

    def _seconds(self, job: Job) -> float | None:
        """Return the CPU seconds of a k-fold that is done."""
        if self.changed and self._is_of_other_code(job):
            return None
        seconds = self._any_seconds(job)
        return None if seconds == float("inf") and self.retry_failed else seconds

    def _is_of_other_code(self, job: Job) -> bool:
        known = self.recorded.get(identity(job))
        return known is not None and known.code != job.code and finished_rows(self.store, job) is None

    def _any_seconds(self, job: Job) -> float | None:
        """Return the same, whatever code measured it."""
        table, known = finished_rows(self.store, job), self.recorded.get(identity(job))
        if table is not None:
            return seconds_of(table)
        return None if known is None else known.seconds


def _place(cell: Cell) -> tuple[str, str, str]:
    return cell.case.method, cell.case.dataset, cell.setting


def _data_of(job: Job) -> tuple[str, str, int]:
    return job.dataset, job.data, job.folds


def seconds_of(table: pa.Table) -> float:
    """Return the CPU seconds of a k-fold; infinitely many of one that has no result."""
    return float("inf") if is_failed(table) else sum(table["cpu_seconds"].to_pylist())
