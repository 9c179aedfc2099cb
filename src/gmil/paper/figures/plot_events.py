"""Table 3 as dots, Figure 9 as lines."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.paper.figures import plotting

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from matplotlib.axes import Axes

_COLOURS = {
    "gmil": plotting.BLUE,
    "weighted-gmil": plotting.GREEN,
    "mi-svm-witness": plotting.VERMILION,
    "constant": plotting.GREY,
}


_MEASURES = {"auc": "AUC", "average_precision": "average precision"}


def draw_table3(summary: dict[str, Any], stem: str | os.PathLike[str]) -> list[Path]:
    """Draw area under the curve and average precision of every event; return the files."""
    names = list(summary["datasets"])
    with plotting.figure(10.5, 1.4 + 3.2 * len(names), nrows=len(names), ncols=2) as (drawn, grid):
        for line, name in zip(grid, names, strict=True):
            rows = [row for row in summary["rows"] if row["dataset"] == name and row["cells"]]
            for axes, (measure, title) in zip(line, _MEASURES.items(), strict=True):
                _draw_measure(axes, rows, measure)
                axes.set_title(f"{title}, {plotting.dataset_title(name)}")
            line[0].legend(loc="lower left", fontsize=7)  # where no area under the curve ever is
        protocol = summary["protocol"]
        text = f"{protocol['repeats']} x {protocol['folds']}-fold; every event against all other videos."
        plotting.caption(drawn, "Events in videos", text)
        return plotting.save(drawn, stem)


def _draw_measure(axes: Axes, rows: list[dict[str, Any]], measure: str) -> None:
    events = list(rows[0]["cells"])
    for place, row in enumerate(rows):
        values = [row["cells"][event][measure] for event in events]
        shift = 0.12 * (place - (len(rows) - 1) / 2)
        axes.plot(
            values, np.arange(len(events)) + shift, "o", color=_COLOURS[row["method"]], label=row["label"], markersize=6
        )
    axes.set_yticks(np.arange(len(events)), events)
    axes.set_xlim(0, 1.02)
    axes.invert_yaxis()
    plotting.bare(axes, grid="x")


def draw_figure9(summary: dict[str, Any], stem: str | os.PathLike[str]) -> list[Path]:
    """Draw seconds over the number of bags, both on logarithmic axes; return the files."""
    with plotting.figure(6.4, 4.4, nrows=1, ncols=1) as (drawn, grid):
        axes = grid[0, 0]
        for curve in summary["curves"]:
            bags = [point["bags"] for point in curve["points"]]
            seconds = [point["seconds"] for point in curve["points"]]
            axes.plot(bags, seconds, "o-", color=_COLOURS[curve["method"]], label=curve["label"], linewidth=1.8)
            if curve["stopped"] is not None:
                axes.axvline(curve["stopped"]["bags"], color=_COLOURS[curve["method"]], linestyle=":", linewidth=1)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("bags")
        axes.set_ylabel("seconds to learn all events")
        axes.legend(loc="upper left", fontsize=8)
        limit = f"{summary['minutes'] / 2:g} minutes"
        text = f"{plotting.dataset_title(summary['dataset'])}. Dotted: did not end within {limit}."
        plotting.caption(drawn, "Time over the number of bags", "\n".join(textwrap.wrap(text, 90)))
        return plotting.save(drawn, stem)
