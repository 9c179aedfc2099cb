"""Which bag is tested in which fold, which bags belong together, and the seed of every fit."""

from __future__ import annotations

import threading
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import has_fit_parameter

from gmil.compat import BaseSearchCV
from gmil.errors import BagValidationError, count_of, listed
from gmil.validation import check_groups

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gmil.engine.arrays import Booleans, Integers


_MOST_DRAWS, _SEEDS_APART = 20, 1_000_003
"""Folds of groups are drawn again from a seed that no other repeat has."""


def fold_numbers(cv: Any, y: NDArray[Any], groups: Any, seed: int) -> Integers:
    """Return the test fold of every bag, (n_bags,)."""
    names, groups = groups, check_groups(groups, len(y))
    if not isinstance(cv, (int, np.integer)):
        folds = _numbered(check_cv(cv), y, groups)
        _warn_about_split_groups(folds, names)
        return folds
    _check_fold_count(int(cv), y)
    if groups is None:
        return _drawn_folds(y, int(cv), seed, None)
    _refuse_few_groups(int(cv), groups)
    return _filled_folds(y, int(cv), seed, groups)


def _warn_about_split_groups(folds: Integers, groups: Any) -> None:
    """Warn where given folds train on some bags of a group and test others."""
    if groups is None:
        return
    pairs = np.unique(np.column_stack([np.asarray(groups).astype(str), folds.astype(str)]), axis=0)
    names, counts = np.unique(pairs[:, 0], return_counts=True)
    split = names[counts > 1].tolist()
    if split:
        msg = f"{count_of(len(split), 'group is', 'groups are')} trained on and tested: {listed(split)}. "
        warnings.warn(f"{msg}What is measured is too good. Give folds of whole groups.", stacklevel=4)


def complete_folds(y: NDArray[Any], n_folds: int, seed: int, groups: Integers | None = None) -> list[Booleans]:
    """Return which bags each fold tests, (n_bags,) each; folds that would train without some class are left out."""
    numbers, n_classes = _drawn_folds(y, n_folds, seed, groups), len(np.unique(y))
    tests = [numbers == number for number in range(n_folds)]
    return [test for test in tests if test.any() and len(np.unique(y[~test])) == n_classes]


def inner_folds(
    labels: Integers, n_folds: int, generator: np.random.Generator, groups: Integers | None = None
) -> list[Booleans]:
    """Return which training bags each inner fold tests, (n_bags,) each; every fold trains on all classes.

    There are fewer folds where a class has fewer bags or where there are fewer groups, which are never split; none
    where a class has a single bag. Of folds of groups, those that would train without some class are left out.
    """
    counts = np.bincount(labels)
    n_folds = min(n_folds, int(counts.min() if groups is None else min(counts.max(), len(np.unique(groups)))))
    return [] if n_folds < 2 else complete_folds(labels, n_folds, int(generator.integers(2**31 - 1)), groups)


def _drawn_folds(y: NDArray[Any], n_folds: int, seed: int, groups: Integers | None) -> Integers:
    """Return the test fold of every bag, drawn so that classes are spread over the folds and no group is split."""
    if groups is None:
        return stratified_folds(y, n_folds, seed)
    return _numbered(StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed), y, groups)


def _filled_folds(y: NDArray[Any], n_folds: int, seed: int, groups: Integers) -> Integers:
    """Return folds of whole groups, each with bags: of very unequal groups, a fold may have to be drawn again."""
    for attempt in range(_MOST_DRAWS):
        folds = _drawn_folds(y, n_folds, (seed + attempt * _SEEDS_APART) % 2**32, groups)
        if len(np.unique(folds)) == n_folds:
            return folds
    msg = "is too many folds: the groups are so unequal that a fold has no bags. Take fewer folds."
    raise BagValidationError(msg, parameter="cv", value=n_folds)


def _numbered(splitter: Any, y: NDArray[Any], groups: Integers | None) -> Integers:
    folds = np.full(len(y), -1)
    with warnings.catch_warnings():
        # A class with fewer bags than folds leaves folds without it, which the measures allow for.
        warnings.filterwarnings("ignore", message="The least populated class")
        for number, (_, test) in enumerate(splitter.split(np.zeros(len(y)), y, groups)):
            if (folds[test] >= 0).any():
                _refuse_splitter("twice", int(np.asarray(test)[folds[test] >= 0][0]))
            folds[test] = number
    if (folds < 0).any():
        _refuse_splitter("never", int((folds < 0).argmax()))
    return folds


_GIVEN = type(check_cv([]))
"""What scikit-learn wraps given splits in."""
TRAINED, LEFT_OUT = -1, -2
"""In place of the number of a fold, where given splits do not test every bag: trained on, and neither (validation)."""


def repeated_splits(cv: Any, n_bags: int, groups: Any) -> Integers | None:
    """Return given splits, some of which test the same bags, as repeats of one fold, (n_splits, n_bags); else None.

    Tools of the field draw training, validation and test bags again and again (CLAM's ``splits_0.csv``, ...). Bags
    that a split tests are 0; `TRAINED` and `LEFT_OUT` are the others. ``cv`` is what `reusable_splits` returns.
    """
    if not isinstance(cv, _GIVEN):
        return None
    splits = list(cv.split(np.zeros(n_bags)))
    tested = np.concatenate([np.asarray(test) for _, test in splits])
    if len(np.unique(tested)) == len(tested):
        return None
    folds = np.full((len(splits), n_bags), LEFT_OUT)
    for number, (row, (train, test)) in enumerate(zip(folds, splits, strict=True)):
        row[train] = TRAINED
        if (row[test] == TRAINED).any():
            msg = f"must not train on what it tests, but split {number} does. Correct it."
            raise BagValidationError(msg, parameter="cv")
        row[test] = 0
        _warn_about_split_groups(row[row != LEFT_OUT], None if groups is None else np.asarray(groups)[row != LEFT_OUT])
    return folds


def reusable_splits(cv: Any) -> Any:
    """Return ``cv`` so that every repeat can ask it again: a generator of splits gives them once only."""
    if isinstance(cv, (int, np.integer)) or hasattr(cv, "split"):
        return cv
    splitter = check_cv(cv)
    if splitter.get_n_splits() == 0:
        msg = f"must hold splits, but this {type(cv).__name__} is empty. A generator can be used once: pass a list."
        raise BagValidationError(msg, parameter="cv")
    return splitter


def stratified_folds(y: NDArray[Any], n_folds: int, seed: int) -> Integers:
    """Return the folds of a shuffled `sklearn.model_selection.StratifiedKFold`, the same ones, (n_bags,).

    Going through its ``split`` takes longer than all of GMIL's training on a small data set.
    """
    _, first, classes = np.unique(y, return_index=True, return_inverse=True)
    classes = np.argsort(np.argsort(first))[classes]  # numbered as they appear
    # Dealt out in sorted order, every fold gets its share of every class.
    places = np.sort(classes) * n_folds + np.arange(len(y)) % n_folds
    shares = np.bincount(places, minlength=len(first) * n_folds).reshape(-1, n_folds)
    generator = _shuffler(seed)
    folds = np.empty(len(y), dtype=np.int64)
    for number, share in enumerate(shares):
        of_class = np.arange(n_folds).repeat(share)
        generator.shuffle(of_class)
        folds[classes == number] = of_class
    return folds


_of_thread = threading.local()


def _shuffler(seed: int) -> np.random.RandomState:
    """Return what scikit-learn shuffles with; to make one takes twenty times as long as to seed it again."""
    if not hasattr(_of_thread, "shuffler"):
        _of_thread.shuffler = np.random.RandomState(seed)
    shuffler: np.random.RandomState = _of_thread.shuffler
    shuffler.seed(seed)
    return shuffler


def is_indicator(y: NDArray[Any]) -> bool:
    """Tell whether y is an indicator matrix, (n_bags, n_labels), of bags that may have several labels."""
    return y.ndim == 2 and type_of_target(y) == "multilabel-indicator"


def strata(y: NDArray[Any]) -> NDArray[Any]:
    """Return what folds are balanced by: labels, or combinations of an indicator matrix with the rare ones as one."""
    return combinations(y) if is_indicator(y) else y


def combinations(indicator: NDArray[Any], least: int = 2) -> Integers:
    """Return a number for every combination of labels; those of fewer than ``least`` bags are one together.

    Where these are too few even so, they join the commonest combination.

    >>> combinations(np.array([[1, 0], [1, 0], [0, 0], [0, 0], [1, 1], [0, 1]])).tolist()
    [1, 1, 0, 0, 2, 2]
    """
    _, number, count = np.unique(indicator, axis=0, return_inverse=True, return_counts=True)
    number = number.ravel()
    rare = count[number] < least
    number[rare] = len(count)
    if rare.sum() < least:
        number[rare] = int(count.argmax())
    return np.unique(number, return_inverse=True)[1].ravel()


def training_folds_are_complete(y: NDArray[Any], folds: Integers) -> bool:
    """Tell whether every training fold, of ``folds (n_repeats, n_bags)``, has bags of every class."""
    for column in [column > 0 for column in y.T] if is_indicator(y) else [y]:
        labels = np.unique(column)
        by_class = (folds[:, column == label] for label in labels)
        if len(labels) < 2 or not all((rows != rows[:, :1]).any(axis=1).all() for rows in by_class):
            return False
    return True


def _refuse_few_groups(n_folds: int, groups: Any) -> None:
    n_groups = len(set(np.asarray(groups).tolist()))
    if n_groups < n_folds:
        msg = f"is too many folds: the bags are of {count_of(n_groups, 'group')}, and every fold needs one. " + (
            "Take fewer folds." if n_groups > 1 else "Name groups that differ."
        )
        raise BagValidationError(msg, parameter="cv", value=n_folds)


def last_step(model: Any) -> tuple[str, Any]:
    """Return the model at the end of a pipeline, or the model itself, and what its parameters begin with."""
    prefix = ""
    while isinstance(model, Pipeline):
        name, model = model.steps[-1]
        prefix += f"{name}__"
    return prefix, model


def takes_groups(model: Any) -> bool:
    """Tell whether a model, or the last step of a pipeline, can be told in ``fit`` which bags belong together."""
    return groups_argument(model) is not None


def fit_with_groups(model: Any, X: Any, y: Any, groups: Any) -> Any:
    """Fit a model; one that chooses on the training data, as ``GridSearchCV`` does, is told what belongs together.

    A single group has nothing to be kept apart from, and is not passed on.
    """
    argument = None if groups is None else groups_argument(model)
    if argument is None or len(np.unique(groups)) < 2:
        return model.fit(X, y)
    return model.fit(X, y, **{argument: groups})


def groups_argument(model: Any) -> str | None:
    """Return how a model is told in ``fit`` which bags belong together; None where it cannot be told."""
    prefix, last = last_step(model)
    if not (has_fit_parameter(last, "groups") or isinstance(last, BaseSearchCV)):
        return None
    if get_config()["enable_metadata_routing"] and isinstance(model, (Pipeline, BaseSearchCV)):
        asks = get_routing_for_object(model).consumes("fit", ["groups"])
        return "groups" if asks else None
    return f"{prefix}groups"


def _refuse_splitter(how_often: str, bag: int) -> None:
    msg = f"must test every bag exactly once, but bag {bag} is tested {how_often}. Use a number or a KFold."
    raise BagValidationError(msg, parameter="cv")


def _check_fold_count(n_folds: int, y: NDArray[Any]) -> None:
    if n_folds < 2:
        msg = f"must be at least 2, got {n_folds}."
        raise BagValidationError(msg, parameter="cv")
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        msg = f"y holds one class only, {classes.tolist()[0]!r}; cross-validation needs bags of at least 2 classes."
        raise BagValidationError(msg)
    if counts.max() < n_folds or counts.min() < 2:
        fewest = counts.argmin()
        msg = (
            f"is too many folds: class {classes.tolist()[fewest]!r} has {count_of(counts[fewest], 'bag')}. "
            "Every class needs 2 bags at least, and one of them as many as there are folds."
        )
        raise BagValidationError(msg, parameter="cv", value=n_folds)


def estimator_seed(random_state: int, repeat: int, fold: int) -> int:
    """Return the seed of the estimator in one fold of one repeat.

    As for the folds themselves, repeat r with the seed s is repeat 0 with the seed s + r: a repeat may be done alone.

    >>> estimator_seed(0, 3, fold=7) == estimator_seed(3, 0, fold=7)
    True
    """
    return int(np.random.SeedSequence(random_state + repeat, spawn_key=(0, fold)).generate_state(1)[0]) >> 1


def with_seed(estimator: Any, seed: int, setting: Mapping[str, Any] | None = None) -> Any:
    """Return a copy with the parameters of a setting, and with one seed wherever it takes one."""
    copied = clone(estimator).set_params(**(setting or {}))
    seeds = {name: seed for name in copied.get_params() if name.rpartition("__")[2] == "random_state"}
    return copied.set_params(**seeds)


def check_seed(random_state: Any, n_seeds: int = 1) -> int:
    """Return the first of ``n_seeds`` seeds that follow one another, or refuse it."""
    most = (1 << 32) - n_seeds
    if not isinstance(random_state, (int, np.integer)) or not 0 <= random_state <= most:
        msg = f"must be a whole number from 0 to {most}, got {random_state!r}."
        raise BagValidationError(msg, parameter="random_state")
    return int(random_state)
