"""Which method for which bags: what the leaderboard says of every kind of bags; ``gmil compare`` quotes it."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.benchmark.shelf import set_row
from gmil.benchmark.traits import KINDS, traits_of
from gmil.paper.runs.data import Dataset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.bags import Bags

FILE = "decisions.json"
_MOST_NAMED = 3


def decision_table(found: dict[str, Any], measure: str = "auc", setting: str = "default") -> list[dict[str, Any]]:
    """Return, for every kind of bags, its sets and the methods that have all of them, the best mean first.

    Sets without the reference method are left out: the best of some methods is not the best of all.

    Parameters
    ----------
    found : dict
        A leaderboard.
    measure : str
    setting : {"default", "tuned"}
    """
    labels = {method["name"]: method["label"] for method in found["methods"] if not method["control"]}
    cells = {(c["method"], c["set"]): c for c in found["cells"] if c["setting"] == setting}
    table = []
    for kind, about in KINDS.items():
        sets = [s["name"] for s in found["sets"] if s["traits"] is not None and s["traits"]["kind"] == kind]
        sets = [name for name in sets if (found["reference"], name) in cells]
        rows = [_row(name, label, [cells.get((name, one)) for one in sets], measure) for name, label in labels.items()]
        known = sorted((row for row in rows if row is not None), key=lambda row: -row["mean"])
        if sets and known:
            table.append({"kind": kind, "about": about, "measure": measure, "sets": sets, "methods": known})
    return table


def _row(name: str, label: str, cells: Sequence[dict[str, Any] | None], measure: str) -> dict[str, Any] | None:
    """Return the mean of a method over the sets of a kind; None where it has not all of them."""
    values = [cell[measure] for cell in cells if cell is not None and cell[measure] is not None]
    if not cells or len(values) < len(cells):
        return None
    seconds = [cell["cpu_seconds"] for cell in cells if cell is not None]
    mean, median = float(np.mean(values)), float(np.median(seconds))
    return {"method": name, "label": label, "mean": round(mean, 4), "cpu_seconds": float(f"{median:.2g}")}


def packaged(name: str) -> list[dict[str, Any]]:
    """Return a table that comes with gmil, ``"kinds"`` or ``"where"``: that of the committed leaderboard."""
    text = files("gmil.benchmark").joinpath(FILE).read_text(encoding="utf-8")
    found: list[dict[str, Any]] = json.loads(text)[name]
    return found


def notes_on_kind(bags: Bags, y: Any, instance_y: Any = None, table: list[dict[str, Any]] | None = None) -> list[str]:
    """Return what the leaderboard says of bags of this kind; nothing where it has no such sets, or of many classes.

    Parameters
    ----------
    bags : Bags
    y : array of shape (n_bags,)
        Labels; the second class counts as positive where witnesses are counted.
    instance_y : array of shape (n_instances,), optional
    table : list of dict, optional
        A decision table; by default the one that comes with gmil.
    """
    classes, numbers = np.unique(np.asarray(y), return_inverse=True)
    if len(classes) != 2:
        return []
    known = instance_y if instance_y is not None and np.asarray(instance_y).dtype.kind in "iu" else None
    kind = traits_of(set_row(Dataset("these", bags, numbers, None, known)))["kind"]
    return [_sentence(row) for row in (packaged("kinds") if table is None else table) if row["kind"] == kind]


def _sentence(row: dict[str, Any]) -> str:
    named = [f"{one['label']} {100 * one['mean']:.1f}" for one in row["methods"][:_MOST_NAMED]]
    n = len(row["sets"])
    return (
        f"Bags of this kind ({row['about']}) on the leaderboard, {n} set{'s' * (n != 1)}: best mean AUC "
        f"{', '.join(named)} of {len(row['methods'])} methods that were measured on all of them."
    )
