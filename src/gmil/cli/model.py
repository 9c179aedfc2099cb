"""``gmil fit`` and ``gmil predict``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from gmil import persistence
from gmil.cli.console import clear_errors, say
from gmil.cli.inputs import choose_method, data_options, make_estimator, method_options, read_data, require_labels
from gmil.errors import BagValidationError
from gmil.files import replacing
from gmil.model_selection import positive_class

if TYPE_CHECKING:
    import pyarrow as pa

    from gmil.bags import Bags


@click.command()
@click.argument("data")
@click.option("-o", "--output", required=True, metavar="MODEL", help="Where to write the model.")
@method_options
@click.option("--paper", is_flag=True, help="Use the settings that the paper prints for the data set.")
@click.option("--seed", default=0, show_default=True, help="Seed of the method.")
@data_options
def fit(
    data: str,
    output: str,
    method: str | None,
    settings: tuple[str, ...],
    positive: str | None,
    paper: bool,
    seed: int,
    bag: str | None,
    label: str | None,
    features: str | None,
) -> None:
    """Fit a method on DATA, a data set or a file, and save the model."""
    from gmil.cli.cv import paper_parameters

    with clear_errors():
        labelled = require_labels(read_data(data, bag, label, features))
        chosen = choose_method(method, paper)
        start = paper_parameters(labelled.name, paper)
        estimator = make_estimator(chosen, settings, positive, labelled.y, start)
        if "random_state" in estimator.get_params() and not any(s.startswith("random_state=") for s in settings):
            estimator.set_params(random_state=seed)
        estimator.fit(labelled.bags, labelled.y)
        persistence.save(estimator, output)
        say(f"{output}: {chosen} fitted on {len(labelled.bags)} bags, {labelled.bags.n_instances} instances.")


@click.command()
@click.argument("model")
@click.argument("data")
@click.option("-o", "--output", metavar="FILE", help="A .csv or .parquet file; standard output by default.")
@click.option("--instances", is_flag=True, help="A row and a score per instance instead of a row per bag.")
@data_options
def predict(
    model: str,
    data: str,
    output: str | None,
    instances: bool,
    bag: str | None,
    label: str | None,
    features: str | None,
) -> None:
    """Predict the bags of DATA with a saved MODEL: a label, decision and probability per bag."""
    with clear_errors():
        _check_output(output)
        estimator = persistence.load(model)
        bags = read_data(data, bag, label, features).bags
        table = instance_table(estimator, bags) if instances else bag_table(estimator, bags)
        _write(table, output)
        say(f"{table.num_rows} {'instances' if instances else 'bags'} predicted.")


def _check_output(output: str | None) -> None:
    if output is not None and Path(output).suffix not in (".csv", ".parquet"):
        msg = f"The output must be a .csv or .parquet file, got {output!r}."
        raise BagValidationError(msg)


def bag_table(estimator: Any, bags: Bags) -> pa.Table:
    """Return a row per bag: its id, the predicted label, decisions and probabilities."""
    import pyarrow as pa

    columns = {"bag": _ids(bags), "prediction": estimator.predict(bags)}
    decisions = estimator.decision_function(bags)
    columns |= _named_columns("decision", decisions, estimator.classes_)
    if hasattr(estimator, "predict_proba"):
        probabilities = estimator.predict_proba(bags)
        if decisions.ndim == 1:
            probabilities = probabilities[:, np.flatnonzero(estimator.classes_ == positive_class(estimator))[0]]
        columns |= _named_columns("probability", probabilities, estimator.classes_)
    return pa.table({name: pa.array(np.asarray(column).tolist()) for name, column in columns.items()})


def instance_table(estimator: Any, bags: Bags) -> pa.Table:
    """Return a row per instance: its bag, its number in it, its info, its scores."""
    import pyarrow as pa

    if not hasattr(estimator, "score_instances"):
        msg = f"{type(estimator).__name__} has no scores for instances. Leave out --instances."
        raise BagValidationError(msg)
    numbers = np.arange(bags.n_instances) - np.repeat(bags.offsets[:-1], bags.sizes)
    columns: dict[str, Any] = {"bag": pa.array(np.repeat(_ids(bags), bags.sizes).tolist()), "instance": numbers}
    if bags.instance_info is not None:
        columns |= {name: bags.instance_info.column(name) for name in bags.instance_info.column_names}
    columns |= _named_columns("score", estimator.score_instances(bags), estimator.classes_)
    return pa.table(columns)


def _ids(bags: Bags) -> Any:
    return np.arange(len(bags)) if bags.bag_ids is None else bags.bag_ids


def _named_columns(name: str, values: Any, classes: Any) -> dict[str, Any]:
    """Return one column, or one for every class."""
    if values.ndim == 1:
        return {name: values}
    return {f"{name}_{label}": values[:, i] for i, label in enumerate(classes)}


def _write(table: pa.Table, output: str | None) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    if output is None:
        pyarrow.csv.write_csv(table, sys.stdout.buffer)
        return
    with replacing(output) as temporary:
        if temporary.suffix == ".csv":
            pyarrow.csv.write_csv(table, temporary)
        else:
            pyarrow.parquet.write_table(table, temporary)
