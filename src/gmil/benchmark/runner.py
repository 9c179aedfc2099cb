"""Running a benchmark: every cell in a process of its own, what is finished stays, what is missing is done."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.benchmark.cells import finished_rows, load_sets, plan
from gmil.benchmark.ledger import Ledger, seconds_of
from gmil.benchmark.shelf import Shelf
from gmil.benchmark.specification import check_method
from gmil.benchmark.watching import Watch, exceeded, is_interrupted, reason_of
from gmil.errors import ClusterError, GmilError, SpecificationError, count_of, listed
from gmil.model_selection.shared_steps import share_steps
from gmil.paper.runs.data import summary_of
from gmil.paper.runs.execution import execute, failed_rows
from gmil.paper.runs.jobs import known_methods, notes_on_untuned
from gmil.paper.runs.store import Store, is_failed
from gmil.paper.runs.timing import warm_up
from gmil.safety.atomic import replacing
from gmil.safety.guard import first_line

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Generator, Iterator

    import pyarrow as pa

    from gmil.benchmark.cells import Cell
    from gmil.benchmark.specification import Benchmark, Budget
    from gmil.benchmark.watching import Cost
    from gmil.paper.runs.jobs import Job

_SECONDS_BETWEEN = 0.1


def run(
    benchmark: Benchmark,
    *,
    output: str | os.PathLike[str],
    processes: int = 1,
    minutes: float | None = None,
    repeats: int | None = None,
    changed: bool = False,
    retry_failed: bool = False,
    client: Any = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[str]:
    """Measure the cells of a benchmark that are missing, and write the records; return what a reader must know.

    Parameters
    ----------
    benchmark : Benchmark
    output : path
        The folder of the leaderboard. Rows of finished k-folds go to ``rows``, as those of the paper's experiments do;
        from them the records are made, one file for every method. A run that was killed goes on where it stopped, from
        rows and records; where only records are left, from these.
    processes : int
        How many cells are measured at the same time.
    minutes : float, optional
        No cell is begun after so many minutes.
    repeats : int, optional
        So many of the repeats of the protocol now; a later run does the others.
    changed : bool
        Measure cells again that were measured with other code.
    retry_failed : bool
        Measure cells again that are empty.
    client : dask.distributed.Client, optional
        Measure on the workers of a cluster.
    progress : callable, optional
        Called with the number of cells done, of all cells of this run, and what was done.
    """
    benchmark, notes = _without_absent_methods(benchmark)
    sets, notes_on_sets = load_sets(benchmark)
    notes += notes_on_sets + notes_on_untuned(benchmark.spec)
    everything = [replace(cell, jobs=cell.jobs[:repeats]) for cell in plan(benchmark, sets)]
    shelf, store = Shelf(output), Store(output)
    store.clean()
    shelf.clean()
    ledger = Ledger(store, shelf.known(), everything, changed=changed, retry_failed=retry_failed)
    missing = [replace(cell, jobs=ledger.missing_jobs(cell)) for cell in everything if not ledger.is_done(cell)]
    missing.sort(key=ledger.expected_seconds)  # what is cheap first: much is there early
    until = None if minutes is None else time.monotonic() + 60 * minutes
    if progress is not None:
        for data in (sets[name] for name in benchmark.spec.files if name in sets):
            progress(0, len(missing), summary_of(data))
    measured = _measured(missing, ledger.why_hopeless, Path(output), processes, until, retry_failed, client)
    try:
        with contextlib.closing(measured):
            for done, cell in enumerate(measured, start=1):
                if progress is not None:
                    progress(done, len(missing), str(cell))
    finally:  # whatever stops the run, what it has measured is on record
        shelf.take(benchmark, everything, sets, store)
    n_old = sum(ledger.is_of_other_code(cell) for cell in everything)
    told = f"{count_of(n_old, 'cell is', 'cells are')} on record by other code than yours: --changed measures again."
    return notes + [told] * (n_old > 0)


def _without_absent_methods(benchmark: Benchmark) -> tuple[Benchmark, list[str]]:
    """Return a benchmark of the methods that are imported, and a note on the others; one without any is refused."""
    for name in benchmark.labels:
        check_method(name, benchmark.spec.name)  # an own one was not there when the specification was read
    here = [name for name in benchmark.labels if name in known_methods()]
    absent = [name for name in benchmark.labels if name not in known_methods()]
    if not absent:
        return benchmark, []
    told = (
        f"{listed(absent)} {'is' if len(absent) == 1 else 'are'} not measured: a name in a file is not imported. "
        f"Give it on the command line: --methods {','.join(absent)}."
    )
    if not here:
        raise SpecificationError(told)
    return benchmark.restricted(here, None), [told]


def _measured(
    cells: list[Cell],
    hopeless: Callable[[Cell], str | None],
    output: Path,
    processes: int,
    until: float | None,
    retry_failed: bool,
    client: Any,
) -> Generator[Cell]:
    """Yield cells as they are finished; none is begun after ``until``, or where ``hopeless`` has a reason.

    Cells that are being measured when nobody asks for the next one are stopped.
    """
    stop = threading.Event()

    def begin(cell: Cell) -> Cell | None:
        if until is not None and time.monotonic() > until:
            return None
        if (reason := hopeless(cell)) is not None:
            Store(output).write(cell.jobs[0].hash, failed_rows(cell.jobs[0], reason))
        elif client is None:
            measure_cell(cell, output, retry_failed, stop)
        else:
            files = _from_cluster(client.submit(measure_elsewhere, cell, pure=False), cell, stop)
            if files is None:
                return None
            _keep(files, output)
        return cell

    with ThreadPoolExecutor(processes if client is None else max(1, len(client.nthreads()))) as pool:
        futures = [pool.submit(begin, cell) for cell in cells]
        try:
            for future in as_completed(futures):
                done = future.result()
                if done is not None:
                    yield done
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


def measure_cell(cell: Cell, output: Path, retry_failed: bool = False, stop: threading.Event | None = None) -> None:
    """Measure a cell in a process of its own; where that ends early, the rows say why.

    A cell that is interrupted, or stopped by ``stop``, has no rows: it is missing, and the next run measures it.
    """
    process = _context().Process(target=_in_process, args=(cell, output, retry_failed), name="gmil-cell")
    with _interrupts_held():
        process.start()
    while process.is_alive() and not (stop is not None and stop.is_set()):
        process.join(_SECONDS_BETWEEN)
    if process.is_alive():
        process.terminate()
        process.join()
    if process.exitcode != 0 and not is_interrupted(process.exitcode):
        store = Store(output)
        stopped = next((job for job in cell.jobs if finished_rows(store, job) is None), None)
        if stopped is not None:
            store.write(stopped.hash, failed_rows(stopped, reason_of(process.exitcode, cell.budget)))


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let processes begin without Ctrl-C, which would end them with a traceback; they take it once they are ready."""
    if not hasattr(signal, "pthread_sigmask"):  # not on this system
        yield
        return
    resource_tracker.ensure_running()  # it would let Ctrl-C in again when the first process begins
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def measure_elsewhere(cell: Cell) -> dict[str, bytes]:
    """Measure a cell on a worker of a cluster, and return the files of its rows: workers need no common disk."""
    if multiprocessing.current_process().daemon:
        msg = (
            "Workers must be allowed to start processes. Start them with --no-nanny, or set "
            "DASK_DISTRIBUTED__WORKER__DAEMON=False."
        )
        raise ClusterError(msg)
    with tempfile.TemporaryDirectory() as folder:
        measure_cell(cell, Path(folder))
        return {path.name: path.read_bytes() for path in Store(folder).folder.glob("*.parquet")}


def _from_cluster(task: Any, cell: Cell, stop: threading.Event) -> dict[str, bytes] | None:
    """Wait for a cell on a cluster; None where the run is stopped meanwhile."""
    while not task.done():
        if stop.wait(_SECONDS_BETWEEN):
            task.cancel()
            return None
    try:
        files: dict[str, bytes] = task.result()
    except GmilError:
        raise
    except Exception as error:  # of Dask, or of what a worker lacks
        msg = (
            f"The cluster did not measure {cell}: {first_line(error)}. Scheduler and workers must be able to import "
            "gmil, and the modules of your own methods: set PYTHONPATH where they are started."
        )
        raise ClusterError(msg) from error
    return files


def _keep(files: dict[str, bytes], output: Path) -> None:
    for name, content in files.items():
        with replacing(Store(output).folder / name) as temporary:
            temporary.write_bytes(content)


def _context() -> Any:
    """Return how processes begin: from one that has imported everything and has no threads, where there is such."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def _in_process(cell: Cell, output: Path, retry_failed: bool) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a word: the run has one
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    do_jobs(cell, Store(output), Watch, retry_failed)


def do_jobs(cell: Cell, store: Store, watching: Callable[[Budget, int], Watch], retry_failed: bool = False) -> None:
    """Do the repeats of a cell, one after the other, until one fails or is long enough not to be repeated."""
    warm_up(cell.case)
    # One setting has no steps to share: its folds are fitted one by one.
    fold_by_fold = vars(type(cell.case.estimator)).get("_folds_together") in (None, share_steps)
    together = cell.setting == "default" and not fold_by_fold
    with watching(cell.budget, 0 if together else cell.jobs[0].folds) as watch:
        for job in cell.jobs:
            table = finished_rows(store, job)
            if table is None or (retry_failed and is_failed(table)):
                store.remove(job.hash)  # why it failed before is not why it may fail now
                watch.restart()
                table, cost = _finite(job, execute(job, cell.data, watch.see)), watch.cost()
                if (code := exceeded(cost, cell.budget)) is not None:
                    raise SystemExit(code)  # it was done before the watch looked
                table = with_cost(table, cost)
                store.write(job.hash, table)
            if seconds_of(table) > 60 * cell.budget.once_minutes:
                return


def _finite(job: Job, table: pa.Table) -> pa.Table:
    """Return rows of a job, those of a failure where decisions or scores are not finite: figures need numbers.

    A method without decisions has NaN for all of them.
    """
    for name, what in (("decisions", "decisions"), ("instance_scores", "scores of instances")):
        values = np.concatenate([np.asarray(fold or [], dtype=float) for fold in table[name].to_pylist()])
        n_odd = int((~np.isfinite(values)).sum())
        if n_odd and not np.isnan(values).all():
            return failed_rows(job, f"{what} must be finite numbers, but {n_odd} of {len(values)} are not")
    return table


def with_cost(table: pa.Table, cost: Cost) -> pa.Table:
    """Return rows with what they cost; seconds are shared evenly among the folds."""
    import pyarrow as pa

    n = table.num_rows
    shares = {"cpu_seconds": cost.cpu_seconds / n, "gpu_seconds": cost.gpu_seconds and cost.gpu_seconds / n}
    for name, value in {**shares, "peak_bytes": cost.peak_bytes}.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, pa.array([value] * n, type=pa.float64()))
    return table
