"""Cells: one method in one setting on one set, with the k-folds that belong to it, one job for every repeat."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gmil.benchmark.specification import SETTINGS
from gmil.errors import SpecificationError, listed
from gmil.paper.runs.data import Dataset, load_datasets
from gmil.paper.runs.fingerprints import canonical, canonical_json
from gmil.paper.runs.jobs import Case, Job, cases_of, jobs_of, paper_params
from gmil.paper.runs.store import DamagedPartError, Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from gmil.benchmark.specification import Benchmark, Budget
    from gmil.paper.runs.jobs import Fingerprinted

_NOT_IDENTITY = ("spec", "label", "estimator", "code")
"""Records stay where the code has changed; they say which it was."""


@dataclass(frozen=True)
class Cell:
    """What is measured together, and in one process.

    Parameters
    ----------
    case : Case
    data : Dataset
    jobs : tuple of Job
        One for every repeat; all but the first are done only where the budget allows.
    budget : Budget
    """

    case: Case
    data: Dataset
    jobs: tuple[Job, ...]
    budget: Budget

    @property
    def setting(self) -> str:
        """Whether the method has its defaults, or is tuned inside the training bags."""
        return SETTINGS[self.case.column]

    def __str__(self) -> str:
        return f"{self.case.method} on {self.case.dataset}, {self.setting}"


def identity(job: Job) -> str:
    """Return a hash of all that a result depends on but the code."""
    content = {f.name: getattr(job, f.name) for f in dataclasses.fields(job) if f.name not in _NOT_IDENTITY}
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def finished_rows(store: Store, job: Job) -> pa.Table | None:
    """Return the rows of a job; None where it is not done, or where its file is damaged."""
    try:
        return store.read(job.hash, job.folds, job.repeats)
    except DamagedPartError:
        return None


def load_sets(benchmark: Benchmark) -> tuple[dict[str, Dataset], list[str]]:
    """Return the sets that are here, and a note about each that is not; sets that are not of two classes are refused.

    Parameters
    ----------
    benchmark : Benchmark
    """
    spec = benchmark.spec
    needed, optional = (tuple(name for name in spec.datasets if (name in spec.files) is own) for own in (True, False))
    found, notes = load_datasets(dataclasses.replace(spec, datasets=needed, optional_datasets=optional))
    for name, data in found.items():
        if set(data.y.tolist()) != {0, 1}:
            got = listed([repr(label) for label in np.unique(data.y).tolist()])
            fix = f" Name the positive label, as in [files.{name}] positive = ..." if name in spec.files else ""
            msg = f"{name} must have the classes 0 and 1, as bags are positive or not, but its labels are {got}.{fix}"
            raise SpecificationError(msg)
    return found, notes


def asked_of(benchmark: Benchmark, method: str, dataset: str) -> str:
    """Return what a benchmark says of an own method on a set, in one line: others cannot see all of its parameters."""
    entry = next(entry for entry in benchmark.spec.methods if entry.name == method)
    return canonical_json({"params": canonical(paper_params(entry, dataset)), "missing": benchmark.spec.missing})


def planned(benchmark: Benchmark, sets: Iterable[Fingerprinted]) -> set[str]:
    """Return the identities of all k-folds that a benchmark asks for on sets."""
    spec = benchmark.spec
    return {
        identity(job) for data in sets for case in cases_of(spec, data.name) for job in _jobs(benchmark, case, data)
    }


def plan(benchmark: Benchmark, sets: dict[str, Dataset]) -> list[Cell]:
    """Return all cells, those of default settings and of small sets first, so that much is there early."""
    cells = [
        Cell(case, data, tuple(_jobs(benchmark, case, data)), benchmark.budget)
        for data in sets.values()
        for case in cases_of(benchmark.spec, data.name)
    ]
    return sorted(
        cells, key=lambda cell: (cell.setting == "tuned", cell.data.bags.n_instances * cell.data.bags.n_features)
    )


def _jobs(benchmark: Benchmark, case: Case, data: Fingerprinted) -> Iterator[Job]:
    """Yield one job for every repeat, however many: a record is of one."""
    return jobs_of(benchmark.spec, case, data, one_by_one=True)
