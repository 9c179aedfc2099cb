"""``gmil report``: the page of a run, or of a model and data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import gmil
from gmil.cli.console import Stages, announced, say
from gmil.cli.options import group_options, importance_option, page_option
from gmil.cli.targets.kinds import is_of_values, report_values
from gmil.errors import SpecificationError, count_of
from gmil.safety.atomic import refuse_target

if TYPE_CHECKING:
    from gmil.cli.inputs import Reader
    from gmil.reporting import Report


@click.command()
@click.argument("run", metavar="RUN_OR_MODEL")
@click.argument("data", required=False)
@page_option("A .html, .md or .json file; by default all three in the folder of the run, or MODEL with .html.")
@click.option(
    "--look", metavar="DATA", help='Data set of a gmil paper run whose model is shown, or "none"; musk2 by default.'
)
@click.option(
    "--class",
    "class_label",
    metavar="LABEL",
    help="The class to show; by default the positive of two, else the commonest.",
)
@importance_option
@group_options
def report(
    run: str,
    data: str | None,
    output: str | None,
    look: str | None,
    class_label: str | None,
    importance: int | None,
    reader: Reader,
) -> None:
    """Write the page of a run, or of a model and data.

    RUN is the output folder of gmil paper or gmil compare. With a saved MODEL and DATA, the page shows what the model
    predicts for the bags, how well where labels are known, and why. Bags that the model was fitted on are told apart.
    """
    if data is not None:
        _report_model(run, data, output, class_label, importance, reader)
        return
    if class_label is not None:
        msg = "--class is for a model and data: gmil report MODEL DATA --class LABEL."
        raise SpecificationError(msg)
    from gmil.reporting.runs import run_report

    with Stages() as progress:
        made = run_report(run, look=look, importance=importance, progress=progress)
    if output is None:
        save_all(made, Path(run))
    else:
        say(f"{made.save(output)} is written.")
    click.echo(made.summary.verdict)


def _report_model(
    model: str, data: str, output: str | None, label: str | None, importance: int | None, reader: Reader
) -> None:
    from gmil.io import model_files
    from gmil.model_selection.target_crossval import target_of
    from gmil.reporting.result import checked_target

    target = checked_target(Path(model).with_suffix(".html") if output is None else output)
    refuse_target(target, model, data)
    estimator, origin = model_files.load_with_origin(model)
    found = reader.of_model(estimator, origin).read(data, in_memory=True, needs_labels=False)
    seen = origin.count_seen(found.bags)
    title = f"{Path(model).name} on {found.name}: {count_of(len(found.bags), 'bag')}"
    if is_of_values(target_of(estimator)):
        click.echo(report_values(estimator, found, title, seen, target))
        return
    with announced(f"A page of {count_of(len(found.bags), 'bag')}"), Stages() as progress:
        asked: dict[str, Any] = {"title": title, "label": label, "groups": found.groups, "importance": importance}
        made = gmil.report(estimator, found.bags, found.y, seen=origin.seen(found.bags), progress=progress, **asked)
        say(f"{made.save(target)} is written.")
    if made.summary.warning:
        say(made.summary.warning)
    click.echo(made.summary.verdict)


def save_all(made: Report, folder: Path) -> None:
    """Write a report as HTML, Markdown and JSON into a folder."""
    for suffix in ("html", "md", "json"):
        made.save(folder / f"report.{suffix}")
    say(f"{folder / 'report.html'}, .md and .json are written.")
