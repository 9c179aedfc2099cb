"""Choosing settings on the training bags alone, by folds inside them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gmil.engine.arrays import Booleans, Floats, Integers

Setting = TypeVar("Setting")


def inner_folds(
    labels: Integers, n_folds: int, generator: np.random.Generator, groups: Integers | None = None
) -> list[Booleans]:
    """Return which bags each inner fold tests, (n_bags,) each; every fold trains on all classes.

    There are fewer folds where a class has fewer bags or where there are fewer groups, which are never split; none
    where a class has a single bag. Of folds of groups, those that would train without some class are left out.
    """
    if groups is None:
        n_folds, kind = min(n_folds, int(np.bincount(labels).min())), StratifiedKFold
    else:
        n_folds, kind = min(n_folds, len(np.unique(groups)), int(np.bincount(labels).max())), StratifiedGroupKFold
    if n_folds < 2:
        return []
    splitter = kind(n_folds, shuffle=True, random_state=int(generator.integers(2**31 - 1)))
    everyone = np.arange(len(labels))
    with warnings.catch_warnings():
        # A class with fewer bags than folds leaves folds of groups without it, which do no harm.
        warnings.filterwarnings("ignore", message="The least populated class")
        folds = [np.isin(everyone, test) for _, test in splitter.split(everyone, labels, groups)]
    n_classes = len(np.unique(labels))
    return [test for test in folds if test.any() and len(np.unique(labels[~test])) == n_classes]


def choose(
    settings: Iterable[Setting],
    labels: Integers,
    folds: list[Booleans],
    decide: Callable[[Setting, Booleans], Floats],
    best: tuple[Setting, float] | None = None,
    weights: Floats | None = None,
) -> tuple[Setting, float]:
    """Return the setting with the best accuracy on the inner folds and that accuracy; of equals the first.

    ``decide(setting, test)`` trains on the bags outside ``test`` and returns the decisions of those inside. ``best`` is
    what an earlier choice on the same folds found: it comes first, and is not judged again. ``weights``,
    (n_bags,), say how much each bag counts; None: all alike.
    """
    for setting in settings:
        if best is not None and setting == best[0]:
            continue
        with warnings.catch_warnings():
            # A setting that does not converge is judged like any other; only the chosen one is worth a warning.
            warnings.simplefilter("ignore")
            right = [_labels_of(decide(setting, test)) == labels[test] for test in folds]
        counts = None if weights is None else np.concatenate([weights[test] for test in folds])
        accuracy = float(np.average(np.concatenate(right), weights=counts))
        if best is None or accuracy > best[1]:
            best = setting, accuracy
    if best is None:
        msg = "There is no setting to choose from."
        raise ValueError(msg)
    return best


def _labels_of(decisions: Floats) -> Integers:
    return (decisions > 0).astype(np.int64) if decisions.ndim == 1 else decisions.argmax(axis=1)
