"""Summaries of experiments, as they lie in the folder of a run, to tables: accuracies, comparisons, times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmil.paper.tables.published import dataset_title
from gmil.paper.tables.table1 import COLUMN_TITLES
from gmil.reporting.formatting import interval_text, percent, ratio_text, seconds_text
from gmil.reporting.provenance import key_of
from gmil.reporting.summary import Cell, Table

if TYPE_CHECKING:
    from gmil.reporting.provenance import Ledger
    from gmil.reporting.summary import Tone

_MEASURED = ("paper", "tuned", "control")
NOTHING = Cell("–", tone="muted")
"""What was not measured."""


def has(found: dict[str, Any], measure: str) -> bool:
    """Tell whether a summary is a table of a measure, "accuracy" or "seconds"."""
    return any(measure in cell for row in found.get("rows", []) for cell in row.get("cells", {}).values())


def cell_of(value: float | None, form: str, source: str | None, *, scale: float = 1.0, detail: str = "") -> Cell:
    """Return a number that leads to its rows; one without rows is muted."""
    if value is None:
        return NOTHING
    return Cell(format(scale * value, form), detail, source=source, tone="" if source else "muted")


# -------------------------------------------------------------------------------- accuracies


def accuracy_table(found: dict[str, Any], ledger: Ledger) -> Table:
    """Return accuracies with intervals, and beside each measured one the published figure and the difference."""
    datasets = found["datasets"]
    printed = {
        (row["label"], dataset): cell["accuracy"]
        for row in found["rows"]
        if row["column"] == "printed"
        for dataset, cell in row["cells"].items()
    }
    has_mean = len(datasets) > 1
    rows = []
    for row in found["rows"]:
        cells = [_accuracy_cell(row, d, printed.get((row["label"], d)), ledger) for d in datasets]
        mean = NOTHING if row.get("mean") is None else Cell(percent(row["mean"]))
        if any(cell is not NOTHING for cell in cells):
            name = Cell(row["label"], row["title"], row.get("variant") or "", tone="muted")
            rows.append([name, *cells, *[mean] * has_mean])
    text = (
        "Accuracy in per cent, with 95 % confidence intervals: bootstrap over bags, or Wilson where fewer than five "
        "bags are wrong or right. The mean is over the data sets of the row."
    )
    if printed:
        text += " Below: the published figure and the difference to it; published figures come from other folds."
    header = ["method", *map(dataset_title, datasets), *["mean"] * has_mean]
    return Table(found["experiment"], _title(found), header, rows, text)


def _accuracy_cell(row: dict[str, Any], dataset: str, printed: float | None, ledger: Ledger) -> Cell:
    cell = row["cells"].get(dataset)
    if cell is None:
        return NOTHING
    source = _source(ledger, cell, dataset, row)
    if cell.get("accuracy") is None:
        return Cell("failed", source=source, tone="muted")
    if row["column"] not in _MEASURED:
        return Cell(percent(cell["accuracy"]), tone="muted")
    note, tone = _against(cell, printed)
    return Cell(percent(cell["accuracy"]), interval_text(cell["interval"]), note, source, tone)


def _source(ledger: Ledger, cell: dict[str, Any], dataset: str, row: dict[str, Any]) -> str | None:
    found = ledger.jobs(cell.get("jobs", []), dataset, row["label"], row.get("title", COLUMN_TITLES["paper"]))
    return key_of(found)


def _against(cell: dict[str, Any], printed: float | None) -> tuple[str, Tone]:
    if printed is None:
        return "", ""
    difference = 100 * (cell["accuracy"] - printed)
    low, high = cell["interval"]
    tone: Tone = "bad" if printed > high else "good" if printed < low else "muted"
    return f"published {percent(printed)}, {difference:+.1f}".replace("-", "−"), tone


def reproduction_tables(found: dict[str, Any], ledger: Ledger) -> list[Table]:
    """Return how near single cross-validations of GMIL as printed come to the published figures, if that is known."""
    rows = [_reproduction_row(cell, ledger) for cell in found.get("reproduction", [])]
    header = ["data set", "cross-validations", "mean", "best", "published", "at or above it, %"]
    text = "GMIL with the settings that the paper prints; every cross-validation has folds and seeds of its own."
    return [Table(f"{found['experiment']}-reproduction", "GMIL as printed", header, rows, text)] if rows else []


def _reproduction_row(cell: dict[str, Any], ledger: Ledger) -> list[Cell]:
    source = _source(ledger, cell, cell["dataset"], cell)
    return [
        Cell(dataset_title(cell["dataset"])),
        Cell(str(cell["repeats"]), source=source),
        Cell(percent(cell["accuracy"]), interval_text(cell["interval"]), source=source),
        Cell(percent(cell["best"]), source=source),
        Cell(percent(cell["published"]), tone="muted"),
        Cell(percent(cell["reached"]), source=source),
    ]


def comparison_table(found: dict[str, Any], ledger: Ledger) -> Table:
    """Return the methods that were compared on one data set, the best first, a row each."""
    (dataset,) = found["datasets"]
    rows = [[Cell(row["label"], row["title"]), *_measures(row, dataset, ledger)] for row in found["rows"]]
    header = ["method", "accuracy, %", "95 % interval", "AUC", "balanced accuracy, %", "to the best", "", "time"]
    cells = [row["cells"][dataset] for row in found["rows"]]
    of_instances = any(cell.get("instances") for cell in cells)
    if of_instances:
        header += _INSTANCE_FIGURES.values()
        rows = [[*row, *_instance_cells(cell, row[1].source)] for row, cell in zip(rows, cells, strict=True)]
    units = found.get("resampled", "bags")
    text = (
        f"Confidence intervals: bootstrap over {units}, or Wilson where fewer than five {units} are wrong or right. "
        "Differences to the best method: corrected resampled t-test with Holm's correction for the number of rows. "
        "Worse: the whole interval of the difference is more than one point below. Undecided: it may be more or less. "
        "The best method was selected on these same bags, so its accuracy is slightly optimistic."
    )
    if of_instances:
        text += (
            " Figures of instances: how well the scores of a method find the instances of the positive class in bags "
            f"that it never saw, over all bags and within those that hold both kinds; bootstrap over {units}."
        )
    return Table(found["experiment"], _title(found), header, rows, text)


_INSTANCE_FIGURES = {
    "auc": "AUC of instances",
    "average_precision": "average precision of instances",
    "auc_within": "AUC of instances within bags",
}


def _instance_cells(cell: dict[str, Any], source: str | None) -> list[Cell]:
    """Return the figures about instances with their intervals."""
    found = cell.get("instances") or {}
    return [
        NOTHING
        if found.get(name) is None
        else Cell(
            f"{found[name]:.3f}", " to ".join(f"{limit:.3f}" for limit in found[f"{name}_interval"]), source=source
        )
        for name in _INSTANCE_FIGURES
    ]


def _measures(row: dict[str, Any], dataset: str, ledger: Ledger) -> list[Cell]:
    cell = row["cells"][dataset]
    found = ledger.jobs(cell["jobs"], dataset, row["label"], row["title"])
    source = key_of(found)
    if cell["accuracy"] is None:
        return [Cell("failed", source=source, tone="muted"), *[NOTHING] * 6]
    against = cell.get("against_best")
    compared = [NOTHING, NOTHING]
    if against is not None:
        worse = against["verdict"] == "worse"
        difference = f"{100 * against['difference']:+.1f}".replace("-", "−")
        compared = [Cell(difference, source=source), Cell(against["verdict"], tone="bad" if worse else "muted")]
    return [
        Cell(percent(cell["accuracy"]), source=source),
        Cell(interval_text(cell["interval"]), source=source),
        NOTHING if cell["auc"] is None else Cell(f"{cell['auc']:.3f}", source=source),
        Cell(percent(cell["balanced_accuracy"]), source=source),
        *compared,
        Cell(seconds_text(found.seconds), source=source) if found and found.seconds is not None else NOTHING,
    ]


# -------------------------------------------------------------------------------- times


def seconds_table(found: dict[str, Any], ledger: Ledger) -> Table:
    """Return measured seconds with the ratio to GMIL, beside the published ones with theirs."""
    datasets = found["datasets"]
    rows = []
    for row in found["rows"]:
        cells = [_seconds_cell(row, d, found, ledger) for d in datasets]
        if any(cell is not NOTHING for cell in cells):
            rows.append([Cell(row["label"], note=row.get("variant") or "", tone="muted"), *cells])
    text = (
        "CPU time of one cross-validation, median over rounds, with the ratio to GMIL; below: the published figure. "
        "Times from two machines do not compare; ratios on one machine do."
    )
    return Table(found["experiment"], _title(found), ["method", *map(dataset_title, datasets)], rows, text)


def _seconds_cell(row: dict[str, Any], dataset: str, found: dict[str, Any], ledger: Ledger) -> Cell:
    cell = row["cells"].get(dataset) or {}
    printed = cell.get("published")
    note = ""
    if printed is not None:
        above = ">" if cell.get("gave_up") else ""
        note = f"published {above}{seconds_text(printed)}{ratio_text(cell.get('published_ratio'))}"
    if cell.get("seconds") is None:
        failed = cell.get("failure") is not None
        return Cell("failed" if failed else "–", note=note, tone="muted") if failed or note else NOTHING
    case = (dataset, row["method"], "paper", row["label"])
    source = ledger.timings(found["rows_file"], *case, seed=found["protocol"]["seed"])
    ratio = ratio_text(cell.get("ratio")).strip()
    return Cell(seconds_text(cell["seconds"]), ratio, note, key_of(source), "muted")


def _title(found: dict[str, Any]) -> str:
    return f"{found['title']}{' (quick)' if found.get('quick') else ''}"
