"""Jobs: the pieces of an experiment. One job is one method in one column on one data set, one or many whole k-folds."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from gmil.checks.controls import BENCHMARK_CONTROLS, CONTROLS
from gmil.errors import SpecificationError, listed
from gmil.own_methods import all_methods, label_of, own_methods
from gmil.paper.runs.fingerprints import canonical, canonical_json, code_fingerprint
from gmil.paper.tables.grids import has_grid, settings_of, why_untuned
from gmil.pipeline import Pipeline, imputing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sklearn.base import BaseEstimator

    from gmil.paper.runs.data import Dataset
    from gmil.paper.runs.specification import MethodEntry, ParameterSweep, Spec

_NOT_CONTENT = ("spec", "label", "estimator")
"""How a job is called has no part in its result: other names find the same rows; the estimator follows from others."""
_NOT_PARAMETERS = ("random_state", "n_jobs")
"""The seed is that of the job, and threads are fixed: neither belongs to the setting that is measured."""
_ALONE, _TOGETHER = 10, 100
"""The first repeats are jobs of their own, which runs with other numbers of repeats share; later ones go together."""


class Fingerprinted(Protocol):
    """What a job asks of its data: a `Dataset`, or what is on record of one."""

    @property
    def name(self) -> str:
        """What the set is called."""

    @property
    def fingerprint(self) -> str:
        """A hash of bags and labels."""

    @property
    def instance_y(self) -> Any:
        """Labels of instances, None where there are none."""


@dataclass(frozen=True)
class Job:
    """Whole k-folds of one method on one data set, most often one, and all that their results depend on.

    Parameters
    ----------
    spec, label : str
        The experiment that it belongs to, and what it is called there.
    dataset, method, column : str
    params : mapping
        All parameters of the estimator but its seed and its threads.
    settings : tuple of dict, optional
        What a tuned job chooses from; ``inner_folds`` is how.
    folds, repeat, repeats, seed : int
        ``gmil.cross_validate(..., cv=folds, repeats=repeats, random_state=seed)`` is the job; ``repeat`` is the number
        of the first of its repeats.
    data, code : str
        Fingerprints of the bags with their labels and of the source.
    estimator : estimator
        What is fitted.
    scores_instances : bool
        Whether held-out scores of instances are kept, too.
    """

    spec: str
    label: str
    dataset: str
    method: str
    column: str
    params: Mapping[str, Any]
    settings: tuple[Mapping[str, Any], ...] | None
    inner_folds: int | None
    folds: int
    repeat: int
    repeats: int
    seed: int
    data: str
    code: str
    estimator: BaseEstimator = field(repr=False)
    scores_instances: bool = False

    @cached_property
    def hash(self) -> str:
        """The name of the job in the store."""
        content = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in _NOT_CONTENT}
        return hashlib.sha256(canonical_json(content).encode()).hexdigest()

    @property
    def n_fits(self) -> int:
        """How many times something is fitted: what progress counts."""
        n_folds = self.folds * self.repeats
        if self.settings is None or self.inner_folds is None:
            return n_folds
        n_inner = len(self.settings) * self.inner_folds if len(self.settings) > 1 else 0
        return n_folds * (1 + n_inner)


@dataclass(frozen=True)
class Case:
    """What is measured: one method in one column on one data set; ``settings`` is what a tuned one chooses from."""

    dataset: str
    method: str
    column: str
    label: str
    estimator: BaseEstimator
    repeats: int
    timed: bool = False
    settings: tuple[Mapping[str, Any], ...] | None = None


def known_methods() -> dict[str, type[BaseEstimator]]:
    """Return every method that can be measured here: registered estimators, own ones that were named, and controls."""
    return {**all_methods(), **{name: cls for name, (_, cls) in BENCHMARK_CONTROLS.items()}}


def own_labels(names: Iterable[str]) -> dict[str, str]:
    """Return what own methods are called in a table: as the class, or in full where two classes have one name."""
    own = {name: label_of(name) for name in names if name in own_methods()}
    return {name: label if list(own.values()).count(label) == 1 else name for name, label in own.items()}


def notes_on_unmeasured(spec: Spec) -> list[str]:
    """Return notes on methods that have published figures only: too slow for this run, or not there."""
    known = known_methods()
    slow = [m.label for m in spec.methods if m.name in known and not m.columns]
    absent = [m.label for m in spec.methods if m.name not in known]
    reasons = {"Not measured in this run": slow, "Not in this gmil": absent}
    return [
        f"{reason}, shown with published figures only: {listed(labels, most=30)}."
        for reason, labels in reasons.items()
        if labels
    ]


def notes_on_untuned(spec: Spec) -> list[str]:
    """Return a note on methods that are asked for tuned and have no grid."""
    known = known_methods()
    gridless = [m for m in spec.methods if m.name in known and "tuned" in m.columns and not has_grid(m.name)]
    reasons = [f"{m.label} ({why_untuned(m.name) or 'it has no grid'})" for m in gridless]
    return [f"Not tuned: {listed(reasons, most=30)}."] * bool(reasons)


def make_estimator(method: str, params: Mapping[str, Any]) -> BaseEstimator:
    """Return the estimator of a method, on one thread; parameters that it does not have are refused."""
    estimator = known_methods()[method]()
    names = estimator.get_params()
    for name in params:
        if name not in names:
            msg = f"{method} has no parameter {name!r}; its parameters are {listed(sorted(names), most=60)}."
            raise SpecificationError(msg)
    estimator.set_params(**params)
    # Processes share the cores, and times are those of one thread: an engine must not take all cores by itself.
    return estimator.set_params(**{name: 1 for name in estimator.get_params() if _last_part(name) == "n_jobs"})


def measured_params(estimator: BaseEstimator) -> dict[str, Any]:
    """Return all parameters of an estimator but its seed and its threads."""
    return {k: v for k, v in estimator.get_params().items() if _last_part(k) not in _NOT_PARAMETERS}


def _last_part(name: str) -> str:
    return name.rpartition("__")[2]


def expand(spec: Spec, data: Mapping[str, Dataset]) -> list[Job]:
    """Return all jobs of an experiment on the data sets that are present, in the order of its tables."""
    return [job for d in data.values() for case in cases_of(spec, d.name) for job in jobs_of(spec, case, d)]


def cases_of(spec: Spec, dataset: str) -> Iterator[Case]:
    """Yield what an experiment measures on a data set: controls, methods in their columns, values of sweeps."""
    for case in _plain_cases(spec, dataset):
        estimator = imputing(case.estimator, spec.missing)
        yield dataclasses.replace(case, estimator=estimator, settings=_settings_of_last(estimator, case.settings))


def _settings_of_last(
    estimator: BaseEstimator, settings: tuple[Mapping[str, Any], ...] | None
) -> tuple[Mapping[str, Any], ...] | None:
    """Return settings of a method as those of what is fitted: of a pipeline, they are for its last step."""
    if settings is None or not isinstance(estimator, Pipeline):
        return settings
    last = estimator.steps[-1][0]
    return tuple({f"{last}__{name}": value for name, value in setting.items()} for setting in settings)


def _plain_cases(spec: Spec, dataset: str) -> Iterator[Case]:
    known, protocol = known_methods(), spec.protocol
    for name, (label, _) in CONTROLS.items() if spec.controls else ():
        yield Case(dataset, name, "paper", label, make_estimator(name, {}), protocol.repeats)
    for entry in spec.methods:
        for column in entry.columns if entry.name in known else ():
            names, repeats = (dataset, entry.name, column, entry.label), protocol.repeats_of(column, entry.repeats)
            if column == "paper":
                estimator = make_estimator(entry.name, paper_params(entry, dataset))
                yield Case(*names, estimator, repeats, timed=True)
            elif has_grid(entry.name):
                settings = tuple(settings_of(entry.name, most=protocol.max_settings, seed=protocol.seed))
                yield Case(*names, make_estimator(entry.name, {}), repeats, settings=settings)
    for sweep in spec.sweeps:
        if sweep.method in known and dataset in sweep.datasets:
            repeats = min(protocol.repeats, sweep.repeats or protocol.repeats)
            for value in sweep.values:
                params = {**sweep.params, **sweep.per_dataset.get(dataset, {}), sweep.parameter: value}
                names = (dataset, sweep.method, sweep.name, sweep_label(sweep, value))
                yield Case(*names, make_estimator(sweep.method, params), repeats, sweep.timed)


def paper_params(entry: MethodEntry, dataset: str) -> dict[str, Any]:
    """Return the parameters of the paper setting of a method on a data set."""
    params: dict[str, Any] = {}
    if entry.from_paper:
        cls: Any = known_methods()[entry.name]
        params |= cls.from_paper(dataset).get_params(deep=False)
    return {**params, **entry.params, **entry.per_dataset.get(dataset, {})}


def sweep_label(sweep: ParameterSweep, value: Any) -> str:
    """Return what one value of a sweep is called in the rows."""
    return f"{sweep.parameter}={value}"


def whole_job(spec: Spec, case: Case, data: Fingerprinted) -> Job:
    """Return all repeats of a case as one job, for who keeps no rows."""
    return Job(**_shared(spec, case, data), repeat=0, repeats=case.repeats, seed=spec.protocol.seed)


def jobs_of(spec: Spec, case: Case, data: Fingerprinted, *, one_by_one: bool = False) -> Iterator[Job]:
    """Yield the jobs of a case, whose rows are kept; with ``one_by_one`` every repeat is a job of its own."""
    shared = _shared(spec, case, data)
    for repeat, repeats in [(r, 1) for r in range(case.repeats)] if one_by_one else blocks_of_repeats(case.repeats):
        yield Job(**shared, repeat=repeat, repeats=repeats, seed=spec.protocol.seed + repeat)


def _shared(spec: Spec, case: Case, data: Fingerprinted) -> dict[str, Any]:
    """Return what the jobs of a case share; instances are scored where they have labels and the method has scores."""
    tuned, names = case.settings is not None, ("dataset", "method", "column", "label", "estimator", "settings")
    return {
        **{name: getattr(case, name) for name in names},
        "spec": spec.name,
        "params": canonical(measured_params(case.estimator)),
        "inner_folds": spec.protocol.inner_folds if tuned else None,
        "folds": spec.protocol.folds,
        "data": data.fingerprint,
        "scores_instances": data.instance_y is not None and hasattr(case.estimator, "score_instances"),
        "code": code_of(case.estimator, tuned=tuned),
    }


def code_of(estimator: BaseEstimator, *, tuned: bool = False) -> str:
    """Return hashes of the source that the results of an estimator depend on."""
    return "+".join(code_fingerprint(type(step), tuned=tuned) for step in _steps(estimator))


def _steps(estimator: BaseEstimator) -> list[BaseEstimator]:
    """Return what is fitted: the steps of a pipeline, or the estimator alone."""
    return [step for _, step in estimator.steps] if isinstance(estimator, Pipeline) else [estimator]


def blocks_of_repeats(repeats: int) -> Iterator[tuple[int, int]]:
    """Yield the first repeat of every job, and how many it has: thousands of jobs would be thousands of files.

    >>> list(blocks_of_repeats(3))
    [(0, 1), (1, 1), (2, 1)]
    >>> list(blocks_of_repeats(250))[9:]
    [(9, 1), (10, 100), (110, 100), (210, 40)]
    """
    yield from ((repeat, 1) for repeat in range(min(repeats, _ALONE)))
    yield from ((start, min(_TOGETHER, repeats - start)) for start in range(_ALONE, repeats, _TOGETHER))
