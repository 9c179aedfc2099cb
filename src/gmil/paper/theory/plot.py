"""Agreement and regret over witness rate, dimension and imbalance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmil.paper.figures import plotting
from gmil.paper.theory.agreement import RULES, VARIED

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from matplotlib.axes import Axes

_AXES = {
    "witness_rate": "share of witnesses in a positive bag",
    "n_features": "features",
    "positive_share": "share of positive bags",
}
_STYLES: dict[str, dict[str, Any]] = {
    "eq1": {"color": plotting.BLUE, "marker": "o"},
    "eq1-epsilon": {"color": plotting.BLUE, "marker": "o", "linestyle": "--"},
    "eq2": {"color": plotting.VERMILION, "marker": "s"},
    "eq2-epsilon": {"color": plotting.VERMILION, "marker": "s", "linestyle": "--"},
    "eq5": {"color": plotting.GREEN, "marker": "^"},
    "eq6": {"color": plotting.PURPLE, "marker": "D"},
    "eq6-small": {"color": plotting.PURPLE, "marker": "D", "linestyle": "--"},
}
_ROWS = (
    ("centres", "agreement", "centres: agreement with DD, %", ("eq1", "eq2", "eq5", "eq6", "eq6-small")),
    ("centres", "relative_regret", "centres: relative regret", ("eq1", "eq2", "eq5", "eq6", "eq6-small")),
    ("instances", "relative_regret", "instances: relative regret", ("eq1", "eq1-epsilon", "eq2", "eq2-epsilon")),
)


def draw_theory(summary: dict[str, Any], stem: str | os.PathLike[str]) -> list[Path]:
    """Draw one column for what is varied and one row for every measure; return the files."""
    with plotting.figure(10.4, 8.4, nrows=len(_ROWS), ncols=len(VARIED)) as (drawn, grid):
        for axes_row, (candidates, measure, label, rules) in zip(grid, _ROWS, strict=True):
            for axes, varied in zip(axes_row, VARIED, strict=True):
                rows = [r for r in summary["agreement"] if (r["varied"], r["candidates"]) == (varied, candidates)]
                _draw_curves(axes, rows, measure, rules)
                axes.set_xlabel(_AXES[varied])
                if varied != "positive_share":
                    axes.set_xscale("log")
                axes.set_xticks(VARIED[varied], [f"{value:g}" for value in VARIED[varied]], minor=False)
                axes.minorticks_off()
            _share_height(axes_row)
            axes_row[0].set_ylabel(label)
            axes_row[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8, handlelength=3)
        made = summary["generated"]
        plotting.caption(
            drawn,
            "Where the paper's equations and Diverse Density have their maximum",
            f"{made['n_bags']} bags of {made['bag_size']} instances, concept {made['separation']:g} deviations from "
            f"the background; mean and standard error over {made['seeds']} seeds.\nRelative regret: 0 is the best "
            "candidate by Diverse Density, 1 (dotted) is a candidate drawn at random.",
        )
        paths = plotting.save(drawn, stem)
    plotting.shrink(paths[0])
    return paths


def _draw_curves(axes: Axes, rows: list[dict[str, Any]], measure: str, rules: tuple[str, ...]) -> None:
    factor = 100 if measure == "agreement" else 1
    for rule in rules:
        some = [row for row in rows if row["rule"] == rule]
        x, y = [row["value"] for row in some], [factor * row[measure] for row in some]
        errors = [factor * (row[f"{measure}_error"] or 0.0) for row in some]
        axes.errorbar(x, y, errors, label=RULES[rule], markersize=4, linewidth=1.5, elinewidth=0.8, **_STYLES[rule])
    if measure == "relative_regret":
        axes.axhline(1, color=plotting.INK, linestyle=":", linewidth=1)


def _share_height(panels: Any) -> None:
    top = max(axes.get_ylim()[1] for axes in panels)
    for axes in panels:
        axes.set_ylim(-0.02 * top, top)
