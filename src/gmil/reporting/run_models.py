"""What a run predicted for bags that its models never saw, and models fitted again on the same data."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone

from gmil import datasets
from gmil.bags.bag_columns import groups_of
from gmil.datasets.fingerprint import data_fingerprint
from gmil.errors import GmilError, SpecificationError
from gmil.greedy import GMIL
from gmil.model_selection.folds import fit_with_groups
from gmil.paper.runs.jobs import known_methods, make_estimator
from gmil.paper.tables.published import dataset_title
from gmil.pipeline import imputing
from gmil.reporting.models import summarize_model
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
_INSIDE = ("gmil", "weighted-gmil")
"""Methods of a comparison that are looked into."""
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


class Data(NamedTuple):
    """What a run was measured on; nothing where it cannot be read again."""

    bags: Bags | None = None
    y: Any = None
    groups: Any = None


class Method(NamedTuple):
    """A method of a run, and what the run stored of it; ``interval`` is that of its accuracy."""

    name: str
    estimator: Any
    result: CVResult | None
    interval: list[float] | None = None


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
        data = Data(*datasets.load(name, download_if_missing=False, return_X_y=True))
    except (GmilError, ValueError) as error:
        if asked.look is not None:
            msg = f"No model of {name!r} can be shown: {error}"
            raise SpecificationError(msg) from error
        return Looks(notes=[f"No model of {name} can be shown: {error}"])
    looks, table = Looks(), by_name.get("table1", {})
    row = next((r for r in table.get("rows", []) if (r["method"], r["column"]) == ("gmil", "paper")), None)
    result = asked.stored(row, name, table.get("protocol", {}))
    _add(looks, asked, data, Method(f"GMIL on {dataset_title(name)}", model, result), inside=True)
    return looks


def _compared(found: dict[str, Any], asked: Asked) -> Looks:
    """Return the best method, and GMIL and WeightedGMIL where they were compared, the more accurate first."""
    looks, data, (dataset,) = Looks(), Data(), found["datasets"]
    try:
        data = Data(*_read_again(found["data"]))
    except (GmilError, OSError, ValueError) as error:
        looks.notes.append(f"No model can be shown, because the data cannot be read again: {error}")
    rows = {row["method"]: row for row in found["rows"]}  # the best first
    for name in [name for name in rows if name in (found["best"], *_INSIDE)]:
        result = asked.stored(rows[name], dataset, found["protocol"])
        is_best = name == found["best"]
        if result is None or (data.bags is None and not is_best):
            continue
        estimator = _estimator(name, found, data)
        own = asked if is_best and estimator is not None else replace(asked, importance=0)
        method = Method(rows[name]["label"], estimator, result, rows[name]["cells"][dataset]["interval"])
        try:
            _add(looks, own, data, method, inside=name in _INSIDE)
        except (GmilError, ValueError) as error:
            looks.notes.append(f"{name} cannot be shown: {error}")
    return looks


def _add(looks: Looks, asked: Asked, data: Data, method: Method, *, inside: bool) -> None:
    """Add the held-out predictions of a method, where the run has some, and what is inside a model fitted on all."""
    found, predictions = None, None
    if method.result is not None:
        result = replace(method.result, groups=data.groups)
        asked_for: dict[str, Any] = {"importance": asked.importance, "progress": asked.progress}
        estimator = None if asked.importance == 0 else method.estimator  # no models of folds
        validation = Validation(result, data.bags, method.name, estimator, data.y, **asked_for)
        found = replace(
            assess_validation(validation, method.interval)[0], title=f"Held-out predictions of {method.name}"
        )
        predictions = validation.predictions()
    if inside and data.bags is not None:
        title, text = f"Inside {method.name}", _SEEN if found is None else _HELD_OUT
        if found is None:
            looks.warning = f"{title!r} shows bags that the model was fitted on: no test of it."
        model = fit_with_groups(clone(method.estimator), data.bags, data.y, data.groups)
        wanted = set() if found is None else found.bags
        looks.models.append(
            summarize_model(model, data.bags, data.y, title=title, text=text, predictions=predictions, wanted=wanted)
        )
        found = None if found is None else replace(found, explorer=len(looks.models))
    looks.assessments += [] if found is None else [found]


def _estimator(name: str, found: dict[str, Any], data: Data) -> Any:
    """Return what was compared, with the seed of the comparison; None of an own method that is not there any more."""
    if name not in known_methods() or data.bags is None:
        return None
    estimator = known_methods()[name]()
    given = {"random_state": found["protocol"]["seed"], "pos_label": _positive_label(found["data"], data.y)}
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
