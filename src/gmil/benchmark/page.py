"""The page of a leaderboard: one file, to be searched and sorted, that asks no other host for anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmil.benchmark.decisions import decision_table
from gmil.benchmark.figures import MEASURES, SMALLER_IS_BETTER
from gmil.benchmark.leaderboard import RANKED, n_not_measured
from gmil.benchmark.overview import overview
from gmil.safety.atomic import replacing
from gmil.templating import render
from gmil.templating.json_text import script_json

if TYPE_CHECKING:
    import os


def page(found: dict[str, Any]) -> str:
    """Return the page of a leaderboard.

    Parameters
    ----------
    found : dict
        As `gmil.benchmark.leaderboard` makes it.
    """
    return render(
        "gmil.benchmark",
        "templates",
        "page.html.j2",
        title=found["title"],
        told=told(found),
        protocol=_protocol(found["protocol"]),
        measures=found["measures"],
        settings=list(found["statistics"]),
        data=script_json(_data(found)),
    )


def write_page(found: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the page in one step."""
    with replacing(path) as temporary:
        temporary.write_text(page(found), encoding="utf-8")


def told(found: dict[str, Any]) -> list[str]:
    """Return what a reader must know first: who leads, what was measured, and what was not yet."""
    cells, n_open = found["cells"], n_not_measured(found)
    empty = [cell for cell in cells if cell["reason"] is not None]
    measured = f"{len(cells)} cells are measured, {len(empty)} of them empty with their reason"
    if found["not_repeated"]:
        measured += f" ({found['not_repeated']} still lack some of their repeats)"
    open_ = f", and {n_open} are not measured yet: nothing is claimed of them." if n_open else "."
    return [*(_leader(found, setting) for setting in found["statistics"]), f"{measured}{open_}"]


def _leader(found: dict[str, Any], setting: str) -> str:
    """Return who has the best mean rank, by AUC and by accuracy, and where the reference stands."""
    labels = {method["name"]: method["label"] for method in found["methods"]}
    texts, n_sets, n_methods = [], 0, 0
    for measure in ("auc", "accuracy"):
        ranks = found["statistics"][setting]["measures"][measure]["all"]["ranks"]
        if ranks is None:
            continue
        n_sets, n_methods = max(n_sets, ranks["n_sets"]), max(n_methods, len(ranks["rows"]))
        best, of = ranks["rows"][0]["rank"], {row["method"]: row["rank"] for row in ranks["rows"]}
        leaders = [labels[method] for method, rank in of.items() if rank == best]
        verb = "has" if len(leaders) == 1 else "share"
        text = f"{' and '.join(leaders)} {verb} the best mean rank by {found['measures'][measure]} ({best:.2f})"
        if (own := of.get(found["reference"], best)) > best:
            place = 1 + sum(rank < own for rank in of.values())
            text += f", {labels[found['reference']]} is number {place} ({own:.2f})"
        texts.append(text)
    if not texts:
        return f"{setting.capitalize()} setting: no ranks, which need two methods that were tried on the same two sets."
    return f"{setting.capitalize()} setting, {n_sets} sets and {n_methods} methods: {'; '.join(texts)}."


def _protocol(how: dict[str, Any]) -> str:
    tuned = how["tuned_repeats"] or how["repeats"]
    return (
        f"{how['repeats']} x {how['folds']}-fold with the same folds for all, tuned {tuned} x with "
        f"{how['inner_folds']} inner folds and at most {how['max_settings']} settings; groups of copies stay whole. "
        f"A cell above {how['once_minutes']:g} CPU minutes a k-fold runs once; above {how['most_minutes']:g}, or above "
        f"{how['most_gib']:g} GiB, it is empty with its reason, and ranks last."
    )


def _data(found: dict[str, Any]) -> dict[str, Any]:
    """Return what the script of the page needs."""
    views = {
        setting: {measure: _views(found, setting, measure) for measure in RANKED} for setting in found["statistics"]
    }
    cells = {
        f"{cell['method']}|{cell['set']}|{cell['setting']}": {
            **{name: cell[name] for name in MEASURES},
            **{name: cell[name] for name in ("repeats", "cpu_seconds", "gpu_seconds", "peak_bytes", "reason")},
        }
        for cell in found["cells"]
    }
    return {
        **{name: found[name] for name in ("measures", "sets", "reference", "methods")},
        "smaller": list(SMALLER_IS_BETTER),
        "views": views,
        "cells": cells,
        "verdicts": {setting: _verdicts(found, setting) for setting in found["statistics"]},
        "decisions": decision_table(found),
    }


def _verdicts(found: dict[str, Any], setting: str) -> dict[str, str]:
    """Return the verdict on every method and set against the reference, where there is one."""
    by_set = found["statistics"][setting]["by_set"]
    return {f"{method}|{name}": one["verdict"] for name, of in by_set.items() for method, one in of.items()}


def _views(found: dict[str, Any], setting: str, measure: str) -> dict[str, Any]:
    views = {}
    for view in overview(found, setting, measure):
        ranks, complete = view["statistics"]["ranks"], view["statistics"]["ranks_of_complete_rows"]
        whole = {row["method"]: row["rank"] for row in (complete or {"rows": []})["rows"]}
        rows = [{**row, "rank_complete": whole.get(row["method"])} for row in view["rows"]]
        shown = {name: (ranks or {}).get(name) for name in ("critical", "n_sets")}
        views[view["view"]] = {"rows": rows, **shown}
    return views
