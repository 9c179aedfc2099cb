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
from functools import partial
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmil.benchmark.cells import finished_rows, identity, load_sets, plan
from gmil.benchmark.records import Known, Shelf
from gmil.benchmark.specification import check_method
from gmil.benchmark.watching import SURE_BY_DEFAULT, Watch, exceeded, is_interrupted, reason_of
from gmil.errors import ClusterError, GmilError, SpecificationError
from gmil.paper.runs.execution import execute, failed_rows
from gmil.paper.runs.jobs import known_methods
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
_TRIED_BY_ITSELF = 20
"""How many times as long a method roughly takes that chooses its parameters by itself."""


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
        Measure cells again whose records are of other code than that which is here.
    retry_failed : bool
        Measure cells again that are empty.
    client : dask.distributed.Client, optional
        Measure on the workers of a cluster.
    progress : callable, optional
        Called with the number of cells done, of all cells of this run, and what was done.
    """
    _refuse_absent_methods(benchmark)
    sets, notes = load_sets(benchmark)
    everything = [replace(cell, jobs=cell.jobs[:repeats]) for cell in plan(benchmark, sets)]
    shelf, store = Shelf(output), Store(output)
    store.clean()
    recorded = shelf.known()
    is_known = partial(_is_known, store=store, recorded=recorded, changed=changed, retry_failed=retry_failed)
    missing = [cell for cell in everything if not _is_done(cell, store, recorded, changed, retry_failed)]
    missing = [replace(cell, jobs=tuple(job for job in cell.jobs if not is_known(job))) for cell in missing]
    until = None if minutes is None else time.monotonic() + 60 * minutes
    defaults = _defaults(everything)
    hopeless = partial(_why_hopeless, defaults, store, recorded)
    missing.sort(key=partial(_expected_seconds, defaults, store, recorded))  # what is cheap first: much is there early
    measured = _measured(missing, hopeless, Path(output), processes, until, retry_failed, client)
    try:
        with contextlib.closing(measured):
            for done, cell in enumerate(measured, start=1):
                if progress is not None:
                    progress(done, len(missing), str(cell))
    finally:  # whatever stops the run, what it has measured is on record
        shelf.take(benchmark, everything, sets, store)
    return notes


def _refuse_absent_methods(benchmark: Benchmark) -> None:
    for name in benchmark.labels:
        check_method(name, benchmark.spec.name)  # an own one was not there when the specification was read
        if name not in known_methods():
            msg = (
                f"The method {name!r} is not imported: what stands in a file is not. Name on the command line what to "
                f"measure, as in --methods {name}."
            )
            raise SpecificationError(msg)


def _is_done(cell: Cell, store: Store, recorded: dict[str, Known], changed: bool, retry_failed: bool) -> bool:
    """Tell whether nothing of a cell is missing: all its repeats, or as many as the budget allows."""
    for job in cell.jobs:
        if not _is_known(job, store, recorded, changed, retry_failed):
            return False
        if (_known_seconds(job, store, recorded, changed) or 0.0) > 60 * cell.budget.once_minutes:
            return True
    return True


def _is_known(job: Job, store: Store, recorded: dict[str, Known], changed: bool, retry_failed: bool) -> bool:
    """Tell whether a k-fold is done: it is in the store, or on record where rows were never here."""
    seconds = _known_seconds(job, store, recorded, changed)
    return seconds is not None and not (seconds == float("inf") and retry_failed)


def _known_seconds(job: Job, store: Store, recorded: dict[str, Known], changed: bool = False) -> float | None:
    """Return the CPU seconds of a k-fold that is done; with ``changed``, done with the code that is here."""
    table, known = finished_rows(store, job), recorded.get(identity(job))
    if table is not None:
        return seconds_of(table)
    return None if known is None or (changed and known.code != job.code) else known.seconds


def _defaults(cells: list[Cell]) -> dict[tuple[str, str], Job]:
    """Return the first k-fold of every method on every set with the default setting."""
    return {(cell.case.method, cell.case.dataset): cell.jobs[0] for cell in cells if cell.setting == "default"}


def _expected_seconds(
    defaults: dict[tuple[str, str], Job], store: Store, recorded: dict[str, Known], cell: Cell
) -> float:
    """Return what a k-fold will cost, by the default setting: nothing of one that is new, as others wait for it.

    A tuned cell whose default setting is not known comes last.
    """
    default = defaults.get((cell.case.method, cell.case.dataset))
    seconds = None if default is None else _known_seconds(default, store, recorded)
    if seconds is None or default is None:
        return 0.0 if cell.setting == "default" else float("inf")
    settings = cell.jobs[0].settings
    # Of one setting the method chooses by itself, from about as many.
    factor = _TRIED_BY_ITSELF if settings is not None and len(settings) == 1 else cell.jobs[0].n_fits / default.n_fits
    return seconds * factor


def _why_hopeless(
    defaults: dict[tuple[str, str], Job], store: Store, recorded: dict[str, Known], cell: Cell
) -> str | None:
    """Return why a tuned cell need not be begun: so many fits, at what they cost with the default setting."""
    default = defaults.get((cell.case.method, cell.case.dataset))
    if cell.setting == "default" or default is None:
        return None
    seconds, n_fits = _known_seconds(default, store, recorded), cell.jobs[0].n_fits
    if seconds is None:
        return None
    minutes = seconds * n_fits / default.n_fits / 60
    if minutes <= SURE_BY_DEFAULT * cell.budget.most_minutes:
        return None
    if seconds == float("inf"):
        return "the default setting has no result"
    why = f"{n_fits} fits, where {default.n_fits} by default take {seconds:.0f} s"
    return f"about {minutes:.0f} CPU minutes a k-fold: {why}"


def seconds_of(table: pa.Table) -> float:
    """Return the CPU seconds of a k-fold; infinitely many of one that has no result."""
    return float("inf") if is_failed(table) else sum(table["cpu_seconds"].to_pylist())


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


def do_jobs(cell: Cell, store: Store, watching: Callable[[Budget, bool], Watch], retry_failed: bool = False) -> None:
    """Do the repeats of a cell, one after the other, until one fails or is long enough not to be repeated."""
    warm_up(cell.case)
    in_turn = cell.setting == "tuned" or "_folds_together" not in vars(type(cell.case.estimator))
    with watching(cell.budget, in_turn) as watch:
        for job in cell.jobs:
            table = finished_rows(store, job)
            if table is None or (retry_failed and is_failed(table)):
                watch.restart()
                table, cost = execute(job, cell.data, watch.see), watch.cost()
                if (code := exceeded(cost, cell.budget)) is not None:
                    raise SystemExit(code)  # it was done before the watch looked
                table = with_cost(table, cost)
                store.write(job.hash, table)
            if seconds_of(table) > 60 * cell.budget.once_minutes:
                return


def with_cost(table: pa.Table, cost: Cost) -> pa.Table:
    """Return rows with what they cost; seconds are shared evenly among the folds."""
    import pyarrow as pa

    n = table.num_rows
    shares = {"cpu_seconds": cost.cpu_seconds / n, "gpu_seconds": cost.gpu_seconds and cost.gpu_seconds / n}
    for name, value in {**shares, "peak_bytes": cost.peak_bytes}.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, pa.array([value] * n, type=pa.float64()))
    return table
