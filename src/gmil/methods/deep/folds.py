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

    from gmil.engine.arrays import Floats, Integers
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
            found = _Trained(model, work, labels, [work.folds[i] for i in some])
            receive(number, some, found.decisions())
            if work.instance_labels is not None and work.receive_scores is not None:
                for fold, scores in zip(some, found.scores(), strict=True):
                    work.receive_scores(number, fold, scores)
            done += len(some)
            work.report(done)


class _Trained:
    """The networks of some folds, trained, and the bags that each of them tests."""

    def __init__(self, model: Any, work: FoldWork, labels: Integers, folds: list[Fold]) -> None:
        from gmil.methods.deep.batches import Table
        from gmil.methods.deep.training import train
        from gmil.methods.deep.weights import widened

        bags: Any = work.bags
        device, self.network = model._device(), model._network()
        jobs = [_job(model, work, labels, fold) for fold in folds]
        trained = train(self.network, jobs, bags.instances, bags.offsets, labels, model._schedule(), device)
        for job, found in zip(jobs, trained, strict=True):
            model._keep(job, found)  # it refuses weights that are not finite
        columns, spaces = [job.columns for job in jobs], [job.space for job in jobs]
        self.table = Table(bags.instances, bags.offsets, columns, spaces, device)
        self.weights = [
            widened(found.weights, job.layout, places, len(self.table.columns))
            for found, job, places in zip(trained, jobs, self.table.places, strict=True)
        ]
        self.tested = [np.flatnonzero(~fold.training) for fold in folds]
        self.shape = (len(folds), 1 if len(model.classes_) == 2 else len(model.classes_), len(bags))

    def decisions(self) -> Floats:
        """Return decisions about the bags that folds test, (n_folds, n_problems, n_bags); NaN for training bags."""
        from gmil.methods.deep.training import decide

        found = np.full(self.shape, np.nan)
        logits = decide(self.network, self.weights, self.table, self.tested)
        for own, test, each in zip(found, self.tested, logits, strict=True):
            own[:, test] = each.T
        return found

    def scores(self) -> list[Floats]:
        """Return scores of the instances that each fold tests, (n_some, n_problems)."""
        from gmil.methods.deep.training import decide

        return decide(self.network, self.weights, self.table, self.tested, of_instances=True)


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
