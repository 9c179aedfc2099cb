"""The summary as Markdown, for a pull request, a wiki or a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gmil.reporting.assessment.tables import tables_of
from gmil.reporting.formatting import percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gmil.reporting.assessment.content import Assessment
    from gmil.reporting.summary import Cell, ModelSummary, Summary

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
    yield from (f"**{escaped(text)}**\n" for text in (summary.warning, summary.verdict) if text)
    if summary.protocol:
        yield f"{escaped(summary.protocol)}\n"
    if summary.trust is not None:
        yield f"## Can the data be trusted?\n\nThe check has **{escaped(summary.trust.warnings)}**.\n"
        yield from (f"- {f.level}: **{escaped(f.name)}.** {escaped(f.told())}" for f in summary.trust.findings)
        yield ""
    for table in summary.tables:
        yield f"## {escaped(table.title)}\n"
        yield from _grid(table.header, [[_cell(cell) for cell in row] for row in table.rows])
        yield f"{escaped(table.text)}\n"
    for curve in summary.curves:
        yield f"## {escaped(curve.title)} ({escaped(curve.dataset)})\n"
        measures = ([p.value, *map(percent, (p.accuracy, p.low, p.high, p.spread))] for p in curve.points)
        rows = [["all" if value is None else value, *others] for value, *others in measures]
        yield from _grid([curve.axis, "accuracy, %", "from", "to", "spread"], rows)
    for found in summary.assessments:
        yield from _assessment(found)
    for model in summary.models:
        yield from _model(model)
    for title, lines in (("Notes", summary.notes), ("Failed", summary.failures), ("Published", summary.published)):
        if lines:
            yield f"## {title}\n"
            yield from (f"- {escaped(line)}" for line in lines)
            yield ""
    if summary.sources:
        yield "## Rows behind the numbers\n"
        named = ("dataset", "method", "setting", "seeds_text", "folds", "gmil", "finished_at")
        rows = [[*(getattr(s, name) or "–" for name in named), " ".join(s.files)] for s in summary.sources]
        yield from _grid(["data set", "method", "setting", "seeds", "folds", "gmil", "finished", "files"], rows)
    yield "Made with " + ", ".join(f"{escaped(k)} {escaped(v)}" for k, v in summary.environment.items()) + "."


def _assessment(found: Assessment) -> Iterator[str]:
    yield f"## {escaped(found.title)}\n\n{escaped(found.text)}\n"
    for table in tables_of(found).values():
        yield f"### {escaped(table.title)}\n"
        yield from _grid(table.header, [[_cell(cell) for cell in row] for row in table.rows])
        yield from (f"{escaped(text)}\n" for text in (table.text,) if text)
    yield from (f"{escaped(reason)}\n" for reason in (found.without_curves, found.without_importance) if reason)


def _grid(header: Sequence[object], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    lines = ["| " + " | ".join(map(escaped, row)) + " |" for row in (header, *rows)]
    yield from (lines[0], "|" + "---|" * len(header), *lines[1:], "")


def _cell(cell: Cell) -> str:
    return " ".join(filter(None, (cell.text, cell.detail, f"({cell.note})" if cell.note else "")))


def _model(model: ModelSummary) -> Iterator[str]:
    yield f"## {escaped(model.title)}\n\n{escaped(model.text)}\n\n`{model.model.replace('`', '')}`\n"
    if model.bins:
        shown = [b for i, b in enumerate(model.bins) if i < _MOST_BINS or b.in_positive or b.in_negative]
        rows = [
            [
                *(b.number, percent(b.positive_share), percent(b.negative_share), f"{b.score:.3g}"),
                " ".join(["C+"] * b.in_positive + ["C-"] * b.in_negative),
            ]
            for b in shown
        ]
        yield from _grid(["bin", "h+, %", "h-, %", "score (Eq. 6)", "codebook"], rows)
    if model.views:
        yield from _grid(["view", "weight"], [[v.name, f"{v.weight:.3g}"] for v in model.views])
    if model.explorer is not None:
        bags = sorted(model.explorer.bags, key=lambda b: -(b.decision if b.decision is not None else float("-inf")))
        yield (
            f"The {min(_MOST_BAGS, len(bags))} bags with the highest decisions, of {model.explorer.n_bags}. Decisions "
            f"and scores are about the class {escaped(model.positive)}.\n"
        )
        rows = [
            [b.name, b.predicted, "–" if b.label is None else b.label, b.decision, b.rows[0][1]]
            for b in bags[:_MOST_BAGS]
        ]
        yield from _grid(["bag", "predicted", "label", "decision", "best instance"], rows)
