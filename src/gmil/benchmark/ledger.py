"""What of a benchmark is done, and what the rest would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gmil.benchmark.cells import finished_rows, identity
from gmil.benchmark.watching import SURE_BY_DEFAULT
from gmil.paper.runs.store import is_failed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from gmil.benchmark.cells import Cell
    from gmil.benchmark.records import Known
    from gmil.paper.runs.jobs import Job
    from gmil.paper.runs.store import Store

_TRIED_BY_ITSELF = 20
"""How many times as long a method roughly takes that chooses its parameters by itself."""


class Ledger:
    """Knows the k-folds that are done, in the store or on record: a clone has records, and no rows.

    Parameters
    ----------
    store : Store
    recorded : mapping
        What is on record, by the identity of jobs.
    cells : iterable of Cell
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
        cells: Iterable[Cell],
        *,
        changed: bool = False,
        retry_failed: bool = False,
    ) -> None:
        self.store, self.recorded = store, recorded
        self.changed, self.retry_failed = changed, retry_failed
        self._defaults = {(c.case.method, c.case.dataset): c.jobs[0] for c in cells if c.setting == "default"}

    def is_done(self, cell: Cell) -> bool:
        """Tell whether nothing of a cell is missing: all its repeats, or as many as the budget allows."""
        for job in cell.jobs:
            seconds = self._seconds(job)
            if seconds is None:
                return False
            if seconds > 60 * cell.budget.once_minutes:
                return True
        return True

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
        default, seconds = found
        job = cell.jobs[0]
        # Of one setting the method chooses by itself, from about as many.
        chooses_itself = job.settings is not None and len(job.settings) == 1
        return seconds * (_TRIED_BY_ITSELF if chooses_itself else job.n_fits / default.n_fits)

    def why_hopeless(self, cell: Cell) -> str | None:
        """Return why a tuned cell need not be begun: so many fits, at what they cost with the default setting."""
        found = self._by_default(cell)
        if cell.setting == "default" or found is None:
            return None
        (default, seconds), n_fits = found, cell.jobs[0].n_fits
        minutes = seconds * n_fits / default.n_fits / 60
        if minutes <= SURE_BY_DEFAULT * cell.budget.most_minutes:
            return None
        if seconds == float("inf"):
            return "the default setting has no result"
        why = f"{n_fits} fits, where {default.n_fits} by default take {seconds:.0f} s"
        return f"about {minutes:.0f} CPU minutes a k-fold: {why}"

    def _by_default(self, cell: Cell) -> tuple[Job, float] | None:
        """Return the first k-fold of a method on a set with the default setting, and its seconds, where it is known."""
        default = self._defaults.get((cell.case.method, cell.case.dataset))
        seconds = None if default is None else self._any_seconds(default)
        return None if default is None or seconds is None else (default, seconds)

    def _seconds(self, job: Job) -> float | None:
        """Return the CPU seconds of a k-fold that is done."""
        known = self.recorded.get(identity(job))
        is_other_code = self.changed and known is not None and known.code != job.code
        if is_other_code and finished_rows(self.store, job) is None:
            return None
        seconds = self._any_seconds(job)
        return None if seconds == float("inf") and self.retry_failed else seconds

    def _any_seconds(self, job: Job) -> float | None:
        """Return the same, whatever code measured it."""
        table, known = finished_rows(self.store, job), self.recorded.get(identity(job))
        if table is not None:
            return seconds_of(table)
        return None if known is None else known.seconds


def seconds_of(table: pa.Table) -> float:
    """Return the CPU seconds of a k-fold; infinitely many of one that has no result."""
    return float("inf") if is_failed(table) else sum(table["cpu_seconds"].to_pylist())
