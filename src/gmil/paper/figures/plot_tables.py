"""Tables 1 and 2 as dots on lines: a figure per data set, the same methods on the same lines."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from gmil.paper.figures import plotting

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from matplotlib.axes import Axes

# Column to colour, marker, filled or not, and shift up or down within the line of its method.
_LOOKS: dict[str, tuple[str, str, bool, float]] = {
    "paper": (plotting.BLUE, "o", True, -0.22),
    "tuned": (plotting.VERMILION, "s", True, 0.0),
    "printed": (plotting.INK, "D", False, 0.22),
    "corrected": (plotting.INK, "D", True, 0.22),
    "control": (plotting.GREEN, "^", True, 0.0),
}
_NAMES = {
    "paper": "paper or default setting, measured",
    "tuned": "tuned inside the training folds, measured",
    "printed": "published",
    "corrected": "published, corrected",
    "control": "control",
}


def draw_table1(summary: dict[str, Any], stem: str | os.PathLike[str]) -> list[Path]:
    """Draw accuracies with their intervals; return the files."""
    methods = list(dict.fromkeys(row["label"] for row in summary["rows"]))
    datasets = summary["datasets"]
    with plotting.figure(2.4 + 2.15 * len(datasets), 1.9 + 0.34 * len(methods), ncols=len(datasets), sharey=True) as (
        drawn,
        grid,
    ):
        for axes, dataset in zip(grid[0], datasets, strict=True):
            _draw_accuracies(axes, summary["rows"], methods, dataset)
        grid[0][0].set_yticks(range(len(methods)), methods)
        grid[0][0].set_ylim(len(methods) - 0.4, -0.6)
        drawn.legend(handles=_legend(summary["rows"]), loc="outside upper right", ncols=3, fontsize=8)
        protocol = summary["protocol"]
        repeats = f"{protocol['repeats']} x {protocol['folds']}-fold"
        text = (
            f"Accuracy in per cent, {repeats}; bars are 95 % intervals by bootstrap over bags; the dotted line is the "
            "majority class. Published figures come from other folds and protocols."
        )
        plotting.caption(drawn, "Accuracy, measured and published", "\n".join(textwrap.wrap(text, 40 * len(datasets))))
        return plotting.save(drawn, stem)


def _draw_accuracies(axes: Axes, rows: list[dict[str, Any]], methods: list[str], dataset: str) -> None:
    measured = {row["label"] for row in rows if row["column"] in ("paper", "tuned")}
    _stripes(axes, len(methods))
    for row in rows:
        cell = row["cells"].get(dataset)
        if cell is None or cell["accuracy"] is None:
            continue
        colour, marker, filled, shift = _LOOKS[row["column"]]
        # A method that was not measured has its published figures on the line itself.
        height = methods.index(row["label"]) + (shift if row["label"] in measured else 0)
        if "interval" in cell:
            low, high = (100 * limit for limit in cell["interval"])
            axes.plot([low, high], [height, height], color=colour, linewidth=1.6, alpha=0.45, solid_capstyle="round")
        # A correction is a dot inside the diamond of the print where the two agree.
        face, size = (colour, 3 if row["column"] == "corrected" else 5) if filled else ("none", 6)
        axes.plot(100 * cell["accuracy"], height, marker, color=colour, markerfacecolor=face, markersize=size)
        if row["method"] == "majority":
            axes.axvline(100 * cell["accuracy"], color=plotting.INK, linewidth=0.9, linestyle=":")
    axes.set_title(plotting.dataset_title(dataset))
    axes.set_xlim(38, 102)
    axes.set_xticks([40, 60, 80, 100])
    plotting.bare(axes, grid="x")


def _stripes(axes: Axes, n_lines: int) -> None:
    for line in range(0, n_lines, 2):
        axes.axhspan(line - 0.5, line + 0.5, color="#F3F4F6", linewidth=0, zorder=0)


def _legend(rows: list[dict[str, Any]]) -> list[Any]:
    from matplotlib.lines import Line2D

    handles = []
    for column in dict.fromkeys(name for name in _LOOKS if any(row["column"] == name for row in rows)):
        colour, marker, filled, _ = _LOOKS[column]
        face, size = (colour, 3 if column == "corrected" else 5) if filled else ("none", 6)
        look = {"color": colour, "marker": marker, "markerfacecolor": face, "markersize": size, "linestyle": ""}
        handles.append(Line2D([], [], label=_NAMES[column], **look))  # type: ignore[arg-type]
    return handles


def draw_table2(summary: dict[str, Any], stem: str | os.PathLike[str]) -> list[Path]:
    """Draw seconds on a logarithmic axis; return the files."""
    rows, datasets = summary["rows"], summary["datasets"]
    with plotting.figure(2.4 + 2.15 * len(datasets), 1.9 + 0.42 * len(rows), ncols=len(datasets), sharey=True) as (
        drawn,
        grid,
    ):
        for axes, dataset in zip(grid[0], datasets, strict=True):
            _draw_seconds(axes, rows, dataset)
        grid[0][0].set_yticks(range(len(rows)), [row["label"] for row in rows])
        grid[0][0].set_ylim(len(rows) - 0.4, -0.6)
        drawn.legend(handles=_seconds_legend(), loc="outside upper right", ncols=3, fontsize=8)
        text = (
            f"CPU seconds of a whole 10-fold, median of {summary['protocol']['repeats']} rounds on "
            f"{summary['threads']} thread; bars are the least and the largest. "
            "Published: Matlab on a Core 2 Duo at 2.26 GHz."
        )
        plotting.caption(drawn, "Seconds, measured and published", "\n".join(textwrap.wrap(text, 40 * len(datasets))))
        return plotting.save(drawn, stem)


def _draw_seconds(axes: Axes, rows: list[dict[str, Any]], dataset: str) -> None:
    axes.set_xscale("log")
    _stripes(axes, len(rows))
    for height, row in enumerate(rows):
        cell = row["cells"][dataset]
        if cell["seconds"] is not None:
            axes.plot(
                [cell["least"], cell["largest"]], [height - 0.14] * 2, color=plotting.BLUE, linewidth=3, alpha=0.35
            )
            axes.plot(cell["seconds"], height - 0.14, "o", color=plotting.BLUE, markersize=6)
        if cell["published"] is not None:
            marker = ">" if cell["gave_up"] else "D"
            axes.plot(
                cell["published"], height + 0.14, marker, color=plotting.GREY, markerfacecolor="white", markersize=5
            )
    axes.set_title(plotting.dataset_title(dataset))
    axes.set_xlim(0.0007, 9000)
    axes.set_xticks([0.001, 0.1, 10, 1000], ["1 ms", "100 ms", "10 s", "1000 s"])
    axes.minorticks_off()
    plotting.bare(axes, grid="x")


def _seconds_legend() -> list[Any]:
    from matplotlib.lines import Line2D

    shared = {"linestyle": "", "color": plotting.GREY, "markerfacecolor": "white"}
    return [
        Line2D([], [], color=plotting.BLUE, marker="o", linestyle="", label="measured here"),
        Line2D([], [], marker="D", label="published", **shared),  # type: ignore[arg-type]
        Line2D([], [], marker=">", label="published, given up after an hour", **shared),  # type: ignore[arg-type]
    ]
