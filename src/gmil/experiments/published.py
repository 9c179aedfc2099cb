"""Figures that others published, read from ``published.toml``."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def published() -> dict[str, Any]:
    """Return all published figures: ``accuracy``, ``seconds`` and ``med11`` tables with their sources."""
    return tomllib.loads(files("gmil.experiments").joinpath("published.toml").read_text(encoding="utf-8"))


def published_accuracy(method: str, dataset: str, *, corrected: bool = False) -> float | None:
    """Return the accuracy in per cent that the paper prints for a method, or None.

    Parameters
    ----------
    method, dataset : str
        Names as on the command line.
    corrected : bool
        Take the figure of the original source where it contradicts the print.
    """
    for row in published()["accuracy"]:
        if row["method"] == method:
            printed = row["printed"].get(dataset)
            return row.get("corrected", {}).get(dataset, printed) if corrected else printed
    return None


def published_seconds(method: str, dataset: str) -> tuple[float, bool] | None:
    """Return the seconds of a whole 10-fold that the paper prints, and whether it gave up by then; or None."""
    for row in published()["seconds"]:
        if row["method"] == method and dataset in row["printed"]:
            return float(row["printed"][dataset]), dataset in row.get("given_up", [])
    return None
