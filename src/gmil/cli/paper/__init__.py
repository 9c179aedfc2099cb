"""``gmil paper table1 | table2 | figure7``: the paper's experiments, measured again."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import gmil
from gmil.cli.console import FAILED, Progress, print_table, say
from gmil.cli.options import all_cores_option, methods_option, options, output_option
from gmil.cli.results import number, percent, print_notes, title_of, write_results

if TYPE_CHECKING:
    from collections.abc import Callable

    from gmil.paper import Spec

_ROUNDS, _QUICK_ROUNDS = 5, 3
"""How often figure 7 measures a time; its repeats are seeds, of which a time needs fewer."""
_MARKS = {"better": "+", "worse": "-", "equivalent": "=", "undecided": "?"}


@dataclasses.dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    spec: Spec
    output: Path
    jobs: int
    retry_failed: bool


@click.group()
def paper() -> None:
    """Measure the paper's tables and figures again, beside what it prints.

    Finished folds are kept in the output folder: a run that was stopped goes on, and nothing is measured twice.
    Times are the exception: they are measured again, all together.
    """


_options = options(
    click.option("--quick", is_flag=True, help="Fewer repeats and settings, and only data that is here."),
    click.option("--repeats", type=int, help="How often to repeat with other folds and seeds."),
    click.option("--untuned", is_flag=True, help="Leave out tuned columns, which take a hundred times as long."),
    methods_option,
    all_cores_option,
    output_option("Where rows and results go."),
    click.option("--retry-failed", is_flag=True, help="Do again what failed before."),
)


@paper.command()
@_options
def table1(**options: Any) -> None:
    """Accuracy on the paper's data sets: paper setting, tuned, published."""
    from gmil.paper.tables import table1 as table
    from gmil.reporting.plots.paper import draw_table1

    asked = _request("table1", options)
    _finish(asked, table.summarize(_run(asked)), table.flat_rows, draw_table1, _print_table1)


@paper.command()
@_options
def table2(**options: Any) -> None:
    """Seconds of a whole 10-fold cross-validation, all methods together."""
    from gmil.paper.tables import table2 as table
    from gmil.reporting.plots.paper import draw_table2

    asked = _request("table2", options)
    if options["jobs"] not in (None, 1):
        say("Times are measured in one process; --jobs is not used.")
    _finish(asked, table.summarize(asked.spec, _measure(asked)), table.flat_rows, draw_table2, _print_table2)


@paper.command()
@_options
def figure7(**options: Any) -> None:
    """Accuracy over K, q and p on Musk2, the cost of the sample, time over K."""
    from gmil.paper.figures import figure7 as figure
    from gmil.reporting.plots.paper import draw_figure7

    asked = _request("figure7", options)
    results = _run(asked)
    rounds = _QUICK_ROUNDS if asked.spec.is_quick else _ROUNDS
    timed = dataclasses.replace(asked, spec=asked.spec.repeated(rounds))
    _finish(asked, figure.summarize(results, _measure(timed)), figure.flat_rows, draw_figure7, _print_figure7)


def _request(name: str, options: dict[str, Any]) -> Request:
    from joblib import cpu_count

    from gmil.paper import MethodEntry, load_spec
    from gmil.paper.runs.jobs import own_labels

    spec = load_spec(name)
    if options["quick"]:
        spec = spec.quickly()
    if options["repeats"] is not None:
        spec = spec.repeated(options["repeats"])
    if options["untuned"]:
        spec = spec.untuned()
    if options["methods"] is not None:
        own = own_labels(options["methods"])
        entries = [MethodEntry(name, label, columns=("paper",)) for name, label in own.items()]
        spec = spec.joined_by(entries).restricted(options["methods"])
    jobs = cpu_count() if options["jobs"] is None else options["jobs"]
    return Request(spec, Path(options["output"]), jobs, options["retry_failed"])


def _run(asked: Request) -> Any:
    with Progress(f"{asked.spec.name}, fits") as progress:
        return gmil.paper.run(
            asked.spec, output=asked.output, jobs=asked.jobs, retry_failed=asked.retry_failed, progress=progress
        )


def _measure(asked: Request) -> Any:
    with Progress(f"{asked.spec.name}, timed runs") as progress:
        return gmil.paper.measure(asked.spec, output=asked.output, progress=progress)


def _finish(
    asked: Request,
    summary: dict[str, Any],
    flat_rows: Callable[..., list[dict[str, Any]]],
    draw: Callable[..., list[Path]],
    show: Callable[[dict[str, Any]], None],
) -> None:
    """Write and print a summary and what a reader must know, and end with 1 where something failed."""
    stem = asked.output / f"{asked.spec.name}{'-quick' if asked.spec.is_quick else ''}"
    write_results(stem, summary, flat_rows(summary), draw, f"; the rows behind them are in {asked.output}")
    show(summary)
    print_notes(summary["notes"])
    for failure in summary["failures"]:
        say(f"failed: {failure['method']} on {failure['dataset']}: {failure['reason']}")
    if summary["failures"]:
        retry = "" if asked.spec.name == "table2" else " --retry-failed does them again."
        say(f"{len(summary['failures'])} runs failed and have no figures.{retry}")
        sys.exit(FAILED)


def _print_table1(summary: dict[str, Any]) -> None:
    protocol = summary["protocol"]
    header = ["method", "column", *summary["datasets"], "mean", "rank", "tuning s"]
    rows = [
        [
            _marked(row),
            row["title"],
            *(_accuracy(row["cells"].get(dataset)) for dataset in summary["datasets"]),
            percent(row["mean"]),
            number(row["average_rank"], ".2f"),
            number(row.get("tune_seconds"), ".1f"),
        ]
        for row in summary["rows"]
    ]
    title = (
        f"{title_of(summary)}; per cent (95 % interval); "
        f"{protocol['repeats']} x {protocol['folds']}-fold{_own_repeats(summary)}"
    )
    if any(row["column"] == "tuned" for row in summary["rows"]):
        tuned = protocol["tuned_repeats"] or protocol["repeats"]
        title += (
            f"; tuned {tuned} x, {protocol['inner_folds']} inner folds, at most {protocol['max_settings']} settings"
        )
    print_table(header, rows, title=title)
    click.echo(
        "Against GMIL in the same column (corrected resampled t-test, zone of 1 point): "
        "+ better, - worse, = equivalent, ? undecided."
    )
    _print_variants(summary)
    _print_reproduction(summary["reproduction"])


def _own_repeats(summary: dict[str, Any]) -> str:
    """Return the methods that were repeated more or less often than the others."""
    own = [f"{label} {repeats} x" for label, repeats in summary["repeats"].items()]
    return f" ({', '.join(own)})" if own else ""


def _marked(row: dict[str, Any]) -> str:
    """Return the name of a method, with a mark where something else stands behind it."""
    return f"{row['label']} *" if row.get("variant") else str(row["label"])


def _print_variants(summary: dict[str, Any]) -> None:
    for label, variant in {row["label"]: row["variant"] for row in summary["rows"] if row.get("variant")}.items():
        click.echo(f"* {label}: {variant}.")


def _print_reproduction(cells: list[dict[str, Any]]) -> None:
    if not cells:
        return
    rows = [
        [
            cell["dataset"],
            str(cell["repeats"]),
            _accuracy(cell),
            *(percent(cell[name]) for name in ("best", "published", "reached")),
        ]
        for cell in cells
    ]
    header = ["data set", "10-folds", "mean", "best", "published", "% at or above it"]
    print_table(header, rows, title="GMIL as printed, every 10-fold by itself; per cent")


def _accuracy(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return "-"
    if cell["accuracy"] is None:
        return "failed"
    text = percent(cell["accuracy"])
    if "interval" in cell:
        text += f" ({percent(cell['interval'][0])}-{percent(cell['interval'][1])})"
    if cell.get("against_gmil"):
        text += f" {_MARKS[cell['against_gmil']['verdict']]}"
    return text


def _print_table2(summary: dict[str, Any]) -> None:
    header = ["method", "", *summary["datasets"], "rank"]
    rows = []
    for row in summary["rows"]:
        cells = [row["cells"][dataset] for dataset in summary["datasets"]]
        if any(cell["rounds"] or cell["failure"] for cell in cells):
            rank = number(row["average_rank"], ".2f")
            rows.append([_marked(row), "measured", *(_seconds(cell) for cell in cells), rank])
        rows.append([row["label"], "published", *(_published_seconds(cell) for cell in cells), ""])
    title = f"{title_of(summary)}; in brackets the ratio to GMIL"
    print_table(header, rows, title=title)
    _print_variants(summary)


def _seconds(cell: dict[str, Any]) -> str:
    if cell["failure"] is not None:
        return "failed"
    return _with_ratio(number(cell["seconds"], ".3g"), cell["ratio"])


def _published_seconds(cell: dict[str, Any]) -> str:
    text = number(cell["published"], ".1f")
    return _with_ratio(f">{text}" if cell["gave_up"] else text, cell["published_ratio"])


def _with_ratio(text: str, ratio: float | None) -> str:
    return text if ratio is None else f"{text} ({ratio:.3g}x)"


def _print_figure7(summary: dict[str, Any]) -> None:
    header = ["sweep", "data set", "value", "accuracy", "spread", "95 % interval", "AUC", "seconds"]
    rows = []
    for curve in summary["curves"]:
        for point in curve["points"]:
            interval = [percent(limit) for limit in point.get("interval") or []]
            rows.append(
                [
                    curve["parameter"],
                    curve["dataset"],
                    "all" if point["value"] is None else str(point["value"]),
                    "failed" if point["accuracy"] is None else percent(point["accuracy"]),
                    percent(point.get("spread")),
                    " - ".join(interval) or "-",
                    number(point.get("auc"), ".3f"),
                    number(point["seconds"], ".3g"),
                ]
            )
    print_table(header, rows, title=title_of(summary))
    for dataset, found in summary["controls"].items():
        texts = [f"{name} {percent(cell['accuracy'])}" for name, cell in found.items()]
        click.echo(f"Controls on {dataset}: {', '.join(texts)}.")
