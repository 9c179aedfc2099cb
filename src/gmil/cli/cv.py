"""``gmil cv``: cross-validate a method on data sets."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import click

from gmil.cli.console import Progress, StreamProgress, clear_errors, print_table, say
from gmil.cli.inputs import (
    LabelledBags,
    choose_method,
    cluster,
    data_options,
    for_method,
    group_option,
    make_estimator,
    method_options,
    read_data,
    require_labels,
    stream_options,
)
from gmil.greedy import GMIL
from gmil.model_selection.crossval import cross_validate
from gmil.paper import published_accuracy
from gmil.scale import LazyBags

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from gmil.model_selection.result import CVResult


@click.command()
@click.argument("data", nargs=-1, required=True)
@method_options
@click.option("--paper", is_flag=True, help="Use the settings that the paper prints for each data set.")
@click.option("--folds", default=10, show_default=True, help="Folds of bags, stratified.")
@click.option("--repeats", default=1, show_default=True, help="How often to repeat with other folds.")
@click.option("--seed", default=0, show_default=True, help="Seed of folds and method.")
@click.option("--jobs", type=int, help="Processes over folds.")
@data_options
@group_option
@stream_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def cv(
    data: tuple[str, ...],
    method: str | None,
    settings: tuple[str, ...],
    positive: str | None,
    paper: bool,
    folds: int,
    repeats: int,
    seed: int,
    jobs: int | None,
    bag: str | None,
    label: str | None,
    features: str | None,
    group: str | None,
    stream: bool,
    dask: str | None,
    as_json: bool,
) -> None:
    """Cross-validate a method on DATA: names of data sets, files or folders.

    Folds are stratified; scaling, clusters and everything else are fitted on the training folds only. With --group
    whole groups are left out, of folds and of what a method chooses inside its training folds.
    """
    with clear_errors(), cluster(dask) as client:
        chosen = choose_method(method, paper)
        rows = []
        for name in data:
            streamed = stream or bool(dask) or None
            labelled = require_labels(read_data(name, bag, label, features, group=group, stream=streamed))
            start = paper_parameters(labelled.name, paper)
            estimator = make_estimator(chosen, settings, positive, labelled.y, start)
            labelled = for_method(estimator, labelled, client)
            rows.append(_validate(labelled, chosen, estimator, folds, repeats, seed, jobs))
        if as_json:
            click.echo(json.dumps(rows, indent=2))
        else:
            _print_rows(rows)


def paper_parameters(dataset: str, paper: bool) -> dict[str, Any]:
    """Return the parameters that the paper prints for a data set, where they are asked for."""
    return GMIL.from_paper(dataset).get_params() if paper else {}


def _validate(
    data: LabelledBags,
    method: str,
    estimator: BaseEstimator,
    folds: int,
    repeats: int,
    seed: int,
    jobs: int | None,
) -> dict[str, Any]:
    start = time.perf_counter()
    lazy = isinstance(data.bags, LazyBags)
    with StreamProgress(data.name) as reading, Progress(f"{method} on {data.name}") as progress:
        result = cross_validate(
            estimator,
            data.bags.watched(reading) if lazy else data.bags,
            data.y,
            cv=folds,
            repeats=repeats,
            groups=data.groups,
            random_state=seed,
            n_jobs=jobs,
            progress=None if lazy else progress,
        )
    seconds = time.perf_counter() - start
    if result.auc_folds_dropped():
        say(f"{data.name}: {result.auc_folds_dropped()} folds have one class only and no AUC.")
    return {
        "dataset": data.name,
        "method": method,
        "params": {name: _as_json(value) for name, value in estimator.get_params(deep=False).items()},
        "folds": folds,
        "repeats": repeats,
        "seed": seed,
        "groups": None if data.groups is None else len(set(data.groups.tolist())),
        **measures(result),
        "fit_seconds": float(result.fit_seconds.sum()),
        "predict_seconds": float(result.predict_seconds.sum()),
        "seconds": seconds,
    }


def measures(result: CVResult) -> dict[str, Any]:
    """Return what ``gmil cv --json`` reports of one setting."""
    auc = result.auc()
    return {
        "accuracy_mean": result.accuracy(),
        "accuracy_std": result.accuracy_std() if len(result.folds) > 1 else None,
        "accuracy_interval": list(result.accuracy_interval()),
        "auc_mean": None if auc != auc else auc,
        "auc_folds_dropped": result.auc_folds_dropped(),
        "balanced_accuracy_mean": result.balanced_accuracy(),
        "majority_accuracy": result.majority_accuracy(),
    }


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
    title = f"{first['repeats']} x {first['folds']}-fold{whole}, seed {first['seed']}; accuracies in per cent"
    print_table(columns, cells, title=title)


def _published(row: dict[str, Any]) -> str:
    value = published_accuracy(row["method"], row["dataset"])
    return "-" if value is None else f"{value:.1f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
