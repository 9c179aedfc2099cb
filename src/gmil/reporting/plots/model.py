"""Plots of what is inside a model: two histograms, the ranking of bins, weights, a map, and the paper's Figure 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmil.reporting.plots.svg import Plot, Scale, hint, nice_ticks, tag, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.reporting.summary import Bin, InstanceMap, ViewWeight

MOST_BARS = 60
_SHOWN_IN_OVERVIEW, _RANKED_IN_OVERVIEW = 350, 24
_ROOM_FOR_TWO_LETTERS = 13.0
_NAMES = {"positive": "C+", "negative": "C−"}


def draw_histograms(bins: Sequence[Bin]) -> list[Plot]:
    """Draw h+ and h- with the same bins in the same order and on the same scale; C+ and C- are marked."""
    ordered, highest = _in_order(bins)
    plots = []
    for side, name in (("positive", "h+"), ("negative", "h−")):
        plot = Plot(f"{name}: instances of {side} bags, % of them in each bin", width=400, height=230, top=22)
        y = plot.y_scale(0, 100 * highest * 1.12)
        plot.y_axis(y, nice_ticks(0, 100 * highest, 4), "% of instances")
        marks = [[side] if getattr(b, f"in_{side}") else [] for b in ordered]
        kinds = [f"{side} marked" if marked else side for marked in marks]
        shares = [100 * getattr(b, f"{side}_share") for b in ordered]
        counts = [getattr(b, f"{side}_count") for b in ordered]
        words = [f"bin {b.number}: {s:.1f} % ({n:g})" for b, s, n in zip(ordered, shares, counts, strict=True)]
        bars = _draw_bars(plot, y, shares, kinds, words)
        _draw_marks(plot, bars, [y(share) for share in shares], marks)
        plot.x_axis(_bin_texts(ordered, bars), "bin")
        plots.append(plot)
    return plots


def draw_ranking(bins: Sequence[Bin]) -> Plot:
    """Draw the scores of Eq. 6, the best first, C+ and C- marked."""
    best = list(bins[:MOST_BARS])
    plot = Plot("Bins ranked by Eq. 6", width=400, height=230, top=22)
    scores = [b.score for b in best]
    highest = max(scores) or 1.0
    y = plot.y_scale(0, highest * 1.12)
    plot.y_axis(y, nice_ticks(0, highest, 4), "score (Eq. 6)")
    words = [
        f"bin {b.number}: score {b.score:.3g}, h+ {100 * b.positive_share:.1f} %, h− {100 * b.negative_share:.1f} %"
        for b in best
    ]
    bars = _draw_bars(plot, y, scores, [_role(b) for b in best], words)
    marks = [["negative"] * b.in_negative + ["positive"] * b.in_positive for b in best]
    _draw_marks(plot, bars, [y(score) for score in scores], marks, coloured=True)
    plot.x_axis(_bin_texts(best, bars), "bin, best first")
    return plot


def shown_bins(bins: Sequence[Bin]) -> list[Bin]:
    """Return the bins to draw: all, or those of the codebooks and the best ranked."""
    return sorted(bins, key=lambda b: not (b.in_positive or b.in_negative))[:MOST_BARS]


def _in_order(bins: Sequence[Bin]) -> tuple[list[Bin], float]:
    """Return the bins to draw by their numbers, and the largest share of all."""
    ordered = sorted(shown_bins(bins), key=lambda b: b.number)
    return ordered, max(max(b.positive_share, b.negative_share) for b in ordered) or 1.0


def _role(b: Bin) -> str:
    return ("plain", "positive", "negative", "both")[b.in_positive + 2 * b.in_negative]


def _draw_bars(
    plot: Plot, y: Scale, values: Sequence[float], kinds: Sequence[str], words: Sequence[str] = ()
) -> list[tuple[float, float]]:
    """Draw bars side by side over the width of a plot; return the middle and the width of each."""
    step = (plot.width - plot.left - plot.right) / max(len(values), 1)
    for i, (value, kind) in enumerate(zip(values, kinds, strict=True)):
        height = max(y(0) - y(value), 0.5)
        place = {"x": plot.left + step * (i + 0.1), "y": y(0) - height, "width": step * 0.8, "height": height}
        plot.add(tag("rect", hint(words[i]) if words else "", **place, class_=f"bar {kind}"))
    return [(plot.left + step * (i + 0.5), step) for i in range(len(values))]


def _draw_marks(
    plot: Plot, bars: list[tuple[float, float]], tops: list[float], marks: list[list[str]], *, coloured: bool = False
) -> None:
    """Write the codebooks that a bin is in above its bar; of narrow bars the sign alone."""
    for (x, step), top, roles in zip(bars, tops, marks, strict=True):
        for i, role in enumerate(roles):
            name = _NAMES[role][0 if step > _ROOM_FOR_TWO_LETTERS else 1 :]
            kind = f"mark {role}" if coloured else "mark"
            plot.add(text(name, x, top - 4 - 12 * i, text_anchor="middle", class_=kind))


def _bin_texts(bins: Sequence[Bin], bars: list[tuple[float, float]]) -> list[tuple[float, str]]:
    every = max(1, round(20 / bars[0][1] + 0.49))
    return [(x, str(b.number)) for b, (x, _) in list(zip(bins, bars, strict=True))[::every]]


def draw_views(views: Sequence[ViewWeight]) -> Plot:
    """Draw the weight of every view, as bars."""
    plot = Plot("Weights of the views", width=440, height=24 * len(views) + 12, left=200, right=46, top=4, bottom=4)
    x = plot.x_scale(0, max(v.weight for v in views))
    for i, view in enumerate(views):
        y, width = 6 + 24 * i, max(x(view.weight) - plot.left, 1.0)
        plot.add(text(view.name, plot.left - 8, y + 13, text_anchor="end", class_="tick"))
        words = hint(f"{view.name}: {view.weight:.3g}")
        plot.add(tag("rect", words, x=plot.left, y=y, width=width, height=17, class_="bar c"))
        plot.add(text(f"{view.weight:.2f}", plot.left + width + 5, y + 13, class_="tick"))
    return plot


def map_scales(found: InstanceMap, plot: Plot) -> tuple[Scale, Scale]:
    """Return the scales of a map, with a little room around instances and centres."""
    limits = []
    for axis in (0, 1):
        values = [p[axis] for p in (*found.points, *found.centers)]
        room = (max(values) - min(values)) * 0.04 or 1.0
        limits.append((min(values) - room, max(values) + room))
    return plot.x_scale(*limits[0]), plot.y_scale(*limits[1])


def draw_map(found: InstanceMap) -> tuple[Plot, dict[str, float]]:
    """Draw instances and centres; return the picture and what a script needs to draw into it."""
    plot = Plot("Map of the instances", width=480, height=400, left=8, right=8, top=8, bottom=8)
    x, y = map_scales(found, plot)
    # Where every instance is a centre, as in small data, centres on top would hide all instances.
    below = _crowd(found)
    _draw_centers(plot, below, x, y, radius=4.8)
    _draw_points(plot, found.points, x, y, radius=2.6)
    plot.add(tag("g", " ", class_="chosen"))
    _draw_centers(plot, [center for center in found.centers if center[2] or not below], x, y, radius=9)
    scales = {"x0": x.start, "x1": x.end, "y0": y.start, "y1": y.end}
    return plot, scales | {"xlow": x.low, "xhigh": x.high, "ylow": y.low, "yhigh": y.high}


def _draw_points(
    plot: Plot, points: Sequence[Any], x: Scale, y: Scale, radius: float = 2.4, *, by_center: bool = False
) -> None:
    for px, py, positive, center in points:
        kind = f"c{int(center) % 8}" if by_center else "positive" if positive == 1 else "negative"
        plot.add(tag("circle", cx=x(px), cy=y(py), r=radius, class_=f"instance {kind}"))


def _crowd(found: InstanceMap) -> list[Any]:
    """Return the centres of no codebook where they are too many to be numbered."""
    plain = [center for center in found.centers if not center[2]]
    return plain if len(plain) > MOST_BARS else []


def _draw_centers(plot: Plot, centers: Sequence[Any], x: Scale, y: Scale, radius: float) -> None:
    for cx, cy, role, number in sorted(centers, key=lambda c: bool(c[2])):
        shape = tag("circle", cx=x(cx), cy=y(cy), r=radius)
        name = text(number, x(cx), y(cy) + 4, text_anchor="middle") if radius > 6 else ""
        words = {"both": "in C+ and C−", "": "in no codebook"}.get(role) or f"in {_NAMES[role]}"
        shown = hint(f"centre {number}, {words}") + shape + name
        plot.add(tag("g", shown, class_=f"center {role or 'plain'}", data_center=number))


# -------------------------------------------------------------------------------- the paper's Figure 1


def draw_overview(bins: Sequence[Bin], found: InstanceMap) -> list[tuple[str, Plot]]:
    """Draw the paper's Figure 1 from a fitted model: four pictures, each with what it shows."""
    return [
        ("Instances of positive and of negative bags", _small_map(found, centers=False)),
        (f"Clustered into K = {len(found.centers)} clusters", _small_map(found, centers=True)),
        ("Counted per bin, for positive and for negative bags", _two_histograms(bins)),
        ("Ranked by the ratio: the codebooks C+ and C−", _small_ranking(bins)),
    ]


def _small(title: str, **edges: Any) -> Plot:
    return Plot(title, **{"width": 240, "height": 180, "left": 4, "right": 4, "top": 4, "bottom": 4, **edges})


def _small_map(found: InstanceMap, *, centers: bool) -> Plot:
    plot = _small("clusters" if centers else "instances")
    x, y = map_scales(found, plot)
    every = max(1, len(found.points) // _SHOWN_IN_OVERVIEW)
    _draw_points(plot, found.points[::every], x, y, by_center=centers)
    for cx, cy, _, number in found.centers if centers else ():
        cross = f"M{x(cx) - 4:.1f},{y(cy) - 4:.1f}l8,8m0,-8l-8,8"
        plot.add(tag("path", hint(f"centre {number}"), d=cross, class_="cross"))
    return plot


def _two_histograms(bins: Sequence[Bin]) -> Plot:
    plot = _small("two histograms", left=26)
    ordered, highest = _in_order(bins)
    for side, base, name in (("positive", 84.0, "h+"), ("negative", 172.0, "h−")):
        plot.add(text(name, 2, base - 36, class_="axis"))
        plot.horizontal(base, "base")
        shares = [getattr(b, f"{side}_share") for b in ordered]
        _draw_bars(plot, Scale(0, highest, base, base - 74), shares, [side] * len(shares))
    return plot


def _small_ranking(bins: Sequence[Bin]) -> Plot:
    plot = _small("ranking", left=6, bottom=22)
    best = list(bins[:_RANKED_IN_OVERVIEW])
    y = plot.y_scale(0, (max(b.score for b in best) or 1.0) * 1.15)
    _draw_bars(plot, y, [b.score for b in best], [_role(b) for b in best])
    plot.horizontal(y(0), "base")
    for i, (name, kind) in enumerate((("C+", "positive"), ("C−", "negative"), ("both", "both"))):
        plot.add(tag("rect", x=60 + 56 * i, y=164, width=10, height=10, class_=f"bar {kind}"))
        plot.add(text(name, 74 + 56 * i, 173, class_="tick"))
    return plot
