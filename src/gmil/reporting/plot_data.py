"""Summaries of experiments to what is plotted: accuracy against time, curves over a parameter, times over bags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmil.paper.tables.published import dataset_title
from gmil.reporting.provenance import key_of
from gmil.reporting.summary import AccuracyPanel, AccuracyPoint, Curve, CurvePoint, TimedFigure, TimedLine, TimedPoint

if TYPE_CHECKING:
    from gmil.reporting.provenance import Ledger


def accuracy_panels(found: dict[str, Any], ledger: Ledger) -> list[AccuracyPanel]:
    """Return accuracy against time, one panel per data set, for all that was measured."""
    panels = []
    for dataset in found["datasets"]:
        points = [p for row in found["rows"] if (p := _accuracy_point(row, dataset, ledger)) is not None]
        majority = [row["cells"].get(dataset) for row in found["rows"] if row["method"] == "majority"]
        floor = next((cell["accuracy"] for cell in majority if cell), None)
        if points:
            panels.append(AccuracyPanel(dataset, dataset_title(dataset), points, floor))
    return panels


def _accuracy_point(row: dict[str, Any], dataset: str, ledger: Ledger) -> AccuracyPoint | None:
    cell = row["cells"].get(dataset) or {}
    if row["method"] == "majority" or cell.get("accuracy") is None or not cell.get("jobs"):
        return None
    source = ledger.jobs(cell["jobs"], dataset, row["label"], row["title"])
    if source is None or source.seconds is None:
        return None
    setting = "tuned" if row["column"] == "tuned" else row["title"]
    low, high = cell["interval"]
    return AccuracyPoint(row["method"], row["label"], setting, cell["accuracy"], low, high, source.seconds, source.key)


def curves(found: dict[str, Any], ledger: Ledger | None = None) -> list[Curve]:
    """Return the sweeps of a figure; without a ledger points lead nowhere."""
    made = []
    for curve in found.get("curves", []):
        dataset = curve["dataset"]
        floor = (found.get("controls", {}).get(dataset, {}).get("majority") or {}).get("accuracy")
        points = [_curve_point(curve, point, found, ledger) for point in curve["points"]]
        made.append(Curve(curve["name"], curve["title"], curve["axis"], dataset_title(dataset), floor, points))
    return made


def _curve_point(
    curve: dict[str, Any], point: dict[str, Any], found: dict[str, Any], ledger: Ledger | None
) -> CurvePoint:
    names, value, source, timed = (curve["dataset"], curve["method"]), point["value"], None, None
    if ledger is not None:
        source = ledger.jobs(
            point.get("jobs", []), *names, f"{curve['parameter']} = {'all' if value is None else value}"
        )
        if point.get("seconds") is not None:
            case = (*names, curve["name"], f"{curve['parameter']}={value}")
            timed = ledger.timings(found["rows_file"], *case, seed=found["protocol"]["seed"])
    low, high = point.get("interval") or (None, None)
    return CurvePoint(
        value=None if value is None else float(value),
        low=low,
        high=high,
        source=key_of(source),
        seconds_source=key_of(timed),
        **{name: point.get(name) for name in ("accuracy", "spread", "auc", "seconds", "seconds_range")},
    )


def timed_figure(found: dict[str, Any], ledger: Ledger | None = None) -> TimedFigure:
    """Return Figure 9 as lines; without a ledger points lead nowhere."""
    lines = []
    for curve in found["curves"]:
        points = [TimedPoint(**point) for point in curve["points"]]
        setting = f"{len(points)} numbers of bags timed"
        source = None if ledger is None else ledger.summarized(found, found["dataset"], curve["label"], setting)
        stopped = (curve["stopped"] or {}).get("bags")
        lines.append(TimedLine(curve["label"], points, stopped, key_of(source)))
    return TimedFigure(found["experiment"], title_with_dataset(found, found["dataset"]), lines)


def title_with_dataset(found: dict[str, Any], dataset: str, what: str = "") -> str:
    """Return a title whose part before the colon names the data set, too.

    >>> title_with_dataset({"title": "Table 3: events"}, "ucf-crime", ", accuracy")
    'Table 3 (UCF-Crime), accuracy: events'
    """
    name, _, rest = found["title"].partition(":")
    return f"{name} ({dataset_title(dataset)}){what}:{rest}"
