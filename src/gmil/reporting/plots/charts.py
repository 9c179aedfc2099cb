"""Two kinds of charts: lines over a number, and marks in rows, one row a method."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from gmil.reporting.plots.svg import (
    Plot,
    Scale,
    hint,
    log_ticks,
    marker,
    nice_ticks,
    points_text,
    shortened,
    tag,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

N_COLOURS = 8
_ROW, _PANEL = 21, 138
"""Height of a row and width of a panel in a chart of rows."""
_LONGEST_NAME = 36


@dataclass(frozen=True)
class Axis:
    """What an axis shows; without ``ticks`` round numbers are written."""

    title: str
    low: float
    high: float
    log: bool = False
    ticks: Sequence[float] | None = None
    words: Callable[[float], str] = "{:g}".format

    def places(self) -> Sequence[float]:
        """Return the numbers to write."""
        if self.ticks is not None:
            return self.ticks
        return log_ticks(self.low, self.high) if self.log else nice_ticks(self.low, self.high)


class Kind(NamedTuple):
    """How one kind of points looks."""

    label: str
    colour: int
    shape: str = "circle"
    hollow: bool = False
    line: str = "line"  # the class of a line through the points: "line", "line dashed", or "" for none
    shift: float = 0.0  # up or down, in rows
    size: float = 4.0

    def draw(self, x: float, y: float, words: str | None = "") -> str:
        """Return one mark."""
        look = f"c{self.colour % N_COLOURS} {'hollow' if self.hollow else 'dot'}"
        return marker(self.shape, x, y, self.size, hint(words) if words else "", class_=look)

    def sample(self, x: float, y: float) -> str:
        """Return what stands in a legend."""
        line = tag("line", x1=x - 9, x2=x + 9, y1=y, y2=y, class_=f"{self.line} c{self.colour % N_COLOURS}")
        return (line if self.line else "") + self.draw(x, y)


_PLAIN = Kind("", 0)


@dataclass(frozen=True)
class Series:
    """A line through points.

    Parameters
    ----------
    points : sequence of (x, y)
    kind : Kind
    bands : sequence of (lows, highs)
        Around the line, the palest first.
    errors : sequence of float
        Half the length of an error bar at every point.
    hints, links : sequence of str
        What every point says, and the element of the page that it leads to.
    """

    points: Sequence[tuple[float, float]]
    kind: Kind = _PLAIN
    bands: Sequence[tuple[Sequence[float], Sequence[float]]] = ()
    errors: Sequence[float] = ()
    hints: Sequence[str] = ()
    links: Sequence[str | None] = ()


def frame(plot: Plot, x_axis: Axis, y_axis: Axis) -> tuple[Scale, Scale]:
    """Draw both axes and return their scales; texts that would touch the one before are left out."""
    y = plot.y_scale(y_axis.low, y_axis.high, log=y_axis.log)
    plot.y_axis(y, y_axis.places(), y_axis.title, y_axis.words)
    x = plot.x_scale(x_axis.low, x_axis.high, log=x_axis.log)
    written: list[tuple[float, str]] = []
    for tick in x_axis.places():
        words = x_axis.words(tick)
        if not written or x(tick) - written[-1][0] >= 7 * len(words) + 10:
            written.append((x(tick), words))
    plot.x_axis(written, x_axis.title)
    return x, y


def line_chart(
    title: str,
    series: Sequence[Series],
    x_axis: Axis,
    y_axis: Axis,
    *,
    reference: tuple[float, str] | None = None,
    **size: Any,
) -> Plot:
    """Draw lines; ``reference`` is the height of a dotted line and what it is called."""
    plot = Plot(title, **{"top": 22, **size})
    x, y = frame(plot, x_axis, y_axis)
    if reference is not None:
        plot.horizontal(y(reference[0]), "floor", reference[1])
    plot.add(*(draw_series(one, x, y) for one in series))
    return plot


def draw_series(series: Series, x: Scale, y: Scale, extra: str = "", group: str = "series") -> str:
    """Return one line with all that belongs to it, in its colour."""
    places = [(x(at), y(value)) for at, value in series.points]
    parts = [extra]
    for band, (lows, highs) in enumerate(series.bands, start=1):
        edge = [(p, y(v)) for (p, _), v in zip(places, highs, strict=True)]
        edge += [(p, y(v)) for (p, _), v in zip(reversed(places), reversed(lows), strict=True)]
        pale = "" if band == len(series.bands) else " pale"
        parts.append(tag("polygon", points=points_text(edge), class_=f"band{pale}"))
    for (p, _), (_, value), error in zip(places, series.points, series.errors, strict=False):
        parts.append(tag("line", x1=p, x2=p, y1=y(value - error), y2=y(value + error), class_="whisker"))
    parts.append(tag("polyline", points=points_text(places), class_=series.kind.line))
    for (px, py), words, link in itertools.zip_longest(places, series.hints, series.links):
        dot = series.kind.draw(px, py, words)
        parts.append(tag("a", dot, href=f"#{link}", aria_label=words) if link else dot)
    return tag("g", "".join(parts), class_=f"{group} c{series.kind.colour % N_COLOURS}")


class Mark(NamedTuple):
    """A value in a row, with its interval where there is one."""

    row: int
    value: float
    kind: Kind
    interval: Sequence[float] = ()


class RowPanel(NamedTuple):
    """One column of a chart of rows; ``reference`` is the place of a dotted line."""

    axis: Axis
    marks: Sequence[Mark]
    reference: float | None = None


def row_chart(title: str, rows: Sequence[str], panels: Sequence[RowPanel], *, wide: bool = False) -> Plot:
    """Draw panels side by side that share their rows: a mark for every value, the names of the rows on the left."""
    names, panel_width = [shortened(row, _LONGEST_NAME) for row in rows], 2 * _PANEL if wide else _PANEL
    left = 7.0 * max(map(len, names)) + 12
    height, width = _ROW * len(rows) + 50, left + len(panels) * panel_width + 8
    plot = Plot(title, width=width, height=height, left=left, right=8, top=24, bottom=26)
    for i, name in enumerate(names):
        middle = plot.top + _ROW * (i + 0.5)
        if i % 2 == 0:
            plot.add(tag("rect", x=0, y=middle - _ROW / 2, width=width, height=_ROW, class_="stripe"))
        plot.add(text(name, left - 8, middle + 4, text_anchor="end", class_="tick"))
    for number, panel in enumerate(panels):
        axis, start = panel.axis, left + number * panel_width
        x = Scale(axis.low, axis.high, start + 6, start + panel_width - 18, axis.log)
        plot.add(text(shortened(axis.title, int((panel_width - 12) / 8)), x.start, 14, class_="name"))
        for tick in axis.places():
            plot.add(tag("line", x1=x(tick), x2=x(tick), y1=plot.top, y2=height - 26, class_="grid"))
            plot.add(text(axis.words(tick), x(tick), height - 10, text_anchor="middle", class_="tick"))
        if panel.reference is not None:
            at = x(panel.reference)
            plot.add(tag("line", x1=at, x2=at, y1=plot.top, y2=height - 26, class_="floor"))
        plot.add(*(_draw_mark(mark, x, plot.top, rows[mark.row]) for mark in panel.marks))
    return plot


def _draw_mark(mark: Mark, x: Scale, top: float, name: str) -> str:
    y = top + _ROW * (mark.row + 0.5 + mark.kind.shift)
    bar = ""
    if mark.interval:
        low, high = map(x, mark.interval)
        bar = tag("line", x1=low, x2=high, y1=y, y2=y, class_=f"whisker c{mark.kind.colour % N_COLOURS}")
    return bar + mark.kind.draw(x(mark.value), y, f"{name}, {mark.kind.label}: {mark.value:.4g}")
