"""``gmil report``: the page of a run, or of a model and data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import gmil
from gmil.cli.console import announced, say
from gmil.cli.options import data_options
from gmil.cli.score import about_seen
from gmil.safety.atomic import refuse_target

if TYPE_CHECKING:
    from gmil.cli.inputs import Reader
    from gmil.reporting import Report


@click.command()
@click.argument("run", metavar="RUN_OR_MODEL")
@click.argument("data", required=False)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="A .html, .md or .json file; by default all three in the folder of the run, or MODEL with .html.",
)
@click.option(
    "--look", metavar="DATA", help='Data set of gmil paper to look inside a model of, or "none"; by default musk2.'
)
@data_options
def report(run: str, data: str | None, output: str | None, look: str | None, reader: Reader) -> None:
    """Write the page of a run, or of a model and data.

    RUN is the output folder of gmil paper or gmil compare. With a saved MODEL and DATA, the page shows what the model
    predicts for the bags, and why.
    """
    if data is not None:
        _report_model(run, data, output, reader)
        return
    from gmil.reporting.runs import run_report

    made = run_report(run, look=look)
    if output is None:
        save_all(made, Path(run))
    else:
        say(f"{made.save(output)} is written.")
    click.echo(made.summary.verdict)


def _report_model(model: str, data: str, output: str | None, reader: Reader) -> None:
    from gmil.io import model_files
    from gmil.reporting.result import checked_target

    target = checked_target(Path(model).with_suffix(".html") if output is None else output)
    refuse_target(target, model, data)
    estimator, origin = model_files.load_with_origin(model)
    found = reader.of_model(estimator, origin).read(data, in_memory=True, needs_labels=False)
    with announced(f"A page of {len(found.bags)} bags"):
        seen = about_seen(origin.count_seen(found.bags))
        title = f"{Path(model).name} on {found.name}: {len(found.bags)} bags{seen}"
        made = gmil.report(estimator, found.bags, found.y, title=title)
        say(f"{made.save(target)} is written.")
    click.echo(made.summary.verdict)


def save_all(made: Report, folder: Path) -> None:
    """Write a report as HTML, Markdown and JSON into a folder."""
    for suffix in ("html", "md", "json"):
        made.save(folder / f"report.{suffix}")
    say(f"{folder / 'report.html'}, .md and .json are written.")
