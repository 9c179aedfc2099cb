"""Cross-validation of what predicts values or times."""

from __future__ import annotations

import inspect
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import is_regressor
from sklearn.model_selection import GroupKFold, KFold, ParameterGrid

from gmil.errors import BagValidationError
from gmil.model_selection.folds import estimator_seed, fit_with_groups, fold_numbers, last_step, with_seed
from gmil.model_selection.survival import times_to_measure
from gmil.model_selection.target_result import TargetResult
from gmil.safety.processes import bound
from gmil.scale import LazyBags
from gmil.target_checks import TARGETS, check_outcomes, check_values, outcomes_of
from gmil.validation import check_bags, check_lazy_bags

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gmil.engine.arrays import Booleans, Floats, Integers


class Validating(NamedTuple):
    """How often, on which folds, and with what an estimator is validated."""

    cv: Any
    repeats: int
    groups: Any
    param_grid: Any
    random_state: int
    n_jobs: int | None
    n_processes: int | None
    progress: Callable[[int, int], None] | None


def target_of(estimator: Any) -> str:
    """Return what an estimator predicts: "classes", "regression", "ordinal" or "survival"."""
    _, last = last_step(getattr(estimator, "estimator", None) or estimator)
    own = getattr(last, "_target", None)
    if own in TARGETS:
        return str(own)
    if hasattr(last, "predict_survival_function"):  # as models of scikit-survival have it
        return "survival"
    return "regression" if is_regressor(last) else "classes"


def has_curves(estimator: Any) -> bool:
    """Tell whether an estimator of times can be asked for survival curves at given times."""
    ask = getattr(last_step(estimator)[1], "predict_survival_function", None)
    return ask is not None and "times" in inspect.signature(ask).parameters


def validate_values(estimator: Any, bags: Any, y: Any, target: str, asked: Validating) -> TargetResult:
    """Cross-validate an estimator of values, or of times."""
    bags = check_lazy_bags(bags) if isinstance(bags, LazyBags) else check_bags(bags, allow_nan=True)
    outcomes = check_outcomes(y, bags) if target == "survival" else None
    values: Any = check_values(y, bags, estimator) if outcomes is None else outcomes_of(*outcomes)
    groups = None if asked.groups is None else np.asarray(asked.groups)
    seeds = [asked.random_state + repeat for repeat in range(asked.repeats)]
    if outcomes is None:
        folds = np.array([_folds_of_values(asked.cv, len(bags), groups, seed) for seed in seeds])
    else:
        folds = np.array([fold_numbers(asked.cv, _strata(outcomes.event), groups, seed) for seed in seeds])
    times = None if outcomes is None else times_to_measure(values, values)
    settings = [{}] if asked.param_grid is None else [dict(one) for one in ParameterGrid(asked.param_grid)]
    return _run(estimator, bags, values, folds, settings, times, asked._replace(groups=groups), target)


def _strata(event: Booleans) -> Integers:
    """Return what folds are balanced by: events, where some are censored and every kind is there twice."""
    counts = np.bincount(event.astype(np.int64), minlength=2)
    return np.arange(len(event)) % 2 if counts.min() < 2 else event.astype(np.int64)


def _folds_of_values(cv: Any, n_bags: int, groups: Any, seed: int) -> Integers:
    """Return the test fold of every bag, shuffled; no group is split."""
    if not isinstance(cv, (int, np.integer)):
        return fold_numbers(cv, np.zeros(n_bags), groups, seed)
    units = n_bags if groups is None else len(np.unique(groups))
    if not 2 <= cv <= units:
        msg = f"must be at least 2 and at most {units}, the number of {'bags' if groups is None else 'groups'}."
        raise BagValidationError(msg, parameter="cv", value=cv)
    splitter: Any = (KFold if groups is None else GroupKFold)(int(cv), shuffle=True, random_state=seed)
    return fold_numbers(splitter, np.zeros(n_bags), groups, seed)


class _Held(NamedTuple):
    predictions: Floats
    curves: Floats | None
    seconds: tuple[float, float]


def _run(
    estimator: Any,
    bags: Any,
    y: NDArray[Any],
    folds: Integers,
    settings: list[dict[str, Any]],
    times: Any,
    asked: Validating,
    target: str,
) -> TargetResult:
    n_folds = int(folds.max()) + 1
    places = [(s, r, f) for s in range(len(settings)) for r in range(len(folds)) for f in range(n_folds)]
    shape = (len(settings), len(folds), len(y))
    predictions = np.empty((*shape, *y.shape[1:]))
    with_curves = times is not None and has_curves(estimator)
    curves = np.empty((*shape, len(times))) if with_curves else None
    seconds = np.zeros((2, len(settings), len(folds), n_folds))
    threads = {} if asked.n_jobs is None else {n: asked.n_jobs for n in estimator.get_params() if n.endswith("n_jobs")}
    tasks = (
        delayed(bound(_run_fold))(
            with_seed(estimator, estimator_seed(asked.random_state, r, f), {**settings[s], **threads}),
            (bags, y, asked.groups),
            folds[r] == f,
            times if with_curves else None,
        )
        for s, r, f in places
    )
    processes = 1 if isinstance(bags, LazyBags) else asked.n_processes
    for done, ((s, r, f), held) in enumerate(
        zip(places, Parallel(n_jobs=processes, return_as="generator")(tasks), strict=True), start=1
    ):
        test = folds[r] == f
        predictions[s, r, test], seconds[:, s, r, f] = held.predictions, held.seconds
        if curves is not None:
            curves[s, r, test] = held.curves
        if asked.progress is not None:
            asked.progress(done, len(places))
    found = settings, asked.groups, asked.random_state, times, curves
    return TargetResult(y, predictions, folds, seconds[0], seconds[1], target, *found)


def _run_fold(model: Any, data: tuple[Any, Any, Any], test: Booleans, times: Any) -> _Held:
    bags, y, groups = data
    start = time.perf_counter()
    fit_with_groups(model, bags[~test], y[~test], None if groups is None else groups[~test])
    fitted = time.perf_counter()
    predictions = np.asarray(model.predict(bags[test]), dtype=np.float64)
    end = time.perf_counter()
    curves = None if times is None else model.predict_survival_function(bags[test], times)
    return _Held(predictions, curves, (fitted - start, end - fitted))
