"""Table 3 and Figure 9, events in videos: summaries to tables and to times over the number of bags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmil.paper.figures.plotting import dataset_title
from gmil.reporting.summary import Cell, Table, TimedFigure, TimedLine, TimedPoint
from gmil.reporting.svg import seconds_text
from gmil.reporting.tables import NOTHING, percent, ratio_text

if TYPE_CHECKING:
    from gmil.reporting.sources import Ledger

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
            made.append(_accuracy_table(found, dataset, rows, printed, f"{key}-accuracy", ledger))
    return made


def _measures_table(found: dict[str, Any], dataset: str, rows: list[dict[str, Any]], key: str, ledger: Ledger) -> Table:
    facts = found["datasets"][dataset]
    events = list(facts["positive"])
    header = ["method", *events, "mean AUC", "AP", "balanced accuracy, %", "recall, %", "accuracy, %", "time"]
    counts = ", ".join(f"{event} {count}" for event, count in facts["positive"].items())
    text = (
        "Area under the curve (AUC) of every event against all other videos; then means over events, AP being average "
        "precision; time by the clock, of one cross-validation of all events. Always saying no is not measured: its "
        f"figures follow from the number of videos. {facts['bags']} videos, {facts['instances']} instances of "
        f"{facts['features']} features; videos with the event: {counts}."
    )
    if found["protocol"]["repeats"] > 1:
        text += " ±: one standard deviation over repeats."
    cells = [[Cell(row["label"]), *_measures(found, row, events, ledger)] for row in rows]
    return Table(key, _title(found, dataset), header, cells, text)


def _measures(found: dict[str, Any], row: dict[str, Any], events: list[str], ledger: Ledger) -> list[Cell]:
    if not row["cells"]:
        return [Cell("not run", tone="muted"), *[NOTHING] * (len(events) + 5)]
    source, mean = _source(found, row, ledger), row["mean"]
    cells = [_number(row["cells"][event]["auc"], source, row["cells"][event].get("auc_spread")) for event in events]
    cells += [_number(mean["auc"], source), _number(mean["average_precision"], source)]
    cells += [_share(mean[measure], source) for measure in _SHARES]
    measured = source is not None and row["seconds"] is not None
    return [*cells, Cell(seconds_text(row["seconds"]), source=source) if measured else NOTHING]


def _accuracy_table(
    found: dict[str, Any],
    dataset: str,
    rows: list[dict[str, Any]],
    printed: list[dict[str, Any]],
    key: str,
    ledger: Ledger,
) -> Table:
    events = list(found["datasets"][dataset]["positive"])
    cells = []
    for row in [*rows, *printed]:
        if row["cells"]:
            source = _source(found, row, ledger) if row["dataset"] == dataset else None
            values = [row["cells"].get(event, {}).get("accuracy") for event in events]
            mean = _share(row["mean"]["accuracy"], source)
            cells.append([Cell(row["label"]), *(_share(value, source) for value in values), mean])
    text = (
        "Accuracy in per cent. The published figures are of the real videos, the others of data made to order that has "
        "nothing but their size, so that the two do not compare. What the published accuracy measures is not said."
    )
    return Table(key, _title(found, dataset, ", accuracy"), ["method", *events, "mean"], cells, text)


def _source(found: dict[str, Any], row: dict[str, Any], ledger: Ledger) -> str | None:
    """Return the rows behind a row of the table; always saying no needs none."""
    if row["method"] == _CONSTANT:
        return None
    return ledger.summarized(found, row["dataset"], row["label"], "each event", files=row.get("files", ())).key


def _number(value: float | None, source: str | None, spread: float | None = None) -> Cell:
    if value is None:
        return NOTHING
    detail = "" if spread is None else f"± {spread:.3f}"
    return Cell(f"{value:.3f}", detail, source=source, tone="" if source else "muted")


def _share(value: float | None, source: str | None) -> Cell:
    return NOTHING if value is None else Cell(percent(value), source=source, tone="" if source else "muted")


# -------------------------------------------------------------------------------- times


def timed_figure(found: dict[str, Any], ledger: Ledger) -> TimedFigure:
    """Return Figure 9 as lines."""
    lines = []
    for curve in found["curves"]:
        points = [TimedPoint(**point) for point in curve["points"]]
        origin = ledger.summarized(found, found["dataset"], curve["label"], f"{len(points)} numbers of bags timed")
        stopped = curve["stopped"]
        lines.append(TimedLine(curve["label"], points, None if stopped is None else stopped["bags"], origin.key))
    return TimedFigure(found["experiment"], _title(found, found["dataset"]), lines)


def times_table(found: dict[str, Any], figure: TimedFigure) -> Table:
    """Return the numbers of Figure 9, with the ratio to the first method and the notes of the measurement."""
    by_bags = [{point.bags: point for point in line.points} for line in figure.lines]
    instances = {point.bags: point.instances for line in figure.lines for point in line.points}
    stops = {line.stopped for line in figure.lines if line.stopped is not None}
    rows = []
    for bags in sorted(stops.union(instances)):
        base = by_bags[0].get(bags)
        cells = [
            _time(line, points.get(bags), base if number else None, bags)
            for number, (line, points) in enumerate(zip(figure.lines, by_bags, strict=True))
        ]
        rows.append([Cell(str(bags)), Cell(str(instances[bags])) if bags in instances else NOTHING, *cells])
    words = f"(×): how many times the time of {figure.lines[0].label}; CPU: the time of the processor."
    text = " ".join([*found["notes"], words])
    return Table(figure.key, figure.title, ["bags", "instances", *(line.label for line in figure.lines)], rows, text)


def _time(line: TimedLine, point: TimedPoint | None, first: TimedPoint | None, bags: int) -> Cell:
    if point is None:
        return Cell("no time", source=line.source, tone="muted") if bags == line.stopped else NOTHING
    ratio = "" if first is None or not first.seconds else ratio_text(point.seconds / first.seconds).strip()
    return Cell(seconds_text(point.seconds), ratio, f"{seconds_text(point.cpu_seconds)} CPU", line.source, "muted")


def _title(found: dict[str, Any], dataset: str, what: str = "") -> str:
    """Return a title whose part before the colon names the data set, too.

    >>> _title({"title": "Table 3: events"}, "ucf-crime", ", accuracy")
    'Table 3 (UCF-Crime), accuracy: events'
    """
    name, _, rest = found["title"].partition(":")
    return f"{name} ({dataset_title(dataset)}){what}:{rest}"
