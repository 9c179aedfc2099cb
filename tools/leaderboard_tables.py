"""Write the tables of the leaderboard into the pages of the docs, between their marks.

Usage: python tools/leaderboard_tables.py

A table stands between ``<!-- table NAME -->`` and ``<!-- end -->``; the names are those of ``TABLES``. All are made of
``benchmarks/leaderboard/leaderboard.json``, and a test keeps them true.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmil.benchmark import read_leaderboard
from gmil.benchmark.leaderboard import n_not_measured
from gmil.benchmark.overview import overview
from gmil.benchmark.where import FAMILIES, where_table
from gmil.paper.statistics import ZONE

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "benchmarks" / "leaderboard"
PAGES = tuple(ROOT / "docs" / "results" / name for name in ("leaderboard.md", "instances.md"))
_LEVEL = 0.05
_MARKED = re.compile(r"(<!-- table (\w+) -->\n\n).*?(\n<!-- end -->)", re.DOTALL)


def ranks(found: dict[str, Any]) -> list[str]:
    """Return mean ranks of the methods that have one, by AUC and accuracy, over all sets and over unseen ones."""
    views = [view for measure in ("auc", "accuracy") for view in overview(found, "default", measure)]
    by_auc, by_auc_unseen, by_accuracy, by_accuracy_unseen = ({r["method"]: r for r in v["rows"]} for v in views)
    columns = (by_auc, by_accuracy, by_auc_unseen, by_accuracy_unseen)
    best = [min(row["rank"] for row in column.values() if row["rank"] is not None) for column in columns]
    rows = []
    for name, row in by_auc.items():
        if row["rank"] is not None:
            cells = [_rank(c[name]["rank"], b) for c, b in zip(columns, best, strict=True)]
            rows.append([row["label"], *cells, _percent(row["auc"]), str(row["n_sets"]), str(row["n_empty"])])
    statistics, unseen = (view["statistics"]["ranks"] for view in views[:2])
    header = ["", "mean rank by AUC", "by accuracy", "no default: by AUC", "by accuracy", "mean AUC", "sets", "empty"]
    text = [
        f"Ranks are over {statistics['n_sets']} sets, and over {unseen['n_sets']} that chose no default; an empty cell "
        "ranks last. Differences to WeightedGMIL in mean rank, with Holm's correction:",
        "",
    ]
    names = ("all sets, by AUC", "no default, by AUC", "all sets, by accuracy", "no default, by accuracy")
    return [*_table(header, rows), "", *text, *map(_significance, names, views)]


def _significance(name: str, view: dict[str, Any]) -> str:
    """Return how sure it is that methods are behind the reference."""
    rows = [row for row in view["rows"] if row["p_holm"] is not None]
    unsure = [f"{row['label']} (p = {row['p_holm']:.2f})" for row in rows if row["p_holm"] >= _LEVEL]
    most = max((row["p_holm"] for row in rows if row["p_holm"] < _LEVEL), default=None)
    clear = f"{len(rows) - len(unsure)} of {len(rows)} methods are clearly behind"
    clear += "" if most is None else f" (p at most {most:.2g})"
    return f"- {name}: {clear}{'; not clearly: ' + ', '.join(unsure) if unsure else ''}."


def controls(found: dict[str, Any]) -> list[str]:
    """Return what methods must beat."""
    rows = [
        [row["label"], str(row["n_sets"]), _percent(row["auc"]), _percent(row["accuracy"])]
        for row in overview(found, "default")[0]["rows"]
        if row["control"]
    ]
    return _table(["", "sets", "AUC", "accuracy"], rows)


def losses(found: dict[str, Any]) -> list[str]:
    """Return the sets on which the reference is not ahead of every method by a point of AUC, the widest loss first."""
    labels = {method["name"]: method["label"] for method in found["methods"] if not method["control"]}
    auc: dict[str, dict[str, float]] = defaultdict(dict)
    for cell in found["cells"]:
        if cell["setting"] == "default" and cell["auc"] is not None and cell["method"] in labels:
            auc[cell["set"]][cell["method"]] = cell["auc"]
    rows = []
    for name, values in auc.items():
        own = values.pop(found["reference"], None)
        ahead = sorted((v, m) for m, v in values.items() if own is not None and v > own - ZONE)[::-1]
        if ahead and own is not None:
            named = [f"{labels[m]} {_percent(v)}" for v, m in ahead[:3]]
            more = [f"{len(ahead) - 3} more"] if len(ahead) > 3 else []
            rows.append((own - ahead[0][0], [name, _percent(own), ", ".join(named + more)]))
    return _table(["set", "WeightedGMIL", "not a point behind it"], [row for _, row in sorted(rows)])


def tuned(found: dict[str, Any]) -> list[str]:
    """Return what tuning inside the training bags gains, on the sets that have both settings."""
    cells = {(c["method"], c["set"], c["setting"]): c for c in found["cells"] if c["reason"] is None}
    rows = []
    for method in found["methods"]:
        both = [
            (cells[name, s, "default"], cells[name, s, "tuned"], cells.get((found["reference"], s, "default")))
            for name, s, setting in cells
            if name == method["name"] and setting == "tuned" and (name, s, "default") in cells
        ]
        if both:
            rows.append([method["label"], str(len(both)), *_gain(both, "auc"), *_gain(both, "accuracy")])
    header = ["", "sets", "AUC, default", "tuned", "WeightedGMIL", "accuracy, default", "tuned", "WeightedGMIL"]
    return _table(header, sorted(rows, key=lambda row: (-int(row[1]), row[0])))


def empty(found: dict[str, Any]) -> list[str]:
    """Return the cells that were tried and have no result, with their reasons."""
    labels = {method["name"]: method["label"] for method in found["methods"]}
    by_reason: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for cell in found["cells"]:
        if cell["reason"] is not None:
            by_reason[labels[cell["method"]], cell["setting"], _in_short(cell["reason"])].append(cell["set"])
    rows = [[label, setting, ", ".join(sorted(sets)), reason] for (label, setting, reason), sets in by_reason.items()]
    return _table(["", "setting", "sets", "why"], sorted(rows))


def state(found: dict[str, Any]) -> list[str]:
    """Return how much of the specification is measured."""
    n_open, n_cells = n_not_measured(found), len(found["cells"])
    n_empty = sum(cell["reason"] is not None for cell in found["cells"])
    n_short = found["not_repeated"]
    repeats = f"{n_short} of them have fewer repeats than" if n_short else "all of them have the repeats that"
    text = f"**{n_cells} of {n_cells + n_open} cells are measured**, {n_empty} of them empty with their reason"
    return [f"{text}; {repeats} the protocol asks for."]


def repeats(found: dict[str, Any]) -> list[str]:
    """Return how many k-folds stand behind the figures of the default setting."""
    asked, once = found["protocol"]["repeats"], 60 * found["protocol"]["once_minutes"]
    n_cells: dict[str, int] = defaultdict(int)
    n_short: dict[str, int] = defaultdict(int)
    for cell in found["cells"]:
        if cell["setting"] == "default" and cell["reason"] is None:
            n_cells[cell["method"]] += 1
            n_short[cell["method"]] += cell["repeats"] < asked and cell["cpu_seconds"] <= once
    methods = [m for m in found["methods"] if not m["control"] and n_cells[m["name"]]]
    whole = [m["label"] for m in methods if not n_short[m["name"]]]
    rest = [m["name"] for m in methods if n_short[m["name"]]]
    if not rest:
        return ["By AUC, default settings, over all repeats that the protocol asks for."]
    short, of = (sum(n[name] for name in rest) for n in (n_short, n_cells))
    return [
        f"By AUC, default settings. All repeats that the protocol asks for: {', '.join(whole) or 'no method'}. "
        f"Of the other methods, {of - short} of {of} figures have all repeats."
    ]


def where(found: dict[str, Any]) -> list[str]:
    """Return figures of instances, family by family."""
    reasons = {
        (c["method"], c["set"]): c["reason"] for c in found["cells"] if c["setting"] == "default" and c["reason"]
    }
    rows = []
    for row in where_table(found):
        why = {family: _why(reasons, row["method"], start) for family, start in FAMILIES.items()}
        rows.append([row["label"], *(_instances(row["families"].get(family), why[family]) for family in FAMILIES)])
    counts = {family: sum(s["name"].startswith(start) for s in found["sets"]) for family, start in FAMILIES.items()}
    return _table(["", *(f"{name} ({n})" if n > 1 else name for name, n in counts.items())], rows)


TABLES: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    f.__name__: f for f in (ranks, losses, controls, tuned, empty, state, repeats, where)
}


def _gain(both: list[tuple[Any, ...]], measure: str) -> list[str]:
    """Return the means of a figure by default, tuned, and of the reference, on sets that have all of them."""
    known = [[cell[measure] for cell in cells] for cells in both if all(c and c[measure] is not None for c in cells)]
    if not known:
        return ["-"] * 3
    means = [sum(values) / len(values) for values in zip(*known, strict=True)]
    return [_percent(mean) for mean in means]


def _in_short(reason: str) -> str:
    """Return a reason without what only its own cell has: one row then has all sets."""
    if (needs := re.search(r"kernel matrix of \d+ GiB", reason)) is not None:
        return f"a {needs[0]}"
    return re.sub(r"about \d+ (CPU minutes a k-fold): .*", r"far more than 30 \1, by the default setting", reason)


def _why(reasons: dict[tuple[str, str], str], method: str, start: str) -> str:
    """Return why a method has no figures of a family: too large, too slow, or not measured yet."""
    known = [reason for (name, s), reason in reasons.items() if name == method and s.startswith(start)]
    if not known:
        return "-"
    return "too large" if "GiB" in known[0] else "too slow" if "minutes" in known[0] else "failed"


def _instances(one: dict[str, float] | None, why: str) -> str:
    if one is None:
        return why
    return f"{one['instance_auc']:.3f} / {one['instance_average_precision']:.3f}; {one['instance_auc_within']:.3f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


def _rank(rank: float | None, best: float) -> str:
    """Return a rank, the best in bold; a method may be ranked among all sets and not among those of one kind."""
    if rank is None:
        return "-"
    return f"**{rank:.2f}**" if rank == best else f"{rank:.2f}"


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), *rows)] if rows else ["None."]


def with_tables(page: str, found: dict[str, Any]) -> str:
    """Return a page with all its tables as the leaderboard has them."""
    return _MARKED.sub(lambda part: part[1] + "\n".join(TABLES[part[2]](found)) + "\n" + part[3], page)


def main() -> None:
    """Write the tables into the pages."""
    found = read_leaderboard(RECORDS)
    for path in PAGES:
        path.write_text(with_tables(path.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main()
