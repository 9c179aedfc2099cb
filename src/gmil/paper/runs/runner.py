"""Running an experiment: what is finished stays, what is missing is done, in any number of processes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError

from gmil.errors import GmilError
from gmil.paper.runs.data import Dataset, load_datasets
from gmil.paper.runs.execution import execute
from gmil.paper.runs.jobs import Job, expand, notes_on_unmeasured, notes_on_untuned
from gmil.paper.runs.parsing import as_spec
from gmil.paper.runs.results import Results
from gmil.paper.runs.store import DamagedPartError, Store, is_failed, table_of
from gmil.safety.processes import bound

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

    from gmil.paper.runs.specification import Spec


class RunFailedError(GmilError, OSError):
    """A run that could not go on; started again, it continues."""


def run(
    spec: Spec | str | os.PathLike[str],
    *,
    output: str | os.PathLike[str],
    jobs: int = 1,
    retry_failed: bool = False,
    data: Mapping[str, tuple[Any, ...]] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Results:
    """Run an experiment, or what is missing of it, and return all its rows.

    Parameters
    ----------
    spec : Spec, str or path
        An experiment, the name of one that comes with gmil, or a TOML file.
    output : path
        The folder of the store; rows go to ``<output>/rows``, one file per finished job. A run that was killed
        at any moment goes on where it stopped, and several may work on one folder at the same time.
    jobs : int, default=1
        Processes; -1 means all cores. The result does not depend on it.
    retry_failed : bool, default=False
        Do jobs again whose rows say that they failed.
    data : mapping of name to (bags, y), (bags, y, groups) or (bags, y, groups, instance_y), optional
        Bags for data sets that gmil has no loader for, or in place of those it would load. Bags of one group stay
        in one fold, and together where a method chooses on its training bags. With labels of instances, the held-out
        scores of instances are kept of methods that have them.
    progress : callable, optional
        Called with the number of fits done and of all fits of this run.

    Returns
    -------
    Results

    Examples
    --------
    >>> import tempfile
    >>> from gmil.paper import parse_spec, run
    >>> spec = parse_spec(
    ...     {
    ...         "datasets": ["toy"],
    ...         "generated": {"toy": {"n_bags": 20, "random_state": 0}},
    ...         "protocol": {"folds": 4, "repeats": 2},
    ...         "method": [{"name": "gmil", "columns": ["paper"], "params": {"n_clusters": 8}}],
    ...     },
    ...     "example",
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = run(spec, output=folder)
    >>> results.fold_accuracies("toy", "gmil", "paper").shape
    (2, 4)
    """
    spec = as_spec(spec)
    datasets, notes = load_datasets(spec, data)
    plan = expand(spec, datasets)
    store = Store(output)
    store.clean()
    missing, damaged = _missing(store, plan, retry_failed)
    notes += [f"{name} is damaged and its job is done again." for name in damaged]
    notes += notes_on_unmeasured(spec) + notes_on_untuned(spec)
    _do(missing, datasets, Path(output), jobs, retry_failed, progress)
    return Results(spec, collect(store, plan), tuple(notes), tuple(datasets))


def collect(store: Store, jobs: list[Job]) -> pa.Table:
    """Return the rows of finished jobs, in order, under the names that this experiment gives them."""
    import pyarrow as pa

    tables = []
    for job in jobs:
        table = store.read(job.hash, job.folds, job.repeats)
        if table is None:
            continue
        for name in ("spec", "label"):  # another experiment may have done the job under other names
            position = table.schema.get_field_index(name)
            table = table.set_column(position, name, pa.array([getattr(job, name)] * table.num_rows))
        tables.append(table)
    return pa.concat_tables(tables) if tables else table_of([])


def _missing(store: Store, plan: list[Job], retry_failed: bool) -> tuple[list[Job], list[str]]:
    """Return the jobs to do, in the order of the plan, and the names of damaged files."""
    missing, damaged = [], []
    for job in plan:
        table, is_damaged = _read(store, job)
        damaged += [store.path(job.hash).name] * is_damaged
        if table is None or (retry_failed and is_failed(table)):
            missing.append(job)
    return missing, damaged


def _read(store: Store, job: Job) -> tuple[pa.Table | None, bool]:
    """Return the rows of a job, None where it is to be done, and whether its file is damaged."""
    try:
        return store.read(job.hash, job.folds, job.repeats), False
    except DamagedPartError:
        return None, True


def _do(
    plan: list[Job],
    datasets: Mapping[str, Dataset],
    output: Path,
    jobs: int,
    retry_failed: bool,
    progress: Callable[[int, int], None] | None,
) -> None:
    # The longest first: at the end no process then waits for another.
    plan = sorted(plan, key=lambda job: job.n_fits * datasets[job.dataset].bags.n_instances, reverse=True)
    arguments = [(job, datasets[job.dataset], output, retry_failed) for job in plan]
    total, done = sum(job.n_fits for job in plan), 0
    for n_fits in _done_in_processes(arguments, jobs):
        done += n_fits
        if progress is not None:
            progress(done, total)


def _done_in_processes(arguments: list[tuple[Job, Dataset, Path, bool]], jobs: int) -> Iterator[int]:
    if jobs == 1 or len(arguments) < 2:
        yield from (do_job(*given) for given in arguments)
        return
    try:
        tasks = (delayed(bound(do_job))(*given) for given in arguments)
        yield from Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered")(tasks)
    except TerminatedWorkerError as error:
        msg = "A process was killed, perhaps for want of memory. Run the same again with fewer jobs: it continues."
        raise RunFailedError(msg) from error


def do_job(job: Job, dataset: Dataset, output: Path, retry_failed: bool) -> int:
    """Do one job and write its rows, unless another process has; return its number of fits."""
    store = Store(output)
    table, _ = _read(store, job)
    if table is None or (retry_failed and is_failed(table)):
        store.write(job.hash, execute(job, dataset))
    return job.n_fits
