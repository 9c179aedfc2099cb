"""An assessment as tables, for HTML and Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gmil.reporting.assessment.content import MOST_REPEATS, MOST_SHOWN
from gmil.reporting.formatting import percent
from gmil.reporting.summary import Cell, Table

if TYPE_CHECKING:
    from gmil.reporting.assessment.content import Assessment, BagLine, FeatureGroup, Figure, Importance

_MOST_NAMES = 6


def tables_of(found: Assessment) -> dict[str, Table]:
    """Return the tables of an assessment by what they are, in the order of the page; those that have rows."""
    made = {
        "figures": _figures(found),
        "confusion": _confusion(found),
        "labels": _labels(found),
        "curves": _curves(found),
        "wrong": _bags(found, found.wrong, "Most wrong", _WRONG),
        "unsure": _bags(found, found.unsure, "Least sure", _UNSURE),
        "importance": _importance(found),
    }
    return {name: table for name, table in made.items() if table is not None and table.rows}


_WRONG = "Wrong predictions, the most confident first."
_UNSURE = "Bags, right or wrong, about which the model is least sure."


def _figures(found: Assessment) -> Table:
    rows = [[Cell(figure.title), Cell(figure_text(figure)), Cell(interval_of(figure))] for figure in found.figures]
    return Table("figures", "Figures", ["measure", "value", "95 % interval"], rows)


def figure_text(figure: Figure) -> str:
    """Return a figure with the digits that ``gmil cv`` prints."""
    if figure.value is None:
        return "–"
    return percent(figure.value) if figure.percent else f"{figure.value:.3f}"


def interval_of(figure: Figure) -> str:
    """Return the interval of a figure, nothing where it has none."""
    limits = figure.interval or []
    return " to ".join(percent(limit) if figure.percent else f"{limit:.3f}" for limit in limits)


def _counted(found: Assessment) -> str:
    return "" if found.n_repeats == 1 else f" Every bag counts {found.n_repeats} times, once for every repeat."


def _confusion(found: Assessment) -> Table | None:
    if found.confusion is None:
        return None
    rows = [
        [Cell(repr(name)), *(Cell(str(count), _share(count, counts)) for count in counts)]
        for name, counts in zip(found.confusion.classes, found.confusion.counts, strict=True)
    ]
    text = f"Rows: labels. Columns: predictions, in bags and in per cent of the row.{_counted(found)}"
    return Table("confusion", "Confusion matrix", ["label", *map(repr, found.confusion.classes)], rows, text)


def _share(count: int, counts: list[int]) -> str:
    return f"{100 * count / sum(counts):.0f} %" if count else ""


def _labels(found: Assessment) -> Table:
    names = ("true_positive", "false_positive", "false_negative", "true_negative")
    rows = [[Cell(line.label), *(Cell(str(getattr(line, name))) for name in names)] for line in found.labels]
    header = ["label", *(f"{name.replace('_', ' ')}s" for name in names)]
    return Table("labels", "Right and wrong predictions of every label", header, rows, _counted(found).strip())


def _curves(found: Assessment) -> Table:
    rows = [
        [
            Cell(repr(curve.label)),
            Cell(str(curve.n_bags)),
            Cell(f"{curve.auc:.3f}"),
            Cell(f"{curve.average_precision:.3f}"),
        ]
        for curve in found.curves
    ]
    header = ["class" if found.confusion else "label", "bags", "AUC", "average precision"]
    text = f"Means over the first {MOST_REPEATS} repeats." if found.n_repeats > MOST_REPEATS else ""
    return Table("curves", "Areas under the curves", header, rows, text)


def _bags(found: Assessment, lines: list[BagLine], title: str, text: str) -> Table:
    repeated, quoted = found.n_repeats > 1, repr if found.confusion else str  # of several labels there is a list
    form = ".3f" if any("probability" in column for column in found.score_columns) else ".3g"
    header = ["bag", "label", "predicted", *found.score_columns, *["wrong repeats"] * repeated]
    rows = [
        [
            *map(Cell, (line.name, quoted(line.label), quoted(line.predicted))),
            *(Cell("–" if score != score else format(score, form)) for score in line.scores),
            *[Cell(f"{line.n_wrong} of {found.n_repeats}")] * repeated,
        ]
        for line in lines
    ]
    return Table(title.lower().replace(" ", "-"), title, header, rows, text)


def _importance(assessed: Assessment) -> Table | None:
    found = assessed.importance
    if found is None:
        return None
    rows = [
        [Cell(group_name(group)), Cell(f"{group.fall:.3f}"), Cell(f"{group.low:.3f} to {group.high:.3f}")]
        for group in found.groups[:MOST_SHOWN]
    ]
    header = ["features", f"fall of the {found.measure}", "95 % interval"]
    return Table("importance", "Which features matter", header, rows, _falls(found, assessed.n_repeats))


def _falls(found: Importance, n_repeats: int) -> str:
    """Return what the falls are, and on what they were measured."""
    where, grouped, rest = " in the first repeat" * (n_repeats > 1), "", ""
    if len(found.groups) > MOST_SHOWN:
        rest = f" The {MOST_SHOWN} largest falls of {len(found.groups)}."
    if found.correlation is not None:
        grouped = f" Features that correlate (rank correlation at least {found.correlation:.2f}) are one group."
    return (
        f"By how much the {found.measure} ({found.base:.3f}{where}) falls where every bag takes the values of these "
        f"features from another bag.{grouped} Mean and 95 % interval over {found.n_repeats} random exchanges; other "
        f"bags would add to the uncertainty.{rest}"
    )


def group_name(group: FeatureGroup, most: int = _MOST_NAMES) -> str:
    """Return the first features of a group, and how many more there are."""
    more = len(group.features) - most
    return ", ".join(group.features[:most]) + (f" and {more} more" if more > 0 else "")
