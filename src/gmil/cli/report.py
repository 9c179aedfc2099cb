"""``gmil report``: the page of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gmil.cli.console import say

if TYPE_CHECKING:
    from gmil.reporting import Report


@click.command()
@click.argument("run")
@click.option(
    "-o", "--output", metavar="FILE", help="A .html, .md or .json file; by default all three, in the folder of the run."
)
@click.option(
    "--look", metavar="DATA", help='Data set of gmil paper to look inside a model of, or "none"; by default musk2.'
)
def report(run: str, output: str | None, look: str | None) -> None:
    """Write the report of RUN, the output folder of gmil paper or gmil compare."""
    from gmil.reporting.runs import run_report

    made = run_report(run, look=look)
    if output is None:
        save_all(made, Path(run))
    else:
        say(f"{made.save(output)} is written.")
    click.echo(made.summary.verdict)


def save_all(made: Report, folder: Path) -> None:
    """Write a report as HTML, Markdown and JSON into a folder."""
    for suffix in ("html", "md", "json"):
        made.save(folder / f"report.{suffix}")
    say(f"{folder / 'report.html'}, .md and .json are written.")
