"""All folds of a cross-validation of networks as one training: on small sets that takes little longer than one fold."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from gmil.model_selection.folds import is_indicator
from gmil.sampling import make_generator
from gmil.scale import LazyBags
from gmil.validation import check_groups

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gmil.engine.arrays import Integers
    from gmil.fold_work import Fold, FoldWork, Receiver, Worker
    from gmil.methods.deep.training import Job

_MOST_NUMBERS = {"cpu": 1 << 24, "cuda": 1 << 30}
"""How many numbers the weights and one batch of all models may be, about."""


def train_together(self: Any, work: FoldWork) -> Worker | None:
    """Return what trains the networks of all folds at once; None for bags that are not in memory."""
    if isinstance(work.bags, LazyBags) or is_indicator(work.y):
        return None
    return partial(decide_folds, self)


def decide_folds(estimator: Any, work: FoldWork, receive: Receiver) -> None:
    """Train the networks of all folds, under one setting after the other, and hand over decisions."""
    done = 0
    for number, setting in enumerate(work.settings):
        model = clone(estimator).set_params(**setting)
        model._validate_params()
        found = model._check_labels(work.y, work.bags)
        labels = model._is_positive(found).astype(np.int64) if len(model.classes_) == 2 else found
        for some in _at_once(model, work):
            receive(number, some, _decisions(model, work, labels, [work.folds[i] for i in some]))
            done += len(some)
            work.report(done)


def _decisions(model: Any, work: FoldWork, labels: Integers, folds: list[Fold]) -> Any:
    """Return decisions about the bags that folds test, (n_folds, n_problems, n_bags); NaN for training bags."""
    from gmil.methods.deep.batches import Table
    from gmil.methods.deep.training import decide, train
    from gmil.methods.deep.weights import widened

    bags: Any = work.bags
    device, network = model._device(), model._network()
    jobs = [_job(model, work, labels, fold) for fold in folds]
    trained = train(network, jobs, bags.instances, bags.offsets, labels, model._schedule(), device)
    for job, found in zip(jobs, trained, strict=True):
        model._keep(job, found)  # it refuses weights that are not finite
    table = Table(bags.instances, bags.offsets, [job.columns for job in jobs], [job.space for job in jobs], device)
    weights = [
        widened(found.weights, job.layout, places, len(table.columns))
        for found, job, places in zip(trained, jobs, table.places, strict=True)
    ]
    tested = [np.flatnonzero(~fold.training) for fold in folds]
    n_problems = 1 if len(model.classes_) == 2 else len(model.classes_)
    decisions = np.full((len(folds), n_problems, len(bags)), np.nan)
    for own, test, logits in zip(decisions, tested, decide(network, weights, table, tested), strict=True):
        own[:, test] = logits.T
    return decisions


def _job(model: Any, work: FoldWork, labels: Integers, fold: Fold) -> Job:
    """Return what ``fit`` would make of the training bags of a fold."""
    bags: Any = work.bags
    inside = np.flatnonzero(fold.training)
    groups = None if work.groups is None else check_groups(work.groups[inside], len(inside))
    rows = np.repeat(fold.training, bags.sizes)
    return model._job(bags.instances[rows], inside, labels[inside], groups, make_generator(fold.seed))


def _at_once(model: Any, work: FoldWork) -> Iterator[list[int]]:
    """Cut the folds into parts whose networks fit well into memory together."""
    bags: Any = work.bags
    layout = model._layout_of(np.arange(bags.n_features))
    n_weights = sum(int(np.prod(weight.shape)) for weight in layout.values())
    rows = int(np.sort(bags.sizes)[-model.batch_size :].sum())
    widths = bags.n_features + 8 * sum(model._widths())
    most = max(1, _MOST_NUMBERS[model._device().type] // (4 * n_weights + rows * widths))
    return (list(range(start, min(start + most, len(work.folds)))) for start in range(0, len(work.folds), most))
