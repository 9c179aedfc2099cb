"""Models of a run, fitted again on the data that the run was measured on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil import datasets
from gmil.datasets.fingerprint import data_fingerprint
from gmil.errors import GmilError, SpecificationError
from gmil.greedy import GMIL
from gmil.model_selection.folds import fit_with_groups
from gmil.paper.runs.data import groups_of
from gmil.paper.tables.published import dataset_title
from gmil.pipeline import imputing
from gmil.reporting.models import summarize_model
from gmil.weighted import WeightedGMIL

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.reporting.summary import ModelSummary

_FAVOURITE = "musk2"
"""With both codebooks, and always there."""


def models_of_run(by_name: dict[str, dict[str, Any]], look: str | None) -> tuple[list[ModelSummary], list[str]]:
    """Return what is inside models, and a note where there is none."""
    if look == "none":
        return [], []
    if "compare" in by_name:
        return _compared(by_name["compare"])
    measured = list(dict.fromkeys(d for found in by_name.values() for d in found.get("datasets", [])))
    if look is None and not measured:
        return [], []
    name = look or (_FAVOURITE if _FAVOURITE in measured else measured[0])
    try:
        model = GMIL.from_paper(name, random_state=0)
        bags, y = datasets.load(name, download_if_missing=False, return_X_y=True)
    except (GmilError, ValueError) as error:
        if look is not None:
            msg = f"No model of {name!r} can be shown: {error}"
            raise SpecificationError(msg) from error
        return [], [f"No model of {name} can be shown: {error}"]
    found, _ = summarize_model(model.fit(bags, y), bags, y, title=f"Inside GMIL on {dataset_title(name)}", seen=True)
    return [found], []


def _compared(found: dict[str, Any]) -> tuple[list[ModelSummary], list[str]]:
    """Return GMIL and, where it was compared, WeightedGMIL, the more accurate first."""
    try:
        bags, y, groups = _read_again(found["data"])
    except (GmilError, OSError, ValueError) as error:
        return [], [f"No model can be shown, because the data cannot be read again: {error}"]
    accuracies = {row["method"]: row["mean"] or 0.0 for row in found["rows"]}
    seed, positive = found["protocol"]["seed"], _positive_label(found["data"], y)
    models: dict[str, Any] = {
        "gmil": GMIL(random_state=seed, pos_label=positive),
        "weighted-gmil": WeightedGMIL(random_state=seed, pos_label=positive),
    }
    missing = found["data"].get("missing", "error")
    models = {name: imputing(model, missing) for name, model in models.items()}
    order = sorted(
        (name for name in models if name in accuracies or name == "gmil"), key=lambda n: -accuracies.get(n, 0)
    )
    shown, notes = [], []
    for name in order:
        try:
            model = fit_with_groups(models[name], bags, y, groups)
            shown.append(summarize_model(model, bags, y, seen=True)[0])
        except (GmilError, ValueError) as error:
            notes.append(f"{name} cannot be shown: {error}")
    return shown, notes


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
