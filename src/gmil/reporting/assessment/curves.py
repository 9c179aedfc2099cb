"""ROC and precision-recall curves as means over test folds: decisions of different models do not share a scale.

The mean of step functions has the mean of their areas, so that the area under a curve that is drawn is the figure
that cross-validation gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.metrics import precision_recall_curve, roc_curve

from gmil.model_selection import metrics
from gmil.reporting.assessment.content import ClassCurves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine.arrays import Booleans, Floats
    from gmil.reporting.assessment.held_out import HeldOut

    Tests = Sequence[tuple[Booleans, Floats]]

_MOST_POINTS = 400
"""So many points of a curve are kept."""


def class_curves(held: HeldOut) -> tuple[list[ClassCurves], str]:
    """Return the curves of the classes, and why there are none, or not all."""
    tests = {column: list(held.tests(column)) for column in held.shown_classes}
    found = [_curves(held, column, parts) for column, parts in tests.items() if parts]
    return found, _reason(held, [column for column, parts in tests.items() if not parts])


def _curves(held: HeldOut, column: int, tests: Tests) -> ClassCurves:
    return ClassCurves(
        label=held.classes[column],
        n_bags=int(held.truth[:, column].sum()),
        roc=_some(mean_roc(tests)),
        precision_recall=_some(mean_precision_recall(tests)),
        auc=float(np.mean([metrics.auc(*test) for test in tests])),
        average_precision=float(np.mean([metrics.average_precision(*test) for test in tests])),
    )


def _reason(held: HeldOut, without: list[int]) -> str:
    names = ", ".join(repr(held.classes[column]) for column in without)
    present = [held.classes[column] for column in np.flatnonzero(held.truth.any(axis=0))]
    if not without:
        return ""
    if len(present) == 1 and not held.several:
        return f"There is no ROC and no precision-recall curve: all bags are of one class, {present[0]!r}."
    if np.isnan(held.decisions).all():
        return "There is no ROC and no precision-recall curve: the method gives labels without decisions."
    return f"There is no curve for {names}: no test fold has bags with and without it."


def mean_roc(tests: Tests) -> Floats:
    """Return [false positive rate, true positive rate] of the mean of ROC curves, (n_points, 2)."""
    curves = [roc_curve(members, decisions, drop_intermediate=False)[:2] for members, decisions in tests]
    grid = np.unique(np.concatenate([rates for rates, _ in curves]))
    heights = np.mean([_feet_and_tops(rates, found, grid) for rates, found in curves], axis=0)  # (n_grid, 2)
    return np.column_stack([np.repeat(grid, 2), heights.ravel()])


def _feet_and_tops(x: Floats, y: Floats, grid: Floats) -> Floats:
    """Return where a curve comes to a place and where it leaves it: it may rise straight up there, (n_grid, 2)."""
    places, first = np.unique(x, return_index=True)
    feet, tops = y[first], y[np.append(first[1:], len(x)) - 1]
    at = np.searchsorted(places, grid, side="right") - 1
    after = np.minimum(at + 1, len(places) - 1)
    exact = places[at] == grid
    steps = np.where(exact, 0.0, grid - places[at]) / np.where(exact, 1.0, places[after] - places[at])
    between = tops[at] + steps * (feet[after] - tops[at])
    return np.column_stack([np.where(exact, feet[at], between), between])


def mean_precision_recall(tests: Tests) -> Floats:
    """Return [recall, precision] of the mean of the step functions whose areas are average precisions."""
    curves = [precision_recall_curve(members, decisions)[:2] for members, decisions in tests]
    grid = np.unique(np.concatenate([recall for _, recall in curves]))
    rising = [(precision[::-1], recall[::-1]) for precision, recall in curves]
    heights = np.mean([p[np.searchsorted(r, grid[1:], side="left")] for p, r in rising], axis=0)
    starts_and_ends = np.column_stack([grid[:-1], grid[1:]]).ravel()
    return np.column_stack([starts_and_ends, np.repeat(heights, 2)])


def _some(points: Floats) -> list[list[float]]:
    """Return at most so many points, both ends among them, rounded: they are for a picture."""
    chosen = np.unique(np.linspace(0, len(points) - 1, min(len(points), _MOST_POINTS)).round().astype(np.int64))
    return [[float(f"{value:.5g}") for value in point] for point in points[chosen]]
