"""``gmil cv``: cross-validate a method on data sets."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gmil.cli.console import Progress, StreamProgress, print_table, said_warnings, say
from gmil.cli.inputs import cluster, for_method
from gmil.cli.options import instance_block_options, jobs_option, json_option, method_options, seed_option
from gmil.cli.results import instance_cells, instance_titles
from gmil.model_selection.crossval import cross_validate
from gmil.model_selection.folds import last_step
from gmil.own_methods import failures_told
from gmil.paper import published_accuracy
from gmil.scale import LazyBags

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from gmil.cli.inputs import LabelledBags, Method, Reader
    from gmil.model_selection.result import CVResult


class Protocol(NamedTuple):
    """How to cross-validate."""

    folds: int
    repeats: int
    seed: int
    jobs: int | None


@click.command()
@click.argument("data", nargs=-1, required=True)
@method_options
@click.option("--folds", default=10, show_default=True, help="Folds of bags, stratified.")
@click.option("--repeats", default=1, show_default=True, help="How often to repeat with other folds.")
@seed_option("folds and method")
@jobs_option("Processes over folds.")
@instance_block_options
@json_option
def cv(data: tuple[str, ...], method: Method, reader: Reader, as_json: bool, **protocol: Any) -> None:
    """Cross-validate a method on DATA: names of data sets, files or folders.

    Folds are stratified; scaling, clusters and everything else are fitted on the training folds only. With --group
    whole groups are left out, of folds and of what a method chooses inside its training folds. With --instances the
    scores of instances, by models that never saw their bags, are measured too: how well they find instances of the
    positive class over all bags (AUC, average precision) and within bags that hold both kinds.
    """
    with cluster(reader.dask) as client:
        rows = [_row(method, reader.labelled(name), Protocol(**protocol), client) for name in data]
        if as_json:
            click.echo(json.dumps(rows, indent=2))
        else:
            _print_rows(rows)


def _row(method: Method, data: LabelledBags, protocol: Protocol, client: Any) -> dict[str, Any]:
    estimator = method.estimator(data)
    with failures_told(method.name):
        found = _validate(for_method(estimator, data, client), method.name, estimator, protocol)
    return {**found, "missing": method.missing}


def _validate(data: LabelledBags, method: str, estimator: BaseEstimator, protocol: Protocol) -> dict[str, Any]:
    start = time.perf_counter()
    lazy = isinstance(data.bags, LazyBags)
    watch, count = StreamProgress(data.name, data.bags), Progress(f"{method} on {data.name}")
    with watch as reading, count as progress, said_warnings():
        result = cross_validate(
            estimator,
            data.bags.watched(reading) if lazy else data.bags,
            data.y,
            cv=protocol.folds,
            repeats=protocol.repeats,
            groups=data.groups,
            instance_y=data.instance_y,
            random_state=protocol.seed,
            n_processes=protocol.jobs,
            progress=None if lazy else progress,
        )
    seconds = time.perf_counter() - start
    if result.auc_folds_dropped():
        say(f"{data.name}: {result.auc_folds_dropped()} folds have one class only and no AUC.")
    return {
        "dataset": data.name,
        "method": method,
        "params": {name: _as_json(value) for name, value in last_step(estimator)[1].get_params(deep=False).items()},
        "folds": protocol.folds,
        "repeats": protocol.repeats,
        "seed": protocol.seed,
        "groups": None if data.groups is None else len(set(data.groups.tolist())),
        **measures(result),
        "instances": None if result.instances is None else result.instances.figures(),
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
    if first["missing"] != "error":
        title += f"; missing values: {first['missing']}"
    print_table(columns, cells, title=title)
    _print_instances([row for row in rows if row["instances"] is not None])


def _print_instances(rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    columns = ["data set", "method", *instance_titles()]
    cells = [[row["dataset"], row["method"], *instance_cells(row["instances"])] for row in rows]
    of = [f"{row['dataset']} {row['instances']['n_positive']} of {row['instances']['n_known']}" for row in rows]
    print_table(columns, cells, title=f"Instances of held-out bags, positive of those with a label: {', '.join(of)}")


def _published(row: dict[str, Any]) -> str:
    value = published_accuracy(row["method"], row["dataset"])
    return "-" if value is None else f"{value:.1f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
