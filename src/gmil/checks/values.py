"""Labels and values: classes, missing values, constant features, placeholders."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from gmil.checks.findings import Finding
from gmil.errors import count_of, listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.bags import Bags
    from gmil.checks.findings import Level
    from gmil.engine.arrays import Floats, Integers

FEWEST_BAGS = 10
"""A class with fewer bags is in some folds once or not at all."""


def class_findings(classes: NDArray[Any], labels: Integers) -> list[Finding]:
    """Count the bags of every class; the majority class is the baseline of every accuracy."""
    counts = np.bincount(labels, minlength=len(classes))
    names = [f'{count} of "{label}"' for label, count in zip(classes, counts, strict=True)]
    fewest = int(counts.min())
    level: Level = "ok"
    advice = ""
    if fewest < FEWEST_BAGS:
        level, advice = "warning", f" With fewer than {FEWEST_BAGS} bags of a class every estimate is uncertain."
    elif counts.max() > 4 * fewest:
        level, advice = "note", " Imbalanced: report balanced accuracy or AUC beside accuracy."
    floor = float(counts.max() / counts.sum())
    return [
        Finding("bags per class", level, float(fewest), f"{listed(names, 10)}.{advice}"),
        Finding(
            "majority class",
            "ok",
            floor,
            f'Majority-class baseline, always "{classes[counts.argmax()]}": {floor:.1%} accuracy.',
        ),
    ]


def value_findings(bags: Bags) -> list[Finding]:
    """Find missing values, constant features and numbers that may be placeholders."""
    findings = [*_missing_findings(bags), _constant_finding(bags)]
    return findings if sp.issparse(bags.instances) else [*findings, _placeholder_finding(bags.instances, bags)]


def feature_names(bags: Bags) -> list[str]:
    """Return the names of features, or their columns."""
    return list(bags.feature_names or [f"column {j}" for j in range(bags.n_features)])


def _constant_finding(bags: Bags) -> Finding:
    constant = [name for name, spread in zip(feature_names(bags), _spread(bags.instances), strict=True) if spread == 0]
    if not constant:
        return Finding("constant features", "ok", 0.0, "No feature is constant.")
    verb = "is constant and carries" if len(constant) == 1 else "are constant and carry"
    text = f"{len(constant)} of {bags.n_features} features {verb} no information: {listed(constant, 10)}."
    level: Level = "note" if len(constant) < bags.n_features else "warning"
    return Finding("constant features", level, float(len(constant)), text)


def _missing_findings(bags: Bags) -> list[Finding]:
    """Count missing cells in every column; infinity, which is no number either, is counted apart."""
    X: Any = bags.instances
    stored = X.data if sp.issparse(X) else X
    findings = []
    if np.isinf(stored).any():
        count = int(np.isinf(stored).sum())
        text = f"{count_of(count, 'value is', 'values are')} infinite. Write numbers, or leave the cells empty."
        findings.append(Finding("infinite values", "warning", float(count), text))
    columns = X.indices[np.isnan(X.data)] if sp.issparse(X) else np.nonzero(np.isnan(X))[1]
    if not len(columns):
        return [Finding("missing values", "ok", 0.0, "No value is missing."), *findings]
    counts = np.bincount(columns, minlength=X.shape[1])
    names = feature_names(bags)
    worst = [f"{names[j]} {counts[j]}" for j in np.argsort(-counts, kind="stable") if counts[j]]
    text = (
        f"{len(columns)} of {X.shape[0] * X.shape[1]} cells are missing, in {len(worst)} of {X.shape[1]} columns: "
        f"{listed(worst, 10)}. In the tests below they are filled with training medians, as gmil.Impute does."
    )
    return [Finding("missing values", "warning", float(len(columns)), text), *findings]


def extremes(X: Any) -> tuple[Floats, Floats]:
    """Return the smallest and the largest value of every feature, NaN where it has none, (n_features,) each.

    Missing values are left out; a zero that a sparse array does not store is a value.
    """
    if not sp.issparse(X):
        return np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    with warnings.catch_warnings(action="ignore"):  # of columns without values
        low, high = X.nanmin(axis=0), X.nanmax(axis=0)
    return np.asarray(low.toarray()).ravel(), np.asarray(high.toarray()).ravel()


def _spread(X: Any) -> Floats:
    """Return the range of the values of every feature."""
    low, high = extremes(X)
    with np.errstate(invalid="ignore"):  # infinite ones
        return np.asarray(high - low)


def _placeholder_finding(X: Floats, bags: Bags) -> Finding:
    suspects = {j: value for j in range(X.shape[1]) if (value := placeholder(X[~np.isnan(X[:, j]), j])) is not None}
    if not suspects:
        return Finding("placeholder values", "ok", 0.0, "No feature has an outlying value that repeats.")
    names = feature_names(bags)
    shown = listed([f"{value:g} in {names[j]}" for j, value in suspects.items()], 3)
    text = f"Possible placeholders for missing values (one outlying value that repeats): {shown}."
    return Finding("placeholder values", "note", float(len(suspects)), text)


def placeholder(column: Floats) -> float | None:
    """Return a smallest or largest value that repeats and lies further from the rest than the rest is wide.

    Zero is common for good reasons and is not suspected; nor is the value of most rows, or one of only two.

    >>> placeholder(np.array([1.0, 2.0, -999.0, 1.5, 1.2, -999.0]))
    -999.0
    """
    values, counts = np.unique(column[np.isfinite(column)], return_counts=True)
    if len(values) < 3:
        return None
    width = values[-1] - values[0]
    for end, inner in ((0, 1), (-1, -2)):
        gap = abs(values[end] - values[inner])
        rare = 1 < counts[end] < len(column) / 2
        if values[end] != 0 and rare and gap > width - gap > 0:
            return float(values[end])
    return None
