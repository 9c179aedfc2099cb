"""Results of the paper's experiments: written to files, and as cells of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gmil.cli.console import say
from gmil.paper.runs.output import write_csv, write_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def write_results(
    stem: Path, summary: dict[str, Any], rows: list[dict[str, Any]], draw: Callable[..., Any], note: str = ""
) -> None:
    """Write a summary as JSON, its rows as CSV and its drawing, beside each other."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    write_json(summary, f"{stem}.json")
    write_csv(rows, f"{stem}.csv")
    draw(summary, stem)
    say(f"{stem}.json, .csv and .svg are written{note}.")


def print_notes(notes: list[str]) -> None:
    """Print what a reader must know."""
    for note in notes:
        click.echo(f"* {note}")


def title_of(summary: dict[str, Any]) -> str:
    """Return the title of a summary; a quick run says so."""
    return f"{summary['title']}{' (quick)' if summary['quick'] else ''}"


def percent(share: float | None) -> str:
    """Return a share in per cent."""
    return "-" if share is None else f"{100 * share:.1f}"


def number(value: float | None, form: str) -> str:
    """Return a number in a format, or a dash where there is none."""
    return "-" if value is None or value != value else format(value, form)
