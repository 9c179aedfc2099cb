"""Labels of instances among the features: flags whose maximum or minimum over a bag is its label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata

from gmil.checks.findings import Finding
from gmil.checks.leaks import COLUMNS_AT_ONCE, DECIDES, aucs, hanging
from gmil.checks.values import FEWEST_BAGS, extremes, feature_names
from gmil.errors import listed

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.checks.findings import Level
    from gmil.checks.leaks import Case
    from gmil.engine.arrays import Floats, Integers

NAME = "labels of instances among the features"
_FIX = (
    "If it holds labels of instances, leave it out (--exclude), or call it y_instance; gmil cv measures scores of "
    "instances against it (--instances COLUMN)."
)


def instance_label_finding(case: Case) -> Finding:
    """Find features of two values, one of which is in (nearly) every bag of a class, and in no other bag.

    Features of more values may rise with the label for good reasons. One that is the same in all instances of every
    bag says nothing about instances, and other checks look at it.
    """
    if np.bincount(case.labels).min() < FEWEST_BAGS:
        return Finding(NAME, "ok", None, f"Not tested: a class has fewer than {FEWEST_BAGS} bags.")
    strength, told_by = flag_strengths(case.bags, case.labels)
    found, best = np.flatnonzero(strength >= DECIDES), float(strength.max())
    if not len(found):
        return Finding(NAME, "ok", best, "No feature of two values tells the class by its maximum or minimum in a bag.")
    names = feature_names(case.bags)
    which = listed([f"{names[j]} ({told_by[j]:g})" for j in found], 5)
    text = (
        f"{which}: whether a bag holds this value tells its class (AUC {best:.3f} alone), though only some of its "
        "instances have it, as labels of instances do."
    )
    level: Level = "warning" if best == 1 else "note"
    columns = np.isin(np.arange(len(strength)), found)
    return hanging(Finding(NAME, level, float(len(found)), text, fix=_FIX), case, columns)


def flag_strengths(bags: Bags, labels: Integers) -> tuple[Floats, Floats]:
    """Return how well each flag tells the class by whether a bag holds a value of it, and which value, (n_features,).

    A flag is a feature with two values, missing ones aside, and with both of them in some bags; others have 0.5.
    """
    X: Any = bags.instances
    blocks = (X[:, start : start + COLUMNS_AT_ONCE] for start in range(0, bags.n_features, COLUMNS_AT_ONCE))
    found = [_of_block(each.toarray() if sp.issparse(each) else each, bags.offsets[:-1], labels) for each in blocks]
    strength, told_by = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return strength, told_by


def _of_block(X: Floats, starts: Integers, labels: Integers) -> tuple[Floats, Floats]:
    strength, told_by = np.full(X.shape[1], 0.5), np.full(X.shape[1], np.nan)
    low, high = extremes(X)
    flags = np.flatnonzero((low < high) & ((low == X) | (high == X) | np.isnan(X)).all(axis=0))
    if not len(flags):
        return strength, told_by
    ends = np.stack([low, high])[:, flags]
    held = np.stack([np.logical_or.reduceat(X[:, flags] == end, starts, axis=0) for end in ends])
    each = np.stack([aucs(rankdata(own, axis=0), labels) for own in held])
    mixed = held.all(axis=0).any(axis=0)
    strength[flags] = np.where(mixed, each.max(axis=0), 0.5)
    told_by[flags] = ends[each.argmax(axis=0), np.arange(len(flags))]
    return strength, told_by
