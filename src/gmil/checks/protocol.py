"""How bags are split: sorted files, folds of one class, copies and groups on both sides, scaling on everything."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from gmil.checks.findings import Finding
from gmil.checks.near_duplicates import joined_by, near_duplicates
from gmil.checks.repeats import row_numbers, same_bags
from gmil.checks.signal import FOLDS
from gmil.checks.values import extremes
from gmil.errors import BagValidationError, count_of
from gmil.model_selection.folds import fold_numbers

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.checks.findings import Level
    from gmil.checks.leaks import Case
    from gmil.engine.arrays import Integers

UNSHUFFLED = 10
"""Folds of neighbours in the file, as they come without shuffling."""
_SORTED = -5.0
"""Below so many standard deviations of the number of runs, a file is sorted by class."""
_MATTERS = 0.02
"""A difference in AUC that is worth knowing."""


def protocol_findings(case: Case, folds: Any = None) -> list[Finding]:
    """Find what makes folds leak, or empty of a class; ``folds`` are those that are going to be used."""
    pairs = near_duplicates(case.bags)
    same = same_bags(row_numbers(case.bags.instances), case.bags)
    others = pairs[same[pairs[:, 0]] != same[pairs[:, 1]]]  # exact copies have a finding of their own
    findings = [_order_finding(case.labels), _near_finding(case, others), _scaling_finding(case.bags)]
    if case.groups is not None:
        findings.append(_group_finding(case))
    return findings if folds is None else [*findings, *_fold_findings(case, folds, pairs)]


# -------------------------------------------------------------------------------- order


def _order_finding(labels: Integers) -> Finding:
    """Tell whether bags are sorted by class (runs test of Wald and Wolfowitz)."""
    name, n = "order of the bags", len(labels)
    runs = 1 + int((labels[1:] != labels[:-1]).sum())
    shares = np.bincount(labels) / n
    expected = 1 + (n - 1) * float(1 - (shares**2).sum())
    spread = max(np.sqrt(n) * float(np.sqrt((shares**2).sum() * (1 - (shares**2).sum()))), 1e-9)
    if (runs - expected) / spread > _SORTED:
        return Finding(name, "ok", float(runs), "The classes are mixed in the file.")
    parts = np.array_split(labels, UNSHUFFLED)
    single = sum(len(np.unique(part)) == 1 for part in parts)
    text = (
        f"Bags are sorted by class: {runs} runs of one class, about {expected:.0f} if they were mixed. Of "
        f"{UNSHUFFLED} folds without shuffling, {single} would hold one class only."
    )
    return Finding(name, "note", float(runs), text, fix="Shuffle: gmil does; KFold(shuffle=True).")


# -------------------------------------------------------------------------------- copies and groups


def _near_finding(case: Case, pairs: Integers) -> Finding:
    name = "near-duplicate bags"
    if case.groups is not None:
        pairs = pairs[case.groups[pairs[:, 0]] != case.groups[pairs[:, 1]]]
    if len(pairs) == 0:
        return Finding(name, "ok", 0.0, "No two bags are nearly the same.")
    count = len(np.unique(pairs))
    contradicting = int((case.labels[pairs[:, 0]] != case.labels[pairs[:, 1]]).sum())
    text = f"{count} bags are nearly the same as another one, in {count_of(len(pairs), 'pair')}"
    text += f"; {count_of(contradicting, 'pair has', 'pairs have')} different labels." if contradicting else "."
    level: Level = "warning" if count > 0.02 * len(case.labels) else "note"
    found = Finding(name, level, float(count), text, fix="Keep one of each, or group them: folds leak otherwise.")
    own = joined_by(pairs, len(case.labels))
    if case.groups is not None:
        own = joined_by(np.vstack([pairs, _chain(case.groups)]), len(case.labels))
    return _measured(found, case, case.auc(), own)


def _chain(groups: Integers) -> Integers:
    """Return pairs that join the bags of every group."""
    order = np.argsort(groups, kind="stable")
    pairs = np.column_stack([order[:-1], order[1:]])
    return pairs[groups[pairs[:, 0]] == groups[pairs[:, 1]]]


def _measured(found: Finding, case: Case, with_it: float | None, groups: Integers) -> Finding:
    """Return a finding with the AUC on folds that keep groups together, where there are enough of them."""
    enough = all(len(np.unique(groups[case.labels == label])) >= FOLDS for label in np.unique(case.labels))
    return replace(found, with_it=with_it, without_it=case.auc(groups=groups)) if enough and with_it else found


def _group_finding(case: Case) -> Finding:
    """Compare folds that keep groups together with folds that do not."""
    name = "groups over folds"
    if not case.can_measure:
        return Finding(name, "ok", None, "Not measured.")
    apart, together = case.auc(groups=None), case.auc()
    gain = (apart or 0.0) - (together or 0.0)
    text = f"Folds that split groups have an AUC of {apart:.3f}, folds of whole groups {together:.3f}."
    if gain < _MATTERS:
        return Finding(name, "ok", gain, text)
    return Finding(name, "note", gain, text, apart, together, "Pass groups wherever something is fitted or compared.")


# -------------------------------------------------------------------------------- the folds that are to be used


def _fold_findings(case: Case, folds: Any, pairs: Integers) -> list[Finding]:
    numbers = _checked_folds(case, folds)
    findings = [_single_class_finding(case.labels, numbers), _copies_finding(case, numbers, pairs)]
    if case.groups is not None:
        findings.append(_split_groups_finding(case, case.groups, numbers))
    return findings


def _checked_folds(case: Case, folds: Any) -> Integers:
    if np.ndim(folds) == 1 and len(folds) == len(case.labels):
        return np.asarray(np.unique(np.asarray(folds), return_inverse=True)[1])
    if np.ndim(folds) == 1 and not hasattr(folds, "split"):
        msg = f"must name the test fold of each of the {len(case.labels)} bags, or be a splitter; got {len(folds)}."
        raise BagValidationError(msg, parameter="folds")
    return fold_numbers(folds, case.labels, case.groups, case.seed)


def _single_class_finding(labels: Integers, folds: Integers) -> Finding:
    name = "classes in the folds"
    single = [fold for fold in np.unique(folds) if len(np.unique(labels[folds == fold])) == 1]
    if not single:
        return Finding(name, "ok", 0.0, "Every fold has more than one class.")
    text = f"{len(single)} of {len(np.unique(folds))} folds test one class only, and have no AUC."
    return Finding(name, "warning", float(len(single)), text, fix="Use shuffled, stratified folds.")


def _copies_finding(case: Case, folds: Integers, pairs: Integers) -> Finding:
    name = "copies over folds"
    split = int((folds[pairs[:, 0]] != folds[pairs[:, 1]]).sum())
    if split == 0:
        return Finding(name, "ok", 0.0, "No bag and its copy are in two folds.")
    these = count_of(split, "pair")
    text = f"{these} of bags that are the same, or nearly, in two folds: training folds leak into test folds."
    found = Finding(name, "warning", float(split), text, fix="Group copies, or drop them.")
    return _measured(found, case, case.auc(groups=None, folds=folds), joined_by(pairs, len(case.labels)))


def _split_groups_finding(case: Case, groups: Integers, folds: Integers) -> Finding:
    name = "groups in the folds"
    pairs = np.unique(np.column_stack([groups, folds]), axis=0)
    split = int((np.bincount(pairs[:, 0]) > 1).sum())
    if split == 0:
        return Finding(name, "ok", 0.0, "Every group is in one fold.")
    text = f"{count_of(split, 'group is', 'groups are')} in more than one fold: bags are learnt from and tested on."
    apart = case.auc(groups=None, folds=folds)
    return Finding(name, "warning", float(split), text, apart, case.auc(), "Use folds of whole groups.")


# -------------------------------------------------------------------------------- scaling


def _scaling_finding(bags: Bags) -> Finding:
    """Tell features that were scaled on all bags, test bags among them."""
    name, X = "scaling on everything", bags.instances
    if sp.issparse(X) or len(X) < 3:
        return Finding(name, "ok", 0.0, "Not tested on sparse bags.")
    low, high = extremes(X)
    varied = low < high
    if not varied.any():
        return Finding(name, "ok", 0.0, "All features are constant.")
    complete = varied & ~np.isnan(X).any(axis=0)
    varied = complete if complete.sum() > 1 else varied  # values that are lost after scaling move mean and range
    standard = _standardized(X)
    ranged = np.isin(low, (0, -1)) & (high == 1) & ~_few_values(X)
    for how, scaled in (("mean 0 and deviation 1", standard), ("a range from 0 or -1 to 1", ranged)):
        if scaled[varied].mean() > 0.9 and varied.sum() > 1:
            text = f"{int(scaled[varied].sum())} of {int(varied.sum())} features have {how} over all instances."
            fix = "Scale inside training folds instead: test bags have taken part in this. gmil's methods scale."
            return Finding(name, "note", float(scaled[varied].mean()), text, fix=fix)
    return Finding(name, "ok", 0.0, "Features do not look scaled on all bags.")


def _standardized(X: Any) -> Any:
    """Tell which features have mean 0 and deviation 1 over the values that are known, whichever the divisor."""
    size = 1e-5 if X.dtype == np.float64 else 1e-3
    with warnings.catch_warnings(action="ignore"):  # of features without values, or with one
        deviations = [np.nanstd(X, axis=0, ddof=ddof) for ddof in (0, 1)]
        means = np.nanmean(X, axis=0)
    return (np.abs(means) < size) & (np.abs(np.subtract(deviations, 1)) < size).any(axis=0)


def _few_values(X: Any) -> Any:
    """Tell which features are flags, whose range is 0 to 1 by nature."""
    return np.array([len(np.unique(column[~np.isnan(column)][:1000])) <= 2 for column in X.T])
