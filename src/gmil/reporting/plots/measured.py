"""Plots of what was measured: accuracy against time, accuracy and time over a parameter, time over the bags."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gmil.reporting.formatting import interval_text, percent, seconds_text
from gmil.reporting.plots.charts import N_COLOURS, Axis, Kind, Series, draw_series, frame, line_chart
from gmil.reporting.plots.svg import Plot, hint, points_text, tag, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.reporting.plots.svg import Scale
    from gmil.reporting.summary import AccuracyPanel, AccuracyPoint, Curve, CurvePoint, TimedFigure, TimedLine


def method_numbers(panels: Sequence[AccuracyPanel]) -> dict[str, int]:
    """Return a number from 1 for every method, the same in all plots."""
    labels = dict.fromkeys(point.label for panel in panels for point in panel.points)
    return {label: i for i, label in enumerate(labels, start=1)}


def pareto_front(points: Sequence[AccuracyPoint]) -> list[AccuracyPoint]:
    """Return the methods of which no other is both faster and more accurate, the fastest first."""
    found: list[AccuracyPoint] = []
    for point in sorted(points, key=lambda p: (p.seconds, -p.accuracy)):
        if not found or point.accuracy > found[-1].accuracy:
            found.append(point)
    return found


def draw_accuracies(panel: AccuracyPanel, numbers: dict[str, int]) -> Plot:
    """Draw accuracy with its interval against seconds; circles are numbered, tuned ones are squares."""
    plot = Plot(f"Accuracy against time on {panel.title}", width=380, height=310, top=22)
    low = min([p.low for p in panel.points] + [panel.floor or 1.0])
    seconds = [_drawable(p.seconds) for p in panel.points]
    title, least, most = "time of one cross-validation, log scale", min(seconds) / 1.7, max(seconds) * 1.7
    x_axis = Axis(title, least, most, log=True, words=seconds_text)
    x, y = frame(plot, x_axis, Axis("accuracy, %", 100 * low - 2, 100 * max(p.high for p in panel.points) + 2))
    true = [(x(_drawable(p.seconds)), y(100 * p.accuracy)) for p in panel.points]
    if panel.floor is not None:
        at = y(100 * panel.floor)
        covered = any(px > plot.width - 110 and abs(py - at + 8) < 18 for px, py in true)
        plot.horizontal(at, "floor", "majority class", at_left=covered)
    steps = [(x(_drawable(p.seconds)), y(100 * p.accuracy)) for p in pareto_front(panel.points)]
    plot.add(tag("polyline", points=points_text(steps), class_="front"))
    for point, place, aside in zip(panel.points, true, apart(true, plot.width - plot.right - 8), strict=True):
        plot.add(_marker(point, place[0], aside, y, numbers[point.label]))
    return plot


def apart(places: Sequence[tuple[float, float]], most: float, room: float = 15.0) -> list[float]:
    """Return where markers stand so that none covers another: beside their true places where these are too near.

    >>> apart([(10.0, 50.0), (12.0, 50.0), (12.0, 90.0)], most=100)
    [10.0, 27.0, 12.0]
    """
    taken: list[tuple[float, float]] = []
    for x, y in places:
        steps = (x + room * step for i in range(len(places) + 1) for step in (i, -i))
        free = (s for s in steps if s <= most and all(abs(s - a) >= room or abs(y - b) >= room for a, b in taken))
        taken.append((next(free, x), y))
    return [x for x, _ in taken]


def _marker(point: AccuracyPoint, x: float, aside: float, y: Scale, number: int) -> str:
    top, middle, bottom = (y(100 * v) for v in (point.high, point.accuracy, point.low))
    words = (
        f"{point.label}, {point.setting}: {percent(point.accuracy)} % "
        f"({interval_text([point.low, point.high])}) in {seconds_text(point.seconds)}"
    )
    whisker = tag("line", x1=x, x2=x, y1=top, y2=bottom, class_="whisker")
    if aside != x:
        whisker += tag("line", x1=x, x2=aside, y1=middle, y2=middle, class_="whisker")
    if point.setting == "tuned":
        shape = tag("rect", x=aside - 8, y=middle - 8, width=16, height=16, rx=2, class_="marker")
        shape += _number(number, aside, middle)
    else:
        shape = _numbered(number, aside, middle)
    group = tag("g", hint(words) + whisker + shape, class_=f"point c{(number - 1) % N_COLOURS}")
    return tag("a", group, href=f"#{point.source}", aria_label=words)


def _number(number: int, x: float, y: float) -> str:
    return text(number, x, y + 4, text_anchor="middle", class_="number")


def _numbered(number: int, x: float, y: float) -> str:
    return tag("circle", cx=x, cy=y, r=8.5, class_="marker") + _number(number, x, y)


# -------------------------------------------------------------------------------- over a parameter


def curve_pictures(curves: Sequence[Curve]) -> list[tuple[str, Plot]]:
    """Return titles and plots: accuracy over every parameter on one scale, then time where it was measured."""
    known = [c for c in curves if any(p.accuracy is not None for p in c.points)]
    limits = curve_limits(known) if known else (0.0, 100.0)
    pictures = [(f"{c.title} ({c.dataset})", draw_curve(c, limits)) for c in known]
    timed = [c for c in curves if sum(p.seconds is not None for p in c.points) > 1]
    return pictures + [(f"Time over {c.axis} ({c.dataset})", draw_seconds(c)) for c in timed]


def curve_limits(curves: Sequence[Curve]) -> tuple[float, float]:
    """Return limits in per cent that hold all accuracies with their intervals."""
    values = [(p.low, p.high, p.accuracy, c.floor, p.auc if _shows_auc(c) else None) for c in curves for p in c.points]
    known = [value for some in values for value in some if value is not None]
    return 100 * min(known) - 2, 100 * max(known) + 2


def draw_curve(curve: Curve, limits: tuple[float, float]) -> Plot:
    """Draw accuracy over a parameter: line, spread over seeds, interval over bags; AUC over sizes of samples."""
    points = [p for p in curve.points if p.accuracy is not None]
    xs, x_axis = _values_axis(points, curve.axis)
    mean = [100 * (p.accuracy or 0) for p in points]
    spread = [100 * (p.spread or 0) for p in points]
    lows, highs = ([100 * _or(getattr(p, end), p.accuracy) for p in points] for end in ("low", "high"))
    inner = [m - s for m, s in zip(mean, spread, strict=True)], [m + s for m, s in zip(mean, spread, strict=True)]
    series = [
        Series(
            list(zip(xs, mean, strict=True)),
            bands=[(lows, highs), inner],
            hints=[_words(curve, p) for p in points],
            links=[p.source for p in points],
        )
    ]
    title = "accuracy, %"
    if _shows_auc(curve):
        known = [(x, 100 * p.auc) for x, p in zip(xs, points, strict=True) if p.auc is not None]
        series.append(
            Series(known, Kind("AUC", 1, "square", line="line dashed"), hints=[f"AUC {v / 100:.3f}" for _, v in known])
        )
        title = "accuracy, %; dashed: AUC × 100"
    floor = None if curve.floor is None else (100 * curve.floor, "majority class")
    return line_chart(
        f"{curve.title}: accuracy over {curve.axis}", series, x_axis, Axis(title, *limits), reference=floor
    )


def _shows_auc(curve: Curve) -> bool:
    """Tell whether AUC stands beside accuracy: where the sample is all instances, which has no number."""
    return any(p.value is None for p in curve.points) and any(p.auc is not None for p in curve.points)


def _or(value: float | None, other: float | None) -> float:
    return value if value is not None else other or 0.0


def draw_seconds(curve: Curve) -> Plot:
    """Draw the CPU seconds of one cross-validation over a parameter, with their range over rounds."""
    points = [p for p in curve.points if p.seconds is not None]
    xs, x_axis = _values_axis(points, curve.axis)
    seconds = [p.seconds or 0.0 for p in points]
    ranges = [p.seconds_range or [s, s] for p, s in zip(points, seconds, strict=True)]
    series = Series(
        list(zip(xs, seconds, strict=True)),
        Kind("", 4),
        bands=[([low for low, _ in ranges], [high for _, high in ranges])],
        hints=[f"{curve.axis} {_value(p)}: {seconds_text(s)}" for p, s in zip(points, seconds, strict=True)],
        links=[p.seconds_source for p in points],
    )
    highest = max(high for _, high in ranges) * 1.1 or 1.0
    return line_chart(f"Time over {curve.axis}", [series], x_axis, Axis("CPU seconds", 0, highest))


def _values_axis(points: Sequence[CurvePoint], title: str) -> tuple[list[float], Axis]:
    """Return where values stand: by size where they are numbers of one order, else evenly."""
    numbers = [float(p.value) for p in points if p.value is not None]
    if len(numbers) == len(points) > 1 and max(numbers) <= 100 * max(1.0, min(numbers)):
        return numbers, Axis(title, min(numbers), max(numbers), ticks=numbers)
    even = [float(i) for i in range(len(points))]
    return even, Axis(title, -0.5, len(points) - 0.5, ticks=even, words=lambda i: _value(points[int(i)]))


def _value(point: CurvePoint) -> str:
    return "all" if point.value is None else f"{point.value:g}"


def _words(curve: Curve, point: CurvePoint) -> str:
    interval = "" if point.low is None or point.high is None else f" ({interval_text([point.low, point.high])})"
    return f"{curve.axis} {_value(point)}: {percent(point.accuracy)} %{interval}"


# -------------------------------------------------------------------------------- over the number of bags


def draw_times(figure: TimedFigure) -> Plot:
    """Draw seconds over the number of bags, both on logarithmic axes; the last point of a line has its number."""
    plot = Plot(figure.title, width=400, height=290, left=52, right=14, top=22)
    seconds = [_drawable(p.seconds) for line in figure.lines for p in line.points]
    lowest, highest = math.floor(math.log10(min(seconds))), math.ceil(math.log10(max(seconds)))
    stops = [line.stopped for line in figure.lines if line.stopped is not None]
    numbers = sorted({p.bags for line in figure.lines for p in line.points}.union(stops))
    title, limits = "training time for all events, log scale", (10.0**lowest, 10.0 ** max(highest, lowest + 1))
    y_axis = Axis(title, *limits, log=True, words=seconds_text)
    ends = numbers[0] / 1.15, numbers[-1] * 1.15
    x, y = frame(plot, Axis("number of bags, log scale", *ends, log=True, ticks=numbers, words=str), y_axis)
    plot.add(*(_timed_line(line, number, plot, x, y) for number, line in enumerate(figure.lines, start=1)))
    return plot


def _timed_line(line: TimedLine, number: int, plot: Plot, x: Scale, y: Scale) -> str:
    stop, end = "", ""
    if line.stopped is not None:
        place, words = x(line.stopped), hint(f"{line.label}: not finished with {line.stopped} bags")
        bottom = plot.height - plot.bottom
        stop = tag("line", words, x1=place, x2=place, y1=plot.top, y2=bottom, class_="stopped")
    points = [(float(p.bags), _drawable(p.seconds)) for p in line.points]
    if points:
        end = tag("g", _numbered(number, x(points[-1][0]), y(points[-1][1])), pointer_events="none")
        end = tag("g", end, class_=f"c{(number - 1) % N_COLOURS}")
    words_of_points = [f"{line.label}, {p.bags} bags: {seconds_text(p.seconds)}" for p in line.points]
    links = [line.source] * len(points)
    return (
        draw_series(Series(points, Kind("", number - 1), hints=words_of_points, links=links), x, y, stop, "timed") + end
    )


def _drawable(seconds: float) -> float:
    return max(seconds, 1e-4)
