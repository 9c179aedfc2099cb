"""``gmil paper theory``: the paper's claims about Diverse Density, checked in numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gmil.cli.console import Progress, print_table
from gmil.cli.options import output_option
from gmil.cli.results import write_results
from gmil.errors import SpecificationError

_QUICK_SEEDS = 5


@click.command()
@click.option("--quick", is_flag=True, help=f"{_QUICK_SEEDS} seeds.")
@click.option("--seeds", default=100, show_default=True, help="How many sets of bags to generate for every setting.")
@output_option("Where results go.")
def theory(quick: bool, seeds: int, output: str) -> None:
    """Theorem 1, the lemmas, and where equations and Diverse Density have their maximum."""
    from gmil.paper.theory.study import flat_rows, run_study
    from gmil.reporting.plots.paper import draw_theory

    if seeds < 1:
        msg = f"--seeds must be at least 1, got {seeds}."
        raise SpecificationError(msg)
    with Progress("theory, generated sets") as progress:
        summary = run_study(_QUICK_SEEDS if quick else seeds, progress)
    stem = Path(output) / f"theory{'-quick' if quick else ''}"
    write_results(stem, summary, flat_rows(summary), draw_theory)
    _print_summary(summary)


def _print_summary(summary: dict[str, Any]) -> None:
    rows = [[t["claim"], t["condition"], str(t["n_trials"]), str(t["n_failures"])] for t in summary["trials"]]
    print_table(
        ["claim", "condition", "trials", "failures"], rows, title="Inequalities on random numbers", text_columns=2
    )
    for example in summary["counter_examples"]:
        shown = {k: v for k, v in example.items() if isinstance(v, float)}
        values = ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in shown.items())
        click.echo(f"{example['name']}, point {example['point']}: {values}")
    print_table(*condition_table(summary), title="Conditions at the true concept, per cent of sets")
    for candidates in ("centres", "instances"):
        for measure in ("agreement", "relative_regret", "finds_concept", "reach"):
            print_table(*measure_table(summary["agreement"], candidates, measure), title=f"{candidates}: {measure}")
    for candidates in ("centres", "instances"):
        real = [{"varied": "set", "value": row["dataset"], **row} for row in summary["real"]]
        for measure in ("agreement", "relative_regret"):
            print_table(*measure_table(real, candidates, measure), title=f"real data, {candidates}: {measure}")


def condition_table(summary: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: how often each condition holds, by witness rate and dimension."""
    names = [f"{what}_{kernel}" for kernel in ("gaussian", "box") for what in ("lemma", "pairing", "printed")]
    rows = [
        [row["varied"], f"{row['value']:g}", *(f"{100 * row[name]:.0f}" for name in names)]
        for row in summary["conditions"]
    ]
    return ["varied", "value", *(name.replace("_", ", ") for name in names)], rows


def measure_table(found: list[dict[str, Any]], candidates: str, measure: str) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: one row a setting, one column a rule."""
    from gmil.paper.theory.agreement import RULES

    here = [row for row in found if row["candidates"] == candidates]
    rules = [rule for rule in RULES if any(row["rule"] == rule for row in here)]
    cells: dict[tuple[str, Any], dict[str, str]] = {}
    for row in here:
        value = row[measure]
        text = f"{value:.2f}" if measure in ("relative_regret", "reach") else f"{100 * value:.0f}"
        cells.setdefault((row["varied"], row["value"]), {})[row["rule"]] = text
    rows = [[varied, f"{value}", *(line[rule] for rule in rules)] for (varied, value), line in cells.items()]
    return ["varied", "value", *(RULES[rule] for rule in rules)], rows
