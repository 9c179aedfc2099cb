"""Plots of what is inside a model: two histograms, the ranking of bins, a map, and the paper's Figure 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmil.reporting.svg import Plot, Scale, hint, nice_ticks, tag, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.reporting.summary import Bin, InstanceMap, ViewWeight

MOST_BARS = 60
_SHOWN_IN_OVERVIEW = 350
_ROOM_FOR_TWO_LETTERS = 13.0


def draw_histograms(bins: Sequence[Bin]) -> tuple[str, str]:
    """Draw h+ and h- with the same bins in the same order and on the same scale; C+ and C- are marked."""
    ordered = sorted(shown_bins(bins), key=lambda b: b.number)
    highest = max(max(b.positive_share, b.negative_share) for b in ordered) or 1.0
    return (
        _histogram(ordered, highest, "positive", "h+: instances of positive bags, % of them in each bin"),
        _histogram(ordered, highest, "negative", "h−: instances of negative bags, % of them in each bin"),
    )


def _histogram(bins: Sequence[Bin], highest: float, side: str, title: str, **size: Any) -> str:
    plot = Plot(title, **{"width": 400, "height": 230, "top": 22, **size})
    y = plot.y_scale(0, 100 * highest * 1.12)
    plot.y_axis(y, nice_ticks(0, 100 * highest, 4), "% of instances")
    step, bars = _columns(plot, len(bins))
    for b, x in zip(bins, bars, strict=True):
        share = b.positive_share if side == "positive" else b.negative_share
        marked = b.in_positive if side == "positive" else b.in_negative
        count = b.positive_count if side == "positive" else b.negative_count
        words = hint(f"bin {b.number}: {100 * share:.1f} % ({count:g})")
        kind = f"bar {side}{' marked' if marked else ''}"
        height = max(y(0) - y(100 * share), 0.5)
        bar = tag("rect", words, x=x, y=y(0) - height, width=step * 0.8, height=height, class_=kind)
        plot.add(bar)
        if marked:
            name = ("C+" if side == "positive" else "C−")[0 if step > _ROOM_FOR_TWO_LETTERS else 1 :]
            plot.add(text(name, x + step * 0.4, y(100 * share) - 4, text_anchor="middle", class_="mark"))
    plot.x_axis(_bin_texts(bins, bars, step), "bin")
    return str(plot)


def draw_ranking(bins: Sequence[Bin]) -> str:
    """Draw the scores of Eq. 6, the best first, C+ and C- marked."""
    best = list(bins[:MOST_BARS])
    plot = Plot("Bins ranked by Eq. 6", width=400, height=230, top=22)
    highest = max(b.score for b in best) or 1.0
    y = plot.y_scale(0, highest * 1.12)
    plot.y_axis(y, nice_ticks(0, highest, 4), "score (Eq. 6)")
    step, bars = _columns(plot, len(best))
    for b, x in zip(best, bars, strict=True):
        role = _role(b)
        words = hint(
            f"bin {b.number}: score {b.score:.3g}, h+ {100 * b.positive_share:.1f} %, h− {100 * b.negative_share:.1f} %"
        )
        height = max(y(0) - y(b.score), 0.5)
        plot.add(tag("rect", words, x=x, y=y(0) - height, width=step * 0.8, height=height, class_=f"bar {role}"))
        names = [n for n, there in (("C+", b.in_positive), ("C−", b.in_negative)) if there]
        for i, name in enumerate(reversed(names)):
            kind = f"mark {'negative' if name == 'C−' else 'positive'}"
            short = name[0 if step > _ROOM_FOR_TWO_LETTERS else 1 :]
            plot.add(text(short, x + step * 0.4, y(b.score) - 4 - 12 * i, text_anchor="middle", class_=kind))
    plot.x_axis(_bin_texts(best, bars, step), "bin, the best first")
    return str(plot)


def shown_bins(bins: Sequence[Bin]) -> list[Bin]:
    """Return the bins to draw: all, or those of the codebooks and the best ranked."""
    if len(bins) <= MOST_BARS:
        return list(bins)
    used = [b for b in bins if b.in_positive or b.in_negative]
    others = [b for b in bins if not (b.in_positive or b.in_negative)]
    return (used + others)[:MOST_BARS]


def _role(b: Bin) -> str:
    return {(True, True): "both", (True, False): "positive", (False, True): "negative"}.get(
        (b.in_positive, b.in_negative), "plain"
    )


def _columns(plot: Plot, n: int) -> tuple[float, list[float]]:
    step = (plot.width - plot.left - plot.right) / max(n, 1)
    return step, [plot.left + step * (i + 0.1) for i in range(n)]


def _bin_texts(bins: Sequence[Bin], bars: list[float], step: float) -> list[tuple[float, str]]:
    every = max(1, round(20 / step + 0.49))
    return [(x + step * 0.4, str(b.number)) for i, (b, x) in enumerate(zip(bins, bars, strict=True)) if i % every == 0]


def draw_views(views: Sequence[ViewWeight]) -> str:
    """Draw what every view has to say, as bars."""
    plot = Plot("The say of every view", width=440, height=24 * len(views) + 12, left=200, right=46, top=4, bottom=4)
    x = plot.x_scale(0, max(v.weight for v in views))
    for i, view in enumerate(views):
        y = 6 + 24 * i
        plot.add(text(view.name, plot.left - 8, y + 13, text_anchor="end", class_="tick"))
        width = max(x(view.weight) - plot.left, 1.0)
        plot.add(
            tag(
                "rect",
                hint(f"{view.name}: {view.weight:.3g}"),
                x=plot.left,
                y=y,
                width=width,
                height=17,
                class_="bar c",
            )
        )
        plot.add(text(f"{view.weight:.2f}", plot.left + width + 5, y + 13, class_="tick"))
    return str(plot)


def map_scales(found: InstanceMap, plot: Plot) -> tuple[Scale, Scale]:
    """Return the scales of a map, the same unit in both directions where that leaves no side empty."""
    xs = [p[0] for p in found.points] + [c[0] for c in found.centers]
    ys = [p[1] for p in found.points] + [c[1] for c in found.centers]
    pad_x, pad_y = ((max(v) - min(v)) * 0.04 or 1.0 for v in (xs, ys))
    return plot.x_scale(min(xs) - pad_x, max(xs) + pad_x), plot.y_scale(min(ys) - pad_y, max(ys) + pad_y)


def draw_map(found: InstanceMap) -> tuple[str, dict[str, float]]:
    """Draw instances and centres; return the picture and what a script needs to draw into it."""
    plot = Plot("Map of the instances", width=480, height=400, left=8, right=8, top=8, bottom=8)
    x, y = map_scales(found, plot)
    # Where every instance is a centre, as in small data, centres on top would hide all instances.
    below = _crowd(found)
    _draw_centers(plot, below, x, y, radius=4.8)
    _draw_points(plot, found, x, y, len(found.points), radius=2.6)
    plot.add(tag("g", " ", class_="chosen"))
    _draw_centers(plot, [center for center in found.centers if center[2] or not below], x, y, radius=9)
    scales = {"x0": x.start, "x1": x.end, "y0": y.start, "y1": y.end}
    scales |= {"xlow": x.low, "xhigh": x.high, "ylow": y.low, "yhigh": y.high}
    return str(plot), scales


def _draw_points(plot: Plot, found: InstanceMap, x: Scale, y: Scale, most: int, radius: float) -> None:
    every = max(1, len(found.points) // most)
    for point in found.points[::every]:
        kind = "positive" if point[2] == 1 else "negative"
        plot.add(tag("circle", cx=x(point[0]), cy=y(point[1]), r=radius, class_=f"instance {kind}"))


def _crowd(found: InstanceMap) -> list[Any]:
    """Return the centres of no codebook where they are too many to be numbered."""
    plain = [center for center in found.centers if not center[2]]
    return plain if len(plain) > MOST_BARS else []


def _draw_centers(plot: Plot, centers: Sequence[Any], x: Scale, y: Scale, radius: float) -> None:
    for cx, cy, role, number in sorted(centers, key=lambda c: bool(c[2])):
        kind = f"center {role or 'plain'}"
        shape = tag("circle", cx=x(cx), cy=y(cy), r=radius)
        name = text(number, x(cx), y(cy) + 4, text_anchor="middle") if radius > 6 else ""
        words = {"positive": "in C+", "negative": "in C−", "both": "in C+ and C−"}.get(role, "in no codebook")
        plot.add(tag("g", hint(f"centre {number}, {words}") + shape + name, class_=kind, data_center=number))


def draw_overview(bins: Sequence[Bin], found: InstanceMap) -> list[tuple[str, str]]:
    """Draw the paper's Figure 1 from a fitted model: four pictures, each with what it shows."""
    return [
        ("Instances of positive and of negative bags", _small_map(found, centers=False)),
        (f"Clustered into K = {len(found.centers)} clusters", _small_map(found, centers=True)),
        ("Counted per bin, for positive and for negative bags", _two_histograms(bins)),
        ("Ranked by the ratio: the codebooks C+ and C−", _small_ranking(bins)),
    ]


def _small_map(found: InstanceMap, *, centers: bool) -> str:
    plot = Plot("instances" if not centers else "clusters", width=240, height=180, left=4, right=4, top=4, bottom=4)
    x, y = map_scales(found, plot)
    if not centers:
        _draw_points(plot, found, x, y, _SHOWN_IN_OVERVIEW, radius=2.4)
        return str(plot)
    every = max(1, len(found.points) // _SHOWN_IN_OVERVIEW)
    for px, py, _, center in found.points[::every]:
        plot.add(tag("circle", cx=x(px), cy=y(py), r=2.4, class_=f"instance c{int(center) % 8}"))
    for cx, cy, _, number in found.centers:
        cross = f"M{x(cx) - 4:.1f},{y(cy) - 4:.1f}l8,8m0,-8l-8,8"
        plot.add(tag("path", hint(f"centre {number}"), d=cross, class_="cross"))
    return str(plot)


def _two_histograms(bins: Sequence[Bin]) -> str:
    plot = Plot("two histograms", width=240, height=180, left=26, right=4, top=4, bottom=4)
    ordered = sorted(shown_bins(bins), key=lambda b: b.number)
    highest = max(max(b.positive_share, b.negative_share) for b in ordered) or 1.0
    step, bars = _columns(plot, len(ordered))
    for side, base, name in (("positive", 84.0, "h+"), ("negative", 172.0, "h−")):
        plot.add(text(name, 2, base - 36, class_="axis"))
        plot.add(tag("line", x1=plot.left, x2=plot.width - 4, y1=base, y2=base, class_="base"))
        for b, x in zip(ordered, bars, strict=True):
            height = 74 * (b.positive_share if side == "positive" else b.negative_share) / highest
            plot.add(tag("rect", x=x, y=base - height, width=step * 0.8, height=height, class_=f"bar {side}"))
    return str(plot)


def _small_ranking(bins: Sequence[Bin]) -> str:
    plot = Plot("ranking", width=240, height=180, left=6, right=4, top=4, bottom=22)
    best = list(bins[:24])
    y = plot.y_scale(0, (max(b.score for b in best) or 1.0) * 1.15)
    step, bars = _columns(plot, len(best))
    for b, x in zip(best, bars, strict=True):
        height = max(y(0) - y(b.score), 1.0)
        plot.add(tag("rect", x=x, y=y(0) - height, width=step * 0.8, height=height, class_=f"bar {_role(b)}"))
    plot.add(tag("line", x1=plot.left, x2=plot.width - 4, y1=y(0), y2=y(0), class_="base"))
    for i, (name, kind) in enumerate((("C+", "positive"), ("C−", "negative"), ("both", "both"))):
        plot.add(tag("rect", x=60 + 56 * i, y=164, width=10, height=10, class_=f"bar {kind}"))
        plot.add(text(name, 74 + 56 * i, 173, class_="tick"))
    return str(plot)
