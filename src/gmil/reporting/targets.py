"""Pages of predicted values and risks: measures with intervals, and pictures of every bag."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.errors import count_of
from gmil.model_selection.survival import log_rank
from gmil.paper.runs.environment import versions
from gmil.reporting.plots import targets as drawn
from gmil.reporting.rendering import render
from gmil.reporting.result import checked_target
from gmil.safety.atomic import replacing
from gmil.templating.json_text import finite

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from gmil.model_selection.target_result import TargetResult
    from gmil.reporting.plots.svg import Plot

TITLES = {
    "r2": "R², variance explained",
    "mae": "mean absolute error",
    "rmse": "root mean squared error",
    "spearman": "rank correlation (Spearman)",
    "concordance": "concordance (Harrell)",
    "brier": "integrated Brier score (0 is best)",
}
"""The measures of values and times, as tables call them."""
_HELD_OUT = "Every bag was predicted by a model that never saw it."


@dataclass(frozen=True)
class TargetSection:
    """What is shown of one set of bags."""

    title: str
    rows: list[tuple[str, str, str]]  # measure, value, interval
    panels: list[tuple[str, Plot]]
    notes: list[str]
    figures: dict[str, Any]
    predictions: list[dict[str, Any]]
    legend: tuple[str, ...] = ()


@dataclass(frozen=True)
class TargetPage:
    """A page of values or risks as HTML, Markdown or JSON."""

    title: str
    verdict: str
    protocol: str
    sections: list[TargetSection]
    environment: dict[str, str] = field(default_factory=versions)

    def to_html(self) -> str:
        """Return one page that needs nothing else."""
        return render("targets.html.j2", page=self)

    def to_markdown(self) -> str:
        """Return the same as Markdown, without pictures."""
        lines = [f"# {self.title}", "", self.verdict, "", self.protocol]
        for section in self.sections:
            lines += ["", f"## {section.title}", "", "| measure | value | 95 % interval |", "|---|---|---|"]
            lines += [f"| {' | '.join(row)} |" for row in section.rows]
            lines += ["", *(f"- {note}" for note in section.notes)]
        return "\n".join(lines) + "\n"

    def to_json(self) -> str:
        """Return the same as JSON, with every bag."""
        sections = [
            {"title": one.title, **one.figures, "notes": one.notes, "bags": one.predictions} for one in self.sections
        ]
        content = {"title": self.title, "verdict": self.verdict, "protocol": self.protocol, "sections": sections}
        return json.dumps(finite({**content, "environment": self.environment}), indent=1) + "\n"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page in the format that the suffix names: .html, .md or .json."""
        target = checked_target(path)
        writers = {".html": self.to_html, ".htm": self.to_html, ".md": self.to_markdown, ".json": self.to_json}
        with replacing(target) as temporary:
            temporary.write_text(writers[target.suffix.lower()](), encoding="utf-8")
        return target


def section_of(result: TargetResult, title: str, bags: Any = None, n_seen: int | None = None) -> TargetSection:
    """Return what is shown of predictions; of several repeats the first.

    ``n_seen`` tells how many bags the model was fitted on; None is cross-validation, where it is none.
    """
    figures, names = result.figures(), _names(result, bags)
    of_values = result.target == "regression"
    panels, notes = (_values if of_values else _times)(result, names)
    notes.append(_HELD_OUT if n_seen is None else _about_seen(n_seen, len(names)))
    legend = () if of_values else tuple(kind.label for kind in drawn.RISK_GROUPS)
    return TargetSection(title, rows_of(figures), panels, notes, figures, _bags(result, names), legend)


def _about_seen(n_seen: int, n_bags: int) -> str:
    """Return the note that a page of a model has about its training bags."""
    if n_seen:
        return f"The model was fitted on {n_seen} of the {n_bags} bags: figures and pictures are too good."
    return "No bag is known to be a training bag of the model."


def comparison_page(found: Any, title: str, bags: Any = None) -> TargetPage:
    """Return the page of a comparison: a row a method, and pictures of the best where it predicts values or risks."""
    rows = [(f"{row['method']}{' (control)' * row['control']}", *found.cells(row)) for row in found.rows]
    worse = [row["method"] for row in found.rows if row["verdict_to_best"] == "worse"]
    notes = [f"Worse than the best, by bootstrap of differences: {', '.join(worse)}."] if worse else []
    table = TargetSection(f"Methods, by {found.measure}", rows, [], notes, {"rows": found.rows}, [])
    best, first = found.results[found.best], found.rows[0]
    sections = [table]
    if hasattr(best, "target"):
        sections.append(section_of(best, f"The best: {found.best}", bags))
    beaten = f" The control {first['method']} is ahead of every method." if first["control"] else ""
    value, interval = found.cells(next(row for row in found.rows if row["method"] == found.best))
    verdict = f"Best: {found.best}, {found.measure} {value} ({interval}).{beaten}"
    return TargetPage(f"Methods on {title}", verdict, title, sections)


def rows_of(figures: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return measure, value and interval as texts."""
    rows = []
    for name, title in TITLES.items():
        if figures.get(name) is not None:
            limits = figures.get(f"{name}_interval")
            shown = "" if limits is None else " - ".join(f"{limit:.3f}" for limit in limits)
            rows.append((title, f"{figures[name]:.3f}", shown))
    return rows


def verdict_of(name: str, figures: dict[str, Any], n_seen: int = 0) -> str:
    """Return the main measure in a sentence, without a judgement where the model was fitted on some of the bags."""
    main = "r2" if figures["target"] == "regression" else "concordance"
    low, high = figures[f"{main}_interval"]
    floor = 0.0 if main == "r2" else 0.5
    what = "the mean of all bags" if main == "r2" else "chance"
    than = f"{'better than' if low > floor else 'no better than'} {what}"
    judged = f"too good: {count_of(n_seen, 'bag')} trained the model" if n_seen else than
    title = TITLES[main].split(",")[0]
    return f"{name}: {title} {figures[main]:.3f} ({low:.3f} to {high:.3f}), {judged}."


def _names(result: TargetResult, bags: Any) -> list[str]:
    known = getattr(bags, "bag_ids", None)
    return [str(i) for i in (range(len(result.y)) if known is None else known)]


def _values(result: TargetResult, names: list[str]) -> tuple[list[tuple[str, Plot]], list[str]]:
    values, predictions = result.y.reshape(len(result.y), -1), result.predictions[0, 0].reshape(len(result.y), -1)
    panels = []
    for number, (one, other) in enumerate(zip(values.T, predictions.T, strict=True)):
        of = f", target {number}" if values.shape[1] > 1 else ""
        panels.append((f"Predicted against true{of}", drawn.predicted_against_true(one, other, names)))
        panels.append((f"Residuals{of}", drawn.residuals(one, other, names)))
    return panels, ["A point is a bag."]


def _times(result: TargetResult, names: list[str]) -> tuple[list[tuple[str, Plot]], list[str]]:  # noqa: ARG001
    risk = result.predictions[0, 0]
    groups = (risk > np.median(risk)).astype(np.int64)
    panels, notes = [], []
    if len(np.unique(groups)) == 2:
        panels.append(("Kaplan-Meier curves of risk groups", drawn.survival_of_groups(result.y, groups)))
        tested = f"p = {log_rank(result.y, groups):.2g}" if _both_followed(result.y, groups) else "not assessable"
        notes.append(f"Bags with a risk above the median against the others: log-rank test, {tested}.")
    if result.curves is not None and result.times is not None and len(result.times):
        middle = len(result.times) // 2
        time = float(result.times[middle])
        chart = drawn.survival_calibration(result.y, result.curves[0, 0][:, middle], time)
        panels.append(("Calibration", chart))
    return panels, notes


def _both_followed(y: Any, groups: Any) -> bool:
    return all(y["event"][groups == number].any() for number in (0, 1))


def _bags(result: TargetResult, names: list[str]) -> list[dict[str, Any]]:
    keys = ["true"] if result.target == "regression" else ["event", "time"]
    truth = result.y if result.target == "regression" else np.column_stack([result.y["event"], result.y["time"]])
    table = truth.tolist()
    rows = []
    for name, true, predicted in zip(names, table, result.predictions[0, 0].tolist(), strict=True):
        known = {"true": true} if keys == ["true"] else dict(zip(keys, (bool(true[0]), true[1]), strict=True))
        rows.append({"bag": name, **known, "predicted": predicted})
    return rows
