"""The entry point of the ``gmil`` command."""

from __future__ import annotations

from typing import Any

import click

from gmil import __version__
from gmil.base import methods
from gmil.cli.check import check
from gmil.cli.compare import compare
from gmil.cli.console import clear_errors
from gmil.cli.cv import cv
from gmil.cli.data import data
from gmil.cli.doctor import doctor
from gmil.cli.model import fit, predict
from gmil.cli.paper import paper
from gmil.cli.paper_all import everything
from gmil.cli.paper_events import figure9, table3
from gmil.cli.report import report
from gmil.cli.theory import theory
from gmil.cli.video import video


class _Main(click.Group):
    """Runs commands so that whatever goes wrong is one sentence."""

    def invoke(self, ctx: click.Context) -> Any:
        with clear_errors():
            return super().invoke(ctx)


@click.group(cls=_Main, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gmil")
def main() -> None:
    """Learn from bags of instances: a label per bag, a score per instance."""


@main.command("methods")
def list_methods() -> None:
    """List the methods that cv and fit know, one a line with what it is."""
    for name, cls in sorted(methods().items()):
        described = getattr(cls, "func", cls)  # a class, or one with parameters set
        summary = (described.__doc__ or "").strip().splitlines()[0]
        click.echo(f"{name}\t{summary}")


for command in (check, cv, compare, fit, predict, report, data, doctor, paper, video):
    main.add_command(command)
for command in (everything, figure9, table3, theory):
    paper.add_command(command)
