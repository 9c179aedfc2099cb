"""SVG elements, scales and axes. Colours are CSS variables: one picture serves both themes, print and files."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


_CORNERS = {
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "diamond": ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
    "up": ((0, -1.1), (1.1, 0.9), (-1.1, 0.9)),
    "right": ((1.1, 0), (-0.9, 1.1), (-0.9, -1.1)),
}


def tag(name: str, content: str = "", **attributes: Any) -> str:
    """Return an element. Content is SVG already; attributes are escaped, and ``class_`` and ``font_size`` are renamed.

    >>> tag("circle", r=2, class_="dot")
    '<circle r="2" class="dot"/>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{content}</{name}>" if content else f"<{name}{given}/>"


def text(content: Any, x: float, y: float, **attributes: Any) -> str:
    """Return a text; its content is escaped."""
    return tag("text", escape(str(content)), x=x, y=y, **attributes)


def shortened(content: str, most: int) -> str:
    """Return a text of at most so many letters; a longer one keeps its beginning and its end.

    >>> shortened("a_long_name_of_a_feature", 11)
    'a_lon…ature'
    """
    end = (most - 1) // 2
    return content if len(content) <= most else f"{content[: most - 1 - end]}…{content[len(content) - end :]}"


def hint(content: Any) -> str:
    """Return what shows when the pointer rests on an element."""
    return tag("title", escape(str(content)))


def points_text(points: Iterable[tuple[float, float]]) -> str:
    """Return places as polygons and polylines want them."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def marker(shape: str, x: float, y: float, size: float, content: str = "", **attributes: Any) -> str:
    """Return a marker: "circle", "square", "diamond", "up" or "right" (triangles)."""
    if shape == "circle":
        return tag("circle", content, cx=x, cy=y, r=size, **attributes)
    corners = points_text((x + size * dx, y + size * dy) for dx, dy in _CORNERS[shape])
    return tag("polygon", content, points=corners, **attributes)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".rstrip("0").rstrip(".") if abs(value) >= 0.05 or value == 0 else f"{value:.3g}"
    return str(value)


@dataclass(frozen=True)
class Scale:
    """Numbers to places, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a number."""
        low, high, value = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (value - low) / ((high - low) or 1.0) * (self.end - self.start)


def nice_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers between two limits.

    >>> nice_ticks(41, 98)
    [50.0, 60.0, 70.0, 80.0, 90.0]
    """
    raw = (high - low) / most or 1.0
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 10) + 0.0 for i in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return the powers of ten between two limits, every second or third where there are many."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    every = max(1, math.ceil((last - first + 1) / 5))
    return [10.0**i for i in range(first, last + 1, every)]


@dataclass
class Plot:
    """A picture with axes. Parts are added in the order in which they are painted."""

    label: str
    width: float = 360.0
    height: float = 250.0
    left: float = 42.0
    right: float = 10.0
    top: float = 12.0
    bottom: float = 38.0
    parts: list[str] = field(default_factory=list)

    def x_scale(self, low: float, high: float, *, log: bool = False) -> Scale:
        """Return the horizontal scale."""
        return Scale(low, high, self.left, self.width - self.right, log)

    def y_scale(self, low: float, high: float, *, log: bool = False) -> Scale:
        """Return the vertical scale; up is more."""
        return Scale(low, high, self.height - self.bottom, self.top, log)

    def add(self, *parts: str) -> None:
        """Paint on top of what is there."""
        self.parts.extend(parts)

    def y_axis(
        self, scale: Scale, ticks: Sequence[float], title: str = "", words: Callable[[float], str] = "{:g}".format
    ) -> None:
        """Draw grid lines, their numbers in words and a title above."""
        for tick in ticks:
            y = scale(tick)
            self.horizontal(y, "grid")
            self.add(text(words(tick), self.left - 6, y + 4, text_anchor="end", class_="tick"))
        if title:
            self.add(text(title, 2, 10, class_="axis"))

    def x_axis(self, places: Sequence[tuple[float, str]], title: str = "") -> None:
        """Write texts below places, and a title below them."""
        y = self.height - self.bottom
        self.horizontal(y, "base")
        for x, words in places:
            self.add(tag("line", x1=x, x2=x, y1=y, y2=y + 4, class_="base"))
            self.add(text(words, x, y + 16, text_anchor="middle", class_="tick"))
        if title:
            middle = (self.left + self.width - self.right) / 2
            self.add(text(title, middle, self.height - 5, text_anchor="middle", class_="axis"))

    def horizontal(self, y: float, kind: str, words: str = "", *, at_left: bool = False) -> None:
        """Draw a line across, with words above one of its ends."""
        right = self.width - self.right
        self.add(tag("line", x1=self.left, x2=right, y1=y, y2=y, class_=kind))
        if words and at_left:
            self.add(text(words, self.left + 4, y - 4, class_="tick"))
        elif words:
            self.add(text(words, right, y - 4, text_anchor="end", class_="tick"))

    def placed(self, **attributes: Any) -> str:
        """Return the picture; ``attributes`` place it inside another one."""
        return tag(
            "svg",
            hint(self.label) + "".join(self.parts),
            viewBox=f"0 0 {self.width:g} {self.height:g}",
            role="group" if any("<a " in part for part in self.parts) else "img",  # an image would hide its links
            aria_label=self.label,
            class_="plot",
            **attributes,
        )

    def __str__(self) -> str:
        return self.placed()

    __html__ = __str__  # markup for a template, which it does not escape
