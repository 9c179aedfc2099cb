"""`gmil.compare`: what ``gmil compare`` does, for estimators in Python and without files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from gmil.bags.finite import refuse_non_finite
from gmil.base import BagClassifier
from gmil.checks.controls import CONTROLS
from gmil.errors import MISSING, BagValidationError, listed
from gmil.model_selection.target_crossval import target_of
from gmil.paper import comparison
from gmil.paper.runs.data import Dataset
from gmil.paper.runs.execution import measured
from gmil.paper.runs.jobs import Case, whole_job
from gmil.paper.runs.results import Results
from gmil.paper.runs.specification import MethodEntry
from gmil.paper.target_comparison import compare_values
from gmil.pipeline import imputing
from gmil.safety.processes import bound
from gmil.transform.impute import Impute
from gmil.validation import check_bags

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gmil.bags import Bags
    from gmil.model_selection.result import CVResult
    from gmil.paper.runs.jobs import Job
    from gmil.paper.runs.specification import Spec

_DATA = "bags"


@dataclass(frozen=True, repr=False)
class MethodComparison:
    """Methods on the same folds of the same bags, the most accurate first.

    Attributes
    ----------
    results : dict of CVResult
        The cross-validation of every method and control that did not fail, by its name.
    summary : dict
        What ``gmil compare`` writes to ``compare.json``: rows, protocol, notes, failures, versions.
    """

    results: dict[str, CVResult]
    summary: dict[str, Any]

    @property
    def best(self) -> str | None:
        """The most accurate method, None where all failed; controls do not count."""
        best: str = self.summary["best"]
        return best if best in self.results else None

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row per method and control, the most accurate first.

        A row has ``method``, ``accuracy`` with its 95 % interval ``low`` to ``high``, ``auc``, ``balanced_accuracy``,
        ``difference_to_best``, ``p_value_to_best``, ``p_holm_to_best`` and ``verdict_to_best``; ``failure`` is why
        a method has no figures.
        """
        lines = comparison.flat_rows(self.summary)
        return [{key: value for key, value in line.items() if key not in ("label", "jobs")} for line in lines]

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    def __repr__(self) -> str:
        """Return a line with what was compared: the results would fill pages."""
        protocol = self.summary["protocol"]
        how = f"{protocol['repeats']} x {protocol['folds']}-fold"
        return f"MethodComparison({how}, best {self.best!r} of {[row['method'] for row in self.rows]})"

    def __str__(self) -> str:
        """Return a line per method: accuracy and its interval in per cent, AUC, and the verdict against the best."""
        width = max(len(row["method"]) for row in self.rows)
        return "\n".join(f"{row['method']:<{width}}  {_figures(row)}" for row in self.rows)


def _figures(row: dict[str, Any]) -> str:
    if row["accuracy"] is None:
        return f"failed: {row['failure']}"
    accuracy, low, high = (f"{100 * row[name]:.1f}" for name in ("accuracy", "low", "high"))
    return f"{accuracy} ({low} - {high})  AUC {row['auc']:.3f}  {row['verdict_to_best'] or ''}".rstrip()


def compare(
    estimators: Mapping[str, BaseEstimator],
    bags: Any,
    y: Any,
    *,
    cv: int = comparison.FOLDS,
    repeats: int = comparison.REPEATS,
    groups: Any = None,
    instance_y: Any = None,
    random_state: int = 0,
    n_processes: int | None = None,
) -> Any:
    """Compare estimators on bags, as ``gmil compare`` does: same folds, controls, intervals, Holm's correction.

    Parameters
    ----------
    estimators : dict of estimator
        Classifiers of bags, by the names that they have in the result. They are cloned, never fitted themselves. Where
        the first predicts values, grades or times, all are compared by R², quadratic kappa or concordance.
    bags : Bags, list of 2-D arrays, 3-D array, or 2-D array
        Values may be missing where every estimator is a pipeline that begins with `Impute`.
    y : array of shape (n_bags,)
    cv : int, default=10
        Stratified folds; fewer where the rarest class has fewer bags, or groups.
    repeats : int, default=3
        How often to repeat, with other folds and other seeds.
    groups : array of shape (n_bags,), optional
        Bags of one group (a patient, a site) stay in one fold, and intervals are by bootstrap over groups.
    instance_y : array of shape (n_instances,), optional
        Labels of instances, as `cross_validate` takes them: methods that score instances are measured on them.
    random_state : int, default=0
        The seed of folds and estimators.
    n_processes : int, optional
        Methods at a time, -1 for one on every core. Results do not depend on it.

    Returns
    -------
    MethodComparison, or TargetComparison for values, grades and times

    Examples
    --------
    >>> import gmil
    >>> bags, y = gmil.make_bags(40, n_features=3, random_state=0, return_X_y=True)
    >>> found = gmil.compare({"ten": gmil.GMIL(10), "two": gmil.GMIL(2)}, bags, y, cv=4, repeats=1)
    >>> sorted(found.results)
    ['bag-size', 'majority', 'noise', 'ten', 'two']
    >>> found.rows[0]["method"] == found.best
    True
    """
    _check_estimators(estimators)
    target = target_of(next(iter(estimators.values())))
    if target != "classes":
        return compare_values(
            estimators,
            bags,
            y,
            target,
            cv=cv,
            repeats=repeats,
            groups=groups,
            random_state=random_state,
            n_processes=n_processes,
        )
    data = Dataset(
        _DATA, _checked(bags, estimators), np.asarray(y), None if groups is None else np.asarray(groups), instance_y
    )
    spec = comparison.comparison_spec(_DATA, data.y, (), repeats=repeats, folds=cv, seed=random_state, groups=groups)
    notes = comparison.notes_on_folds(spec, cv, groups)
    spec = spec.having(MethodEntry(name, name, columns=("paper",)) for name in estimators)
    jobs = list(_jobs(spec, estimators, data))
    done = Parallel(n_jobs=n_processes)(delayed(bound(measured))(job, data) for job in jobs)
    tables, found = zip(*done, strict=True)
    results = {job.method: result for job, result in zip(jobs, found, strict=True) if result is not None}
    return MethodComparison(results, _summary(spec, tables, data, notes))


def _jobs(spec: Spec, estimators: Mapping[str, BaseEstimator], data: Dataset) -> Iterator[Job]:
    """Yield a job for every control and estimator: all its repeats together."""
    missing = _shared_strategy(estimators)
    labels = {name: (label, imputing(cls(), missing)) for name, (label, cls) in CONTROLS.items()}
    labels |= {name: (name, estimator) for name, estimator in estimators.items()}
    for name, (label, estimator) in labels.items():
        yield whole_job(spec, Case(data.name, name, "paper", label, estimator, spec.protocol.repeats), data)


def _checked(bags: Any, estimators: Mapping[str, BaseEstimator]) -> Bags:
    """Return bags that every estimator can take; values may be missing where none of them is a classifier alone."""
    checked = check_bags(bags, allow_nan=True)
    refusing = [name for name, estimator in estimators.items() if isinstance(estimator, BagClassifier)]
    try:
        refuse_non_finite(checked, allow_nan=not refusing)
    except BagValidationError as error:
        if error.parameter != MISSING:
            raise
        msg = f"{error.args[0]} These methods take no missing values: {listed(refusing)}."
        fix = "Put gmil.Impute() in front of every method, as in gmil.make_pipeline(gmil.Impute(), gmil.GMIL())."
        raise BagValidationError(msg, parameter=MISSING, fix=fix) from None
    return checked


def _shared_strategy(estimators: Mapping[str, BaseEstimator]) -> str:
    """Return what estimators do about missing values, for the controls; "error" where none does anything."""
    firsts = [estimator[0] for estimator in estimators.values() if isinstance(estimator, Pipeline)]
    strategies = {first.strategy for first in firsts if isinstance(first, Impute)}
    if not strategies:
        return "error"
    return strategies.pop() if len(strategies) == 1 else "median"


def _summary(spec: Spec, tables: Any, data: Dataset, notes: list[str]) -> dict[str, Any]:
    import pyarrow as pa

    results = Results(spec, pa.concat_tables(tables), datasets=(data.name,))
    instances = comparison.instances_without_scores(data)
    return comparison.summarize(results, None, {}, notes, groups=data.groups, instances=instances)


def _check_estimators(estimators: Any) -> None:
    if not hasattr(estimators, "items") or not estimators:
        msg = f"must be a dict of names and estimators, at least one, got {estimators!r}."
        raise BagValidationError(msg, parameter="estimators")
    for name, estimator in estimators.items():
        if not isinstance(name, str) or name in CONTROLS:
            msg = f"must have names that are texts and not those of the controls, {', '.join(CONTROLS)}; got {name!r}."
            raise BagValidationError(msg, parameter="estimators")
        if not isinstance(estimator, BaseEstimator):
            what = "the class. Call it" if isinstance(estimator, type) else repr(estimator)
            msg = f"must hold estimators, but {name!r} is {what}: an estimator is made like gmil.GMIL()."
            raise BagValidationError(msg, parameter="estimators")
