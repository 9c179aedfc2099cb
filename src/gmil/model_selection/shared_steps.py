"""Settings of a cross-validation that differ late in training: what comes before is done once in every fold."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.fold_work import SharedSteps
from gmil.model_selection.folds import fit_with_groups, is_indicator, with_seed
from gmil.scale import LazyBags

if TYPE_CHECKING:
    from gmil.fold_work import FoldWork, Receiver, Worker


def share_steps(self: Any, work: FoldWork) -> Worker | None:
    """Return what fits a fold under all settings, with the steps they share; for a class that asks ``_steps`` for them.

    None, which is fold by fold, where there is one setting, or where several processes can share the folds.
    """
    alone = len(work.settings) == 1 or work.n_jobs not in (None, 1)
    return None if alone or isinstance(work.bags, LazyBags) or is_indicator(work.y) else partial(decide_folds, self)


def decide_folds(estimator: Any, work: FoldWork, receive: Receiver) -> None:
    """Hand over decisions about the bags that do not train, fold after fold."""
    classes = np.unique(work.y)
    threads = {} if work.n_jobs is None else {"n_jobs": work.n_jobs}
    decisions = np.full((1, 1 if len(classes) == 2 else len(classes), len(work.y)), np.nan)
    for j, fold in enumerate(work.folds):
        inside, steps = fold.training, SharedSteps()
        training, held_out = work.bags[inside], work.bags[~inside]
        groups = None if work.groups is None else work.groups[inside]
        for i, setting in enumerate(work.settings):
            model = with_seed(estimator, fold.seed, {**setting, **threads})
            model._steps = steps
            fit_with_groups(model, training, work.y[inside], groups)
            decisions[0][:, ~inside] = model._decide(held_out).T
            receive(i, [j], decisions)
            work.report(j * len(work.settings) + i + 1)
