"""Cross-validation over bags: everything that is fitted, scaling included, is fitted on the training folds."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterGrid

from gmil.bags.finite import refuse_non_finite
from gmil.base import BagClassifier
from gmil.errors import BagValidationError
from gmil.fold_work import Fold, FoldWork, Worker
from gmil.model_selection.fold_by_fold import fold_by_fold, no_scores
from gmil.model_selection.folds import (
    check_seed,
    estimator_seed,
    fold_numbers,
    is_indicator,
    last_step,
    repeated_splits,
    reusable_splits,
    strata,
    training_folds_are_complete,
)
from gmil.model_selection.instance_labels import check_instance_labels, refuse_without_scores
from gmil.model_selection.result import CVResult
from gmil.model_selection.target_crossval import Validating, target_of, validate_values
from gmil.scale import LazyBags
from gmil.validation import (
    check_bags,
    check_label_count,
    check_lazy_bags,
    choose_positive_class,
    indicator_of,
    label_column,
    refuse_fractions,
    refuse_missing_labels,
    warn_of_positive_class,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats, Integers


def cross_validate(
    estimator: BaseEstimator,
    bags: Any,
    y: Any,
    *,
    cv: Any = 10,
    repeats: int = 1,
    groups: Any = None,
    instance_y: Any = None,
    param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]] | None = None,
    random_state: int | None = 0,
    n_jobs: int | None = None,
    n_processes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Any:
    """Cross-validate an estimator on bags.

    Parameters
    ----------
    estimator : estimator
        Any classifier of bags, or a pipeline that ends in one; or what predicts values, grades or times. It is cloned,
        never fitted itself.
    bags : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
    y : array of shape (n_bags,), or an indicator matrix of shape (n_bags, n_labels)
        With an indicator matrix, folds are balanced by combinations of labels, and GMIL sets every label against the
        others on one clustering. For regressors, values, (n_bags,) or (n_bags, n_targets); for survival, events and
        times, as `gmil.WeightedGMILSurvival` takes them.
    cv : int, splitter or iterable, default=10
        A number is that many shuffled, stratified folds (with ``groups``, stratified folds of whole groups),
        seeded by ``random_state + repeat``. Folds of values are shuffled, those of times stratified by events. A
        splitter must test every bag exactly once; the splits of an iterable serve every repeat. A list of splits that
        test some bags again (training and test bags drawn anew, as CLAM's ``splits_0.csv``, ...) is one repeat each:
        bags that a split neither trains on nor tests have no part in it.
    repeats : int, default=1
        How often to repeat, with other folds and other seeds. Repeat r is what ``random_state + r`` gives alone.
    groups : array of shape (n_bags,), optional
        Bags of one group (a patient, a site) stay in one fold. An estimator whose ``fit`` takes groups is given those
        of its training bags, and so keeps them together where it chooses something.
    instance_y : array of shape (n_instances,), optional
        A label for every instance, in the order of the bags: 1 or True where it is of the positive class, 0 or False
        where not; -1 or NaN where nobody knows. With more than two classes, the class of the instance; a label that is
        no class of bags (background) is against all of them. With an indicator matrix, one of the same kind,
        (n_instances, n_labels). Labels of instances are never learnt from: ``result.instances`` tells how well the
        scores that models give to instances of bags that they never saw find them. Every fold then has a model of its
        own, which must have ``score_instances``. `LazyBags` are read once more for the scores of every fold, which are
        in memory, one number per instance and class.
    param_grid : dict or list of dicts, optional
        Parameters and their values; every combination is a setting, on the same folds and seeds.
    random_state : int or None, default=0
        The seed of folds and, together with the number of the fold, of the estimator. None draws one, which the
        result tells.
    n_jobs : int, optional
        Threads of every fit; None leaves it to the estimator. Results do not depend on it.
    n_processes : int, optional
        Processes over folds, -1 for one on every core. An estimator that works on all folds together takes so many
        threads in their place, unless ``n_jobs`` sets how many.
    progress : callable, optional
        Called with the number of fits done and of all fits.

    Returns
    -------
    CVResult, or TargetResult for values and times

    Examples
    --------
    >>> import gmil
    >>> bags, y = gmil.load_musk1(return_X_y=True)
    >>> result = gmil.cross_validate(gmil.GMIL.from_paper("musk1"), bags, y, cv=5)
    >>> result.predictions.shape
    (1, 1, 92)
    >>> 0.5 < result.accuracy() < 1
    True

    >>> made = gmil.make_bags(40, n_features=3, random_state=0)
    >>> found = gmil.cross_validate(gmil.GMIL(5), made.bags, made.y, cv=4, instance_y=made.instance_y)
    >>> found.instance_scores.shape == (1, 1, made.bags.n_instances)
    True
    >>> 0.5 < found.instances.auc() <= 1
    True
    """
    random_state = _check_numbers(repeats, random_state)
    cv = reusable_splits(cv)
    target = target_of(estimator)
    if target in ("regression", "survival"):
        if instance_y is not None:
            msg = "Labels of instances are for classes; values and times have none. Leave out instance_y."
            raise BagValidationError(msg)
        asked = Validating(cv, repeats, groups, param_grid, random_state, n_jobs, n_processes, progress)
        return validate_values(estimator, bags, y, target, asked)
    bags, y = _bags_and_labels(bags, y, estimator)
    groups = None if groups is None else np.asarray(groups)
    instance_labels = None
    if instance_y is not None:
        refuse_without_scores(estimator)
        instance_labels = check_instance_labels(instance_y, bags, y)
    again = repeated_splits(cv, len(y), groups)
    if again is None:
        folds = np.array([fold_numbers(cv, strata(y), groups, random_state + repeat) for repeat in range(repeats)])
    else:
        _refuse_beside_repeated_splits(repeats, instance_y)
        folds = again
    settings = [{}] if param_grid is None else list(ParameterGrid(param_grid))
    estimator = _with_positive_class(estimator, settings, y)
    threads = n_processes if n_jobs is None else n_jobs
    fits = _every_fold(folds, random_state)
    work = FoldWork(settings, bags, y, fits, groups, threads, progress, instance_labels)
    together = _folds_together(estimator, work, folds) if again is None else None
    if together is None:
        work = work._replace(n_jobs=n_jobs)
        found = fold_by_fold(estimator, work, folds, random_state, n_processes)
    else:
        found = _all_at_once(together, estimator, work, folds)
    grades = _grades(estimator, y) if target == "ordinal" else None
    return replace(found, groups=groups, random_state=random_state, grades=grades)


def _bags_and_labels(bags: Any, y: Any, estimator: Any) -> tuple[Any, NDArray[Any]]:
    """Return bags, and a label for each or an indicator matrix."""
    if isinstance(bags, LazyBags):
        bags = check_lazy_bags(bags)
    else:
        # Pipelines may fill missing values in; classifiers alone refuse them, and in a fold bags have other numbers.
        bags = check_bags(bags, allow_nan=not isinstance(estimator, BagClassifier))
    indicator = indicator_of(y)
    labels = label_column(y, type(estimator).__name__) if indicator is None else indicator
    check_label_count(len(labels), bags)
    if indicator is None:
        refuse_missing_labels(labels, bags)
        refuse_fractions(labels)
    return bags, labels


def _grades(estimator: Any, y: NDArray[Any]) -> list[Any]:
    """Return the grades from the lowest to the highest: as they were given, else as they are sorted."""
    given = getattr(last_step(estimator)[1], "grades", None)
    return np.unique(y).tolist() if given is None else list(given)


def _every_fold(folds: Integers, random_state: int) -> list[Fold]:
    """Return the folds of all repeats, those of the first one first."""
    n_folds = int(folds.max()) + 1
    return [Fold(row != f, estimator_seed(random_state, r, f)) for r, row in enumerate(folds) for f in range(n_folds)]


def _folds_together(estimator: Any, work: FoldWork, folds: Integers) -> Worker | None:
    """Return what decides about all folds together, where the class of the estimator itself can do that."""
    can = vars(type(estimator)).get("_folds_together")
    unscored = work.instance_labels is not None and not getattr(estimator, "_folds_score_instances", False)
    if can is None or unscored or not training_folds_are_complete(work.y, folds):
        return None
    return cast("Worker | None", can(estimator, work))


def _refuse_beside_repeated_splits(repeats: int, instance_y: Any) -> None:
    if repeats > 1:
        msg = f"must be 1 where splits are given that test bags again, each of which is a repeat; got {repeats}."
        raise BagValidationError(msg, parameter="repeats")
    if instance_y is not None:
        msg = "Splits that test bags again have no scores of all instances. Leave out labels of instances."
        raise BagValidationError(msg, parameter="instance_y")


def _check_numbers(repeats: Any, random_state: Any) -> int:
    """Return the seed, drawn where there is none; every repeat has the next one."""
    if not isinstance(repeats, (int, np.integer)) or repeats < 1:
        msg = f"must be a whole number and at least 1, got {repeats!r}."
        raise BagValidationError(msg, parameter="repeats")
    if random_state is None:
        return int(np.random.default_rng().integers(1 << 31))
    return check_seed(random_state, n_seeds=int(repeats))


def _with_positive_class(estimator: Any, settings: list[dict[str, Any]], y: NDArray[Any]) -> Any:
    """Return an estimator that knows which of two strings is positive, so that not every fold has to say it."""
    classes = sorted(set(y.tolist())) if y.ndim == 1 and all(isinstance(label, str) for label in y) else []
    if len(classes) != 2 or any(name.endswith("pos_label") for setting in settings for name in setting):
        return estimator
    if getattr(last_step(estimator)[1], "grades", None) is not None:  # the higher one is
        return estimator
    copied, name = clone(estimator), f"{last_step(estimator)[0]}pos_label"
    if copied.get_params().get(name, False) is not None:
        return estimator
    warn_of_positive_class(classes[1])
    return copied.set_params(**{name: classes[1]})


def _all_at_once(decide: Worker, estimator: Any, work: FoldWork, folds: Integers) -> CVResult:
    """Give all folds, repeats and settings together to what decides about them."""
    y, n_settings, n_folds = work.y, len(work.settings), int(folds.max()) + 1
    if not isinstance(work.bags, LazyBags):
        refuse_non_finite(work.bags)
    repeat_of = np.repeat(np.arange(len(folds)), n_folds)
    tested = ~np.array([fold.training for fold in work.folds])  # (n_folds in all, n_bags)
    several = is_indicator(y)
    n_classes = y.shape[1] if several else len(np.unique(y))
    is_one_problem = n_classes == 2 and not several
    decisions = np.empty((n_settings, len(folds), len(y), 1 if is_one_problem else n_classes))

    def keep(setting: int, some: list[int], found: Floats) -> None:
        """Let every bag take the decision of the fold that tests it."""
        rows, columns = np.nonzero(tested[some])
        decisions[setting, repeat_of[some][rows], columns] = found[rows, :, columns]

    instances = None if work.instance_labels is None else no_scores(work, decisions.shape)

    def keep_scores(setting: int, fold: int, found: Floats) -> None:
        assert instances is not None
        instances.scores[setting, repeat_of[fold], np.repeat(tested[fold], work.bags.sizes)] = found

    start = time.perf_counter()
    decide(work._replace(receive_scores=keep_scores), keep)
    seconds = time.perf_counter() - start
    found = decisions[..., 0] if is_one_problem else decisions
    settings = [dict(setting) for setting in work.settings]
    oriented, predictions, positive_label = _oriented(estimator, settings, found, y)
    shared = np.full((n_settings, len(folds), n_folds), seconds / work.n_fits)
    result = CVResult(y, predictions, oriented, folds, shared, np.zeros_like(shared), settings, positive_label)
    return replace(result, instances=instances)


def _oriented(
    estimator: Any, settings: list[dict[str, Any]], decisions: Floats, y: NDArray[Any]
) -> tuple[Floats, NDArray[Any], Any]:
    """Return decisions about the second of two classes, predictions, and the positive class under the first setting.

    Predictions are of shape (n_settings, n_repeats, *shape of y). The decisions given are about the positive class.
    """
    if is_indicator(y):
        return decisions, (decisions > 0).astype(y.dtype), None
    models = [_knowing_its_classes(estimator, setting, y) for setting in settings]
    oriented = np.stack([model._oriented(own) for model, own in zip(models, decisions, strict=True)])
    flat = oriented.reshape(len(settings), -1, *decisions.shape[3:])
    predictions = np.stack([model._labels_of(own) for model, own in zip(models, flat, strict=True)])
    return oriented, predictions.reshape(*decisions.shape[:2], *y.shape), models[0].pos_label_


def _knowing_its_classes(estimator: Any, setting: Mapping[str, Any], y: NDArray[Any]) -> Any:
    """Return a model that is not fitted but can turn decisions into labels."""
    classes = np.unique(y)
    model = type(estimator)(pos_label=setting.get("pos_label", estimator.pos_label))
    model.classes_, model.pos_label_ = classes, choose_positive_class(model.pos_label, classes)
    return model
