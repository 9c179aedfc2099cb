"""The table of outcomes, and what is bad with the command that shows it again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.table import Table
from tools.fuzz.results import BAD, OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console
    from tools.fuzz.results import Result

_MOST_SHOWN = 40


def outcome_table(results: Iterable[Result]) -> Table:
    """Return how often every outcome came out: a row a class or format, a column an outcome."""
    counts = Counter((result.case.split(":")[1], result.target, result.outcome) for result in results)
    table = Table("group", "target", *OUTCOMES, "all", title="Outcomes of mutated files")
    for column in table.columns[2:]:
        column.justify = "right"
    rows = sorted({(group, target) for group, target, _ in counts}, key=lambda row: (row[0] != "models", *row))
    for group, target in rows:
        numbers = [counts[group, target, outcome] for outcome in OUTCOMES]
        table.add_row(group, target, *_cells(numbers))
    table.add_section()
    table.add_row("all", "", *_cells([_total(counts, outcome) for outcome in OUTCOMES]))
    return table


def _total(counts: Counter[tuple[str, str, str]], outcome: str) -> int:
    return sum(count for (_, _, found), count in counts.items() if found == outcome)


def _cells(numbers: list[int]) -> list[str]:
    cells = [
        f"[bold red]{n}[/]" if n and outcome in BAD else str(n or "")
        for n, outcome in zip(numbers, OUTCOMES, strict=True)
    ]
    return [*cells, str(sum(numbers))]


def show(results: list[Result], console: Console) -> None:
    """Print the table, and every kind of bad outcome once with its case."""
    console.print(outcome_table(results))
    kinds: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if result.is_bad:
            where = result.note.rpartition(" at ")[2] if result.outcome == "raw" else result.mutation
            kinds.setdefault((result.outcome, where), []).append(result)
    ordered = sorted(kinds.values(), key=len, reverse=True)
    for alike in ordered[:_MOST_SHOWN]:
        first = alike[0]
        console.print(f"{len(alike)} x {first.outcome}: {first.note}", markup=False, highlight=False, soft_wrap=True)
        what = f"    {first.file}, {first.mutation}: python -m tools.fuzz --case {first.case}"
        console.print(what, markup=False, highlight=False, soft_wrap=True)
    if len(ordered) > _MOST_SHOWN:
        console.print(f"and {len(ordered) - _MOST_SHOWN} more kinds")
