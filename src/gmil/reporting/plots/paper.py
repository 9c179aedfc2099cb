"""The tables and figures of the paper as files: what ``gmil paper`` draws from its summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmil.paper.tables.published import dataset_title
from gmil.paper.theory.agreement import RULES, VARIED
from gmil.reporting.formatting import seconds_text
from gmil.reporting.plot_data import curves, timed_figure
from gmil.reporting.plots.charts import Axis, Kind, Mark, RowPanel, Series, line_chart, row_chart
from gmil.reporting.plots.figure import Figure
from gmil.reporting.plots.measured import curve_pictures, draw_times

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gmil.reporting.plots.svg import Plot

_ACCURACIES = {
    "paper": Kind("paper or default setting, measured", 0, line="", shift=-0.22),
    "tuned": Kind("tuned inside the training folds, measured", 1, "square", line=""),
    "printed": Kind("published", 7, "diamond", hollow=True, line="", shift=0.22),
    "corrected": Kind("published, corrected", 7, "diamond", line="", shift=0.22, size=2.2),
    "control": Kind("control", 2, "up", line=""),
}
_MEASURED = Kind("measured here", 0, line="", shift=-0.14)
_PUBLISHED = Kind("published", 7, "diamond", hollow=True, line="", shift=0.14)
_GIVEN_UP = Kind("published, given up after an hour", 7, "right", hollow=True, line="", shift=0.14)
_EVENT_COLOURS = {"gmil": 0, "weighted-gmil": 2, "mi-svm-witness": 1, "constant": 7}
_EVENT_MEASURES = {"auc": "AUC", "average_precision": "average precision"}


def draw_table1(summary: dict[str, Any], stem: str | os.PathLike[str]) -> list[Path]:
    """Draw accuracies with their intervals; return the files."""
    methods = list(dict.fromkeys(row["label"] for row in summary["rows"]))
    panels = [_accuracy_panel(summary["rows"], methods, dataset) for dataset in summary["datasets"]]
    columns = {row["column"] for row in summary["rows"]}
    protocol = summary["protocol"]
    title = str(summary["title"])
    caption = f"Accuracy in per cent, {protocol['repeats']} x {protocol['folds']}-fold"
    caption += "; bars: 95 % intervals by bootstrap over bags"
    caption += "; dotted line: majority class." if any(panel.reference is not None for panel in panels) else "."
    if "printed" in columns:
        caption += " Published figures come from other folds and protocols."
    legend = [kind for column, kind in _ACCURACIES.items() if column in columns]
    return Figure(title, caption, [("", row_chart(title, methods, panels))], legend=legend).save(stem)


def _accuracy_panel(rows: Sequence[dict[str, Any]], methods: list[str], dataset: str) -> RowPanel:
    measured = {row["label"] for row in rows if row["column"] in ("paper", "tuned")}
    marks, majority = [], None
    for row in rows:
        cell = row["cells"].get(dataset) or {}
        if cell.get("accuracy") is None:
            continue
        kind = _ACCURACIES[row["column"]]
        if row["label"] not in measured:  # its published figures stand on the row itself
            kind = kind._replace(shift=0.0)
        limits = [100 * limit for limit in cell.get("interval", ())]
        marks.append(Mark(methods.index(row["label"]), 100 * cell["accuracy"], kind, limits))
        majority = 100 * cell["accuracy"] if row["method"] == "majority" else majority
    return RowPanel(Axis(dataset_title(dataset), 38, 102, ticks=[40, 60, 80, 100]), marks, majority)


def draw_table2(summary: dict[str, Any], stem: str | os.PathLike[str]) -> list[Path]:
    """Draw seconds on a logarithmic axis; return the files."""
    title = "CPU time, measured and published"
    names = [row["label"] for row in summary["rows"]]
    panels = [
        RowPanel(
            Axis(dataset_title(d), 0.0007, 9000, log=True, ticks=[0.001, 1, 1000], words=seconds_text),
            [mark for i, row in enumerate(summary["rows"]) for mark in _time_marks(i, row["cells"][d])],
        )
        for d in summary["datasets"]
    ]
    caption = (
        f"CPU time of a whole 10-fold, median of {summary['protocol']['repeats']} rounds on {summary['threads']} "
        "thread; bars: minimum to maximum. Published: Matlab on a Core 2 Duo at 2.26 GHz."
    )
    legend = [_MEASURED, _PUBLISHED, _GIVEN_UP]
    return Figure(title, caption, [("", row_chart(title, names, panels))], legend=legend).save(stem)


def _time_marks(row: int, cell: dict[str, Any]) -> Iterator[Mark]:
    if cell["seconds"] is not None:
        yield Mark(row, cell["seconds"], _MEASURED, (cell["least"], cell["largest"]))
    if cell["published"] is not None:
        yield Mark(row, cell["published"], _GIVEN_UP if cell["gave_up"] else _PUBLISHED)


def draw_table3(summary: dict[str, Any], stem: str | os.PathLike[str]) -> list[Path]:
    """Draw area under the curve and average precision of every event; return the files."""
    panels = []
    legend: dict[str, Kind] = {}
    for dataset in summary["datasets"]:
        rows = [row for row in summary["rows"] if row["dataset"] == dataset and row["cells"]]
        found = list(rows[0]["cells"])
        kinds = {
            row["label"]: Kind(
                row["label"], _EVENT_COLOURS[row["method"]], line="", shift=0.14 * (i - (len(rows) - 1) / 2)
            )
            for i, row in enumerate(rows)
        }
        legend |= kinds
        measured = [
            RowPanel(
                Axis(title, 0, 1, ticks=[0, 0.5, 1]),
                [
                    Mark(i, row["cells"][event][measure], kinds[row["label"]])
                    for row in rows
                    for i, event in enumerate(found)
                ],
            )
            for measure, title in _EVENT_MEASURES.items()
        ]
        panels.append(
            (dataset_title(dataset), row_chart(f"Events of {dataset_title(dataset)}", found, measured, wide=True))
        )
    protocol = summary["protocol"]
    caption = f"{protocol['repeats']} x {protocol['folds']}-fold; every event against all other videos."
    return Figure("Events in videos", caption, panels, legend=list(legend.values())).save(stem)


def draw_figure7(summary: dict[str, Any], stem: str | os.PathLike[str]) -> list[Path]:
    """Draw accuracy over K, q and p, what the sample costs, and time; return the files."""
    caption = (
        f"10-fold cross-validation. Line: mean over seeds; dark band: one standard deviation over "
        f"{summary['protocol']['repeats']} seeds of folds and k-means; pale band: 95 % interval by bootstrap over "
        f"bags. Time: CPU, median and range over rounds on {summary['threads']} thread."
    )
    panels = curve_pictures(curves(summary))
    return Figure("Parameters of GMIL", caption, panels, columns=3).save(stem)


def draw_figure9(summary: dict[str, Any], stem: str | os.PathLike[str]) -> list[Path]:
    """Draw seconds over the number of bags, both on logarithmic axes; return the files."""
    figure = timed_figure(summary)
    caption = (
        f"{dataset_title(summary['dataset'])}. Dotted: did not finish within {summary['minutes'] / 2:g} minutes. "
        + " ".join(f"{i}: {line.label}." for i, line in enumerate(figure.lines, start=1))
    )
    panels = [("", draw_times(figure))] if any(line.points for line in figure.lines) else []
    return Figure("Training time over the number of bags", caption, panels).save(stem)


# -------------------------------------------------------------------------------- theory

_RULES = {
    "eq1": Kind(RULES["eq1"], 0),
    "eq1-epsilon": Kind(RULES["eq1-epsilon"], 0, hollow=True, line="line dashed"),
    "eq2": Kind(RULES["eq2"], 1, "square"),
    "eq2-epsilon": Kind(RULES["eq2-epsilon"], 1, "square", hollow=True, line="line dashed"),
    "eq5": Kind(RULES["eq5"], 2, "up"),
    "eq6": Kind(RULES["eq6"], 4, "diamond"),
    "eq6-small": Kind(RULES["eq6-small"], 4, "diamond", hollow=True, line="line dashed"),
}
_VARIED = {
    "witness_rate": "share of witnesses in a positive bag",
    "n_features": "features",
    "positive_share": "share of positive bags",
}
_OF_CENTRES, _OF_INSTANCES = ("eq1", "eq2", "eq5", "eq6", "eq6-small"), ("eq1", "eq1-epsilon", "eq2", "eq2-epsilon")
_ROWS = (
    ("centres", "agreement", "centres: agreement with DD, %", _OF_CENTRES),
    ("centres", "relative_regret", "centres: relative regret", _OF_CENTRES),
    ("instances", "relative_regret", "instances: relative regret", _OF_INSTANCES),
)


def draw_theory(summary: dict[str, Any], stem: str | os.PathLike[str]) -> list[Path]:
    """Draw agreement and regret: a column for what is varied and a row for every measure; return the files."""
    made = summary["generated"]
    caption = (
        f"{made['n_bags']} bags of {made['bag_size']} instances, concept {made['separation']:g} deviations from the "
        f"background; mean and standard error over {made['seeds']} seeds. Relative regret: 0 is the best candidate by "
        "Diverse Density, 1 (dotted) is a candidate drawn at random."
    )
    panels = [("", plot) for row in _ROWS for plot in _theory_row(summary["agreement"], *row)]
    title = "Where the paper's equations and Diverse Density have their maximum"
    return Figure(title, caption, panels, columns=len(VARIED), legend=list(_RULES.values())).save(stem)


def _theory_row(
    found: list[dict[str, Any]], candidates: str, measure: str, label: str, rules: Sequence[str]
) -> Iterator[Plot]:
    factor = 100 if measure == "agreement" else 1
    here = [row for row in found if row["candidates"] == candidates and row["rule"] in rules]
    highest = 1.05 * factor * max(row[measure] + (row[f"{measure}_error"] or 0.0) for row in here)
    for varied, ticks in VARIED.items():
        series = []
        for rule in rules:
            some = [row for row in here if (row["varied"], row["rule"]) == (varied, rule)]
            points = [(row["value"], factor * row[measure]) for row in some]
            errors = [factor * (row[f"{measure}_error"] or 0.0) for row in some]
            series.append(Series(points, _RULES[rule], errors=errors))
        log = varied != "positive_share"
        low, high = (ticks[0] / 1.2, ticks[-1] * 1.2) if log else (0.0, 1.0)
        x_axis, y_axis = Axis(_VARIED[varied], low, high, log, ticks), Axis(label, -0.02 * highest, highest)
        reference = (1.0, "") if measure == "relative_regret" else None
        yield line_chart(f"{label} over {_VARIED[varied]}", series, x_axis, y_axis, reference=reference, width=320)
