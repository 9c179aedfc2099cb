"""Is there anything to learn? A fast method on the labels, on shuffled labels, and against the size of bags alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import stats

from gmil import metrics
from gmil.classifiers import WeightedGMIL
from gmil.experiments.controls import BagSize
from gmil.experiments.trust.findings import Finding
from gmil.folds import fold_numbers

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.experiments.trust.findings import Level

FOLDS = 5
LEVEL = 0.05
"""Below this p-value something is taken to be there."""
_PLAIN = 0.6
"""From this AUC on, the size of a bag tells so much that results without it beside them mislead."""


class Scored(NamedTuple):
    """An area under the curve, and what every bag adds to its error."""

    auc: float
    influence: Floats  # (n_bags,)


class Signal(NamedTuple):
    """The findings, and what the verdict needs of them."""

    findings: list[Finding]
    above_chance: bool
    above_bag_size: bool


def size_finding(bags: Bags, labels: Integers) -> Finding:
    """Say how well the number of instances alone tells the classes."""
    sizes, name = bags.sizes, "bag size"
    if sizes.min() == sizes.max():
        text = f"All bags have {sizes[0]} instances."
        if sizes[0] == 1:
            return Finding(name, "note", 0.5, f"{text} This is no multiple-instance problem.")
        return Finding(name, "ok", 0.5, text)
    targets = indicator(labels)
    aucs = [metrics.auc(column, sizes.astype(np.float64)) for column in targets.T]
    auc = max(max(value, 1 - value) for value in aucs)
    p_value = float(stats.kruskal(*(sizes[labels == k] for k in range(labels.max() + 1))).pvalue)
    level: Level = "ok" if p_value > LEVEL else "note" if auc < _PLAIN else "warning"
    which = "The" if targets.shape[1] == 1 else "For the class told best, the"
    text = f"{which} number of instances alone has an AUC of {auc:.2f} (p = {p_value:.2g} of no difference)."
    return Finding(name, level, auc, text)


def measure_signal(
    bags: Bags, labels: Integers, groups: Integers | None, *, n_permutations: int, random_state: int
) -> Signal:
    """Cross-validate a fast method on the labels and on shuffled labels, and compare it with the size of bags.

    All labellings are columns of one problem: views, folds and decompositions are shared, and are the same for all.
    """
    generator = np.random.default_rng(random_state)
    folds = fold_numbers(FOLDS, labels, groups, random_state)
    targets = indicator(labels)
    shuffled = [indicator(shuffle_labels(labels, groups, generator)) for _ in range(n_permutations)]
    columns = np.concatenate([targets, *shuffled], axis=1)
    decisions = _decide(bags, columns, folds, groups, random_state)
    width = targets.shape[1]
    parts = [slice(i, i + width) for i in range(0, columns.shape[1], width)]
    true, *others = (fold_auc(columns[:, part], decisions[:, part], folds) for part in parts)
    by_chance = np.array([other.auc for other in others])
    sizes = fold_auc(targets, _decide_by_size(bags, labels, folds), folds)
    chance, above_chance = _permutation_finding(true.auc, by_chance)
    against_size, above_size = _comparison_finding(true, sizes, groups)
    return Signal([chance, against_size], above_chance, above_size)


def indicator(labels: Integers) -> Booleans:
    """Return one column a class; of two classes that of the second, (n_bags, n_columns)."""
    n_classes = int(labels.max()) + 1
    return labels[:, None] == (np.array([1]) if n_classes == 2 else np.arange(n_classes))


def shuffle_labels(labels: Integers, groups: Integers | None, generator: np.random.Generator) -> Integers:
    """Return the labels in another order; bags of one group hand theirs on together.

    Groups come in a random order, the labels inside them too, and this sequence is laid over the bags group by group.
    With groups of one size a group gets the labels of another one; without groups this is a plain permutation.
    """
    if groups is None:
        return generator.permutation(labels)
    place = generator.permutation(int(groups.max()) + 1)[groups]
    new_order = np.lexsort((generator.random(len(labels)), place))
    shuffled = np.empty_like(labels)
    shuffled[np.argsort(groups, kind="stable")] = labels[new_order]
    return shuffled


def _decide(bags: Bags, columns: Booleans, folds: Integers, groups: Integers | None, seed: int) -> Floats:
    """Return out-of-fold decisions for every labelling, (n_bags, n_columns); 0 where training has one class only."""
    decisions = np.zeros(columns.shape)
    for fold in np.unique(folds):
        training = folds != fold
        mixed = columns[training].any(axis=0) & ~columns[training].all(axis=0)
        some_groups = None if groups is None else groups[training]
        model = WeightedGMIL(50, scales=("standard",), random_state=seed)
        model.fit(bags[training], columns[training][:, mixed].astype(np.int64), groups=some_groups)
        decisions[np.ix_(~training, mixed)] = model.decision_function(bags[~training])
    return decisions


def _decide_by_size(bags: Bags, labels: Integers, folds: Integers) -> Floats:
    decisions: Any = np.zeros((len(bags), indicator(labels).shape[1]))
    for fold in np.unique(folds):
        training = folds != fold
        model = BagSize().fit(bags[training], labels[training])
        if len(model.classes_) == labels.max() + 1:
            decisions[~training] = model.decision_function(bags[~training]).reshape(int((~training).sum()), -1)
    return decisions


def fold_auc(targets: Booleans, decisions: Floats, folds: Integers) -> Scored:
    """Return the mean AUC over folds and columns, and the influence of every bag on it (DeLong's components).

    Folds with one class only have no area; NaN where there is no other fold.
    """
    aucs, influence = [], np.zeros(len(folds))
    for column in range(targets.shape[1]):
        for fold in np.unique(folds):
            rows = np.flatnonzero(folds == fold)
            positive = targets[rows, column]
            if positive.all() or not positive.any():
                continue
            auc, part = _auc_with_influence(positive, decisions[rows, column])
            aucs.append(auc)
            influence[rows] += part
    if not aucs:
        return Scored(float("nan"), influence)
    return Scored(float(np.mean(aucs)), influence / len(aucs))


def _auc_with_influence(positive: Booleans, decisions: Floats) -> tuple[float, Floats]:
    ranks = stats.rankdata(decisions)
    won = np.empty(len(decisions))  # the share of the other class that a bag is on the right side of
    for mine in (True, False):
        own = positive == mine
        below = (ranks[own] - stats.rankdata(decisions[own])) / int((~own).sum())
        won[own] = below if mine else 1 - below
    auc = float(won[positive].mean())
    return auc, (won - auc) / np.where(positive, positive.sum(), (~positive).sum())


def _permutation_finding(auc: float, by_chance: Floats) -> tuple[Finding, bool]:
    p_value = float((1 + (by_chance >= auc).sum()) / (1 + len(by_chance)))
    above = p_value <= LEVEL
    text = (
        f"Cross-validated AUC {auc:.3f}; on {len(by_chance)} shufflings of the labels {by_chance.mean():.3f} on "
        f"average and {by_chance.max():.3f} at most (p = {p_value:.2g})."
    )
    return Finding("shuffled labels", "ok" if above else "warning", p_value, text), above


def _comparison_finding(method: Scored, sizes: Scored, groups: Integers | None) -> tuple[Finding, bool]:
    difference = method.auc - sizes.auc
    influence: Floats = method.influence - sizes.influence
    if groups is not None:  # bags of one group err together
        influence = np.bincount(groups, weights=influence).astype(np.float64)
    error = float(np.sqrt((influence**2).sum()))
    p_value = float(stats.norm.sf(difference / error)) if error > 0 else float(difference <= 0)
    above = p_value <= LEVEL
    text = (
        f"AUC {method.auc:.3f} with the instances, {sizes.auc:.3f} with the size of the bag alone, on the same folds "
        f"(p = {p_value:.2g} of being no better)."
    )
    return Finding("instances against bag size", "ok" if above else "warning", difference, text), above
