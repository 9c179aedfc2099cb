"""``gmil cv``: cross-validate a method on data sets."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import click

import gmil
from gmil.cli.console import Progress, Stages, StreamProgress, print_table, said_warnings, say, say_first
from gmil.cli.inputs import cluster, for_method
from gmil.cli.options import (
    importance_option,
    jobs_option,
    json_option,
    method_options,
    page_option,
    seed_option,
    split_options,
)
from gmil.cli.results import instance_cells, instance_titles
from gmil.cli.targets.kinds import DEFAULTS, is_of_values, print_value_rows, with_target, write_value_page
from gmil.errors import BagValidationError, count_of

if TYPE_CHECKING:
    from pathlib import Path

    from sklearn.base import BaseEstimator

    from gmil.cli.inputs import LabelledBags, Method, Reader
    from gmil.model_selection.result import CVResult


class Protocol(NamedTuple):
    """How to cross-validate."""

    folds: int
    repeats: int
    seed: int
    jobs: int | None


class Validated(NamedTuple):
    """What was found on a data set, as a row of the table and whole, and with what."""

    row: dict[str, Any]
    result: CVResult
    data: LabelledBags
    estimator: BaseEstimator


@click.command()
@click.argument("data", nargs=-1, required=True)
@method_options
@click.option("--folds", default=10, show_default=True, help="Folds of bags, stratified.")
@click.option("--repeats", default=1, show_default=True, help="How often to repeat with other folds.")
@seed_option("folds and method")
@jobs_option("Processes over folds.")
@split_options
@page_option("A .html, .md or .json page of the held-out predictions.")
@importance_option
@json_option
def cv(
    data: tuple[str, ...],
    method: Method,
    reader: Reader,
    output: str | None,
    importance: int | None,
    as_json: bool,
    **protocol: Any,
) -> None:
    """Cross-validate a method on DATA: names of data sets, files or folders.

    Folds are stratified; scaling, clusters and everything else are fitted on the training folds only. With --group
    whole groups are left out, of folds and of what a method chooses inside its training folds. With --instances the
    scores of instances, by models that never saw their bags, are measured too: how well they find instances of the
    positive class over all bags (AUC, average precision) and within bags that hold both kinds.

    With -o a page shows the held-out predictions: the same figures, confusion matrix, ROC and precision-recall curves,
    the bags that are most wrong and least sure, and which features matter.
    """
    target = None if output is None else _checked(output, data)
    asked = method.asked(DEFAULTS[reader.target_kind or ("survival" if reader.event else "classes")])
    say_first(f"{asked} on {', '.join(data)}, {protocol['repeats']} x {protocol['folds']}-fold")
    with cluster(reader.dask) as client:
        done = [_validated(method, reader.labelled(name), Protocol(**protocol), client) for name in data]
        rows = [found.row for found in done]
        of_values = {is_of_values(found.data.target) for found in done}
        if len(of_values) > 1:
            msg = "The data sets have targets of different kinds. Ask for one kind at a time, or choose with --target."
            raise BagValidationError(msg)
        if as_json:
            click.echo(json.dumps(rows, indent=2))
        elif of_values == {True}:
            print_value_rows(rows)
        else:
            _print_rows(rows)
        if target is not None:
            if of_values == {True}:
                write_value_page(done, target)
            else:
                _write_page(done, importance, target)


def _checked(output: str, data: tuple[str, ...]) -> Path:
    from gmil.reporting.result import checked_target
    from gmil.safety.atomic import refuse_target

    target = checked_target(output)
    refuse_target(target, *data)
    return target


def _write_page(done: list[Validated], importance: int | None, target: Path) -> None:
    from gmil.reporting import Report
    from gmil.reporting.validations import Validation, summarize_validations

    if not all(found.result.tested.all() for found in done):
        msg = "A page shows every bag when it was tested, but the splits do not test every bag once. Leave out -o."
        raise BagValidationError(msg)
    with Stages() as progress, said_warnings():
        shared: dict[str, Any] = {"importance": importance, "progress": progress}
        asked = [Validation(f.result, f.data.bags, f.data.name, f.estimator, f.data.y, **shared) for f in done]
        made = Report(summarize_validations(asked))
    say(f"{made.save(target)} is written.")


def _validated(method: Method, data: LabelledBags, protocol: Protocol, client: Any) -> Validated:
    data = with_target(method, data)
    estimator, name = method.estimator(data), method.name_for(data, DEFAULTS)
    data = for_method(estimator, data, client)
    with gmil.own_methods.failures_told(name):
        row, result = _validate(data, name, estimator, protocol)
    return Validated({**row, "missing": method.missing}, result, data, estimator)


def _validate(
    data: LabelledBags, method: str, estimator: BaseEstimator, protocol: Protocol
) -> tuple[dict[str, Any], CVResult]:
    from gmil.model_selection.folds import last_step

    start = time.perf_counter()
    lazy = isinstance(data.bags, gmil.LazyBags)
    watch, count = StreamProgress(data.name, data.bags), Progress(f"{method} on {data.name}")
    with watch as reading, count as progress, said_warnings():
        result = gmil.cross_validate(
            estimator,
            data.bags.watched(reading) if lazy else data.bags,
            data.y,
            cv=protocol.folds if data.folds is None else data.folds,
            repeats=protocol.repeats,
            groups=data.groups,
            instance_y=data.instance_y,
            random_state=protocol.seed,
            n_processes=protocol.jobs,
            progress=None if lazy else progress,
        )
    seconds = time.perf_counter() - start
    of_values = is_of_values(data.target)
    if not of_values and result.auc_folds_dropped():
        folds = count_of(result.auc_folds_dropped(), "fold has", "folds have")
        say(f"{data.name}: {folds} one class only and no AUC.")
    if not of_values:
        _note_decisions(result, last_step(estimator)[1], data.name)
    found = {
        "dataset": data.name,
        "method": method,
        "params": {name: _as_json(value) for name, value in last_step(estimator)[1].get_params(deep=False).items()},
        "folds": result.n_folds,
        "repeats": len(result.folds),
        "seed": protocol.seed,
        "groups": None if data.groups is None else len(set(data.groups.tolist())),
        **result.figures(),
        **_further_figures(result, data.target),
        "fit_seconds": float(result.fit_seconds.sum()),
        "predict_seconds": float(result.predict_seconds.sum()),
        "seconds": seconds,
    }
    return found, result


def _note_decisions(result: CVResult, method: Any, name: str) -> None:
    """Say of how many bags a method that decides has no decision: they leave a gap where the AUC would stand."""
    import numpy as np

    source = next((each for each in ("decision_function", "predict_proba") if hasattr(method, each)), None)
    missing = np.isnan(result.decisions[0]).reshape(*result.tested.shape, -1).all(axis=2) & result.tested
    count = int(missing.any(axis=0).sum())
    if source is not None and count:
        of = f"{count} of {count_of(missing.shape[1], 'bag')}"
        say(f"{name}: {source} of {type(method).__name__} is NaN for {of}. Folds that test one of them have no AUC.")


def _further_figures(result: Any, target: str | None) -> dict[str, Any]:
    """Return figures about instances of classes, and the kappa of grades."""
    if is_of_values(target):
        return {}
    found = {"instances": None if result.instances is None else result.instances.figures()}
    if target != "ordinal":
        return found
    return {**found, "quadratic_kappa": result.kappa(), "quadratic_kappa_interval": list(result.kappa_interval())}


def _as_json(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _print_rows(rows: list[dict[str, Any]]) -> None:
    columns = ["data set", "method", "accuracy", "95 % interval", "AUC", "balanced", "majority", "published", "seconds"]
    cells = [
        [
            row["dataset"],
            row["method"],
            _percent(row["accuracy_mean"]) + (f" ± {100 * row['accuracy_std']:.1f}" if row["repeats"] > 1 else ""),
            f"{_percent(row['accuracy_interval'][0])} - {_percent(row['accuracy_interval'][1])}",
            "-" if row["auc_mean"] is None else f"{row['auc_mean']:.3f}",
            _percent(row["balanced_accuracy_mean"]),
            _percent(row["majority_accuracy"]),
            _published(row),
            f"{row['seconds']:.2f}",
        ]
        for row in rows
    ]
    first = rows[0]
    whole = "" if first["groups"] is None else " of whole groups"
    splits = (
        f"{first['repeats']} x {first['folds']}-fold{whole}"
        if first["folds"] > 1
        else count_of(first["repeats"], "split")
    )
    title = f"{splits}, seed {first['seed']}; accuracies in per cent"
    if "quadratic_kappa" in first:
        columns[2:2] = ["quadratic kappa", "its 95 % interval"]
        for row, line in zip(rows, cells, strict=True):
            low, high = row["quadratic_kappa_interval"]
            line[2:2] = [f"{row['quadratic_kappa']:.3f}", f"{low:.3f} - {high:.3f}"]
    if first["missing"] != "error":
        title += f"; missing values: {first['missing']}"
    print_table(columns, cells, title=title)
    _print_instances([row for row in rows if row["instances"] is not None])


def _print_instances(rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    columns = ["data set", "method", *instance_titles()]
    cells = [[row["dataset"], row["method"], *instance_cells(row["instances"])] for row in rows]
    title = f"Instances of held-out bags that have a label: {', '.join(map(_counted, rows))}"
    print_table(columns, cells, title=title)


def _counted(row: dict[str, Any]) -> str:
    """Return how many instances of a set have a label; of two classes, how many of these are witnesses."""
    found = row["instances"]
    witnesses = f", {found['n_positive']} of them witnesses" if found["n_compared"] == 1 else ""
    return f"{found['n_known']} of {row['dataset']}{witnesses}"


def _published(row: dict[str, Any]) -> str:
    value = gmil.paper.published_accuracy(row["method"], row["dataset"])
    return "-" if value is None else f"{value:.1f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
