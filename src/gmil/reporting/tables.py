"""Summaries of experiments, as they lie in the folder of a run, to tables, panels and curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmil.paper.figures.plotting import dataset_title
from gmil.paper.tables.table1 import COLUMN_TITLES
from gmil.reporting.summary import AccuracyPanel, AccuracyPoint, Cell, Curve, CurvePoint, Table
from gmil.reporting.svg import seconds_text

if TYPE_CHECKING:
    from gmil.reporting.sources import Ledger
    from gmil.reporting.summary import Tone

_MEASURED = ("paper", "tuned", "control")
NOTHING = Cell("–", tone="muted")
"""What was not measured."""


def has_accuracies(found: dict[str, Any]) -> bool:
    """Tell whether a summary is a table of accuracies."""
    return any("accuracy" in cell for row in found.get("rows", []) for cell in row.get("cells", {}).values())


def has_seconds(found: dict[str, Any]) -> bool:
    """Tell whether a summary is a table of times."""
    return any("seconds" in cell for row in found.get("rows", []) for cell in row.get("cells", {}).values())


# -------------------------------------------------------------------------------- accuracies


def accuracy_table(found: dict[str, Any], ledger: Ledger) -> Table:
    """Return accuracies with intervals, and beside each measured one the published figure and the difference."""
    datasets = found["datasets"]
    printed = {(row["label"], d): cell["accuracy"] for row in found["rows"] if row["column"] == "printed"
               for d, cell in row["cells"].items()}  # fmt: skip
    rows = []
    for row in found["rows"]:
        cells = [_accuracy_cell(row, d, printed.get((row["label"], d)), ledger) for d in datasets]
        mean = NOTHING if row.get("mean") is None else Cell(percent(row["mean"]))
        if any(cell is not NOTHING for cell in cells):
            name = Cell(row["label"], row["title"], row.get("variant") or "", tone="muted")
            rows.append([name, *cells, *([mean] if len(datasets) > 1 else [])])
    header = ["method", *(dataset_title(d) for d in datasets), *(["mean"] if len(datasets) > 1 else [])]
    text = (
        "Accuracy in per cent; 95 % intervals by bootstrap over bags, and by Wilson where fewer than five bags are "
        "wrong or right; a mean is that of its row."
    )
    if printed:
        text += " Below: the published figure and the difference to it; published figures come from other folds."
    return Table(found["experiment"], _title(found), header, rows, text)


def _accuracy_cell(row: dict[str, Any], dataset: str, printed: float | None, ledger: Ledger) -> Cell:
    cell = row["cells"].get(dataset)
    if cell is None:
        return NOTHING
    origin = ledger.jobs(cell.get("jobs", []), dataset, row["label"], row["title"])
    source = None if origin is None else origin.key
    if cell.get("accuracy") is None:
        return Cell("failed", source=source, tone="muted")
    if row["column"] not in _MEASURED:
        return Cell(percent(cell["accuracy"]), tone="muted")
    low, high = cell["interval"]
    note, tone = _against(cell, printed)
    return Cell(percent(cell["accuracy"]), f"{percent(low)} to {percent(high)}", note, source, tone)


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
    text = "GMIL with what the paper prints, every whole cross-validation by itself, each with other folds and seeds."
    return [Table(f"{found['experiment']}-reproduction", "GMIL as printed", header, rows, text)] if rows else []


def _reproduction_row(cell: dict[str, Any], ledger: Ledger) -> list[Cell]:
    origin = ledger.jobs(cell["jobs"], cell["dataset"], cell["label"], COLUMN_TITLES["paper"])
    source = None if origin is None else origin.key
    return [
        Cell(dataset_title(cell["dataset"])),
        Cell(str(cell["repeats"]), source=source),
        Cell(percent(cell["accuracy"]), " to ".join(percent(limit) for limit in cell["interval"]), source=source),
        Cell(percent(cell["best"]), source=source),
        Cell(percent(cell["published"]), tone="muted"),
        Cell(percent(cell["reached"]), source=source),
    ]


def comparison_table(found: dict[str, Any], ledger: Ledger) -> Table:
    """Return the methods that were compared on one data set, the best first, a row each."""
    (dataset,) = found["datasets"]
    rows = [[Cell(row["label"], row["title"]), *_measures(row, dataset, ledger)] for row in found["rows"]]
    header = ["method", "accuracy, %", "95 % interval", "AUC", "balanced accuracy, %", "to the best", "", "time"]
    text = (
        f"Intervals by bootstrap over {(drawn := found.get('resampled', 'bags'))}, and by Wilson where fewer than five "
        f"{drawn} are wrong or right. Differences to the best method by the corrected resampled t-test with Holm's "
        "correction for the number of rows: worse where the whole interval of the difference is over one point below, "
        "undecided where it may be more or less. The best was picked on these same bags, and so flatters a little."
    )
    return Table(found["experiment"], _title(found), header, rows, text)


def _measures(row: dict[str, Any], dataset: str, ledger: Ledger) -> list[Cell]:
    cell = row["cells"][dataset]
    origin = ledger.jobs(cell["jobs"], dataset, row["label"], row["title"])
    source = None if origin is None else origin.key
    if cell["accuracy"] is None:
        return [Cell("failed", source=source, tone="muted"), *[NOTHING] * 6]
    against = cell.get("against_best")
    difference, verdict = NOTHING, NOTHING
    if against is not None:
        difference = Cell(f"{100 * against['difference']:+.1f}".replace("-", "−"), source=source)
        verdict = Cell(against["verdict"], tone="bad" if against["verdict"] == "worse" else "muted")
    seconds = None if origin is None else origin.seconds
    return [
        Cell(percent(cell["accuracy"]), source=source),
        Cell(" to ".join(percent(limit) for limit in cell["interval"]), source=source),
        NOTHING if cell["auc"] is None else Cell(f"{cell['auc']:.3f}", source=source),
        Cell(percent(cell["balanced_accuracy"]), source=source),
        difference,
        verdict,
        NOTHING if seconds is None else Cell(seconds_text(seconds), source=source),
    ]


def accuracy_panels(found: dict[str, Any], ledger: Ledger) -> list[AccuracyPanel]:
    """Return accuracy against time, one panel per data set, for all that was measured."""
    panels = []
    for dataset in found["datasets"]:
        points = [p for row in found["rows"] if (p := _point(row, dataset, ledger)) is not None]
        floors = [row["cells"][dataset]["accuracy"] for row in found["rows"]
                  if row["method"] == "majority" and dataset in row["cells"]]  # fmt: skip
        if points:
            panels.append(AccuracyPanel(dataset, dataset_title(dataset), points, floors[0] if floors else None))
    return panels


def _point(row: dict[str, Any], dataset: str, ledger: Ledger) -> AccuracyPoint | None:
    cell = row["cells"].get(dataset) or {}
    if row["method"] == "majority" or cell.get("accuracy") is None or not cell.get("jobs"):
        return None
    origin = ledger.jobs(cell["jobs"], dataset, row["label"], row["title"])
    if origin is None or origin.seconds is None:
        return None
    low, high = cell["interval"]
    setting = "tuned" if row["column"] == "tuned" else row["title"]
    return AccuracyPoint(row["method"], row["label"], setting, cell["accuracy"], low, high, origin.seconds, origin.key)


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
        "CPU time of one cross-validation, the median over rounds, and how many times that of GMIL; below, what the "
        "paper prints. Two machines do not compare, only ratios on the same machine do."
    )
    return Table(found["experiment"], _title(found), ["method", *(dataset_title(d) for d in datasets)], rows, text)


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
    origin = ledger.timings(found["rows_file"], *case, seed=found["protocol"]["seed"])
    source = None if origin is None else origin.key
    return Cell(seconds_text(cell["seconds"]), ratio_text(cell.get("ratio")).strip(), note, source, "muted")


def ratio_text(ratio: float | None) -> str:
    """Return how many times something is something else, in brackets, after a space."""
    return "" if ratio is None else f" ({ratio:.3g}×)" if ratio < 1000 else f" ({ratio:.0f}×)"


# -------------------------------------------------------------------------------- curves


def curves(found: dict[str, Any], ledger: Ledger) -> list[Curve]:
    """Return the sweeps of a figure."""
    made = []
    for curve in found.get("curves", []):
        dataset = curve["dataset"]
        floor = (found.get("controls", {}).get(dataset, {}).get("majority") or {}).get("accuracy")
        points = [_curve_point(curve, point, found, ledger) for point in curve["points"]]
        made.append(Curve(curve["name"], curve["title"], curve["axis"], dataset_title(dataset), floor, points))
    return made


def _curve_point(curve: dict[str, Any], point: dict[str, Any], found: dict[str, Any], ledger: Ledger) -> CurvePoint:
    setting = f"{curve['parameter']} = {'all' if point['value'] is None else point['value']}"
    origin = ledger.jobs(point.get("jobs", []), curve["dataset"], curve["method"], setting)
    timed = None
    if point.get("seconds") is not None:
        case = (curve["dataset"], curve["method"], curve["name"], f"{curve['parameter']}={point['value']}")
        timed = ledger.timings(found["rows_file"], *case, seed=found["protocol"]["seed"])
    low, high = point.get("interval") or (None, None)
    value = point["value"]
    return CurvePoint(
        value=None if value is None else float(value),
        accuracy=point.get("accuracy"),
        low=low,
        high=high,
        spread=point.get("spread"),
        auc=point.get("auc"),
        seconds=point.get("seconds"),
        source=None if origin is None else origin.key,
        seconds_source=None if timed is None else timed.key,
    )


def _title(found: dict[str, Any]) -> str:
    return f"{found['title']}{' (quick)' if found.get('quick') else ''}"


def percent(share: float) -> str:
    """Return a share in per cent, without the sign."""
    return f"{100 * share:.1f}"
