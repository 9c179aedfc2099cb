"""Summaries of experiments: what all of them have, and files."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmil.paper.runs import environment
from gmil.safety.atomic import replacing
from gmil.templating.json_text import finite

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    from gmil.paper.runs.specification import Spec


def summary_of(
    spec: Spec, datasets: Iterable[str], *, notes: Iterable[str], failures: list[dict[str, Any]], **content: Any
) -> dict[str, Any]:
    """Return the summary of an experiment: its names and protocol, its content, notes, failures and environment."""
    datasets = list(datasets)
    return {
        "experiment": spec.name,
        "title": spec.title.replace("{datasets}", _counted(len(datasets))),
        "quick": spec.is_quick,
        "protocol": asdict(spec.protocol),
        "datasets": datasets,
        **content,
        "notes": list(notes),
        "failures": failures,
        **environment.as_facts(),
    }


def _counted(n: int) -> str:
    """Return how many data sets there are, in words.

    >>> _counted(1), _counted(2), _counted(12)
    ('one data set', 'two data sets', '12 data sets')
    """
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return f"{words[n] if n < len(words) else n} data set{'s' * (n != 1)}"


def flat(cell: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return some values of a cell for a line of CSV, with the limits of its interval and its jobs in one text.

    >>> flat({"accuracy": 0.5, "interval": [0.4, 0.6], "jobs": ["a", "b"]}, "accuracy", "auc")
    {'accuracy': 0.5, 'auc': None, 'low': 0.4, 'high': 0.6, 'failure': None, 'jobs': 'a b'}
    """
    low, high = cell.get("interval") or (None, None)
    limits = {"low": low, "high": high, "failure": cell.get("failure"), "jobs": " ".join(cell.get("jobs", []))}
    return {**{name: cell.get(name) for name in names}, **limits}


def write_json(summary: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a summary as JSON; a number that is none becomes null."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(finite(summary), indent=2) + "\n", encoding="utf-8")


def write_csv(rows: list[dict[str, Any]], path: str | os.PathLike[str]) -> None:
    """Write rows of the same keys as CSV."""
    with replacing(path) as temporary, Path(temporary).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)
