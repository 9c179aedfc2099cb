"""Scores of training instances by models that did not see their bags."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.model_selection.folds import fit_with_groups, with_seed

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats, Integers


def out_of_fold_scores(
    estimator: Any, bags: Bags, labels: Any, groups: Integers | None, folds: list[Booleans], seed: int
) -> tuple[Any, Floats]:
    """Return a model fitted on all bags, and scores of their instances from models fitted without their folds.

    Bags that no fold tests keep the scores of the model of all bags.

    Parameters
    ----------
    estimator : classifier with ``score_instances``
    bags : Bags
    labels : (n_bags,)
    groups : (n_bags,) or None
        Passed on to a ``fit`` that takes them.
    folds : list of (n_bags,)
        Which bags each fold tests.
    seed : int
        The seed of all models.
    """

    def fitted(chosen: Booleans) -> Any:
        own = None if groups is None else groups[chosen]
        return fit_with_groups(with_seed(estimator, seed), bags[chosen], labels[chosen], own)

    model = fitted(np.ones(len(bags), dtype=bool))
    scores = np.array(model.score_instances(bags), dtype=np.float64)
    with warnings.catch_warnings():
        # What there is to say about the bags, the model of all of them has said.
        warnings.simplefilter("ignore")
        for test in folds:
            scores[np.repeat(test, bags.sizes)] = fitted(~test).score_instances(bags[test])
    return model, scores
