"""Table 3 and Figure 9, events in videos: summaries to tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmil.reporting.formatting import ratio_text, seconds_text
from gmil.reporting.plot_data import title_with_dataset
from gmil.reporting.provenance import key_of
from gmil.reporting.summary import Cell, Table, TimedFigure, TimedLine, TimedPoint
from gmil.reporting.tables import NOTHING, cell_of

if TYPE_CHECKING:
    from gmil.reporting.provenance import Ledger

OF_VIDEOS = ("table3", "figure9")
"""Experiments whose summaries have a shape of their own."""

_SHARES = ("balanced_accuracy", "recall", "accuracy")
_CONSTANT = "constant"


def event_tables(found: dict[str, Any], ledger: Ledger) -> list[Table]:
    """Return Table 3, one table per data set; a second one where the paper printed accuracies of the same events."""
    made: list[Table] = []
    for dataset in found["datasets"]:
        rows = [row for row in found["rows"] if row["dataset"] == dataset]
        key = found["experiment"] if not made else f"{found['experiment']}-{dataset}"
        made.append(_measures_table(found, dataset, rows, key, ledger))
        printed = [row for row in found["rows"] if row["dataset"] == f"{dataset} (real)"]
        if printed:
            made.append(_accuracy_table(found, dataset, [*rows, *printed], f"{key}-accuracy", ledger))
    return made


def _measures_table(found: dict[str, Any], dataset: str, rows: list[dict[str, Any]], key: str, ledger: Ledger) -> Table:
    facts = found["datasets"][dataset]
    events = list(facts["positive"])
    header = ["method", *events, "mean AUC", "AP", "balanced accuracy, %", "recall, %", "accuracy, %", "time"]
    counts = ", ".join(f"{event} {count}" for event, count in facts["positive"].items())
    text = (
        "Area under the ROC curve (AUC) of every event against all other videos, then means over events; AP: average "
        "precision; time: wall-clock time of one cross-validation of all events. The row of the majority class (always "
        f"no) follows from the class counts. {facts['bags']} videos, {facts['instances']} instances of "
        f"{facts['features']} features; videos with the event: {counts}."
    )
    if found["protocol"]["repeats"] > 1:
        text += " ±: one standard deviation over repeats."
    cells = [[Cell(row["label"]), *_measures(found, row, events, ledger)] for row in rows]
    return Table(key, title_with_dataset(found, dataset), header, cells, text)


def _measures(found: dict[str, Any], row: dict[str, Any], events: list[str], ledger: Ledger) -> list[Cell]:
    if not row["cells"]:
        return [Cell("not run", tone="muted"), *[NOTHING] * (len(events) + 5)]
    source, mean = _source(found, row, ledger), row["mean"]
    cells = []
    for event in events:
        spread = row["cells"][event].get("auc_spread")
        detail = "" if spread is None else f"± {spread:.3f}"
        cells.append(cell_of(row["cells"][event]["auc"], ".3f", source, detail=detail))
    cells += [cell_of(mean[name], ".3f", source) for name in ("auc", "average_precision")]
    cells += [cell_of(mean[name], ".1f", source, scale=100) for name in _SHARES]
    measured = source is not None and row["seconds"] is not None
    return [*cells, Cell(seconds_text(row["seconds"]), source=source) if measured else NOTHING]


def _accuracy_table(found: dict[str, Any], dataset: str, rows: list[dict[str, Any]], key: str, ledger: Ledger) -> Table:
    events = list(found["datasets"][dataset]["positive"])
    cells = []
    for row in rows:
        if row["cells"]:
            source = _source(found, row, ledger) if row["dataset"] == dataset else None
            values = [*(row["cells"].get(event, {}).get("accuracy") for event in events), row["mean"]["accuracy"]]
            cells.append([Cell(row["label"]), *(cell_of(value, ".1f", source, scale=100) for value in values)])
    text = (
        "Accuracy in per cent. The published figures are of the real videos. The measured ones are of generated data "
        "of the same size and nothing else in common, so the two do not compare. The paper does not define accuracy."
    )
    header = ["method", *events, "mean"]
    return Table(key, title_with_dataset(found, dataset, ", accuracy"), header, cells, text)


def _source(found: dict[str, Any], row: dict[str, Any], ledger: Ledger) -> str | None:
    """Return the rows behind a row of the table; the majority class needs none."""
    if row["method"] == _CONSTANT:
        return None
    source = ledger.summarized(found, row["dataset"], row["label"], "each event", files=row.get("files", ()))
    return key_of(source)


def times_table(found: dict[str, Any], figure: TimedFigure) -> Table:
    """Return the numbers of Figure 9, with the ratio to the first method and the notes of the measurement."""
    by_bags = [{point.bags: point for point in line.points} for line in figure.lines]
    instances = {point.bags: point.instances for line in figure.lines for point in line.points}
    stops = {line.stopped for line in figure.lines if line.stopped is not None}
    rows = []
    for bags in sorted(stops.union(instances)):
        first = by_bags[0].get(bags)
        cells = [
            _time(line, points.get(bags), None if points is by_bags[0] else first, bags)
            for line, points in zip(figure.lines, by_bags, strict=True)
        ]
        rows.append([Cell(str(bags)), Cell(str(instances[bags])) if bags in instances else NOTHING, *cells])
    text = " ".join([*found["notes"], f"(×): ratio to the time of {figure.lines[0].label}; CPU: processor time."])
    return Table(figure.key, figure.title, ["bags", "instances", *(line.label for line in figure.lines)], rows, text)


def _time(line: TimedLine, point: TimedPoint | None, first: TimedPoint | None, bags: int) -> Cell:
    if point is None:
        return Cell("not finished", source=line.source, tone="muted") if bags == line.stopped else NOTHING
    ratio = "" if first is None or not first.seconds else ratio_text(point.seconds / first.seconds).strip()
    return Cell(seconds_text(point.seconds), ratio, f"{seconds_text(point.cpu_seconds)} CPU", line.source, "muted")
