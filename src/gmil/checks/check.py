"""`check_data`: all checks, and the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from gmil.checks.findings import DataCheck, Finding, infinite, not_assessable, untested
from gmil.checks.instance_labels import NAME as INSTANCE_LABELS
from gmil.checks.instance_labels import instance_label_finding
from gmil.checks.leaks import Case, leak_findings
from gmil.checks.protocol import protocol_findings
from gmil.checks.repeats import repeat_findings
from gmil.checks.signal import FOLDS, measure_signal, size_finding
from gmil.checks.targets import check_target_data
from gmil.checks.values import class_findings, value_findings
from gmil.errors import BagValidationError, count_of
from gmil.model_selection.folds import check_seed
from gmil.target_checks import TARGETS
from gmil.validation import check_bag_labels, check_bags, check_groups
from gmil.weighted import WeightedGMIL

if TYPE_CHECKING:
    from gmil.engine.arrays import Integers

FEWEST_PERMUTATIONS = 19
"""With fewer, no p-value could be 0.05 or less."""
LEAKS = (
    "identical bags",
    "instances in several groups",
    "instances in several bags",
    "near-duplicate bags",
    "label among the features",
    INSTANCE_LABELS,
    "identifiers among the features",
    "how values are written",
)
"""Findings that, as warnings, put a good result in doubt."""


def check_data(
    bags: Any,
    y: Any,
    *,
    groups: Any = None,
    folds: Any = None,
    target: str = "classes",
    n_permutations: int = 20,
    random_state: int = 0,
) -> DataCheck:
    """Check bags and labels for leaks, duplicates and other reasons not to trust results on them.

    It counts the bags of every class; finds missing values, constant features and placeholders, duplicate bags and
    instances; features that are the label, a copy of it, labels of instances, or a number of rows or bags; classes
    whose values are written in another way; files sorted by class, and scaling on all bags. It measures how well bag
    size alone predicts the labels, and cross-validates a small `WeightedGMIL` on the labels, on shuffled labels, and on
    noise in place of the instances. What hangs on a leak is measured with and without it.

    Parameters
    ----------
    bags : Bags, list of 2-D arrays, 3-D array, or 2-D array
    y : array of shape (n_bags,)
        Labels of two or more classes; values, or events and times, with another ``target``.
    groups : array of shape (n_bags,), optional
        Bags of one group (a patient, a site) stay in one fold, and hand on their labels together when these are
        shuffled.
    folds : array of shape (n_bags,), or splitter, optional
        The folds that are going to be used: the test fold of every bag. They are checked for folds of one class, and
        for groups and copies of bags in several folds.
    target : {"classes", "regression", "ordinal", "survival"}, default="classes"
        What y holds. Grades are checked as classes; values and times by R² and concordance in place of the AUC.
    n_permutations : int, default=20
        How often the labels are permuted; at least 19, because the smallest p-value is one over one more.
    random_state : int, default=0
        The seed of folds, shufflings and method.

    Returns
    -------
    DataCheck
        ``findings``, each with a level and a sentence, and a ``verdict`` in words: "no better than chance", "no better
        than bag size", "better than chance and than bag size" (with a "but" where the data repeat themselves), or "not
        assessable" with the reason. Better than bag size is what beats both a regression on the size and the same
        method on noise in bags of these sizes.

    Examples
    --------
    >>> import gmil
    >>> bags, y = gmil.load_musk1(return_X_y=True)
    >>> found = gmil.check_data(bags, y)
    >>> found.verdict
    'better than chance and than bag size'
    >>> found["shuffled labels"].value < 0.05
    True
    """
    if n_permutations < FEWEST_PERMUTATIONS:
        msg = f"must be at least {FEWEST_PERMUTATIONS} for a p-value of 0.05, got {n_permutations}."
        raise BagValidationError(msg, parameter="n_permutations")
    random_state = check_seed(random_state)
    bags = check_bags(bags, allow_nan=True)
    if target not in TARGETS:
        msg = f"must be one of {list(TARGETS)}, got {target!r}."
        raise BagValidationError(msg, parameter="target")
    if target in ("regression", "survival"):
        own: dict[str, Any] = {"n_permutations": n_permutations, "random_state": random_state}
        return check_target_data(bags, y, target, check_groups(groups, len(bags)), **own)
    classes, labels = check_bag_labels(y, bags, WeightedGMIL())
    group_numbers = check_groups(groups, len(bags))
    settings = {"n_permutations": n_permutations, "random_state": random_state}
    too_few = _too_few(labels, group_numbers)
    finite = not np.isinf(_stored(bags)).any()
    case = Case(bags, labels, group_numbers, random_state, can_measure=too_few is None)
    findings = [
        *class_findings(classes, labels),
        *value_findings(bags),
        *repeat_findings(bags, labels, group_numbers),
        *([*leak_findings(case), instance_label_finding(case)] if finite else []),
        *(protocol_findings(case, folds) if finite else []),
        untested("bag size", too_few, "note") if too_few else size_finding(bags, labels, group_numbers, **settings),
    ]
    obstacle = infinite(findings) or too_few
    if obstacle is not None:
        return not_assessable(obstacle, findings, "shuffled labels")
    signal = measure_signal(bags, labels, group_numbers, **settings)
    return DataCheck(_verdict(signal, findings), [*findings, *signal])


def _stored(bags: Any) -> Any:
    return bags.instances.data if sp.issparse(bags.instances) else bags.instances


def _too_few(labels: Integers, groups: Integers | None) -> str | None:
    """Return that a class has too few bags for the folds, or None."""
    units = np.arange(len(labels)) if groups is None else groups
    for label in np.unique(labels):
        count = len(np.unique(units[labels == label]))
        if count < FOLDS:
            what = count_of(count, "bag" if groups is None else "group")
            return f"the smallest class is in {what}, and {FOLDS} folds need {FOLDS}"
    return None


def _verdict(signal: list[Finding], findings: list[Finding]) -> str:
    better = [finding.level == "ok" for finding in signal]
    if not better[0]:
        return "no better than chance"
    if not all(better):
        return "no better than bag size"
    verdict = "better than chance and than bag size"
    leaks = [f.name for f in findings if f.level == "warning" and f.name in LEAKS]
    return f"{verdict}, but doubtful: {' and '.join(leaks)}" if leaks else verdict
