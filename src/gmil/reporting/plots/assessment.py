"""Plots of predictions held against labels: ROC and precision-recall curves, which features matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gmil.reporting.assessment.content import MOST_SHOWN
from gmil.reporting.plots.charts import N_COLOURS, Axis, Kind, Mark, RowPanel, frame, row_chart
from gmil.reporting.plots.svg import Plot, hint, points_text, tag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.reporting.assessment.content import ClassCurves, ClassReliability, Importance

_LONGEST_NAME = 26


def curve_pages(curves: Sequence[ClassCurves]) -> list[list[ClassCurves]]:
    """Return curves as many together as there are colours."""
    return [list(curves[i : i + N_COLOURS]) for i in range(0, len(curves), N_COLOURS)]


def draw_roc(curves: Sequence[ClassCurves]) -> Plot:
    """Draw ROC curves; the diagonal is chance."""
    axes = Axis("false positive rate", 0, 1), Axis("true positive rate", 0, 1.02)
    lines = [(curve.roc, f"{curve.label}: AUC {curve.auc:.3f}") for curve in curves]
    return _draw("ROC curves", lines, *axes, diagonal=True)


def draw_precision_recall(curves: Sequence[ClassCurves]) -> Plot:
    """Draw precision-recall curves."""
    axes = Axis("recall", 0, 1), Axis("precision", 0, 1.02)
    lines = [(c.precision_recall, f"{c.label}: average precision {c.average_precision:.3f}") for c in curves]
    return _draw("Precision-recall curves", lines, *axes)


def draw_reliability(curves: Sequence[ClassReliability]) -> Plot:
    """Draw the share of bags of a class against the probability given; on the diagonal probabilities are true."""
    axes = Axis("predicted probability", 0, 1), Axis("share of bags", 0, 1.02)
    lines = [([point[:2] for point in c.points], f"{c.label}: mean gap {c.gap:.3f}") for c in curves]
    return _draw("Reliability", lines, *axes, diagonal=True)


def draw_risk(points: list[list[float]]) -> Plot:
    """Draw the share of wrong answers against the share of bags that are answered, the surest first."""
    highest = max(0.05, 1.1 * max(risk for _, risk in points))
    axes = Axis("share of bags answered", 0, 1), Axis("share of wrong answers", 0, highest)
    return _draw("Risk against coverage", [(points, "the surest bags first")], *axes)


def _draw(
    title: str, lines: Sequence[tuple[list[list[float]], str]], x_axis: Axis, y_axis: Axis, *, diagonal: bool = False
) -> Plot:
    plot = Plot(title, width=340, height=320, top=22)
    x, y = frame(plot, x_axis, y_axis)
    if diagonal:
        plot.add(tag("line", hint("chance, or calibrated"), x1=x(0), x2=x(1), y1=y(0), y2=y(1), class_="floor"))
    for i, (points, words) in enumerate(lines):
        places = points_text((x(a), y(b)) for a, b in points)
        plot.add(tag("polyline", hint(words), points=places, class_=f"line c{i}"))
    return plot


def draw_importance(found: Importance) -> Plot:
    """Draw the fall of the measure without every group of features, with its interval; dotted is no fall."""
    kind = Kind(f"fall of the {found.measure}", 0)
    groups = found.groups[:MOST_SHOWN]
    marks = [Mark(row, g.fall, kind, (g.low, g.high)) for row, g in enumerate(groups)]
    low, high = min(0.0, *(g.low for g in groups)), max(0.0, *(g.high for g in groups))
    room = 0.06 * (high - low) or 0.01
    axis = Axis(f"fall of the {found.measure}", low - room, high + room)
    names = [_short(g.features) for g in groups]
    return row_chart("Which features matter", names, [RowPanel(axis, marks, 0.0)], wide=True)


def _short(features: Sequence[str]) -> str:
    """Return a name that fits beside a row: the first feature, and how many more there are.

    >>> _short(["a", "b", "c"]), _short(["mean of the " + "very " * 9 + "long"])
    ('a +2', 'mean of the very very ver…')
    """
    more = f" +{len(features) - 1}" if len(features) > 1 else ""
    room = _LONGEST_NAME - len(more)
    return (features[0] if len(features[0]) <= room else f"{features[0][: room - 1]}…") + more
