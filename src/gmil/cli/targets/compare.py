"""``gmil compare`` for values, grades and times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import gmil
from gmil.cli.console import Progress, print_table, said_warnings, say
from gmil.errors import BagValidationError

if TYPE_CHECKING:
    from pathlib import Path

    from gmil.cli.inputs import LabelledBags
    from gmil.paper.target_store import KeptResults

_TITLES = {"r2": "R²", "quadratic_kappa": "quadratic kappa", "concordance": "concordance"}


def compare_targets(data: LabelledBags, wanted: dict[str, Any], output: Path) -> None:
    """Compare methods and controls, print a table, and write compare.json, compare.csv and the page."""
    from gmil.paper.target_comparison import compare_values
    from gmil.paper.target_store import KeptResults

    target = str(data.target)
    folds, repeats = wanted["folds"] or (5 if wanted["quick"] else 10), wanted["repeats"] or 1
    estimators = _estimators(target, wanted["methods"], wanted["missing"], quick=wanted["quick"])
    check = gmil.check_data(data.bags, data.y, groups=data.groups, target=target, random_state=wanted["seed"])
    say(f"The check of the data: {check.verdict}; it has {check.warnings()}.")
    protocol = {"cv": folds, "repeats": repeats, "random_state": wanted["seed"], "n_processes": wanted["jobs"]}
    known = data.bags, data.y
    kept = KeptResults(output, *known, data.groups)
    with Progress(f"{len(estimators)} methods and controls") as progress, said_warnings():
        found = compare_values(estimators, *known, target, progress=progress, kept=kept, groups=data.groups, **protocol)
    _say_kept(kept, output)
    title = f"{data.name}: {repeats} x {folds}-fold, seed {wanted['seed']}; {target}"
    rows = [[row["method"], *found.cells(row), row["verdict_to_best"] or "best"] for row in found.rows]
    print_table(["method", _TITLES[found.measure], "95 % interval", "against the best"], rows, title=title)
    _write(found, data, check, title, output)


def _say_kept(kept: KeptResults, output: Path) -> None:
    if kept.found:
        say(f"{len(kept.found)} finished cross-validations were taken from {output}.")
    for name in kept.damaged:
        say(f"{name} was damaged, and its work was done again.")


def _estimators(target: str, asked: list[str] | None, missing: str, *, quick: bool) -> dict[str, Any]:
    from gmil.model_selection.target_crossval import target_of
    from gmil.paper.target_comparison import METHODS
    from gmil.pipeline import imputing

    known = gmil.own_methods.all_methods()
    names = asked or (METHODS[target][:2] if quick else METHODS[target])
    for name in names:
        fitting = ("classes", "ordinal") if target == "ordinal" else (target,)
        if name not in known or target_of(known[name]()) not in fitting:
            msg = f"{name} is no method for {target}; those are {', '.join(METHODS[target])}."
            raise BagValidationError(msg)
    return {name: imputing(known[name](), missing) for name in names}


def _write(found: Any, data: LabelledBags, check: Any, title: str, output: Path) -> None:
    from gmil.paper.runs.output import write_csv, write_json
    from gmil.reporting.targets import comparison_page

    output.mkdir(parents=True, exist_ok=True)
    summary = {"title": title, "measure": found.measure, "best": found.best, "rows": found.rows}
    write_json({**summary, "trust": check.to_dict()}, output / "compare.json")
    write_csv(found.rows, output / "compare.csv")
    page = comparison_page(found, title, data.bags)
    for suffix in ("html", "md", "json"):
        page.save(output / f"report.{suffix}")
    say(f"{output / 'report.html'}, .md and .json are written.")
    click.echo(page.verdict)
