"""The leaderboard at a glance: a row for every method, over all sets, and without those that chose a default."""

from __future__ import annotations

from typing import Any

import numpy as np

VIEWS = {"all": "all sets", "without_sets_that_chose_a_default": "without the sets that chose a default"}


def overview(found: dict[str, Any], setting: str, measure: str = "auc") -> list[dict[str, Any]]:
    """Return the rows of methods, the best mean rank first, in every view.

    Parameters
    ----------
    found : dict
        A leaderboard.
    setting : {"default", "tuned"}
    measure : str
        By what methods are ranked, and wins are counted.
    """
    chose = {about["name"] for about in found["sets"] if about["chose_default"]}
    views = []
    for view, title in VIEWS.items():
        sets = [s["name"] for s in found["sets"] if view == "all" or s["name"] not in chose]
        statistics = found["statistics"][setting]["measures"][measure][view]
        ranks = {row["method"]: row for row in (statistics["ranks"] or {"rows": []})["rows"]}
        against = {row["method"]: row for row in statistics["against_reference"]}
        rows = [_row(found, method, setting, sets, ranks, against) for method in found["methods"]]
        rows = [row for row in rows if row["n_sets"] or row["n_empty"]]
        rows.sort(key=lambda row: (row["control"], row["rank"] is None, row["rank"] or 0.0, -(row["auc"] or 0.0)))
        views.append({"view": view, "title": title, "rows": rows, "statistics": statistics})
    return views


def _row(
    found: dict[str, Any],
    method: dict[str, Any],
    setting: str,
    sets: list[str],
    ranks: dict[str, Any],
    against: dict[str, Any],
) -> dict[str, Any]:
    name = method["name"]
    cells = [c for c in found["cells"] if c["method"] == name and c["setting"] == setting and c["set"] in sets]
    rank = ranks.get(name, {})
    return {
        "method": name,
        "label": method["label"],
        "control": method["control"],
        "n_sets": sum(cell["reason"] is None for cell in cells),
        "n_empty": sum(cell["reason"] is not None for cell in cells),
        "rank": rank.get("rank"),
        "p_holm": rank.get("p_holm"),
        "against": against.get(name),
        **{m: _mean(cells, m) for m in found["measures"]},
        "seconds": _median(cells, "cpu_seconds"),
        "gpu_seconds": _median(cells, "gpu_seconds"),
    }


def _mean(cells: list[dict[str, Any]], measure: str) -> float | None:
    values = [cell[measure] for cell in cells if cell[measure] is not None]
    return float(np.mean(values)) if values else None


def _median(cells: list[dict[str, Any]], name: str) -> float | None:
    values = [cell[name] for cell in cells if cell[name] is not None]
    return float(np.median(values)) if values else None
