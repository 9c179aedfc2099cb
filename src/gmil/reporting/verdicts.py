"""What a run says, in one sentence."""

from __future__ import annotations

from typing import Any

from gmil.errors import listed
from gmil.experiments.plotting import dataset_title
from gmil.reporting.svg import seconds_text


def verdict_of(by_name: dict[str, dict[str, Any]]) -> str:
    """Return the verdict of a run, from the most telling of its experiments."""
    if "compare" in by_name:
        return compare_verdict(by_name["compare"])
    if "table1" in by_name:
        return table1_verdict(by_name["table1"])
    if "table2" in by_name:
        return _table2_verdict(by_name["table2"])
    if by_name.keys() & {"table3", "figure9"}:
        return events_verdict(by_name.get("table3", {}), by_name.get("figure9", {}))
    return f"{len(by_name)} experiments were measured: {', '.join(found['title'] for found in by_name.values())}."


def table1_verdict(found: dict[str, Any]) -> str:
    """Return whether the paper's figures are reached, and which method is the most accurate."""
    ours = _row(found, "gmil", "paper")
    printed = _row(found, "gmil", "printed")
    parts = []
    if ours is not None and printed is not None:
        pairs = [(ours["cells"].get(d, {}), printed["cells"][d]["accuracy"]) for d in printed["cells"]]
        known = [(cell, value) for cell, value in pairs if cell.get("accuracy") is not None]
        reached = sum(cell["interval"][1] >= value for cell, value in known)
        count = "none" if reached == 0 else str(reached)
        parts.append(
            f"of the {len(known)} accuracies that the paper prints for GMIL, {count} "
            f"{'is' if reached in (0, 1) else 'are'} reached by the method as printed"
        )
    best = _best(found, ("paper", "tuned"))
    if best is not None:
        text = f"{best['label']} is the most accurate method measured, {100 * best['mean']:.1f} % on average"
        rival = _best(found, ("printed",))
        if rival is not None:
            text += f", against {100 * rival['mean']:.1f} % for the best published row ({rival['label']})"
        parts.append(text)
    return _sentence("; ".join(parts) or "nothing was measured")


def compare_verdict(found: dict[str, Any]) -> str:
    """Return which method is the best on somebody's bags, how sure that is, and whether it is above the floor."""
    dataset = found["datasets"][0]
    rows = {row["method"]: row for row in found["rows"]}
    best = rows.get(found["best"] or "")
    cell = None if best is None else best["cells"][dataset]
    trust = found.get("trust")
    checked = f"; the data check says: {trust['verdict']}" if trust else ""
    if best is None or cell is None or cell["accuracy"] is None:
        return _sentence(f"no method could be measured{checked}")
    low, high = (100 * limit for limit in cell["interval"])
    measured = [row for row in found["rows"] if row["column"] != "control"]
    text = f"{best['label']} is the most accurate of {len(measured)} methods" if len(measured) > 1 else best["label"]
    text += f", {100 * cell['accuracy']:.1f} % (95 % interval {low:.1f} to {high:.1f})"
    floors = [(row["label"], row["cells"][dataset]) for row in found["rows"] if row["column"] == "control"]
    unclear = [
        label for label, floor in floors if (floor.get("against_best") or {}).get("verdict") not in ("worse", None)
    ]
    equals = [row["label"] for row in measured if (row["cells"][dataset].get("against_best") or {}).get("verdict")
              in ("undecided", "equivalent")]  # fmt: skip
    if unclear:
        text += f", and not clearly better than {' and '.join(unclear)}"
    elif equals:
        text += f"; it cannot be told apart from {listed(equals, most=3)}"
    elif len(measured) > 1:
        text += ", better than each of the others"
    return _sentence(text + checked)


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
    return _sentence("; ".join(parts) or "nothing was measured")


def _short(row: dict[str, Any]) -> str:
    """Return the label of a method without its parameters, which stand in brackets."""
    return str(row["label"]).partition(" (")[0]


def _row(found: dict[str, Any], method: str, column: str) -> dict[str, Any] | None:
    return next((row for row in found["rows"] if (row["method"], row["column"]) == (method, column)), None)


def _best(found: dict[str, Any], columns: tuple[str, ...]) -> dict[str, Any] | None:
    rows = [row for row in found["rows"] if row["column"] in columns and row["mean"] is not None]
    return max(rows, key=lambda row: row["mean"], default=None)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
