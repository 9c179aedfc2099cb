"""What a run predicted for bags that its models never saw, and models fitted again on the same data."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil import datasets
from gmil.datasets.fingerprint import data_fingerprint
from gmil.errors import GmilError, SpecificationError
from gmil.greedy import GMIL
from gmil.model_selection.folds import fit_with_groups
from gmil.paper.runs.data import groups_of
from gmil.paper.runs.jobs import known_methods, make_estimator
from gmil.paper.tables.published import dataset_title
from gmil.pipeline import imputing
from gmil.reporting.models import summarize_model
from gmil.reporting.predictions import about_one_class, outputs_of_result
from gmil.reporting.validations import Validation, assess_validation

if TYPE_CHECKING:
    from collections.abc import Callable

    from gmil.bags import Bags
    from gmil.model_selection.result import CVResult
    from gmil.reporting.assessment.content import Assessment
    from gmil.reporting.provenance import Ledger
    from gmil.reporting.summary import ModelSummary

_FAVOURITE = "musk2"
"""With both codebooks, and always there."""
_SEEN = "The model was fitted on the bags shown here: its predictions for them are no test."
_HELD_OUT = (
    "Predictions and decisions are held-out, from the run: by models that never saw the bag. Scores of instances, map "
    "and what is inside are of a model fitted on all bags."
)


@dataclass
class Looks:
    """What is shown of single bags and models."""

    assessments: list[Assessment] = field(default_factory=list)
    models: list[ModelSummary] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warning: str = ""

    def add(self, assessment: Assessment | None, model: ModelSummary | None) -> None:
        """Add predictions and the model whose explorer shows the same bags, as far as there are such."""
        if model is not None:
            self.models.append(model)
        if assessment is not None:
            place = None if model is None else len(self.models)
            self.assessments.append(replace(assessment, explorer=place))


@dataclass(frozen=True)
class Asked:
    """What is to be shown of a run, and how much may be measured for it."""

    ledger: Ledger
    look: str | None = None
    importance: int | None = None
    progress: Callable[[str, int, int], None] | None = None

    def stored(self, row: dict[str, Any] | None, dataset: str, protocol: dict[str, Any]) -> CVResult | None:
        """Return the cross-validation behind a row of a table, None where it has none."""
        cell = (row or {}).get("cells", {}).get(dataset) or {}
        found = self.ledger.cross_validation(cell.get("jobs") or [])
        return None if found is None else replace(found, random_state=protocol["seed"])


def looks_of_run(by_name: dict[str, dict[str, Any]], asked: Asked) -> Looks:
    """Return what is shown of single bags and models, and a note where there is nothing."""
    if asked.look == "none":
        return Looks()
    if "compare" in by_name:
        return _compared(by_name["compare"], asked)
    measured = list(dict.fromkeys(d for found in by_name.values() for d in found.get("datasets", [])))
    if asked.look is None and not measured:
        return Looks()
    name = asked.look or (_FAVOURITE if _FAVOURITE in measured else measured[0])
    try:
        model = GMIL.from_paper(name, random_state=0)
        bags, y = datasets.load(name, download_if_missing=False, return_X_y=True)
    except (GmilError, ValueError) as error:
        if asked.look is not None:
            msg = f"No model of {name!r} can be shown: {error}"
            raise SpecificationError(msg) from error
        return Looks(notes=[f"No model of {name} can be shown: {error}"])
    looks, table = Looks(), by_name.get("table1", {})
    row = next((r for r in table.get("rows", []) if (r["method"], r["column"]) == ("gmil", "paper")), None)
    result = asked.stored(row, name, table.get("protocol", {}))
    about = f"GMIL on {dataset_title(name)}"
    _add_held_out(looks, asked, result, model, (bags, y, None), model.fit(bags, y), about)
    return looks


def _add_held_out(
    looks: Looks,
    asked: Asked,
    result: CVResult | None,
    estimator: Any,
    data: tuple[Bags | None, Any, Any],
    model: Any,
    about: str,
    interval: list[float] | None = None,
) -> None:
    """Add the held-out predictions of a method, where the run has some, and what is inside a model fitted on all."""
    bags, y, groups = data
    found, predictions, wanted = None, None, set()
    if result is not None:
        result = replace(result, groups=groups)
        predictions = about_one_class(outputs_of_result(result), result.y, None)
        validation = Validation(result, bags, about, estimator, y, None, asked.importance, asked.progress)
        found = replace(assess_validation(validation, interval)[0], title=f"Held-out predictions of {about}")
        wanted = {line.number for line in (*found.wrong, *found.unsure)}
    text = _SEEN if result is None else _HELD_OUT
    shown = None
    if model is not None:
        title = f"Inside {about}"
        looks.warning = looks.warning if found else f"{title!r} shows bags that the model was fitted on: no test of it."
        shown = summarize_model(model, bags, y, title=title, text=text, predictions=predictions, wanted=wanted)
    looks.add(found, shown)


def _compared(found: dict[str, Any], asked: Asked) -> Looks:
    """Return the best method, and GMIL and, where it was compared, WeightedGMIL, the more accurate first."""
    rows = {row["method"]: row for row in found["rows"]}
    (dataset,) = found["datasets"]
    try:
        bags, y, groups = _read_again(found["data"])
    except (GmilError, OSError, ValueError) as error:
        looks = Looks(notes=[f"No model can be shown, because the data cannot be read again: {error}"])
        best = rows.get(found.get("best"), {})
        result = asked.stored(best, dataset, found["protocol"])
        if result is not None:
            interval = best["cells"][dataset]["interval"]
            _add_held_out(looks, asked, result, None, (None, None, None), None, best["label"], interval)
        return looks
    positive, looks = _positive_label(found["data"], y), Looks()
    shown = sorted({"gmil", "weighted-gmil"} & {*rows, "gmil"}, key=lambda name: -(rows.get(name, {}).get("mean") or 0))
    for name in dict.fromkeys([found.get("best"), *shown]):
        result = asked.stored(rows.get(name), dataset, found["protocol"])
        if name not in known_methods() or (result is None and name not in shown):
            continue
        estimator = _estimator(name, found, positive)
        cell = rows.get(name, {}).get("cells", {}).get(dataset, {})
        try:
            model = fit_with_groups(estimator, bags, y, groups) if name in shown else None
            own = asked if name == found.get("best") else replace(asked, importance=0)
            about = rows[name]["label"] if name in rows else "GMIL"
            _add_held_out(looks, own, result, estimator, (bags, y, groups), model, about, cell.get("interval"))
        except (GmilError, ValueError) as error:
            looks.notes.append(f"{name} cannot be shown: {error}")
    return looks


def _estimator(name: str, found: dict[str, Any], positive: Any) -> Any:
    """Return what was compared, with the seed of the comparison."""
    estimator = known_methods()[name]()
    given = {"random_state": found["protocol"]["seed"], "pos_label": positive}
    params = {key: value for key, value in given.items() if key in estimator.get_params()}
    return imputing(make_estimator(name, params), found["data"].get("missing", "error"))


def _read_again(data: dict[str, Any]) -> tuple[Bags, Any, Any]:
    source, group = data["source"], data.get("group")
    if data["is_dataset"]:
        bags, y = datasets.load(source, download_if_missing=False, return_X_y=True)
    else:
        info = [column for column in (group, data.get("instances")) if column is not None]
        names = {"bag": data["bag"], "label": data["label"], "features": data["features"], "info": info}
        bags, y = datasets.read(source, **names, drop=data.get("exclude", ()), decimal=data.get("decimal", "."))
    groups = groups_of(bags, group)
    if data_fingerprint(bags, y, groups) != data["fingerprint"]:
        msg = f"{os.fspath(source)} is not what it was when the methods were compared. Compare them again."
        raise SpecificationError(msg)
    return bags, y, groups


def _positive_label(data: dict[str, Any], y: Any) -> Any:
    """Return the positive label as it is in the data: strings need one, or they warn."""
    labels = np.unique(np.asarray(y)).tolist()
    wanted = data.get("positive")
    if wanted is None:
        return labels[1] if len(labels) == 2 else None
    return next((label for label in labels if str(label) == wanted), None)
