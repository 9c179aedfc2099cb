"""The summary as one HTML page: no request to the network, pictures and script inside."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from gmil.heatmaps.page import viewer
from gmil.paper.runs.fingerprints import package_version
from gmil.reporting.assessment import tables as assessed
from gmil.reporting.plots import assessment as drawn
from gmil.reporting.plots import measured, model
from gmil.reporting.rendering import render
from gmil.templating.json_text import script_json

if TYPE_CHECKING:
    from gmil.reporting.assessment.content import Assessment
    from gmil.reporting.summary import InstanceMap, ModelSummary, Summary


def to_html(summary: Summary) -> str:
    """Return the page."""
    versions = [source.versions for source in summary.sources]
    return render(
        "page.html.j2",
        summary=summary,
        version=package_version("gmil"),
        sections=_sections(summary),
        common=max(versions, key=versions.count, default=""),
        summarized=any(file.endswith(".json") for source in summary.sources for file in source.files),
        numbers=measured.method_numbers(summary.panels),
        times={figure.key: figure for figure in summary.times},
        measured=measured,
        plots=model,
        explorer_data=_explorer_data,
        map_viewer=lambda explorer: viewer(explorer.maps, [""], "viridis", "score", "slide"),
        assessed=assessed,
        drawn=drawn,
        explored=lambda found: _explored(found, summary),
    )


def _sections(summary: Summary) -> list[tuple[str, str]]:
    sections = [("trust", "Data check")] * (summary.trust is not None)
    sections += [("accuracy", "Accuracy against time")] * bool(summary.panels)
    sections += [(table.key, table.title.partition(":")[0]) for table in summary.tables]
    sections += [("figure7", "Figure 7")] * bool(summary.curves)
    sections += [(f"assessment{i}", found.title) for i, found in enumerate(summary.assessments, start=1)]
    sections += [(f"model{i}", shown.title) for i, shown in enumerate(summary.models, start=1)]
    sections += [("notes", "Notes")] * bool(summary.notes or summary.failures or summary.published)
    return sections + [("rows", "Rows behind the numbers")] * bool(summary.sources)


def _explored(found: Assessment, summary: Summary) -> set[int]:
    """Return the bags of an assessment that an explorer of the page shows."""
    explorer = None if found.explorer is None else summary.models[found.explorer - 1].explorer
    return set() if explorer is None else {bag.number for bag in explorer.bags}


def _explorer_data(shown: ModelSummary, scales: dict[str, float]) -> str:
    """Return what the script of an explorer needs, ``scales`` being those of the map."""
    told = asdict(replace(shown.explorer, maps=[])) if shown.explorer else {}
    return script_json({**told, "roles": _roles(shown.map), "scales": scales})


def _roles(found: InstanceMap | None) -> dict[int, str]:
    return {} if found is None else {number: role for _, _, role, number in found.centers if role}
