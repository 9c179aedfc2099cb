"""Settings of one method that share work: what two of them do alike in a fold of a cross-validation is done once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from joblib import Parallel, delayed

from gmil.model_selection.folds import is_indicator, with_seed
from gmil.scale import LazyBags

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from gmil.engine.arrays import Floats
    from gmil.fold_work import Fold, FoldWork, Receiver, Worker

Work = TypeVar("Work")


def settings_together(self: Any, work: FoldWork) -> Worker | None:
    """Return what decides about all folds, for ``_folds_together`` of a method whose settings share work by `once`."""
    several = len(work.settings) > 1 and not isinstance(work.bags, LazyBags)
    two_classes = not is_indicator(work.y) and len(np.unique(work.y)) == 2
    return partial(_decide_folds, self) if several and two_classes else None


def alike(model: Any) -> list[Any]:
    """Return the models of all settings in the same fold, or the model itself where it is fitted alone."""
    return getattr(model, "_alike", None) or [model]


def once(model: Any, key: Hashable, make: Callable[[], Work]) -> Work:
    """Return a piece of work, made only if no other setting of the same fold has made it.

    ``key`` names the piece and all parameters that it depends on. What is made must be small: it is kept while the
    fold lasts.
    """
    made: dict[Hashable, Any] | None = getattr(model, "_made", None)
    if made is None:
        return make()
    if key not in made:
        made[key] = make()
    found: Work = made[key]
    return found


def _decide_folds(estimator: Any, work: FoldWork, receive: Receiver) -> None:
    """Hand over decisions about the bags that do not train, fold after fold, or several of them in threads."""
    tasks = (delayed(_decide_fold)(estimator, work, fold) for fold in work.folds)
    decided = Parallel(n_jobs=work.n_jobs, prefer="threads", return_as="generator")(tasks)
    for j, decisions in enumerate(decided):
        for i, found in enumerate(decisions):
            receive(i, [j], found)
        work.report((j + 1) * len(work.settings))


def _decide_fold(estimator: Any, work: FoldWork, fold: Fold) -> list[Floats]:
    """Return the decisions of every setting, (1, 1, n_bags) each, NaN for training bags."""
    made: dict[Hashable, Any] = {}
    training, held_out = work.bags[fold.training], work.bags[~fold.training]
    decisions = np.full((len(work.settings), 1, 1, len(work.bags)), np.nan)
    models = [with_seed(estimator, fold.seed, setting) for setting in work.settings]
    for model, found in zip(models, decisions, strict=True):
        model._made, model._alike = made, models
        found[0, 0, ~fold.training] = model.fit(training, work.y[fold.training])._decide(held_out)
    return list(decisions)
