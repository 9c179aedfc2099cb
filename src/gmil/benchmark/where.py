"""Which method for where: scores of instances on the leaderboard, which ``gmil compare --instances`` quotes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.benchmark.decisions import packaged

if TYPE_CHECKING:
    from collections.abc import Mapping

FAMILIES = {"Birds": "birds_", "Newsgroups": "newsgroups_", "UCF-Crime": "ucf-crime", "slides": "slides"}
"""Families of sets with labels of instances, and how the names of their sets begin."""
FIGURES = ("instance_auc", "instance_average_precision", "instance_auc_within")


def where_table(found: dict[str, Any], setting: str = "default") -> list[dict[str, Any]]:
    """Return the figures of instances of every method, of the families whose sets it has all.

    Methods with most families come first, and among these the best mean.

    Parameters
    ----------
    found : dict
        A leaderboard.
    setting : {"default", "tuned"}
    """
    labels = {method["name"]: method["label"] for method in found["methods"] if not method["control"]}
    cells = [cell for cell in found["cells"] if cell["setting"] == setting]
    names = [about["name"] for about in found["sets"]]
    table = []
    for method, label in labels.items():
        own = {cell["set"]: cell for cell in cells if cell["method"] == method}
        means = {family: _means(own, names, start) for family, start in FAMILIES.items()}
        families = {family: figures for family, figures in means.items() if figures is not None}
        if families:
            table.append({"method": method, "label": label, "families": families})
    return sorted(table, key=_place)


def _place(row: dict[str, Any]) -> tuple[int, float]:
    families = row["families"].values()
    return -len(families), -float(np.mean([list(one.values()) for one in families]))


def _means(own: Mapping[str, Any], names: list[str], start: str) -> dict[str, float] | None:
    """Return the means over the sets of a family; None where a set is missing, or a figure is on all sets."""
    sets = [own.get(name) for name in names if name.startswith(start)]
    if not sets or any(cell is None or cell["instance_auc"] is None for cell in sets):
        return None
    values = {figure: [cell[figure] for cell in sets if cell and cell[figure] is not None] for figure in FIGURES}
    return {f: round(float(np.mean(known)), 4) for f, known in values.items()} if all(values.values()) else None


def notes_on_where(labels: Mapping[str, str], table: list[dict[str, Any]] | None = None) -> list[str]:
    """Return a sentence for every compared method whose scores of instances are on the leaderboard.

    Parameters
    ----------
    labels : mapping
        The names of methods, and what each is called in the table.
    table : list of dict, optional
        By default the one that comes with gmil.
    """
    known = {row["method"]: row["families"] for row in (packaged("where") if table is None else table)}
    return [f"{label}, for where: {_sentence(known[name])}" for name, label in labels.items() if name in known]


def _sentence(families: dict[str, dict[str, float]]) -> str:
    parts = [f"{name} {one['instance_auc']:.2f} and {one['instance_auc_within']:.2f}" for name, one in families.items()]
    return f"AUC of instances over all bags, and within bags, on the leaderboard: {', '.join(parts)}."
