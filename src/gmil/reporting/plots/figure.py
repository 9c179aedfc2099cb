"""Plots as a file of their own: panels in a grid, with a title, a legend and an explanation."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gmil.reporting.plots.svg import tag, text
from gmil.reporting.rendering import render
from gmil.safety.atomic import replacing

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from gmil.reporting.plots.charts import Kind
    from gmil.reporting.plots.svg import Plot

_MARGIN, _GAP, _LINE, _TITLE_LINE = 14, 16, 17, 22
_LETTER, _TITLE_LETTER = 6.6, 9.4
"""The width of a letter in a text and in a title, a little more than most are wide."""
_KEY = 22
"""The room of a mark before its name in a legend."""
_WIDEST_TITLE = 480
"""A figure is made wide enough for its title, up to so much; a longer title takes several lines."""


@dataclass(frozen=True)
class Figure:
    """Panels with a title.

    Parameters
    ----------
    title, caption : str
    panels : sequence of (title, Plot)
    columns : int
        Panels beside each other.
    legend : sequence of Kind
    """

    title: str
    caption: str
    panels: Sequence[tuple[str, Plot]]
    columns: int = 1
    legend: Sequence[Kind] = ()

    def to_svg(self) -> str:
        """Return the figure as one SVG document."""
        width = 2 * _MARGIN + self._inner_width()
        parts, y = self._draw_title(width)
        legend, y = self._draw_legend(width, y)
        parts += legend
        for first in range(0, len(self.panels), self.columns):
            row, x = self.panels[first : first + self.columns], float(_MARGIN)
            head = 20 if any(title for title, _ in row) else 0
            for title, plot in row:
                parts.append(text(title, x, y + 14, class_="name"))
                parts.append(plot.placed(x=x, y=y + head, width=plot.width, height=plot.height))
                x += plot.width + _GAP
            y += head + max(plot.height for _, plot in row) + _GAP
        lines = textwrap.wrap(self.caption, int((width - 2 * _MARGIN) / _LETTER))
        parts += [text(line, _MARGIN, y + 4 + _LINE * i, class_="axis") for i, line in enumerate(lines)]
        return render("figure.svg.j2", width=width, height=y + _LINE * len(lines), body="".join(parts))

    def _inner_width(self) -> float:
        """Return the width of the widest row of panels, or of a title or a name in the legend that is wider."""
        widths = [plot.width for _, plot in self.panels]
        rows = [widths[i : i + self.columns] for i in range(0, len(widths), self.columns)]
        panels = [sum(row) + _GAP * (self.columns - 1) for row in rows]
        names = [_KEY + _LETTER * len(kind.label) for kind in self.legend]
        return max(*panels, *names, min(_TITLE_LETTER * len(self.title), _WIDEST_TITLE), 0)

    def _draw_title(self, width: float) -> tuple[list[str], float]:
        """Return the title, in as many lines as it needs, and where it ends."""
        lines = textwrap.wrap(self.title, int((width - 2 * _MARGIN) / _TITLE_LETTER)) or [""]
        drawn = [text(line, _MARGIN, 26 + _TITLE_LINE * i, class_="heading") for i, line in enumerate(lines)]
        return drawn, 34.0 + _TITLE_LINE * (len(lines) - 1)

    def _draw_legend(self, width: float, top: float) -> tuple[list[str], float]:
        """Return the marks with their names, as many in a line as there is room for, and where they end."""
        parts, x, y = [], float(_MARGIN), top + 14
        for kind in self.legend:
            needed = _KEY + _LETTER * len(kind.label)
            if x + needed > width - _MARGIN and x > _MARGIN:
                x, y = float(_MARGIN), y + _LINE
            parts.append(tag("g", kind.sample(x + 9, y - 4) + text(kind.label, x + _KEY, y, class_="axis")))
            x += needed + _GAP
        return parts, y + 8 if parts else top

    def save(self, stem: str | os.PathLike[str]) -> list[Path]:
        """Write ``<stem>.svg``; return the files."""
        path = Path(f"{stem}.svg")
        with replacing(path) as temporary:
            temporary.write_text(self.to_svg(), encoding="utf-8")
        return [path]
