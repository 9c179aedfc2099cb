"""The figures of a cell, from its records alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from gmil.model_selection.instance_result import InstanceResult
from gmil.model_selection.result import CVResult
from gmil.stacking import calibrate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine.arrays import Floats

MEASURES = {
    "auc": "AUC",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "brier": "Brier score",
    "instance_auc": "AUC of instances",
    "instance_average_precision": "average precision of instances",
    "instance_auc_within": "AUC of instances within bags",
}
"""What is measured of a cell, and what it is called."""
SMALLER_IS_BETTER = ("brier",)
_DIGITS = 9
"""Figures are kept with so many digits: sums in another order differ in the last ones."""


def cross_validation(rows: Sequence[dict[str, Any]], shared: dict[str, Any]) -> CVResult:
    """Return the repeats of a cell as the result of a cross-validation.

    Parameters
    ----------
    rows : sequence of dict
        Records of one cell, by repeat.
    shared : dict
        What is on record of the set.
    """
    seconds = np.array([row["cpu_seconds"] / row["n_folds"] for row in rows])
    spread = np.repeat(seconds[None, :, None], rows[0]["n_folds"], axis=2)
    return CVResult(
        y=shared["y"].astype(np.int64),
        predictions=np.stack([row["predictions"] for row in rows])[None].astype(np.int64),
        decisions=np.stack([row["decisions"] for row in rows])[None].astype(np.float64),
        folds=np.stack([row["folds"] for row in rows]).astype(np.int64),
        fit_seconds=spread,
        predict_seconds=np.zeros_like(spread),
        positive_label=1,
        groups=shared["groups"],
        random_state=rows[0]["seed"],
    )


def figures(rows: Sequence[dict[str, Any]], shared: dict[str, Any]) -> dict[str, Any]:
    """Return all figures of a cell; None where the method has no decisions, or no scores of instances.

    An empty cell has its ``reason`` and what is known of its cost. Brier scores are of probabilities that a logistic
    curve, fitted on the other folds, makes of decisions: the same for all methods, whether they have probabilities or
    not.
    """
    repeats = {"repeats": len(rows)}
    failed = next((row for row in rows if row["status"] == "failed"), None)
    if failed is not None:
        return {**dict.fromkeys(MEASURES), **repeats, **_costs([failed]), "reason": failed["reason"]}
    found = cross_validation(rows, shared)
    decided = not np.isnan(found.decisions).any()
    measured = {
        "auc": found.auc() if decided else None,
        "accuracy": found.accuracy(),
        "balanced_accuracy": found.balanced_accuracy(),
        "brier": brier(found) if decided else None,
        **_of_instances(rows, shared),
    }
    return {**{k: _kept(v) for k, v in measured.items()}, **repeats, **_costs(rows), "reason": None}


def _kept(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else round(float(value), _DIGITS)


def _of_instances(rows: Sequence[dict[str, Any]], shared: dict[str, Any]) -> dict[str, float | None]:
    scores, labels = rows[0]["instance_scores"], shared["instance_y"]
    if scores is None or labels is None or not np.isfinite(scores).all():
        return dict.fromkeys(name for name in MEASURES if name.startswith("instance_"))
    offsets = np.concatenate([[0], np.cumsum(shared["sizes"])]).astype(np.int64)
    found = InstanceResult(labels[:, None].astype(np.int64), scores[None, None, :, None].astype(np.float64), offsets)
    return {
        "instance_auc": found.auc(),
        "instance_average_precision": found.average_precision(),
        "instance_auc_within": found.auc_within(),
    }


def _costs(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return CPU seconds and GPU seconds of a k-fold, the median over repeats, and the most memory of any."""
    costs: dict[str, Any] = {}
    for name in ("cpu_seconds", "gpu_seconds"):
        values = [row[name] for row in rows if row[name] is not None]
        costs[name] = round(float(np.median(values)), _DIGITS) if values else None
    peaks = [row["peak_bytes"] for row in rows if row["peak_bytes"] is not None]
    return {**costs, "peak_bytes": max(peaks, default=None)}


def brier(found: CVResult) -> float:
    """Return the mean squared error of probabilities that are made of decisions by the other folds of the repeat."""
    positive = found.y == 1
    errors = [
        (_probabilities(decisions, positive, folds) - positive) ** 2
        for decisions, folds in zip(found.decisions[0], found.folds, strict=True)
    ]
    return float(np.mean(errors))


def _probabilities(decisions: Floats, positive: Any, folds: Any) -> Floats:
    probabilities = np.empty(len(decisions))
    for fold in np.unique(folds):
        test = folds == fold
        slope, shift = calibrate(decisions[~test], positive[~test], np.ones(int((~test).sum())))
        probabilities[test] = expit(slope * decisions[test] + shift)
    return probabilities
