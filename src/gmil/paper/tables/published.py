"""Figures that others published, read from ``published.toml``."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_TITLES = {
    "musk1": "Musk1",
    "musk2": "Musk2",
    "elephant": "Elephant",
    "fox": "Fox",
    "tiger": "Tiger",
    "ucf-crime": "UCF-Crime",
    "med11": "generated, size of MED11",
}


def dataset_title(name: str) -> str:
    """Return a data set as it is written in titles."""
    return _TITLES.get(name, name)


@cache
def published() -> dict[str, Any]:
    """Return all published figures: ``accuracy``, ``seconds`` and ``med11`` tables with their sources."""
    return tomllib.loads(files("gmil.paper.tables").joinpath("published.toml").read_text(encoding="utf-8"))


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


class PublishedRow(NamedTuple):
    """The published row with the highest mean, and of how many."""

    label: str
    mean: float  # a share
    n_rows: int


def best_published(datasets: Sequence[str]) -> PublishedRow | None:
    """Return the highest of all rows of the paper's Table 1 that have a figure for each of these data sets, or None."""
    rows = [row for row in published()["accuracy"] if all(dataset in row["printed"] for dataset in datasets)]
    means = {row["label"]: fmean(row["printed"][dataset] for dataset in datasets) / 100 for row in rows if datasets}
    if not means:
        return None
    label = max(means, key=lambda name: means[name])
    return PublishedRow(label, means[label], len(means))


def published_seconds(method: str, dataset: str) -> tuple[float, bool] | None:
    """Return the seconds of a whole 10-fold that the paper prints, and whether it gave up by then; or None."""
    for row in published()["seconds"]:
        if row["method"] == method and dataset in row["printed"]:
            return float(row["printed"][dataset]), dataset in row.get("given_up", [])
    return None
