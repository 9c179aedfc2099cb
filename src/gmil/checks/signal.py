"""Is there anything to learn? A fast method on labels, on shuffled labels, and against the size of bags and noise."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import stats

from gmil.bags.finite import are_usable
from gmil.checks.controls import log_sizes, noise_like, size_regression, spline_of
from gmil.checks.findings import Finding
from gmil.errors import count_of
from gmil.model_selection.folds import fold_numbers
from gmil.transform.impute import Impute
from gmil.weighted import WeightedGMIL

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.checks.findings import Level
    from gmil.engine.arrays import Booleans, Floats, Integers

FOLDS = 5
LEVEL = 0.05
"""Below this p-value something is taken to be there."""
_PLAIN = 0.6
"""From this AUC on, results without the bag size beside them mislead."""


class Scored(NamedTuple):
    """An area under the curve, and what every bag adds to its error."""

    auc: float
    influence: Floats  # (n_bags,)


def size_finding(
    bags: Bags, labels: Integers, groups: Integers | None, *, n_permutations: int, random_state: int
) -> Finding:
    """Measure how well the number of instances alone separates the classes, and how well shuffled labels.

    It is the control that methods are compared with, cross-validated; the relation need not be monotone.
    """
    sizes, name = bags.sizes, "bag size"
    if sizes.min() == sizes.max():
        text = f"All bags have {count_of(sizes[0], 'instance')}."
        if sizes[0] == 1:
            return Finding(name, "note", 0.5, f"{text} This is no multiple-instance problem.")
        return Finding(name, "ok", 0.5, text)
    generator = np.random.default_rng(random_state)
    folds = fold_numbers(FOLDS, labels, groups, random_state)
    shuffled = [shuffle_labels(labels, groups, generator) for _ in range(n_permutations)]
    auc, *others = (scored.auc for scored in _score_by_size(bags, [labels, *shuffled], folds))
    by_chance = np.array(others)
    p_value = permutation_p_value(auc, by_chance)
    level: Level = "ok" if p_value > LEVEL else "note" if auc < _PLAIN else "warning"
    text = (
        f"The number of instances alone has a cross-validated AUC of {auc:.2f}; with {n_permutations} permutations "
        f"of the labels {by_chance.max():.2f} at most (permutation test: p = {p_value:.2g})."
    )
    return Finding(name, level, auc, text)


def measure_signal(
    bags: Bags, labels: Integers, groups: Integers | None, *, n_permutations: int, random_state: int
) -> list[Finding]:
    """Cross-validate a fast method on the labels, on shuffled labels and on noise, and compare it with bag size.

    The findings are about chance, bag size and noise, in this order; each is "ok" where the method is better.

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
    on_noise = _decide(noise_like(bags, random_state), columns, folds, groups, random_state)[:, :width]
    controls = {
        "bag size": ("the size of the bag alone", _score_by_size(bags, [labels], folds)[0]),
        "noise": ("noise in bags of the same sizes", fold_auc(targets, on_noise, folds)),
    }
    compared = [_comparison_finding(name, true, *control, groups) for name, control in controls.items()]
    return [_permutation_finding(true.auc, by_chance), *compared]


def quick_auc(bags: Bags, labels: Integers, folds: Integers, seed: int) -> float:
    """Return the cross-validated AUC of the small model; NaN where nothing could be learnt."""
    targets = indicator(labels)
    return fold_auc(targets, _decide(bags, targets, folds, None, seed), folds).auc


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
        if not mixed.any():
            continue
        some_groups = None if groups is None else groups[training]
        model = WeightedGMIL(50, scales=("standard",), random_state=seed)
        learnt_from, held_out = without_gaps(bags[training], bags[~training])
        targets = columns[training][:, mixed].astype(np.int64)
        model.fit(learnt_from, targets if targets.shape[1] > 1 else targets[:, 0], groups=some_groups)
        decisions[np.ix_(~training, mixed)] = model.decision_function(held_out).reshape(len(held_out), -1)
    return decisions


def without_gaps(training: Bags, held_out: Bags) -> tuple[Bags, Bags]:
    """Return bags with training medians in place of missing values."""
    if all(are_usable(bags.instances) for bags in (training, held_out)):
        return training, held_out
    with warnings.catch_warnings(action="ignore"):  # a feature may be empty in a fold
        impute = Impute().fit(training)
    return impute.transform(training), impute.transform(held_out)


def _score_by_size(bags: Bags, labellings: list[Integers], folds: Integers) -> list[Scored]:
    """Return the AUC of the control that knows the sizes of bags only, for every labelling; they share the splines."""
    sizes, targets = log_sizes(bags), [indicator(labels) for labels in labellings]
    decisions: Any = [np.zeros(each.shape) for each in targets]
    for fold in np.unique(folds):
        training = folds != fold
        spline = spline_of(sizes[training])
        learnt_from, held_out = spline.transform(sizes[training]), spline.transform(sizes[~training])
        for labels, decided in zip(labellings, decisions, strict=True):
            if len(np.unique(labels[training])) == labels.max() + 1:
                model = size_regression().fit(learnt_from, labels[training])
                decided[~training] = model.decision_function(held_out).reshape(len(held_out), -1)
    return [fold_auc(*pair, folds) for pair in zip(targets, decisions, strict=True)]


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


def permutation_p_value(value: float, by_chance: Floats) -> float:
    """Return how probable a value at least as large is where labels are shuffled."""
    return float((1 + (~(by_chance < value)).sum()) / (1 + len(by_chance)))  # a value that is none tells nothing


def _permutation_finding(auc: float, by_chance: Floats) -> Finding:
    p_value = permutation_p_value(auc, by_chance)
    text = (
        f"Cross-validated AUC {auc:.3f}; with {len(by_chance)} permutations of the labels {by_chance.mean():.3f} on "
        f"average and {by_chance.max():.3f} at most (permutation test: p = {p_value:.2g})."
    )
    return Finding("shuffled labels", "ok" if p_value <= LEVEL else "warning", p_value, text)


def _comparison_finding(name: str, method: Scored, what: str, control: Scored, groups: Integers | None) -> Finding:
    difference = method.auc - control.auc
    influence: Floats = method.influence - control.influence
    if groups is not None:  # bags of one group err together
        influence = np.bincount(groups, weights=influence).astype(np.float64)
    error = float(np.sqrt((influence**2).sum()))
    p_value = float(stats.norm.sf(difference / error)) if error > 0 else float(difference <= 0)
    text = (
        f"AUC {method.auc:.3f} with the instances, {control.auc:.3f} with {what}, on the same folds "
        f"(one-sided DeLong test: p = {p_value:.2g})."
    )
    return Finding(f"instances against {name}", "ok" if p_value <= LEVEL else "warning", difference, text)
