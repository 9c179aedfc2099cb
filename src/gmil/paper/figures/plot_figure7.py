"""Figure 7: curves with the spread over seeds."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.paper.figures import plotting

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from matplotlib.axes import Axes

_COLOURS = {"clusters": plotting.BLUE, "negative": plotting.VERMILION, "positive": plotting.GREEN}


def draw_figure7(summary: dict[str, Any], stem: str | os.PathLike[str]) -> list[Path]:
    """Draw accuracy over K, q and p, time over K, and what the sample costs; return the files."""
    curves = [c for c in summary["curves"] if c["name"] in _COLOURS]
    timed = [c for c in summary["curves"] if c["name"] == "clusters" and _known(c, "seconds")]
    samples = [c for c in summary["curves"] if c["parameter"] == "sample_size"]
    panels = [(_draw_accuracy, c) for c in curves] + [(_draw_seconds, c) for c in timed]
    panels += [(_draw_sample, c) for c in samples]
    n_rows = -(-len(panels) // 3)
    with plotting.figure(11.4, 1.0 + 3.0 * n_rows, nrows=n_rows, ncols=3) as (drawn, grid):
        flat = grid.ravel()
        for axes, (draw, curve) in zip(flat, panels, strict=False):
            draw(axes, curve, summary)
        for axes in flat[len(panels) :]:
            axes.set_axis_off()
        _share_limits([axes for axes, (draw, _) in zip(flat, panels, strict=False) if draw is _draw_accuracy])
        protocol = summary["protocol"]
        text = (
            f"10-fold cross-validation. Line: mean over seeds; dark band: one standard deviation over "
            f"{protocol['repeats']} seeds of folds and k-means; pale band: 95 % interval by bootstrap over bags. "
            f"Times: CPU, median and range over rounds on {summary['threads']} thread."
        )
        plotting.caption(drawn, "What the parameters of GMIL do", "\n".join(textwrap.wrap(text, 150)))
        return plotting.save(drawn, stem)


def _known(curve: dict[str, Any], name: str) -> bool:
    return any(point.get(name) is not None for point in curve["points"])


def _draw_accuracy(axes: Axes, curve: dict[str, Any], summary: dict[str, Any]) -> None:
    points = [p for p in curve["points"] if p["accuracy"] is not None]
    x = np.array([p["value"] for p in points])
    mean = 100 * np.array([p["accuracy"] for p in points])
    spread = 100 * np.array([p["spread"] or 0.0 for p in points])
    interval = 100 * np.array([p["interval"] for p in points])
    colour = _COLOURS[curve["name"]]
    axes.fill_between(x, interval[:, 0], interval[:, 1], color=colour, alpha=0.12, linewidth=0)
    axes.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.35, linewidth=0)
    axes.plot(x, mean, "o-", color=colour, markersize=4, linewidth=1.8)
    majority = summary["controls"][curve["dataset"]]["majority"]["accuracy"]
    if majority is not None:
        axes.axhline(100 * majority, color=plotting.INK, linestyle=":", linewidth=1)
        axes.annotate(
            "majority class", (1, 100 * majority), xycoords=("axes fraction", "data"), ha="right", va="bottom",
            fontsize=8, color=plotting.INK, xytext=(0, 2), textcoords="offset points",
        )  # fmt: skip
    _whole_numbers(axes)
    _label(axes, curve, "accuracy, %")


def _whole_numbers(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _draw_seconds(axes: Axes, curve: dict[str, Any], summary: dict[str, Any]) -> None:  # noqa: ARG001
    points = [p for p in curve["points"] if p["seconds"] is not None]
    x, ranges = [p["value"] for p in points], np.array([p["seconds_range"] for p in points])
    axes.fill_between(x, ranges[:, 0], ranges[:, 1], color=plotting.PURPLE, alpha=0.25, linewidth=0)
    axes.plot(x, [p["seconds"] for p in points], "o-", color=plotting.PURPLE, markersize=4, linewidth=1.8)
    axes.set_ylim(bottom=0)
    _label(axes, {**curve, "title": "Time over K"}, "CPU seconds of a 10-fold")


def _draw_sample(axes: Axes, curve: dict[str, Any], summary: dict[str, Any]) -> None:  # noqa: ARG001
    points = curve["points"]
    x = np.arange(len(points))
    for name, colour, shift in (("accuracy", plotting.BLUE, -0.08), ("auc", plotting.ORANGE, 0.08)):
        values = [np.nan if p.get(name) is None else 100 * p[name] for p in points]
        axes.plot(x + shift, values, "o", color=colour, label=name if name == "accuracy" else "AUC", markersize=6)
    for place, point in zip(x, points, strict=True):
        if point.get("interval"):
            low, high = point["interval"]
            axes.plot([place - 0.08] * 2, [100 * low, 100 * high], color=plotting.BLUE, alpha=0.4, linewidth=2)
    ticks = [_sample_tick(point) for point in points]
    axes.set_xticks(x, ticks)
    axes.set_xlim(-0.5, len(points) - 0.5)
    axes.set_ylim(35, 105)
    axes.legend(loc="upper left", fontsize=8, ncols=2)
    _label(axes, curve, "accuracy, AUC x 100")


def _sample_tick(point: dict[str, Any]) -> str:
    size = "all" if point["value"] is None else f"{point['value']:,}".replace(",", " ")
    return size if point["seconds"] is None else f"{size}\n{point['seconds']:.2g} s"


def _label(axes: Axes, curve: dict[str, Any], y_label: str) -> None:
    axes.set_title(f"{curve['title']} ({plotting.dataset_title(curve['dataset'])})")
    axes.set_xlabel(curve["axis"])
    axes.set_ylabel(y_label)
    axes.tick_params(length=0)


def _share_limits(panels: list[Axes]) -> None:
    if panels:
        low = min(axes.get_ylim()[0] for axes in panels)
        high = max(axes.get_ylim()[1] for axes in panels)
        for axes in panels:
            axes.set_ylim(low, high)
