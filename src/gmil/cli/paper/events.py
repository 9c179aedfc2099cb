"""``gmil paper table3 | figure9``: events in videos, as many as there are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gmil.cli.console import print_table, say
from gmil.cli.options import methods_option, output_option, seed_option
from gmil.cli.results import number, print_notes, write_results
from gmil.errors import BagValidationError, DatasetError

if TYPE_CHECKING:
    from gmil.paper.events import Videos

_MED11 = click.option("--med11", metavar="PATH", help="Data that gmil data make med11 wrote.")
_OUTPUT = output_option("Where decisions and results go.")


@click.command()
@_MED11
@methods_option
@click.option("--repeats", default=1, show_default=True, help="How often to repeat with other folds and seeds.")
@seed_option("folds and methods")
@_OUTPUT
def table3(med11: str | None, methods: list[str] | None, repeats: int, seed: int, output: str) -> None:
    """Events in videos, one against all others: UCF-Crime, and generated videos of the size of MED11."""
    from gmil.paper.tables import table3 as table
    from gmil.reporting.plots.paper import draw_table3

    _refuse_unknown(methods or [])
    videos = _videos(med11)
    summary = table.measure_table3(videos, output=output, repeats=repeats, seed=seed, only=methods, progress=say)
    write_results(Path(output) / summary["experiment"], summary, table.flat_rows(summary), draw_table3)
    _print_table3(summary)


@click.command()
@_MED11
@click.option("--minutes", default=30.0, show_default=True, help="The time for all measurements.")
@seed_option("the choice of bags, and of the methods")
@_OUTPUT
def figure9(med11: str | None, minutes: float, seed: int, output: str) -> None:
    """Seconds over the number of bags, GMIL and MI-SVM, up to what ends in the time given."""
    from gmil.paper.events import UCF
    from gmil.paper.figures import figure9 as figure
    from gmil.reporting.plots.paper import draw_figure9

    if minutes <= 0:
        msg = f"--minutes must be above 0, got {minutes}."
        raise BagValidationError(msg)
    summary = figure.measure_figure9(med11 or UCF, minutes=minutes, seed=seed, progress=say)
    write_results(Path(output) / summary["experiment"], summary, figure.flat_rows(summary), draw_figure9)
    rows = [
        [curve["label"], str(point["bags"]), str(point["instances"]), f"{point['seconds']:.2f}"]
        for curve in summary["curves"]
        for point in curve["points"]
    ]
    print_table(["method", "bags", "instances", "seconds"], rows, title=f"{summary['title']}, {summary['dataset']}")
    _print_notes(summary)


def _refuse_unknown(names: list[str]) -> None:
    from gmil.paper.events import methods as methods_of_videos

    known = methods_of_videos()
    unknown = [name for name in names if name not in known]
    if unknown:
        msg = f"Table 3 has no method {unknown[0]!r}; its methods are {', '.join(known)}."
        raise BagValidationError(msg)


def _videos(med11: str | None) -> list[Videos]:
    """Return the data sets that are here; that UCF-Crime is not is no error where other data is given."""
    from gmil.paper.events import UCF, load_videos

    found = []
    try:
        found.append(load_videos(UCF))
    except DatasetError as error:
        if med11 is None:
            raise
        say(f"{UCF} is left out: {error}")
    return found if med11 is None else [*found, load_videos(med11)]


def _print_table3(summary: dict[str, Any]) -> None:
    for name in [*summary["datasets"], *sorted({r["dataset"] for r in summary["rows"]} - set(summary["datasets"]))]:
        rows = [row for row in summary["rows"] if row["dataset"] == name]
        events = list(next((row["cells"] for row in rows if row["cells"]), {}))
        shown = "auc" if name in summary["datasets"] else "accuracy"
        header = ["method", *events, f"mean {shown}", "AP", "balanced", "recall", "accuracy", "seconds"]
        protocol = summary["protocol"]
        title = f"{summary['title']}; {name}, {shown}; {protocol['repeats']} x {protocol['folds']}-fold"
        print_table(header, [_cells(row, events, shown) for row in rows], title=title)
    _print_notes(summary)


def _cells(row: dict[str, Any], events: list[str], shown: str) -> list[str]:
    if not row["cells"]:
        return [row["label"], *["-"] * (len(events) + 6)]
    values = [row["cells"][event].get(shown) for event in events]
    means = [row["mean"].get(m) for m in (shown, "average_precision", "balanced_accuracy", "recall", "accuracy")]
    return [row["label"], *(number(value, ".3f") for value in (*values, *means)), number(row["seconds"], ".1f")]


def _print_notes(summary: dict[str, Any]) -> None:
    failures = [f"{row['label']} on {row['dataset']}: {row['failure']}." for row in summary["failures"]]
    print_notes([*failures, *summary["notes"]])
