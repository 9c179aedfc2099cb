"""The entry point of the ``gmil`` command."""

from __future__ import annotations

from typing import Any

import click

from gmil import __version__
from gmil.cli.check import check
from gmil.cli.compare import compare
from gmil.cli.console import clear_errors
from gmil.cli.cv import cv
from gmil.cli.data import data
from gmil.cli.doctor import doctor
from gmil.cli.examples import add_help
from gmil.cli.explain import explain
from gmil.cli.methods import list_methods
from gmil.cli.model import fit, predict
from gmil.cli.paper import paper
from gmil.cli.paper_all import everything
from gmil.cli.paper_events import figure9, table3
from gmil.cli.report import report
from gmil.cli.score import score
from gmil.cli.theory import theory
from gmil.cli.video import video


class _Main(click.Group):
    """Runs commands so that whatever goes wrong is one sentence."""

    def invoke(self, ctx: click.Context) -> Any:
        with clear_errors():
            return super().invoke(ctx)


@click.group(cls=_Main)
@click.version_option(__version__, prog_name="gmil")
def main() -> None:
    """Learn from bags of instances: a label per bag, a score per instance."""


for command in (check, cv, compare, fit, predict, score, explain, report, list_methods, data, doctor, paper, video):
    main.add_command(command)
for command in (everything, figure9, table3, theory):
    paper.add_command(command)
add_help(main)
