"""The result of a run in one sentence."""

from __future__ import annotations

from typing import Any

from gmil.checks.findings import warnings_among
from gmil.errors import listed
from gmil.paper.tables.published import best_published, dataset_title
from gmil.reporting.formatting import interval_text, joined, percent, seconds_text, sentence


def verdict_of(by_name: dict[str, dict[str, Any]]) -> str:
    """Return the verdict of a run, from the most telling of its experiments."""
    verdicts = {"compare": compare_verdict, "table1": table1_verdict, "table2": _table2_verdict}
    for name, verdict in verdicts.items():
        if name in by_name:
            return verdict(by_name[name])
    if by_name.keys() & {"table3", "figure9"}:
        return events_verdict(by_name.get("table3", {}), by_name.get("figure9", {}))
    return f"{len(by_name)} experiments were measured: {', '.join(found['title'] for found in by_name.values())}."


def table1_verdict(found: dict[str, Any]) -> str:
    """Return how often the paper's figures for GMIL are reached, and which method has the highest mean."""
    parts = [*_reached(found.get("reproduction", [])), *_highest(found)]
    return sentence("; ".join(parts) or "nothing was measured")


def _reached(cells: list[dict[str, Any]]) -> list[str]:
    """Return in how many cross-validations GMIL as printed reaches the published figures; equal data sets together."""
    sets: dict[str, list[str]] = {}
    for cell in sorted(cells, key=lambda cell: -cell["reached"]):
        share = {0.0: "none", 1.0: "all"}.get(cell["reached"], f"{100 * cell['reached']:.1f} %")
        sets.setdefault(share, []).append(dataset_title(cell["dataset"]))
    if not sets:
        return []
    shares = [f"in {share} on {joined(titles)}" for share, titles in sets.items()]
    repeats = cells[0]["repeats"]
    of = f"{repeats} cross-validations" if repeats > 1 else "one cross-validation"
    return [f"of {of} on each set, the paper's GMIL as printed reaches its published figure {joined(shares)}"]


def _highest(found: dict[str, Any]) -> list[str]:
    """Return which of the methods measured has the highest mean, and which of all published rows."""
    measured = [row for row in found["rows"] if row["column"] in ("paper", "tuned") and row["mean"] is not None]
    if not measured:
        return []
    best = max(measured, key=lambda row: row["mean"])
    labels = list(dict.fromkeys(row["label"] for row in measured))
    names = f" ({', '.join(labels)})" if len(labels) < 5 else ""
    several = f"the highest mean accuracy of the {len(labels)} methods measured here{names},"
    which = several if len(labels) > 1 else "a mean accuracy of"
    sets = [dataset_title(dataset) for dataset in found["datasets"]]
    over = f"on {sets[0]}" if len(sets) == 1 else f"over {joined(sets)}"
    said = [f"{best['label']} has {which} {percent(best['mean'])} % {over}"]
    published = best_published(found["datasets"])
    if published is not None:
        rows = f"{published.n_rows} rows" if published.n_rows > 1 else "row"
        said.append(
            f"of the {rows} that the paper prints for all of these sets, on other folds, the highest is "
            f"{published.label} with {percent(published.mean)} %"
        )
    return said


def compare_verdict(found: dict[str, Any]) -> str:
    """Return the one verdict of a comparison: which method is the best, how sure that is, and what puts it in doubt.

    The data check gives no verdict of its own beside this one: its warnings are named.
    """
    dataset = found["datasets"][0]
    best = next((row for row in found["rows"] if row["method"] == found["best"]), None)
    cell = None if best is None else best["cells"][dataset]
    checked = ""
    if found.get("trust"):
        findings = found["trust"]["findings"]
        checked = f"; the data check has {warnings_among((f['name'], f['level']) for f in findings)}"
    if best is None or cell is None or cell["accuracy"] is None:
        return sentence(f"no method could be measured{checked}")
    methods = [row for row in found["rows"] if row["column"] != "control"]
    text = f"{best['label']} has an accuracy of"
    if len(methods) > 1:
        text = f"{best['label']} has the highest accuracy of {len(methods)} methods, selected on these same bags:"
    text += f" {percent(cell['accuracy'])} % (95 % interval {interval_text(cell['interval'])})"
    return sentence(text + _against_others(found, methods) + checked)


def _against_others(found: dict[str, Any], methods: list[dict[str, Any]]) -> str:
    """Return what the best is shown to be better than: the controls first, as nothing else counts without them."""
    controls = [row for row in found["rows"] if row["column"] == "control"]
    equals = _not_worse(methods, found)
    if level := _not_worse(controls, found):
        return _too_few_folds(controls, found) or f", which is not shown to be better than {joined(level)}"
    if equals:
        return f"; better than every control, but not shown to be better than {listed(equals, most=3)}"
    others = "every control and each of the others" if len(methods) > 1 else "every control"
    return f"; better than {others}" if controls or len(methods) > 1 else ""


def _too_few_folds(controls: list[dict[str, Any]], found: dict[str, Any]) -> str:
    """Return that a single k-fold cannot tell the controls apart; nothing where the accuracies leave it open, too."""
    dataset, protocol, undecided = found["datasets"][0], found.get("protocol", {}), _not_worse(controls, found)
    cells = [row["cells"][dataset] for row in controls if row["label"] in undecided]
    best = next(row["cells"][dataset] for row in found["rows"] if row["method"] == found["best"])
    if protocol.get("repeats") != 1 or any(cell["accuracy"] >= best["interval"][0] for cell in cells):
        return ""
    points = sorted({percent(-cell["against_best"]["difference"]) for cell in cells}, key=float)
    above = f"{' to '.join(dict.fromkeys([points[0], points[-1]]))} points above {joined(undecided)}"
    fix = "compare without --quick" if found.get("quick") else "compare with more repeats"
    return f", {above}; one {protocol['folds']}-fold is too little for the corrected t-test to decide: {fix}"


def _not_worse(rows: list[dict[str, Any]], found: dict[str, Any]) -> list[str]:
    compared = {row["label"]: row["cells"][found["datasets"][0]].get("against_best") for row in rows}
    return [label for label, against in compared.items() if against is not None and against["verdict"] != "worse"]


def _table2_verdict(found: dict[str, Any]) -> str:
    ours = next((row for row in found["rows"] if row["method"] == "gmil"), None)
    known = [] if ours is None else [(d, c["seconds"]) for d, c in ours["cells"].items() if c["seconds"] is not None]
    if not known:
        return "No time was measured."
    return f"A whole cross-validation of GMIL takes {', '.join(f'{seconds_text(s)} on {d}' for d, s in known)}."


def events_verdict(table3: dict[str, Any], figure9: dict[str, Any]) -> str:
    """Return which method finds events best, and how long the methods take for the most bags that all were timed on."""
    parts = []
    for dataset in table3.get("datasets", []):
        rows = [r for r in table3["rows"] if r["dataset"] == dataset and r["cells"] and r["method"] != "constant"]
        rows.sort(key=lambda row: -row["mean"]["auc"])
        if rows:
            others = [f"{row['mean']['auc']:.3f} for {_short(row)}" for row in rows[1:]]
            against = f", against {' and '.join(others)}" if others else ""
            best = f"{_short(rows[0])} has a mean AUC of {rows[0]['mean']['auc']:.3f}"
            parts.append(f"{best} over all events ({dataset_title(dataset)}){against}")
    timed = [{point["bags"]: point["seconds"] for point in curve["points"]} for curve in figure9.get("curves", [])]
    common = set.intersection(*map(set, timed)) if timed else set()
    if common:
        most = max(common)
        said = [f"{seconds_text(s[most])} by {_short(c)}" for c, s in zip(figure9["curves"], timed, strict=True)]
        parts.append(f"all events of {most} videos are learned in {' and in '.join(said)}")
    return sentence("; ".join(parts) or "nothing was measured")


def _short(row: dict[str, Any]) -> str:
    """Return the label of a method without its parameters, which stand in brackets."""
    return str(row["label"]).partition(" (")[0]
