"""The summary as one HTML page: no request to the network, pictures and script inside."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any

from gmil.paper.runs.fingerprints import package_version
from gmil.paper.runs.output import finite
from gmil.reporting import measured_plots, model_plots

if TYPE_CHECKING:
    from jinja2 import Environment

    from gmil.reporting.summary import Curve, ModelLook, Summary, TimedFigure


def to_html(summary: Summary) -> str:
    """Return the page."""
    from markupsafe import Markup

    numbers = measured_plots.method_numbers(summary.panels)
    drawn = [(panel, Markup(measured_plots.draw_accuracies(panel, numbers))) for panel in summary.panels]
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            summary=summary,
            version=package_version("gmil"),
            sections=_sections(summary),
            common=_commonest([source.versions for source in summary.sources]),
            summarized=any(file.endswith(".json") for source in summary.sources for file in source.files),
            panels=drawn,
            numbers=numbers,
            times={figure.key: _times(figure) for figure in summary.times},
            curves=[(title, Markup(picture)) for title, picture in _curves(summary.curves)],
            looks=[_look(look) for look in summary.looks],
        )
    )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("gmil.reporting", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _sections(summary: Summary) -> list[tuple[str, str]]:
    sections = [("trust", "Trust")] * (summary.trust is not None)
    sections += [("accuracy", "Accuracy against time")] * bool(summary.panels)
    sections += [(table.key, table.title.partition(":")[0]) for table in summary.tables]
    sections += [("figure7", "Figure 7")] * bool(summary.curves)
    sections += [(f"look{i}", look.title) for i, look in enumerate(summary.looks, start=1)]
    sections += [("notes", "Notes")] * bool(summary.notes or summary.failures or summary.published)
    return sections + [("rows", "Rows behind the numbers")] * bool(summary.sources)


def _commonest(texts: list[str]) -> str:
    return max(texts, key=texts.count, default="")


def _curves(curves: list[Curve]) -> list[tuple[str, str]]:
    known = [c for c in curves if any(p.accuracy is not None for p in c.points)]
    limits = measured_plots.curve_limits(known) if known else (0.0, 100.0)
    pictures = [(f"{c.title} ({c.dataset})", measured_plots.draw_curve(c, limits)) for c in known]
    timed = [c for c in curves if sum(p.seconds is not None for p in c.points) > 1]
    return pictures + [(f"Time over {c.axis} ({c.dataset})", measured_plots.draw_seconds(c)) for c in timed]


def _times(figure: TimedFigure) -> dict[str, Any]:
    """Return the picture of a figure where anything was timed, and the labels of its lines."""
    from markupsafe import Markup

    timed = any(line.points for line in figure.lines)
    picture = Markup(measured_plots.draw_times(figure)) if timed else None
    return {"picture": picture, "labels": [line.label for line in figure.lines]}


def _look(look: ModelLook) -> dict[str, Any]:
    """Return a look with its pictures and what its script needs."""
    from markupsafe import Markup

    shown: dict[str, Any] = {"look": look, "overview": [], "histograms": None, "hidden_bins": "", "map": None}
    shown["views"] = Markup(model_plots.draw_views(look.views)) if look.views else None
    scales: dict[str, float] = {}
    if look.map is not None:
        picture, scales = model_plots.draw_map(look.map)
        shown["map"] = Markup(picture)
    if look.bins:
        shown["histograms"] = [Markup(picture) for picture in model_plots.draw_histograms(look.bins)]
        shown["ranking"] = Markup(model_plots.draw_ranking(look.bins))
        if len(look.bins) > model_plots.MOST_BARS:
            shown["hidden_bins"] = (
                f"{model_plots.MOST_BARS} of {len(look.bins)} bins are drawn: those of the codebooks and the best."
            )
        if look.map is not None:
            shown["overview"] = [(w, Markup(p)) for w, p in model_plots.draw_overview(look.bins, look.map)]
    if look.explorer is not None:
        roles = {} if look.map is None else {number: role for _, _, role, number in look.map.centers if role}
        shown["data"] = Markup(script_json({**asdict(look.explorer), "roles": roles, "scales": scales}))
    return shown


def script_json(data: Any) -> str:
    r"""Return JSON that may stand inside a script element, whatever texts it holds.

    >>> script_json("</script><b>&")
    '"\\u003c/script\\u003e\\u003cb\\u003e\\u0026"'
    """
    text = json.dumps(finite(data), separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
