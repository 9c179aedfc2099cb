"""What the video commands share: the group itself, and options."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import click

from gmil.cli.console import FAILED, say
from gmil.cli.inputs import parse_setting
from gmil.cli.options import jobs_option
from gmil.errors import VideoError


@click.group()
def video() -> None:
    """Detect events in videos, and when they happen.

    Frames become histograms of visual words (HOG3D) or any other features, videos become bags.
    """


video_jobs = jobs_option("Processes over videos; -1 is every core.")


def choice_option(name: str, *choices: str, help: str) -> Any:  # noqa: A002  as in click
    """Return an option with one of several values, by default the first."""
    return click.option(name, type=click.Choice(choices), default=choices[0], show_default=True, help=help)


def end_with(failures: dict[str, str]) -> None:
    """Name every video that failed; end with 1 where one did."""
    for reason in failures.values():
        say(f"left out: {reason}")
    if failures:
        sys.exit(FAILED)


crops_option = choice_option(
    "--crops", "mean", "first", "all", help="Of several crops of a snippet: their mean, the first, or an instance each."
)
frames_option = click.option(
    "--snippet-frames", default=16, show_default=True, type=click.IntRange(min=1), help="Frames of a snippet."
)


def settings_of(kind: type[Any], called: str, settings: tuple[str, ...]) -> Any:
    """Return settings of a kind from texts NAME=VALUE."""
    given = dict(parse_setting(text) for text in settings)
    known = [field.name for field in dataclasses.fields(kind)]
    unknown = [name for name in given if name not in known]
    if unknown:
        msg = f"{called} has no setting {unknown[0]!r}; its settings are {', '.join(known)}."
        raise VideoError(msg)
    return kind(**given)
