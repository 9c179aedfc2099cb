"""``gmil fit`` and ``gmil predict``."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import gmil
from gmil.cli.console import StreamProgress, announced, said_warnings, say
from gmil.cli.inputs import cluster, for_method
from gmil.cli.options import block_options, group_block_options, method_options, seed_option
from gmil.cli.targets.kinds import DEFAULTS, is_of_values, value_table, with_target
from gmil.errors import BagValidationError, ModelFileError, count_of
from gmil.safety.atomic import refuse_target, replacing

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from sklearn.base import BaseEstimator

    from gmil import Bags, LazyBags
    from gmil.cli.inputs import LabelledBags, Method, Reader


@click.command()
@click.argument("data")
@click.option("-o", "--output", required=True, metavar="MODEL", help="Where to write the model.")
@method_options
@seed_option("the method")
@group_block_options
def fit(data: str, output: str, method: Method, seed: int, reader: Reader) -> None:
    """Fit a method on DATA, a data set, a file or a folder, and save the model."""
    from gmil.io import model_files
    from gmil.model_selection.folds import fit_with_groups

    with cluster(reader.dask) as client:
        refuse_target(output, data)
        labelled = with_target(method, reader.labelled(data))
        name = method.name_for(labelled, DEFAULTS)
        estimator = method.estimator(labelled, seed)
        _refuse_own(estimator, name)
        labelled = for_method(estimator, labelled, client)
        size = f"{count_of(len(labelled.bags), 'bag')}, {count_of(labelled.bags.n_instances, 'instance')}"
        with announced(f"Fitting {name} on {size}"), reading(labelled) as bags, said_warnings():
            fit_with_groups(estimator, bags, labelled.y, labelled.groups)
        model_files.save(estimator, output, reader.origin_of(labelled.bags))
        say(f"{output}: {name} fitted on {size}.")


def _refuse_own(estimator: BaseEstimator, method: str) -> None:
    """Refuse a class of somebody else's before it is fitted: no file may name code to import."""
    from gmil.io.model_files.registry import is_registered
    from gmil.model_selection.folds import last_step

    last, own = last_step(estimator)[1], gmil.own_methods.own_methods()
    if method in own and not (is_registered(last) or type(last).__module__.startswith("sklearn.")):
        name = type(last).__name__
        msg = (
            f"{name} cannot be saved: a model file holds gmil's estimators only. Own methods run in gmil cv, compare, "
            "benchmark and paper. In Python, joblib keeps a fitted one: "
            f"joblib.dump({name}().fit(bags, y), 'model.joblib')."
        )
        raise ModelFileError(msg)


@click.command()
@click.argument("model")
@click.argument("data")
@click.option("-o", "--output", metavar="FILE", help="A .csv or .parquet file; standard output by default.")
@click.option("--instances", is_flag=True, help="A row and a score per instance instead of a row per bag.")
@click.option("--coverage", type=float, help="Add prediction sets of this coverage, as 0.9: a column set_LABEL each.")
@block_options
def predict(model: str, data: str, output: str | None, instances: bool, coverage: float | None, reader: Reader) -> None:
    """Predict the bags of DATA with a saved MODEL: a label, decision and probability per bag.

    The columns are bag, prediction, decision and probability_LABEL. Of two classes they are about the positive one;
    of several there are a decision_LABEL and a probability_LABEL for each. With --coverage, set_LABEL tells whether the
    label cannot be ruled out. Of values they are bag, prediction and the limits of an interval that holds nine of ten,
    low_90 and high_90; of times bag, risk and median_time.
    """
    from gmil.io import model_files

    with cluster(reader.dask) as client:
        _check_output(output, model, data)
        estimator, origin = model_files.load_with_origin(model)
        found = reader.of_model(estimator, origin).read(data, needs_labels=False)
        with reading(for_method(estimator, found, client)) as bags:
            table = instance_table(estimator, bags) if instances else bag_table(estimator, bags)
            if coverage is not None and not instances:
                table = _with_sets(table, estimator, bags, coverage)
        _write(table, output)
        say(f"{count_of(table.num_rows, 'instance' if instances else 'bag')} predicted.")


@contextlib.contextmanager
def reading(data: LabelledBags) -> Iterator[Any]:
    """Yield the bags; those that are read in blocks show how far they are."""
    if not isinstance(data.bags, gmil.LazyBags):
        yield data.bags
        return
    with StreamProgress(data.name, data.bags) as progress:
        yield data.bags.watched(progress)


def _check_output(output: str | None, *sources: str) -> None:
    if output is None:
        return
    if Path(output).suffix.lower() not in (".csv", ".parquet"):
        msg = f"The output must be a .csv or .parquet file, got {output!r}."
        raise BagValidationError(msg)
    refuse_target(output, *sources)


def bag_table(estimator: Any, bags: Bags | LazyBags) -> pa.Table:
    """Return a row per bag: its id, the predicted label, decisions and probabilities."""
    import numpy as np
    import pyarrow as pa

    from gmil.model_selection.fold_by_fold import positive_class
    from gmil.model_selection.target_crossval import target_of

    if is_of_values(target_of(estimator)):
        return value_table(estimator, bags, _ids(bags))
    decisions = estimator.decision_function(bags)
    model = getattr(estimator, "estimator_", estimator)
    once = isinstance(bags, gmil.LazyBags)  # bags on disk are read for the decisions, and everything follows from these
    predictions = model._labels_of(decisions) if once else estimator.predict(bags)
    probabilities = None
    if hasattr(estimator, "predict_proba"):
        probabilities = model._probabilities_of(decisions) if once else estimator.predict_proba(bags)
    shown = slice(None)
    if decisions.ndim == 1:  # of two classes the table is about the positive one
        column = int(np.flatnonzero(estimator.classes_ == positive_class(estimator))[0])
        decisions = decisions if column == 1 else -decisions
        shown = slice(column, column + 1)
    columns = {"bag": _ids(bags), **_named_columns("prediction", predictions, estimator.classes_)}
    columns |= _named_columns("decision", decisions, estimator.classes_)
    if probabilities is not None:
        columns |= _named_columns("probability", probabilities[:, shown], estimator.classes_[shown])
    return pa.table({name: pa.array(np.asarray(column).tolist()) for name, column in columns.items()})


def _with_sets(table: pa.Table, estimator: Any, bags: Bags | LazyBags, coverage: float) -> pa.Table:
    """Add a column a class: whether it is in the prediction set of the bag."""
    if not hasattr(estimator, "predict_set"):
        msg = "This model has no prediction sets. Fit weighted-gmil or conformal, or leave out --coverage."
        raise BagValidationError(msg)
    for name, column in _named_columns("set", estimator.predict_set(bags, coverage), estimator.classes_).items():
        table = table.append_column(name, [column])
    return table


def instance_table(estimator: Any, bags: Bags | LazyBags) -> pa.Table:
    """Return a row per instance: its bag, its number in it, its info, its scores."""
    import numpy as np
    import pyarrow as pa

    from gmil.model_selection.folds import last_step

    if not hasattr(estimator, "score_instances"):
        msg = f"{type(last_step(estimator)[1]).__name__} has no scores for instances. Leave out --instances."
        raise BagValidationError(msg)
    numbers = np.arange(bags.n_instances) - np.repeat(bags.offsets[:-1], bags.sizes)
    columns: dict[str, Any] = {"bag": pa.array(np.repeat(_ids(bags), bags.sizes).tolist()), "instance": numbers}
    info = bags.instance_info
    if info is not None:
        columns |= {name: info.column(name) for name in info.column_names}
    found = estimator.score_instances(bags)
    scores = _named_columns("score", found, getattr(estimator, "classes_", range(found.shape[-1])))
    # Instances that the model has dropped have no score.
    return pa.table(columns | {name: pa.array(values, from_pandas=True) for name, values in scores.items()})


def _ids(bags: Bags | LazyBags) -> Any:
    import numpy as np

    return np.arange(len(bags)) if bags.bag_ids is None else bags.bag_ids


def _named_columns(name: str, values: Any, classes: Any) -> dict[str, Any]:
    """Return one column, or one for every class."""
    if values.ndim == 1:
        return {name: values}
    return {f"{name}_{label}": values[:, i] for i, label in enumerate(classes)}


def _write(table: pa.Table, output: str | None) -> None:
    import pyarrow.csv

    from gmil.bags.parquet_files import write_parquet

    if output is None:
        pyarrow.csv.write_csv(table, sys.stdout.buffer)
        return
    with replacing(output) as temporary:
        if temporary.suffix.lower() == ".csv":
            pyarrow.csv.write_csv(table, temporary)
        else:
            write_parquet(table, temporary)
