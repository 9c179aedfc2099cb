"""Plots of what was measured: accuracy against time, accuracy over a parameter."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gmil.reporting.svg import Plot, hint, log_ticks, nice_ticks, seconds_text, tag, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.reporting.summary import AccuracyPanel, AccuracyPoint, Curve, CurvePoint, TimedFigure, TimedLine
    from gmil.reporting.svg import Scale

N_COLOURS = 8


def method_numbers(panels: Sequence[AccuracyPanel]) -> dict[str, int]:
    """Return a number from 1 for every method, the same in all plots."""
    labels = dict.fromkeys(point.label for panel in panels for point in panel.points)
    return {label: i for i, label in enumerate(labels, start=1)}


def front(points: Sequence[AccuracyPoint]) -> list[AccuracyPoint]:
    """Return the methods than which none is both faster and more accurate, the fastest first."""
    found: list[AccuracyPoint] = []
    for point in sorted(points, key=lambda p: (p.seconds, -p.accuracy)):
        if not found or point.accuracy > found[-1].accuracy:
            found.append(point)
    return found


def draw_accuracies(panel: AccuracyPanel, numbers: dict[str, int]) -> str:
    """Draw accuracy with its interval against seconds; circles are numbered, tuned ones are squares."""
    plot = Plot(f"Accuracy against time on {panel.title}", width=380, height=310, top=22)
    low = min([p.low for p in panel.points] + [panel.floor or 1.0])
    y = plot.y_scale(100 * low - 2, 100 * max(p.high for p in panel.points) + 2)
    plot.y_axis(y, nice_ticks(y.low, y.high), "accuracy, %")
    seconds = [_drawable(p.seconds) for p in panel.points]
    x = plot.x_scale(min(seconds) / 1.7, max(seconds) * 1.7, log=True)
    plot.x_axis([(x(t), seconds_text(t)) for t in log_ticks(x.low, x.high)], "time of one cross-validation, log scale")
    if panel.floor is not None:
        _floor(plot, y(100 * panel.floor))
    best = front(panel.points)
    steps = " ".join(f"{x(_drawable(p.seconds)):.1f},{y(100 * p.accuracy):.1f}" for p in best)
    plot.add(tag("polyline", points=steps, class_="front"))
    true = [(x(_drawable(p.seconds)), y(100 * p.accuracy)) for p in panel.points]
    for point, place, aside in zip(panel.points, true, apart(true, plot.width - plot.right - 8), strict=True):
        plot.add(_marker(point, place[0], aside, y, numbers[point.label]))
    return str(plot)


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
        f"{point.label}, {point.setting}: {100 * point.accuracy:.1f} % "
        f"({100 * point.low:.1f} to {100 * point.high:.1f}) in {seconds_text(point.seconds)}"
    )
    colour = f"c{(number - 1) % N_COLOURS}"
    whisker = tag("line", x1=x, x2=x, y1=top, y2=bottom, class_="whisker")
    if aside != x:
        whisker += tag("line", x1=x, x2=aside, y1=middle, y2=middle, class_="whisker")
    if point.setting == "tuned":
        shape = tag("rect", x=aside - 8, y=middle - 8, width=16, height=16, rx=2, class_="marker")
    else:
        shape = tag("circle", cx=aside, cy=middle, r=8.5, class_="marker")
    name = text(number, aside, middle + 4, text_anchor="middle", class_="number")
    group = tag("g", hint(words) + whisker + shape + name, class_=f"point {colour}")
    return tag("a", group, href=f"#{point.source}", aria_label=words)


def _floor(plot: Plot, y: float) -> None:
    plot.add(tag("line", x1=plot.left, x2=plot.width - plot.right, y1=y, y2=y, class_="floor"))
    plot.add(text("majority class", plot.width - plot.right, y - 4, text_anchor="end", class_="tick"))


def draw_curve(curve: Curve, limits: tuple[float, float]) -> str:
    """Draw accuracy over a parameter: line, spread over seeds, interval over bags."""
    points = [p for p in curve.points if p.accuracy is not None]
    plot = Plot(f"{curve.title}: accuracy over {curve.axis}", top=22)
    y = plot.y_scale(*limits)
    plot.y_axis(y, nice_ticks(*limits), "accuracy, %")
    places = _places(plot, points)
    plot.x_axis(_spaced(places, [_value(p) for p in points]), curve.axis)
    if curve.floor is not None:
        _floor(plot, y(100 * curve.floor))
    middle = [100 * (p.accuracy or 0) for p in points]
    spreads = [100 * (p.spread or 0) for p in points]
    lows = [100 * (p.low if p.low is not None else p.accuracy or 0) for p in points]
    highs = [100 * (p.high if p.high is not None else p.accuracy or 0) for p in points]
    plot.add(_band(places, [y(v) for v in lows], [y(v) for v in highs], "band pale"))
    plot.add(
        _band(
            places,
            [y(m - s) for m, s in zip(middle, spreads, strict=True)],
            [y(m + s) for m, s in zip(middle, spreads, strict=True)],
            "band",
        )
    )
    plot.add(_line(places, [y(v) for v in middle], [_words(curve, p) for p in points], [p.source for p in points]))
    return str(plot)


def draw_seconds(curve: Curve) -> str:
    """Draw the CPU seconds of one cross-validation over a parameter."""
    points = [p for p in curve.points if p.seconds is not None]
    plot = Plot(f"Time over {curve.axis}", top=22)
    highest = max(p.seconds or 0 for p in points) * 1.1 or 1.0
    y = plot.y_scale(0, highest)
    plot.y_axis(y, nice_ticks(0, highest), "CPU seconds")
    places = _places(plot, points)
    plot.x_axis(_spaced(places, [_value(p) for p in points]), curve.axis)
    words = [f"{curve.axis} {_value(p)}: {seconds_text(p.seconds or 0)}" for p in points]
    plot.add(_line(places, [y(p.seconds or 0) for p in points], words, [p.seconds_source for p in points]))
    return str(plot)


def draw_times(figure: TimedFigure) -> str:
    """Draw seconds over the number of bags, both on logarithmic axes; the last point of a line has its number."""
    plot = Plot(figure.title, width=400, height=290, left=52, right=14, top=22)
    seconds = [_drawable(p.seconds) for line in figure.lines for p in line.points]
    lowest, highest = math.floor(math.log10(min(seconds))), math.ceil(math.log10(max(seconds)))
    y = plot.y_scale(10.0**lowest, 10.0 ** max(highest, lowest + 1), log=True)
    plot.y_axis(y, log_ticks(y.low, y.high), "time to learn all events, log scale", seconds_text)
    stops = [line.stopped for line in figure.lines if line.stopped is not None]
    numbers = sorted({p.bags for line in figure.lines for p in line.points}.union(stops))
    x = plot.x_scale(numbers[0] / 1.15, numbers[-1] * 1.15, log=True)
    plot.x_axis(_spaced([x(n) for n in numbers], [str(n) for n in numbers]), "number of bags, log scale")
    for number, line in enumerate(figure.lines, start=1):
        plot.add(_timed_line(line, number, plot, x, y))
    return str(plot)


def _timed_line(line: TimedLine, number: int, plot: Plot, x: Scale, y: Scale) -> str:
    parts = ""
    if line.stopped is not None:
        place, said = x(line.stopped), hint(f"{line.label}: no time for {line.stopped} bags")
        bottom = plot.height - plot.bottom
        parts += tag("line", said, x1=place, x2=place, y1=plot.top, y2=bottom, class_="stopped")
    if line.points:
        xs, ys = [x(p.bags) for p in line.points], [y(_drawable(p.seconds)) for p in line.points]
        words = [f"{line.label}, {p.bags} bags: {seconds_text(p.seconds)}" for p in line.points]
        parts += _line(xs, ys, words, [line.source] * len(xs))
        end = tag("circle", cx=xs[-1], cy=ys[-1], r=8.5, class_="marker")
        end += text(number, xs[-1], ys[-1] + 4, text_anchor="middle", class_="number")
        parts += tag("g", end, pointer_events="none")
    return tag("g", parts, class_=f"timed c{(number - 1) % N_COLOURS}")


def _drawable(seconds: float) -> float:
    return max(seconds, 1e-4)


def curve_limits(curves: Sequence[Curve]) -> tuple[float, float]:
    """Return limits in per cent that hold all accuracies with their intervals."""
    known = [v for c in curves for p in c.points for v in (p.low, p.high, p.accuracy, c.floor) if v is not None]
    return 100 * min(known) - 2, 100 * max(known) + 2


def _places(plot: Plot, points: Sequence[CurvePoint]) -> list[float]:
    """Return where values stand: by size where they are numbers of one order, else evenly."""
    values = [p.value for p in points]
    numbers = [float(v) for v in values if v is not None]
    if len(numbers) < len(values) or len(numbers) < 2 or max(numbers) > 100 * max(1.0, min(numbers)):
        step = (plot.width - plot.left - plot.right) / max(1, len(values))
        return [plot.left + step * (i + 0.5) for i in range(len(values))]
    x = plot.x_scale(min(numbers), max(numbers))
    return [x(v) for v in numbers]


def _spaced(places: Sequence[float], texts: Sequence[str]) -> list[tuple[float, str]]:
    """Return values to write below, leaving out those that would touch the one before."""
    kept: list[tuple[float, str]] = []
    for place, words in zip(places, texts, strict=True):
        if not kept or place - kept[-1][0] >= 7 * len(words) + 10:
            kept.append((place, words))
    return kept


def _value(point: CurvePoint) -> str:
    return "all" if point.value is None else f"{point.value:g}"


def _words(curve: Curve, point: CurvePoint) -> str:
    interval = "" if point.low is None or point.high is None else f" ({100 * point.low:.1f} to {100 * point.high:.1f})"
    return f"{curve.axis} {_value(point)}: {100 * (point.accuracy or math.nan):.1f} %{interval}"


def _band(xs: list[float], lows: list[float], highs: list[float], kind: str) -> str:
    there = [f"{x:.1f},{v:.1f}" for x, v in zip(xs, highs, strict=True)]
    back = [f"{x:.1f},{v:.1f}" for x, v in zip(reversed(xs), reversed(lows), strict=True)]
    return tag("polygon", points=" ".join(there + back), class_=kind)


def _line(xs: list[float], ys: list[float], words: list[str], sources: Sequence[str | None]) -> str:
    parts = [tag("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True)), class_="line")]
    for x, y, said, source in zip(xs, ys, words, sources, strict=True):
        dot = tag("circle", hint(said), cx=x, cy=y, r=4, class_="dot")
        parts.append(dot if source is None else tag("a", dot, href=f"#{source}", aria_label=said))
    return "".join(parts)
