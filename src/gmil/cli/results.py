"""Results of the paper's experiments: written to files, and as cells of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gmil.cli.console import say

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

INSTANCE_FIGURES = {"auc": "AUC", "average_precision": "average precision", "auc_within": "AUC within bags"}
"""How well scores find instances: the names of the figures, and their titles in tables."""


def write_results(
    stem: Path, summary: dict[str, Any], rows: list[dict[str, Any]], draw: Callable[..., Any], note: str = ""
) -> None:
    """Write a summary as JSON, its rows as CSV and its drawing, beside each other."""
    from gmil.paper.runs.output import write_csv, write_json

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


def instance_titles() -> list[str]:
    """Return the titles of the figures about instances, each with that of its interval."""
    return [title for figure in INSTANCE_FIGURES.values() for title in (figure, "95 % interval")]


def instance_cells(found: dict[str, Any] | None) -> list[str]:
    """Return the figures about instances, each with its interval, as cells of a table; dashes where there are none."""
    cells = []
    for name in INSTANCE_FIGURES:
        limits = (found or {}).get(f"{name}_interval")
        shown = "-" if limits is None else " - ".join(number(limit, ".3f") for limit in limits)
        cells += [number((found or {}).get(name), ".3f"), shown]
    return cells
