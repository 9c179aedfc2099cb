"""Left-out evidence about labels, by models that distrust labels which other bags contradict."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.checks.labels.noise import suspect
from gmil.weighted import WeightedGMIL

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats, Integers

FEWEST = 3
"""Bags of a class that are never left out of learning, however doubtful."""


def left_out_evidence(
    bags: Bags, labels: Integers, groups: Integers | None, *, n_rounds: int, rate: float, seed: int, **parameters: Any
) -> Floats:
    """Return log-odds of every bag from models that did not see it, (n_bags,) or (n_bags, n_classes).

    The first model learns from all bags. Each further one leaves every bag out with the probability that its label is
    wrong, by the evidence until then: wrong labels no longer teach the wrong thing. Evidence is the mean over all
    models; bags that a model has left out are simply predicted by it.

    Parameters
    ----------
    bags : Bags
    labels : array of shape (n_bags,)
        Class numbers.
    groups : array of shape (n_bags,) or None
        Bags of one group are left out together.
    n_rounds : int
        The number of models.
    rate : float
        The share of labels that may be wrong.
    seed : int
    **parameters
        Of the models.
    """
    rng = np.random.default_rng(seed)
    total: Any = 0.0
    kept = np.ones(len(bags), dtype=bool)
    for done in range(n_rounds):
        model = WeightedGMIL(random_state=seed + done, **parameters)
        total = total + _evidence_by(model, bags, labels, groups, kept)
        wrong = suspect(total / (done + 1), labels, rate).wrong
        kept = _enough(rng.random(len(bags)) >= wrong, labels, wrong)
    return np.asarray(total / n_rounds)


def _enough(kept: Booleans, labels: Integers, wrong: Floats) -> Booleans:
    """Return which bags to learn from, with the least doubtful of every class among them."""
    kept = kept.copy()
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        kept[own[np.argsort(wrong[own], kind="stable")[:FEWEST]]] = True
    return kept


def _evidence_by(model: WeightedGMIL, bags: Bags, labels: Integers, groups: Integers | None, kept: Booleans) -> Floats:
    own = None if groups is None or len(np.unique(groups[kept])) < 2 else groups[kept]
    with warnings.catch_warnings(action="ignore"):
        model.fit(bags[kept], labels[kept], groups=own)
    evidence = np.empty((len(bags), *model.left_out_decisions_.shape[1:]))
    evidence[kept] = model.left_out_decisions_
    if not kept.all():
        evidence[~kept] = model.decision_function(bags[~kept])
    unseen = np.isnan(evidence).reshape(len(bags), -1).any(axis=1)  # beyond `max_bags`
    if unseen.any():
        evidence[unseen] = model.decision_function(bags[unseen])
    return evidence
