"""Figures of predictions: those of ``gmil cv`` for a cross-validation, those of ``gmil score`` for one model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.errors import count_of
from gmil.model_selection.metrics import mean_interval
from gmil.model_selection.result import CVResult
from gmil.model_selection.scoring import score_outputs
from gmil.reporting.assessment.content import Figure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.model_selection.scoring import Measured, Outputs


def figures_of_result(result: CVResult, interval: list[float] | None = None) -> list[Figure]:
    """Return what ``gmil cv`` prints, to the digit; ``interval`` is that of the accuracy where it is known already."""
    found = result.figures()
    dropped = found["auc_folds_dropped"]
    labels = ", mean over labels" if result.y.ndim == 2 else ""
    without = f" ({count_of(dropped, 'fold with one class has', 'folds with one class have')} none)" if dropped else ""
    figures = [
        Figure("accuracy_mean", f"accuracy{labels}, %", found["accuracy_mean"], interval or found["accuracy_interval"]),
        Figure("accuracy_std", "standard deviation over repeats, points", found["accuracy_std"]),
        Figure("auc_mean", f"AUC{_about(result)}{without}", found["auc_mean"], percent=False),
        Figure("balanced_accuracy_mean", "balanced accuracy, %", found["balanced_accuracy_mean"]),
        Figure("majority_accuracy", "accuracy of the majority class, %", found["majority_accuracy"]),
    ]
    if result.grades is not None:
        kappa = Figure("kappa", "quadratic kappa", result.kappa(), list(result.kappa_interval()), percent=False)
        figures.insert(0, kappa)
    return [figure for figure in figures if figure.key != "accuracy_std" or figure.value is not None]


def _about(result: CVResult) -> str:
    if result.decisions.ndim == 3:
        return f" of {str(result.positive_label)!r}"
    return ", mean over labels" if result.y.ndim == 2 else ", mean over classes"


def figures_of_outputs(outputs: Outputs, y: NDArray[Any], groups: Any = None) -> list[Figure]:
    """Return what ``gmil score`` prints; of labels that the model does not know, the accuracy only."""
    if outputs.labels.ndim == 2:
        decisions = np.full(y.shape, np.nan) if outputs.decisions is None else outputs.decisions
        nothing = np.zeros((1, 1, 1))
        one_fold = np.zeros((1, len(y)), dtype=np.int64)
        alone = CVResult(y, outputs.labels[None, None], decisions[None, None], one_fold, nothing, nothing)
        return figures_of_result(CVResult(**{**vars(alone), "groups": groups}))
    correct = np.asarray(outputs.labels == y, dtype=np.float64)
    if not np.isin(y, outputs.classes).all():
        return [Figure("accuracy", "accuracy, %", float(correct.mean()), list(mean_interval(correct, groups)))]
    scores = score_outputs(outputs, y, groups)
    about = ", mean over classes" if outputs.positive is None else f" of {str(outputs.positive)!r}"
    return [
        _figure("accuracy", "accuracy, %", scores.accuracy),
        _figure("balanced_accuracy", "balanced accuracy, %", scores.balanced_accuracy),
        _figure("auc", f"AUC{about}", scores.auc, percent=False),
        _figure("brier", "Brier score (0 is best)", scores.brier, percent=False),
        Figure("majority_accuracy", "accuracy of the majority class, %", scores.majority),
    ]


def _figure(key: str, title: str, found: Measured, *, percent: bool = True) -> Figure:
    if np.isnan(found.value):
        return Figure(key, title, None, percent=percent)
    return Figure(key, title, found.value, [found.low, found.high], percent)
