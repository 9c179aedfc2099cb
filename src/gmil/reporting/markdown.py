"""The summary as Markdown, for a pull request, a wiki or a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gmil.reporting.summary import Cell, Curve, ModelLook, Summary, Table

_MOST_BAGS, _MOST_BINS = 10, 10


def to_markdown(summary: Summary) -> str:
    """Return the report as Markdown."""
    return "\n".join(_lines(summary)).rstrip() + "\n"


def escaped(text: object) -> str:
    r"""Return a text of users so that Markdown shows it as it is.

    >>> escaped("a|b <i> *c*")
    'a\\|b &lt;i&gt; \\*c\\*'
    """
    plain = " ".join(str(text).split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#])", r"\\\1", plain)


def _lines(summary: Summary) -> Iterator[str]:
    yield f"# {escaped(summary.title)}\n"
    yield f"**{escaped(summary.verdict)}**\n"
    if summary.protocol:
        yield f"{escaped(summary.protocol)}\n"
    if summary.trust is not None:
        yield f"## Can the data be trusted?\n\nThe check has **{escaped(summary.trust.warnings)}**.\n"
        yield from (f"- {f.level}: **{escaped(f.name)}.** {escaped(f.text)}" for f in summary.trust.findings)
        yield ""
    for table in summary.tables:
        yield from _table(table)
    for curve in summary.curves:
        yield from _curve(curve)
    for look in summary.looks:
        yield from _look(look)
    for title, lines in (("Notes", summary.notes), ("Failed", summary.failures), ("Published", summary.published)):
        if lines:
            yield f"## {title}\n"
            yield from (f"- {escaped(line)}" for line in lines)
            yield ""
    if summary.sources:
        yield "## Rows behind the numbers\n"
        yield from _grid(
            ["data set", "method", "setting", "seeds", "folds", "gmil", "finished", "files"],
            [
                [
                    s.dataset,
                    s.method,
                    s.setting,
                    s.seeds_text,
                    s.folds or "-",
                    s.gmil,
                    s.finished_at,
                    " ".join(s.files),
                ]
                for s in summary.sources
            ],
        )
    yield "Made with " + ", ".join(f"{escaped(k)} {escaped(v)}" for k, v in summary.environment.items()) + "."


def _grid(header: Sequence[object], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    yield "| " + " | ".join(escaped(name) for name in header) + " |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield "| " + " | ".join(escaped(value) for value in row) + " |"
    yield ""


def _table(table: Table) -> Iterator[str]:
    yield f"## {escaped(table.title)}\n"
    yield from _grid(table.header, [[_cell(cell) for cell in row] for row in table.rows])
    if table.text:
        yield f"{escaped(table.text)}\n"


def _cell(cell: Cell) -> str:
    return " ".join(part for part in (cell.text, cell.detail, f"({cell.note})" if cell.note else "") if part)


def _curve(curve: Curve) -> Iterator[str]:
    yield f"## {escaped(curve.title)} ({escaped(curve.dataset)})\n"
    rows = [
        [
            "all" if p.value is None else p.value,
            _percent(p.accuracy),
            _percent(p.low),
            _percent(p.high),
            _percent(p.spread),
        ]
        for p in curve.points
    ]
    yield from _grid([curve.axis, "accuracy, %", "from", "to", "spread"], rows)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


def _look(look: ModelLook) -> Iterator[str]:
    yield f"## {escaped(look.title)}\n\n{escaped(look.text)}\n\n`{look.model.replace('`', '')}`\n"
    if look.bins:
        yield from _grid(
            ["bin", "h+, %", "h-, %", "score (Eq. 6)", "codebook"],
            [
                [b.number, _percent(b.positive_share), _percent(b.negative_share), f"{b.score:.3g}",
                 " ".join(["C+"] * b.in_positive + ["C-"] * b.in_negative)]
                for b in look.bins if b.in_positive or b.in_negative or b in look.bins[:_MOST_BINS]
            ],
        )  # fmt: skip
    if look.views:
        yield from _grid(["view", "weight"], [[v.name, f"{v.weight:.3g}"] for v in look.views])
    if look.explorer is not None:
        bags = sorted(look.explorer.bags, key=lambda b: -(b.decision if b.decision is not None else float("-inf")))
        yield f"The {min(_MOST_BAGS, len(bags))} bags with the highest decisions, of {look.explorer.n_bags}:\n"
        yield from _grid(
            ["bag", "predicted", "label", "decision", "best instance"],
            [
                [b.name, b.predicted, "-" if b.label is None else b.label, b.decision, b.rows[0][1]]
                for b in bags[:_MOST_BAGS]
            ],
        )
