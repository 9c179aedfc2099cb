"""`check_data`: everything that is looked at, and the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.classifiers import WeightedGMIL
from gmil.errors import BagValidationError
from gmil.experiments.trust.findings import DataCheck, Finding
from gmil.experiments.trust.repeats import repeat_findings
from gmil.experiments.trust.signal import FOLDS, Signal, measure_signal, size_finding
from gmil.experiments.trust.values import class_findings, value_findings
from gmil.validation import check_bag_labels, check_bags

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Integers

FEWEST_PERMUTATIONS = 19
"""With fewer, no p-value could be 0.05 or less."""
LEAKS = ("identical bags", "instances in several groups", "instances in several bags")
"""Findings that, as warnings, put a good result in doubt."""


def check_data(bags: Any, y: Any, *, groups: Any = None, n_permutations: int = 20, random_state: int = 0) -> DataCheck:
    """Tell whether results on these bags can be trusted, before methods are compared on them.

    It counts the bags of every class; looks for missing values, constant features and placeholders, for bags and
    instances that occur twice; measures what the size of a bag alone tells; and cross-validates a small `WeightedGMIL`
    on the labels and on shuffled labels.

    Parameters
    ----------
    bags : Bags, list of 2-D arrays, 3-D array, or 2-D array
    y : array of shape (n_bags,)
        Labels of two or more classes.
    groups : array of shape (n_bags,), optional
        Bags of one group (a patient, a site) stay in one fold, and hand on their labels together when these are
        shuffled.
    n_permutations : int, default=20
        How often the labels are shuffled; at least 19, because the smallest p-value is one over one more.
    random_state : int, default=0
        The seed of folds, shufflings and method.

    Returns
    -------
    DataCheck
        ``findings``, each with a level and a sentence, and a ``verdict`` in words: "no better than chance", "no better
        than bag size", "better than chance and than bag size" (with a "but" where the data repeat themselves), or why
        it could not be told.

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
        msg = f"n_permutations must be at least {FEWEST_PERMUTATIONS} for a p-value of 0.05, got {n_permutations}."
        raise BagValidationError(msg)
    if random_state < 0:
        msg = f"random_state must be at least 0, got {random_state}."
        raise BagValidationError(msg)
    bags = check_bags(bags, allow_nan=True)
    classes, labels = check_bag_labels(y, bags, WeightedGMIL())
    group_numbers = _check_groups(groups, bags)
    findings = [
        *class_findings(classes, labels),
        *value_findings(bags),
        *repeat_findings(bags, labels, group_numbers),
        size_finding(bags, labels),
    ]
    obstacle = _obstacle(findings, labels, group_numbers)
    if obstacle is not None:
        untested = Finding("shuffled labels", "warning", None, f"Not tested: {obstacle}.")
        return DataCheck(f"cannot be told: {obstacle}", [*findings, untested])
    signal = measure_signal(bags, labels, group_numbers, n_permutations=n_permutations, random_state=random_state)
    return DataCheck(_verdict(signal, findings), [*findings, *signal.findings])


def _check_groups(groups: Any, bags: Bags) -> Integers | None:
    if groups is None:
        return None
    found = np.unique(np.asarray(groups), return_inverse=True)[1]
    if found.shape != (len(bags),):
        msg = f"groups must name a group for each of the {len(bags)} bags, got shape {np.shape(groups)}."
        raise BagValidationError(msg)
    return found


def _obstacle(findings: list[Finding], labels: Integers, groups: Integers | None) -> str | None:
    """Return why nothing can be cross-validated, or None."""
    missing = next(finding for finding in findings if finding.name == "missing values")
    if missing.value:
        return f"{missing.value:.0f} values are missing"
    units = np.arange(len(labels)) if groups is None else groups
    for label in np.unique(labels):
        count = len(np.unique(units[labels == label]))
        if count < FOLDS:
            what = "bags" if groups is None else "groups"
            return f"the smallest class is in {count} {what}, and {FOLDS} folds need {FOLDS}"
    return None


def _verdict(signal: Signal, findings: list[Finding]) -> str:
    if not signal.above_chance:
        return "no better than chance"
    if not signal.above_bag_size:
        return "no better than bag size"
    verdict = "better than chance and than bag size"
    leaks = [f.name for f in findings if f.level == "warning" and f.name in LEAKS]
    return f"{verdict}, but doubtful: {' and '.join(leaks)}" if leaks else verdict
