"""The folder of a run -> one summary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmil.checks.findings import Finding, warnings_among
from gmil.errors import MissingFileError
from gmil.reporting import events, tables
from gmil.reporting.plot_data import accuracy_panels, curves, timed_figure
from gmil.reporting.provenance import Ledger
from gmil.reporting.result import Report
from gmil.reporting.run_models import Asked, looks_of_run
from gmil.reporting.summary import Summary, Trust
from gmil.reporting.verdicts import verdict_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from gmil.reporting.summary import Table, TimedFigure

_ORDER = ("compare", "table1", "table2", "table3", "figure7", "figure9")


def run_report(
    folder: str | os.PathLike[str],
    *,
    look: str | None = None,
    importance: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Report:
    """Return the report of a run.

    Parameters
    ----------
    folder : path
        The output folder of ``gmil paper`` or ``gmil compare``.
    look : str, optional
        The data set of the paper of which a model is shown; "none" leaves it out. By default Musk2, or the first.
    importance, progress
        As in `gmil.report`.
    """
    found = read_summaries(Path(folder))
    ledger = Ledger(Path(folder))
    by_name = {entry["experiment"]: entry for entry in found}
    plain = [entry for entry in found if entry["experiment"] not in events.OF_VIDEOS]
    accuracies = [entry for entry in plain if tables.has(entry, "accuracy")]
    looks = looks_of_run(by_name, Asked(ledger, look, importance, progress))
    made, times = _tables(by_name, plain, ledger)
    beside = [entry for entry in found if entry["experiment"] != "figure9"]  # whose notes stand below its picture
    notes = [note for entry in beside for note in entry.get("notes", [])] + looks.notes
    panels = [panel for entry in accuracies for panel in accuracy_panels(entry, ledger)]
    drawn = [curve for entry in plain for curve in curves(entry, ledger)]
    notes += [f"{name} is missing from the folder of the run." for name in ledger.missing]
    summary = Summary(
        title=_title(by_name),
        verdict=verdict_of(by_name),
        warning=looks.warning,
        protocol=" ".join(text for entry in found if (text := _protocol(entry))),
        trust=_trust(by_name.get("compare", {})),
        panels=panels,
        tables=made,
        curves=drawn,
        times=times,
        assessments=looks.assessments,
        models=looks.models,
        sources=ledger.sources,
        published=_published(accuracies),
        notes=list(dict.fromkeys(notes)),
        failures=[_failure(entry) for experiment in found for entry in experiment.get("failures", [])],
        environment=_environment(found),
    )
    return Report(summary)


def _tables(
    by_name: dict[str, dict[str, Any]], plain: list[dict[str, Any]], ledger: Ledger
) -> tuple[list[Table], list[TimedFigure]]:
    """Return all tables in order: accuracies, reproduction, times, videos; and the figure of times."""
    accuracies = [entry for entry in plain if tables.has(entry, "accuracy")]
    made = [
        (tables.comparison_table if entry["experiment"] == "compare" else tables.accuracy_table)(entry, ledger)
        for entry in accuracies
    ]
    made += [table for entry in accuracies for table in tables.reproduction_tables(entry, ledger)]
    made += [tables.seconds_table(entry, ledger) for entry in plain if _is_timed(entry)]
    made += events.event_tables(by_name["table3"], ledger) if "table3" in by_name else []
    times = [timed_figure(by_name["figure9"], ledger)] if "figure9" in by_name else []
    return [*made, *(events.times_table(by_name["figure9"], figure) for figure in times)], times


def _is_timed(found: dict[str, Any]) -> bool:
    return tables.has(found, "seconds") and not tables.has(found, "accuracy")


def read_summaries(folder: Path) -> list[dict[str, Any]]:
    """Return the summaries that a run left in its folder; of a full and a quick one the full one."""
    if not folder.is_dir():
        msg = f"There is no folder {str(folder)!r}. Name the output folder of gmil paper or gmil compare."
        raise MissingFileError(msg)
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.json"), key=lambda p: not p.stem.endswith("-quick")):
        content = _summary_in(path)
        if content is not None:
            found[content["experiment"]] = content
    if not found:
        msg = f"{str(folder)!r} holds no results of a run. Name the output folder of gmil paper or gmil compare."
        raise MissingFileError(msg)
    known = [found.pop(name) for name in _ORDER if name in found]
    return known + [found[name] for name in sorted(found)]


def _summary_in(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError):
        return None
    return content if isinstance(content, dict) and "experiment" in content else None


def _title(by_name: dict[str, dict[str, Any]]) -> str:
    if "compare" in by_name:
        return str(by_name["compare"]["title"])
    return "GMIL: the experiments of the paper, reproduced"


def _protocol(found: dict[str, Any]) -> str:
    protocol = found.get("protocol")
    if found["experiment"] == "figure9":
        limit = f"{found['minutes'] / 2:g} minutes for each method"
        return f"Figure 9: every number of bags once, {limit}, seed {found['seed']}."
    if not protocol:
        return ""
    repeats = "round" if _is_timed(found) else "repeat"
    repeats += "s" * (protocol["repeats"] != 1)
    quick = " (quick)" if found.get("quick") else ""
    last = protocol["seed"] + protocol["repeats"] - 1
    seeds = f"seed {protocol['seed']}" if last == protocol["seed"] else f"seeds {protocol['seed']} to {last}"
    name = found["title"].partition(":")[0]
    parts = [f"{name}{quick}: {protocol['folds']}-fold, {protocol['repeats']} {repeats}, {seeds}"]
    if found.get("repeats"):
        parts[0] += f" ({', '.join(f'{label} {own} repeats' for label, own in found['repeats'].items())})"
    times = protocol.get("tuned_repeats")
    if times and any(row.get("column") == "tuned" for row in found.get("rows", [])):
        how = f"{protocol['inner_folds']} inner folds and at most {protocol['max_settings']} settings"
        parts.append(f"tuned {'once' if times == 1 else f'{times} times'} with {how}")
    if found.get("data", {}).get("group"):
        parts.append(f"whole groups ({found['data']['group']}) left out")
    return f"{'; '.join(parts)}."


def _trust(compared: dict[str, Any]) -> Trust | None:
    found = compared.get("trust")
    if found is None:
        return None
    text = f"Checked with seed {compared['protocol']['seed']} and gmil {compared['versions']['gmil']}."
    findings = [Finding(**finding) for finding in found["findings"]]
    return Trust(warnings_among((finding.name, finding.level) for finding in findings), findings, text)


def _failure(entry: dict[str, Any]) -> str:
    return f"{entry['method']} on {entry['dataset']}: {entry.get('reason') or entry['failure']}"


def _published(accuracies: list[dict[str, Any]]) -> list[str]:
    lines = []
    for found in accuracies:
        for row in found["rows"]:
            if row["column"] == "printed" and row.get("source"):
                note = f" {row['note']}" if row.get("note") else ""
                lines.append(f"{row['label']}: {row['source']}; {row.get('protocol')}.{note}")
    return list(dict.fromkeys(lines))


def _environment(found: list[dict[str, Any]]) -> dict[str, str]:
    facts: dict[str, str] = {}
    for entry in found:
        facts |= {name: str(value) for name, value in {**entry.get("versions", {}), **entry.get("machine", {})}.items()}
    return facts
