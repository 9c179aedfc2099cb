"""Pictures of predicted values and risks: predicted against true, residuals, survival of risk groups, calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.errors import count_of
from gmil.model_selection.survival import kaplan_meier
from gmil.reporting.plots.charts import Axis, Kind, Series, line_chart
from gmil.target_checks import outcomes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats, Integers
    from gmil.reporting.plots.svg import Plot

_SIZE: dict[str, Any] = {"width": 400.0, "height": 320.0}
_DIAGONAL = Kind("as predicted", 7, line="line dashed", size=0.5)
RISK_GROUPS = (Kind("lower risk", 0, size=0.8), Kind("higher risk", 1, "square", size=0.8))
_MOST_POINTS = 2000


def predicted_against_true(values: Floats, predictions: Floats, names: Sequence[str]) -> Plot:
    """Draw a point per bag: its value to the right, what was predicted upwards; the diagonal is right."""
    low, high = _limits(np.concatenate([values, predictions]))
    kind = Kind("bag", 0, line="", size=2.5)
    hints = [f"{name}: true {a:.4g}, predicted {b:.4g}" for name, a, b in zip(names, values, predictions, strict=True)]
    points = list(zip(values.tolist(), predictions.tolist(), strict=True))
    diagonal = Series([(low, low), (high, high)], _DIAGONAL)
    series = [diagonal, Series(points[:_MOST_POINTS], kind, hints=hints[:_MOST_POINTS])]
    return line_chart("Predicted against true", series, Axis("true", low, high), Axis("predicted", low, high), **_SIZE)


def residuals(values: Floats, predictions: Floats, names: Sequence[str]) -> Plot:
    """Draw a point per bag: what was predicted to the right, how far the value lies above it upwards."""
    errors = values - predictions
    most = float(np.abs(errors).max()) * 1.05 or 1.0
    hints = [f"{name}: {error:+.4g}" for name, error in zip(names, errors, strict=True)][:_MOST_POINTS]
    points = list(zip(predictions.tolist(), errors.tolist(), strict=True))[:_MOST_POINTS]
    series = [Series(points, Kind("bag", 0, line="", size=2.5), hints=hints)]
    axes = Axis("predicted", *_limits(predictions)), Axis("true less predicted", -most, most)
    return line_chart("Residuals", series, *axes, reference=(0.0, ""), **_SIZE)


def survival_of_groups(y: NDArray[Any], groups: Integers) -> Plot:
    """Draw the Kaplan-Meier curve of bags of lower (0) and of higher (1) risk."""
    series = []
    for number, kind in enumerate(RISK_GROUPS):
        own = y[groups == number]
        curve = kaplan_meier(own) if own["event"].any() else None
        times = [0.0, *([] if curve is None else curve.times.tolist()), float(own["time"].max())]
        heights = [1.0, *([] if curve is None else curve.values.tolist())]
        steps = [(0.0, 1.0)]
        for at, before, after in zip(times[1:-1], heights[:-1], heights[1:], strict=True):
            steps += [(at, before), (at, after)]
        series.append(Series([*steps, (times[-1], heights[-1])], kind))
    axes = Axis("time", 0.0, float(y["time"].max())), Axis("share without event", 0.0, 1.02)
    return line_chart("Kaplan-Meier curves of risk groups", series, *axes, **_SIZE)


def survival_calibration(y: NDArray[Any], survival: Floats, time: float, n_groups: int = 5) -> Plot:
    """Draw, for groups of bags by predicted survival at a time, what was predicted and what came (Kaplan-Meier)."""
    order = np.argsort(survival)
    points, hints = [], []
    for rows in np.array_split(order, min(n_groups, max(1, len(y) // 5))):
        own = outcomes_of(y["event"][rows], y["time"][rows])
        seen = float(kaplan_meier(own).at(time)) if own["event"].any() else 1.0
        points.append((float(survival[rows].mean()), seen))
        hints.append(f"{count_of(len(rows), 'bag')}: {points[-1][0]:.3f} predicted, {seen:.3f} seen")
    series = [Series([(0, 0), (1, 1)], _DIAGONAL), Series(points, Kind("a fifth of the bags", 0), hints=hints)]
    axes = Axis(f"predicted survival at {time:.3g}", 0, 1), Axis("seen (Kaplan-Meier)", -0.02, 1.02)
    return line_chart("Calibration", series, *axes, **_SIZE)


def _limits(values: Floats) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    margin = 0.04 * (high - low) or 1.0
    return low - margin, high + margin
