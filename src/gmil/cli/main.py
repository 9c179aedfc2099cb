"""The entry point of the ``gmil`` command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import click

import gmil
from gmil.cli.console import clear_errors
from gmil.cli.examples import HELP, add_help, describe

_PLACES = {
    "benchmark": "gmil.cli.benchmark.commands:benchmark",
    "check": "gmil.cli.check:check",
    "compare": "gmil.cli.compare:compare",
    "cv": "gmil.cli.cv:cv",
    "data": "gmil.cli.data:data",
    "doctor": "gmil.cli.doctor:doctor",
    "explain": "gmil.cli.explain:explain",
    "fit": "gmil.cli.model:fit",
    "methods": "gmil.cli.methods:list_methods",
    "paper": "gmil.cli.paper.everything:paper",
    "predict": "gmil.cli.model:predict",
    "report": "gmil.cli.report:report",
    "score": "gmil.cli.score:score",
    "slides": "gmil.cli.slides:slides",
    "video": "gmil.cli.videos.commands:video",
}


class _Commands(Mapping[str, click.Command]):
    """The commands by name, each imported when it is looked up."""

    def __getitem__(self, name: str) -> click.Command:
        module, _, attribute = _PLACES[name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        add_help(command, f"gmil {name}")
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


class _Main(click.Group):
    """Runs commands so that whatever goes wrong is one sentence; imports the one that is called, and no other."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  as in click
        """Return a command as lists of commands show it: its name and its summary."""
        return click.Command(cmd_name, short_help=HELP[f"gmil {cmd_name}"].summary) if cmd_name in _PLACES else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else self.commands[name], rest

    def invoke(self, ctx: click.Context) -> Any:
        with clear_errors():
            return super().invoke(ctx)


def _print_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(f"gmil, version {gmil.__version__}")
        context.exit()


@click.group(cls=_Main, commands=_Commands())
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version and exit.",
)
def main() -> None:
    """Learn from bags of instances: a label per bag, a score per instance."""


describe(main, "gmil")
