"""A comparison of methods on somebody's own bags: which methods, how, and what came out."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import get_tags

from gmil.checks.controls import CONTROLS
from gmil.errors import SpecificationError, did_you_mean
from gmil.model_selection.instance_labels import check_instance_labels
from gmil.model_selection.instance_result import InstanceResult
from gmil.paper.runs.jobs import known_methods, own_labels
from gmil.paper.runs.output import flat, summary_of
from gmil.paper.runs.parsing import load_spec
from gmil.paper.runs.specification import MethodEntry, Protocol, Spec
from gmil.paper.statistics import compare_with_best
from gmil.validation import refuse_fractions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sklearn.base import BaseEstimator

    from gmil.bags import Bags
    from gmil.checks import DataCheck
    from gmil.paper.runs.data import Dataset
    from gmil.paper.runs.results import Results

NAME = "compare"
METHODS = (
    "gmil", "gmil-cv", "weighted-gmil", "bag-statistics", "nsk", "single-instance", "mi-graph", "miles", "citation-knn",
    "mi-vlad", "mi-fv",
)  # fmt: skip
QUICK_METHODS = ("gmil", "weighted-gmil", "bag-statistics", "mi-fv")
MOST_INSTANCES = {"nsk": 15_000, "mi-graph": 10_000, "miles": 10_000, "citation-knn": 10_000, "single-instance": 20_000}
"""Methods whose cost grows with the square of the instances are left out above this, unless they are asked for."""
FOLDS, REPEATS = 10, 3


def choose_methods(bags: Bags, y: Any, asked: Sequence[str] | None, *, quick: bool) -> tuple[list[str], list[str]]:
    """Return the methods to compare, and a note about each that is left out.

    Parameters
    ----------
    bags : Bags
    y : array of shape (n_bags,)
    asked : sequence of str, optional
        Names as on the command line; all of them are taken.
    quick : bool
        Take the few that answer soon.
    """
    known = known_methods()
    for name in asked or ():
        if name not in known:
            msg = f"There is no method {name!r}; the methods are {', '.join(sorted(known))}.{did_you_mean(name, known)}"
            raise SpecificationError(msg)
    several = len(np.unique(np.asarray(y))) > 2
    chosen, notes = [], []
    for name in asked or (QUICK_METHODS if quick else METHODS):
        if several and not _knows_several(known[name]()):
            notes.append(f"{name} is left out: it is for two classes only.")
        elif not asked and bags.n_instances > MOST_INSTANCES.get(name, bags.n_instances):
            notes.append(
                f"{name} is left out: it is slow with more than {MOST_INSTANCES[name]} instances. Name it to run it."
            )
        else:
            chosen.append(name)
    return [name for name in chosen if name not in CONTROLS], notes


def _knows_several(estimator: BaseEstimator) -> bool:
    """Tell whether a method takes more than two classes; of an own one that is no ClassifierMixin nobody knows."""
    tags = get_tags(estimator).classifier_tags
    return tags is None or bool(tags.multi_class)


def comparison_spec(
    dataset: str,
    y: Any,
    methods: Sequence[str],
    *,
    repeats: int,
    folds: int,
    seed: int,
    pos_label: Any = None,
    groups: Any = None,
    missing: str = "error",
) -> Spec:
    """Return the experiment: methods with their defaults, the controls, on one data set.

    There are no more folds than the rarest class has bags or, where bags belong together, groups. ``missing`` is what
    is done about missing values, inside the folds.
    """
    labels_of_bags = np.asarray(y)
    refuse_fractions(labels_of_bags)
    units = np.arange(len(labels_of_bags)) if groups is None else np.asarray(groups)
    rarest, label = min((len(np.unique(units[labels_of_bags == c])), c) for c in np.unique(labels_of_bags).tolist())
    if rarest < 2:
        what = "bag" if groups is None else "group"
        msg = (
            f"Every class needs at least 2 {what}s to be compared on, but class {label!r} has a single {what}. "
            f"Add {what}s, or leave it out."
        )
        raise SpecificationError(msg)
    labels = {entry.name: entry.label for entry in load_spec("table1").first_entries()} | own_labels(methods)
    known = known_methods()
    entries = []
    for name in methods:
        has_positive = pos_label is not None and "pos_label" in known[name]().get_params()
        params = {"pos_label": pos_label} if has_positive else {}
        entries.append(MethodEntry(name, labels.get(name, name), columns=("paper",), params=params))
    return Spec(
        name=NAME,
        title=f"Methods on {dataset}",
        datasets=(dataset,),
        methods=tuple(entries),
        controls=True,
        protocol=Protocol(folds=min(folds, rarest), repeats=repeats, seed=seed),
        missing=missing,
    )


def instances_without_scores(data: Dataset) -> InstanceResult | None:
    """Return the labels of instances, which `summarize` measures scores on; None where there are none."""
    if data.instance_y is None:
        return None
    labels = check_instance_labels(data.instance_y, data.bags, data.y)
    return InstanceResult(labels, np.empty(0), data.bags.offsets, data.groups)


def summarize(
    results: Results,
    check: DataCheck | None,
    data: dict[str, Any],
    notes: Sequence[str],
    *,
    groups: Any = None,
    instances: InstanceResult | None = None,
) -> dict[str, Any]:
    """Return the comparison: a row per method, the best first, with its difference to the best; JSON can say all of it.

    Parameters
    ----------
    results : Results
    check : DataCheck, optional
        Whether the data can be trusted.
    data : dict
        Where the data is: ``source``, and what it was read with.
    notes : sequence of str
    groups : array of shape (n_bags,), optional
        Intervals are by bootstrap over these, where bags belong together.
    instances : InstanceResult, optional
        Labels of instances, still without scores; every method that scores instances is then measured on them.
    """
    dataset = results.datasets[0]
    labels = {entry.name: entry.label for entry in results.spec.methods}
    labels |= {name: label for name, (label, _) in CONTROLS.items()}
    rows = [_row(results, dataset, name, label, groups) for name, label in labels.items()]
    if instances is not None:
        for row in rows:
            row["cells"][dataset]["instances"] = _figures(results, dataset, row["method"], instances)
    rows.sort(key=lambda row: -(row["cells"][dataset]["accuracy"] or -1))
    best = next((row["method"] for row in rows if row["column"] != "control"), None)
    against_best = {} if best is None else _against_best(results, dataset, list(labels), best)
    for row in rows:
        row["cells"][dataset]["against_best"] = against_best.get(row["method"])
    return summary_of(
        results.spec,
        [dataset],
        data=data,
        resampled="bags" if groups is None else "groups",
        trust=None if check is None else check.to_dict(),
        rows=rows,
        best=best,
        notes=[*notes, *results.notes],
        failures=results.failures(),
    )


def _row(results: Results, dataset: str, method: str, label: str, groups: Any) -> dict[str, Any]:
    cell = results.measures(dataset, method, "paper", groups=groups, also=("auc", "balanced_accuracy"))
    column, title = ("control", "control") if method in CONTROLS else ("paper", "default setting")
    names = {"method": method, "label": label, "column": column, "title": title}
    return {**names, "cells": {dataset: cell}, "mean": cell["accuracy"]}


def _figures(results: Results, dataset: str, method: str, instances: InstanceResult) -> dict[str, Any] | None:
    """Return how well the scores of a method find instances; None where it has none."""
    scores = results.instance_scores(dataset, method, "paper", np.diff(instances.offsets))
    return None if scores is None else replace(instances, scores=scores[None]).figures()


def _against_best(results: Results, dataset: str, methods: Sequence[str], best: str) -> dict[str, Any]:
    """Return how every other method and control that could be measured compares with the best."""
    found = {method: results.fold_accuracies(dataset, method, "paper") for method in methods}
    known = {method: accuracies for method, accuracies in found.items() if accuracies is not None}
    if best not in known:
        return {}
    compared = compare_with_best(known, best, n_bags=results.n_bags(dataset))
    return {method: asdict(one) for method, one in compared.items()}


def notes_on_folds(spec: Spec, wanted: int, groups: Any) -> list[str]:
    """Return what must be said where there are fewer folds than were asked for."""
    what = "bags" if groups is None else "groups"
    fewer = f"{spec.protocol.folds} folds and not {wanted}: the rarest class has no more {what}."
    return [fewer] if spec.protocol.folds < wanted else []


def notes_on_groups(column: str | None, groups: Any) -> list[str]:
    """Return what must be said where bags of one group were kept together."""
    if column is None:
        return []
    return [
        f"Folds are grouped ({column}, {len(np.unique(groups))} groups), also the inner folds of methods that take "
        "groups and those of the data check.",
        "Confidence intervals: bootstrap over groups, since bags of one group are not independent.",
    ]


def notes_on_missing(missing: str) -> list[str]:
    """Return what must be said where missing values were filled or dropped."""
    notes = {
        "median": "Missing values: filled with the medians of the training folds.",
        "drop": "Missing values: instances with one were dropped, in training and in test folds.",
    }
    return [notes[missing]] if missing in notes else []


def flat_rows(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the comparison with one line per method, for CSV."""
    lines = []
    for row in summary["rows"]:
        (cell,) = row["cells"].values()
        names = {name: row[name] for name in ("method", "label", "column")}
        measures = flat(cell, "accuracy", "spread", "repeats", "auc", "balanced_accuracy")
        against = cell["against_best"] or {}
        compared = {f"{name}_to_best": against.get(name) for name in ("difference", "p_value", "p_holm", "verdict")}
        lines.append({**names, **measures, **compared, **_flat_instances(cell)})
    return lines


def _flat_instances(cell: dict[str, Any]) -> dict[str, Any]:
    """Return the figures about instances for a line of CSV; nothing where the comparison has none."""
    if "instances" not in cell:
        return {}
    found = cell["instances"] or {}
    line: dict[str, Any] = {}
    for name in ("auc", "average_precision", "auc_within"):
        low, high = found.get(f"{name}_interval") or (None, None)
        line |= {f"instance_{name}": found.get(name), f"instance_{name}_low": low, f"instance_{name}_high": high}
    return line
