"""Cross-validation one fold after another, or several at a time: for every estimator that cannot do all at once."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from gmil.base import BagClassifier
from gmil.engine import n_threads, one_blas_thread
from gmil.errors import BagValidationError
from gmil.model_selection.folds import LEFT_OUT, estimator_seed, fit_with_groups, is_indicator, last_step, with_seed
from gmil.model_selection.instance_result import InstanceResult
from gmil.model_selection.result import CVResult
from gmil.safety.processes import bound
from gmil.scale import LazyBags

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray
    from sklearn.base import BaseEstimator

    from gmil.bags import Bags
    from gmil.engine.arrays import Floats, Integers
    from gmil.fold_work import FoldWork

_MOST_BYTES_PER_THREAD = 1 << 26
"""Folds in threads hold a copy of their instances each: above this size one fold at a time uses all threads."""


class _FoldResult(NamedTuple):
    predictions: NDArray[Any]
    decisions: Floats
    fit_seconds: float
    predict_seconds: float
    positive_label: Any
    instance_scores: Floats | None = None  # (n_instances of its bags, n_problems)


def fold_by_fold(
    estimator: BaseEstimator, work: FoldWork, folds: Integers, random_state: int, n_processes: int | None
) -> CVResult:
    """Fit and predict under every setting, in every fold of every repeat.

    ``folds (n_repeats, n_bags)`` says which fold tests each bag, see `gmil.model_selection.folds.repeated_splits` for
    those that none does; ``work.n_jobs``, how many threads a fit has.
    """
    bags, y, settings = work.bags, work.y, [dict(setting) for setting in work.settings]
    n_folds = int(folds.max()) + 1
    places = [(s, r, f) for s in range(len(settings)) for r in range(len(folds)) for f in range(n_folds)]
    several = is_indicator(y)
    classes = np.arange(y.shape[1]) if several else np.unique(y)
    shape = (len(settings), len(folds), len(y))
    predictions = np.zeros((*shape, *y.shape[1:]), dtype=y.dtype)
    decisions = np.full(shape if len(classes) == 2 and not several else (*shape, len(classes)), np.nan)
    seconds = np.zeros((2, len(settings), len(folds), n_folds))
    threads = 1 if n_processes is not None else _threads_over_folds(estimator, work)
    alone = _with_threads(estimator, 1 if threads > 1 else work.n_jobs)
    each = work._replace(settings=(), folds=(), progress=None)  # what travels to other processes
    tasks = (
        delayed(bound(_run_fold))(
            estimator,
            {**settings[s], **alone},
            each,
            ((folds[r] != f) & (folds[r] != LEFT_OUT), folds[r] == f),
            estimator_seed(random_state, r, f),
            classes,
        )
        for s, r, f in places
    )
    positive_labels: list[Any] = [None] * len(settings)
    instances = None if work.instance_labels is None else no_scores(work, shape)
    results = _in_threads(tasks, threads) if threads > 1 else _in_processes(tasks, bags, n_processes)
    for done, ((s, r, f), result) in enumerate(zip(places, results, strict=True), start=1):
        test = folds[r] == f
        predictions[s, r, test], decisions[s, r, test] = result.predictions, result.decisions
        seconds[:, s, r, f] = result.fit_seconds, result.predict_seconds
        positive_labels[s] = result.positive_label if decisions.ndim == 3 else None
        if instances is not None:
            instances.scores[s, r, np.repeat(test, bags.sizes)] = result.instance_scores
        work.report(done)
    found = CVResult(y, predictions, decisions, folds, seconds[0], seconds[1], settings, positive_labels[0])
    return replace(found, instances=instances)


def no_scores(work: FoldWork, shape: tuple[int, ...]) -> InstanceResult:
    """Return what has room for scores of instances under every setting, in every repeat."""
    labels: Any = work.instance_labels
    room = np.full((*shape[:2], *labels.shape), np.nan)
    return InstanceResult(labels, room, np.asarray(work.bags.offsets), work.groups)


def _with_threads(estimator: Any, n_jobs: int | None) -> dict[str, int]:
    """Return the parameters that give an estimator, and those inside it, so many threads; None leaves them alone."""
    names = [] if n_jobs is None else [n for n in estimator.get_params() if n.rpartition("__")[2] == "n_jobs"]
    return dict.fromkeys(names, n_jobs or 0)


def _threads_over_folds(estimator: Any, work: FoldWork) -> int:
    """Return how many folds are worked on at a time in threads of this process; 1 means no threads."""
    bags = work.bags
    if isinstance(bags, LazyBags) or not getattr(estimator, "_folds_in_threads", False):
        return 1
    threads = n_threads(estimator.n_jobs if work.n_jobs is None else work.n_jobs)
    return threads if bags.n_instances * bags.n_features * 8 <= _MOST_BYTES_PER_THREAD else 1


def _in_threads(tasks: Iterable[Any], threads: int) -> Iterator[_FoldResult]:
    with one_blas_thread():
        yield from Parallel(n_jobs=threads, backend="threading", return_as="generator")(tasks)


def _in_processes(tasks: Iterable[Any], bags: Bags | LazyBags, n_processes: int | None) -> Iterator[_FoldResult]:
    # Bags on disk are read by threads of this process or by a cluster: processes beside them would only wait.
    processes = 1 if isinstance(bags, LazyBags) else n_processes
    yield from Parallel(n_jobs=processes, return_as="generator")(tasks)


def _run_fold(
    estimator: BaseEstimator,
    setting: Mapping[str, Any],
    work: FoldWork,
    split: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    seed: int,
    classes: NDArray[Any],
) -> _FoldResult:
    model = with_seed(estimator, seed, setting)
    train, test = split
    training, held_out = work.bags[train], work.bags[test]
    training_groups = None if work.groups is None else work.groups[train]
    start = time.perf_counter()
    fit_with_groups(model, training, work.y[train], training_groups)
    fitted = time.perf_counter()
    predictions, decisions = _decide(model, held_out, classes)
    end = time.perf_counter()
    seconds, positive = (fitted - start, end - fitted), positive_class(model)
    scores = None if work.instance_labels is None else _score_instances(model, held_out, classes, predictions.ndim == 2)
    return _FoldResult(predictions, decisions, *seconds, positive, scores)


def positive_class(model: Any) -> Any:
    """Return the positive class of a fitted model of two classes: ``pos_label_``, or ``classes_[1]`` without one."""
    _, last = last_step(getattr(model, "best_estimator_", model))
    label = getattr(last, "pos_label_", None)
    return model.classes_[1] if label is None else label


def _decide(model: Any, bags: Bags | LazyBags, classes: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
    """Return labels, and decisions with one column per class of all bags; a class that training lacked is NaN."""
    if isinstance(model, BagClassifier) and type(model).predict is BagClassifier.predict:
        decisions = model.decision_function(bags)  # labels follow from it: bags are measured once
        return model._labels_of(decisions), _of_classes(decisions, model, len(bags), classes)
    predictions = model.predict(bags)
    is_one_problem = len(classes) == 2 and predictions.ndim == 1  # and not two labels, of which a bag may have both
    if hasattr(model, "decision_function"):
        decisions = model.decision_function(bags)
    elif hasattr(model, "predict_proba"):
        decisions = model.predict_proba(bags)
        decisions = decisions[:, 1] if is_one_problem else decisions
    else:
        return predictions, np.full(len(bags) if is_one_problem else (len(bags), len(classes)), np.nan)
    return predictions, _of_classes(decisions, model, len(bags), classes)


def _score_instances(model: Any, bags: Bags | LazyBags, classes: NDArray[Any], several: bool) -> Floats:
    """Return scores of the positive class of two, (n_instances, 1), or of every class, (n_instances, n_classes)."""
    scores = np.asarray(getattr(model, "best_estimator_", model).score_instances(bags))
    n_known = len(classes) if several else len(model.classes_)
    wanted = (bags.n_instances,) if n_known == 2 and not several else (bags.n_instances, n_known)
    if scores.shape != wanted:
        msg = f"score_instances of {type(model).__name__} must return scores of shape {wanted}, got {scores.shape}."
        raise BagValidationError(msg)
    one_problem = len(classes) == 2 and not several
    return scores[:, None] if one_problem else _of_classes(scores, model, bags.n_instances, classes)


def _of_classes(decisions: Floats, model: Any, n_rows: int, classes: NDArray[Any]) -> Floats:
    if len(classes) == 2 or decisions.shape == (n_rows, len(classes)):
        return np.asarray(decisions)
    full = np.full((n_rows, len(classes)), np.nan)
    if decisions.ndim == 1:
        decisions = np.column_stack([-decisions, decisions])
    full[:, np.searchsorted(classes, model.classes_)] = decisions
    return full
