"""``gmil paper all``: every table and figure, and the report of them all."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from gmil.cli.console import FAILED, clear_errors, say
from gmil.cli.paper import paper, table1
from gmil.cli.paper.events import figure9, table3
from gmil.cli.paper.theory import theory
from gmil.errors import DatasetError

_OF_VIDEOS = ("table3", "figure9")
_QUICK_MINUTES = 1.0


@click.command("all", params=list(table1.params))
@click.pass_context
def everything(context: click.Context, /, **options: Any) -> None:
    """Every table and figure, one after the other, and the report of them all."""
    from gmil.cli.report import save_all
    from gmil.reporting.runs import run_report

    names = sorted((name for name in paper.commands if name.startswith(("table", "figure"))), key=_turn)
    failed = [name for name in names if not _succeeds(context, name, options)]
    save_all(run_report(options["output"]), Path(options["output"]))
    if failed:
        say(f"Something failed in {', '.join(failed)}; the report shows what there is.")
        sys.exit(FAILED)


def _why_no_videos() -> str | None:
    from gmil.paper.events import UCF, load_videos

    try:
        load_videos(UCF)
    except DatasetError as error:
        return str(error)
    return None


def _methods_of(name: str) -> set[str]:
    from gmil.paper import load_spec, spec_names
    from gmil.paper.events import methods as methods_of_videos

    if name not in spec_names():
        return set(methods_of_videos())
    spec = load_spec(name)
    return {m.name for m in spec.methods} | {s.method for s in spec.sweeps}


def _turn(name: str) -> tuple[bool, str]:
    return not name.startswith("table"), name


def _succeeds(context: click.Context, name: str, options: dict[str, Any]) -> bool:
    """Run one of the other commands, with the methods that it has; tell whether it ended well."""
    command = paper.commands[name]
    if name in _OF_VIDEOS and (reason := _why_no_videos()) is not None:
        say(f"{name} is left out: {reason}")
        return True
    methods = options["methods"]
    if methods is not None:
        known = _methods_of(name)
        methods = [method for method in methods if method in known]
        if not methods:
            say(f"{name} has none of the methods and is left out.")
            return True
    say(f"gmil paper {name}")
    given = {**options, "methods": methods}
    if options["quick"]:
        given["minutes"] = _QUICK_MINUTES
    taken = {parameter.name for parameter in command.params}
    try:
        with clear_errors():
            context.invoke(command, **{k: v for k, v in given.items() if k in taken})
    except SystemExit as end:
        if end.code != FAILED:
            raise
        return False
    return True


for _command in (everything, figure9, table3, theory):
    paper.add_command(_command)
