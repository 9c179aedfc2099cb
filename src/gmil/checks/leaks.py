"""Features that know the label: the label, copies of it, identifiers, row numbers, how values are written."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata

from gmil.checks.findings import Finding
from gmil.checks.signal import FOLDS, indicator, quick_auc
from gmil.checks.values import FEWEST_BAGS, extremes, feature_names
from gmil.engine import resolve
from gmil.errors import listed
from gmil.model_selection.folds import fold_numbers
from gmil.transform.vectors.summaries import summarize

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.checks.findings import Level
    from gmil.engine.arrays import Booleans, Floats, Integers

DECIDES = 0.99
"""From this AUC on, a feature alone decides the label."""
STRONG = 0.9
"""From this AUC on, a feature alone is suspected where no other comes near it."""
GAP = 0.08
"""How far a suspected feature is before all that are not its copies, in AUC."""
WRITTEN = 0.9
"""From this AUC on, how values are written tells the class."""
_COPY = 0.9
"""Rank correlation from which on a feature is taken as a copy of another."""
COLUMNS_AT_ONCE = 2000
_MOST_DECIMALS = 7


class Case(NamedTuple):
    """Bags and labels to be checked, and how to measure what hangs on something."""

    bags: Bags
    labels: Integers
    groups: Integers | None
    seed: int
    can_measure: bool = True

    def auc(self, bags: Bags | None = None, groups: Any = "own", folds: Integers | None = None) -> float | None:
        """Return the cross-validated AUC of the small model on these bags, or on others with the same labels."""
        if not self.can_measure:
            return None
        own = self.groups if isinstance(groups, str) else groups
        numbers = fold_numbers(FOLDS, self.labels, own, self.seed) if folds is None else folds
        # Inside training folds groups need not be kept: the model only has to be the same in all that is compared.
        return quick_auc(self.bags if bags is None else bags, self.labels, numbers, self.seed)


def leak_findings(case: Case) -> list[Finding]:
    """Find features that no honest data have."""
    return [_label_finding(case), _alone_finding(case), _identifier_finding(case), _written_finding(case)]


def with_columns(bags: Bags, chosen: Booleans) -> Bags:
    """Return bags with some of their features."""
    names = None if bags.feature_names is None else [n for n, c in zip(bags.feature_names, chosen, strict=True) if c]
    return bags.with_instances(bags.instances[:, np.flatnonzero(chosen)], names)


# -------------------------------------------------------------------------------- the label among the features


def strengths(bags: Bags, labels: Integers) -> tuple[Floats, Any]:
    """Return how well every feature alone tells the classes, the AUC of its medians over bags, (d,).

    Medians and not maxima: a copy of the label is in most instances of a bag, and an honest witness in few. Of sparse
    bags they are means. The second array has the ranks of the bags, (n_bags, d); None of sparse bags.
    """
    X: Any = bags.instances
    if not sp.issparse(X):
        ranks = rankdata([_medians(bag) for bag in bags], axis=0)
        return aucs(ranks, labels), ranks
    blocks = (X[:, start : start + COLUMNS_AT_ONCE].toarray() for start in range(0, bags.n_features, COLUMNS_AT_ONCE))
    means = (summarize(np.nan_to_num(block), bags.offsets, ("mean",), resolve("auto")) for block in blocks)
    return np.concatenate([aucs(rankdata(own, axis=0), labels) for own in means]), None


def _medians(bag: Any) -> Floats:
    """Return the median of every feature over the values that are known; zero where none is."""
    if not np.isnan(bag).any():
        return np.median(bag, axis=0)
    with warnings.catch_warnings(action="ignore"):  # of features without values
        return np.nan_to_num(np.nanmedian(bag, axis=0))


def aucs(ranks: Floats, labels: Integers) -> Floats:
    """Return the AUC of every column for its best class, whichever way round."""
    best = np.full(ranks.shape[1], 0.5)
    for positive in indicator(labels).T:
        n, m = int(positive.sum()), int((~positive).sum())
        auc = (ranks[positive].sum(axis=0) - n * (n + 1) / 2) / (n * m)
        best = np.maximum(best, np.maximum(auc, 1 - auc))
    return best


def _label_finding(case: Case) -> Finding:
    """Find features that are the label: one value for every class, in all instances of its bags."""
    name = "label among the features"
    columns = is_label(case.bags, case.labels)
    if not columns.any():
        return Finding(name, "ok", 0.0, "No feature is the label.")
    names = feature_names(case.bags)
    text = f"{listed([names[j] for j in np.flatnonzero(columns)], 5)}: one value for every class, in all its bags."
    found = Finding(name, "warning", float(columns.sum()), text, fix="This is the label: leave it out (--exclude).")
    return hanging(found, case, columns)


def is_label(bags: Bags, labels: Integers) -> Booleans:
    """Return which features have one value in every class, missing ones aside, and not the same in all."""
    X: Any = bags.instances
    owner = labels[bags.segment_ids]
    lows, highs = zip(*(extremes(X[owner == label]) for label in np.unique(labels)), strict=True)
    constant = np.all([low == high for low, high in zip(lows, highs, strict=True)], axis=0)
    differs = np.all([lows[i] != lows[j] for i in range(len(lows)) for j in range(i)], axis=0)
    return np.asarray(constant & differs)


def _alone_finding(case: Case) -> Finding:
    name = "one feature alone"
    if np.bincount(case.labels).min() < FEWEST_BAGS:
        return Finding(name, "ok", None, f"Not tested: a class has fewer than {FEWEST_BAGS} bags.")
    strength, ranks = strengths(case.bags, case.labels)
    top = int(strength.argmax())
    alone = float(strength[top])
    copies = _copies(ranks, top, len(strength))
    rest = float(strength[~copies].max(initial=0.5))
    if alone < DECIDES and (alone < STRONG or alone - rest < GAP):
        return Finding(name, "ok", alone, f"No feature stands out: the best one alone has an AUC of {alone:.2f}.")
    names = feature_names(case.bags)
    which = listed([names[j] for j in np.flatnonzero(copies)], 5)
    what = "decides the label alone" if alone >= DECIDES else "knows the label better than all others"
    text = f"{which} {what}: AUC {alone:.3f} alone, the best other feature {rest:.3f}."
    fix = "If it is a copy of the label, or was made from it, leave it out (--exclude)."
    level: Level = "warning" if alone - rest >= GAP else "note"
    return hanging(Finding(name, level, alone, text, fix=fix), case, copies)


def _copies(ranks: Any, top: int, n_features: int) -> Booleans:
    """Return which features are copies of one, itself among them."""
    own = np.arange(n_features) == top
    if ranks is None:
        return own
    centred = ranks - ranks.mean(axis=0)
    size = np.sqrt((centred**2).sum(axis=0))
    correlation = np.abs(centred.T @ centred[:, top]) / np.maximum(size * size[top], 1e-12)
    return np.asarray(own | (correlation > _COPY))


def hanging(found: Finding, case: Case, columns: Booleans) -> Finding:
    """Return a finding with the AUC that hangs on some features."""
    if columns.all():
        return found
    return replace(found, with_it=case.auc(), without_it=case.auc(with_columns(case.bags, ~columns)))


# -------------------------------------------------------------------------------- identifiers


def _identifier_finding(case: Case) -> Finding:
    name = "identifiers among the features"
    if sp.issparse(case.bags.instances) or len(case.labels) < FOLDS:
        return Finding(name, "ok", 0.0, "No feature numbers bags or rows.")
    numbering = identifiers(case.bags)
    if not numbering.any():
        return Finding(name, "ok", 0.0, "No feature numbers bags or rows.")
    names = feature_names(case.bags)
    which = listed([names[j] for j in np.flatnonzero(numbering)], 5)
    text = f"{which}: a number of its own for every bag or row, or their order in the file."
    found = Finding(name, "warning", float(numbering.sum()), text, fix="Leave it out (--exclude): it means nothing.")
    return hanging(found, case, numbering)


def identifiers(bags: Bags) -> Booleans:
    """Return which features are row numbers, bag numbers or the order of the file, (n_features,).

    Missing values are left out, of features that mostly have one.
    """
    X = np.asarray(bags.instances, dtype=np.float64)
    found = _numberings(X, bags.sizes)
    missing = np.isnan(X)
    for j in np.flatnonzero(missing.any(axis=0) & (missing.mean(axis=0) < 0.5)):
        known = ~missing[:, j]
        sizes = np.bincount(bags.segment_ids[known])
        found[j] = _numberings(X[known, j : j + 1], sizes[sizes > 0])[0]
    return found


def _numberings(X: Floats, sizes: Integers) -> Booleans:
    first = X[np.cumsum(sizes) - sizes]
    steps = np.diff(X, axis=0)
    in_order = ((steps > 0).all(axis=0) | (steps < 0).all(axis=0)) & (len(X) > 2)
    constant = np.all(np.repeat(first, sizes, axis=0) == X, axis=0)
    between = np.diff(first, axis=0)
    bags_in_order = constant & ((between > 0).all(axis=0) | (between < 0).all(axis=0))
    whole = np.all(np.rint(X) == X, axis=0)
    numbered = whole & _all_differ(X)
    bag_numbers = whole & constant & _all_differ(first) & bool((sizes > 1).any())
    return np.asarray(in_order | bags_in_order | numbered | bag_numbers)


def _all_differ(X: Floats) -> Booleans:
    return np.asarray((np.diff(np.sort(X, axis=0), axis=0) != 0).all(axis=0))


# -------------------------------------------------------------------------------- how values are written


def _written_finding(case: Case) -> Finding:
    name = "how values are written"
    if np.bincount(case.labels).min() < FEWEST_BAGS:
        return Finding(name, "ok", None, f"Not tested: a class has fewer than {FEWEST_BAGS} bags.")
    traits = writing(case.bags)
    aucs = {trait: _bag_auc(values, case) for trait, values in traits.items()}
    trait, auc = max(aucs.items(), key=lambda pair: pair[1])
    if auc < WRITTEN:
        return Finding(name, "ok", auc, "Values of all classes are written alike.")
    text = f"{trait} alone tells the class: AUC {auc:.3f}. The classes may come from different files or programs."
    return Finding(name, "warning", auc, text, fix="Write the features of all bags in the same way, and round alike.")


def _bag_auc(values: Floats, case: Case) -> float:
    means = np.add.reduceat(values, case.bags.offsets[:-1]) / case.bags.sizes
    return float(aucs(rankdata(means)[:, None], case.labels)[0])


def writing(bags: Bags) -> dict[str, Floats]:
    """Return how the values of every instance are written, (n_instances,) each."""
    X: Any = bags.instances
    X = X.toarray() if sp.issparse(X) and X.shape[0] * X.shape[1] < 1e7 else X
    if sp.issparse(X):
        return {"The share of missing values": np.zeros(X.shape[0])}
    missing = np.isnan(X)
    values = np.nan_to_num(np.asarray(X, dtype=np.float64))
    single = np.abs(values) < np.finfo(np.float32).max
    return {
        "The share of missing values": missing.mean(axis=1),
        "The number of decimals": decimals(values).mean(axis=1),
        "The share of values in single precision": (single & (values.astype(np.float32) == values)).mean(axis=1),
    }


def decimals(values: Floats) -> Floats:
    """Return how many decimals every value has, up to seven.

    >>> decimals(np.array([3.0, 0.25, 1 / 3]))
    array([0., 2., 7.])
    """
    found = np.full(values.shape, float(_MOST_DECIMALS))
    for places in reversed(range(_MOST_DECIMALS)):
        scaled = values * 10.0**places
        found[np.abs(scaled - np.rint(scaled)) <= 1e-9 * np.maximum(1, np.abs(scaled))] = places
    return found
