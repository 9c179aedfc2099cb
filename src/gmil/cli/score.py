"""``gmil score``: how well a saved model predicts bags whose labels are known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from gmil.cli.console import print_table
from gmil.cli.inputs import for_method
from gmil.cli.options import group_options, json_option
from gmil.cli.results import number, percent
from gmil.cli.targets.kinds import is_of_values, score_table
from gmil.errors import count_of

if TYPE_CHECKING:
    from gmil.cli.inputs import LabelledBags, Reader
    from gmil.model_selection.scoring import Measured, Scores


@click.command()
@click.argument("model")
@click.argument("data")
@group_options
@json_option
def score(model: str, data: str, reader: Reader, as_json: bool) -> None:
    """Score a saved MODEL on DATA with labels.

    Intervals are by bootstrap over bags, or over groups. Take bags that the model was not fitted on: on others every
    figure is too good.
    """
    from gmil.io import model_files
    from gmil.model_selection.scoring import score_model
    from gmil.model_selection.target_crossval import target_of

    estimator, origin = model_files.load_with_origin(model)
    found = for_method(estimator, reader.of_model(estimator, origin).labelled(data))
    n_seen = origin.count_seen(found.bags)
    about = {"model": model, "dataset": found.name, "bags": len(found.bags), "training_bags": n_seen}
    title = f"{model} on {found.name}: {count_of(len(found.bags), 'bag')}{about_seen(n_seen)}"
    if is_of_values(target_of(estimator)):
        score_table(estimator, found, about, title, as_json=as_json)
        return
    scores = score_model(estimator, found.bags, found.y, found.groups)
    kappa = quadratic_kappa_of(estimator, found) if target_of(estimator) == "ordinal" else None
    if as_json:
        grades = {}
        if kappa is not None:
            grades = {"quadratic_kappa": kappa.value, "quadratic_kappa_interval": [kappa.low, kappa.high]}
        click.echo(json.dumps({**about, **_plain(scores), **grades}, indent=2))
        return
    _print(scores, title, kappa)


def about_seen(n_seen: int) -> str:
    """Return how many bags the model was fitted on, where there are any."""
    return f", {n_seen} of them training bags of the model, on which figures are no test" if n_seen else ""


def _plain(scores: Scores) -> dict[str, Any]:
    """Return scores as JSON can say them."""
    measures = {
        name: {"value": None, "interval": None}
        if value.value != value.value
        else {"value": value.value, "interval": [value.low, value.high]}
        for name, value in scores._asdict().items()
        if name in ("accuracy", "balanced_accuracy", "auc", "brier")
    }
    confusion = {"classes": scores.classes, "confusion": scores.confusion.tolist()}
    return {**measures, "majority_accuracy": scores.majority, "positive": scores.positive, **confusion}


def quadratic_kappa_of(estimator: Any, found: LabelledBags) -> Measured:
    """Return the quadratic kappa of the grades that a model predicts, with its interval over bags or groups."""
    import numpy as np

    from gmil.model_selection.folds import last_step
    from gmil.model_selection.scoring import Measured
    from gmil.model_selection.target_metrics import kappa_interval, quadratic_kappa

    rank, classes = last_step(estimator)[1].order_, estimator.classes_
    true, predicted = (rank[np.searchsorted(classes, labels)] for labels in (found.y, estimator.predict(found.bags)))
    limits = kappa_interval(true, predicted[:, None], found.groups)
    return Measured(quadratic_kappa(true, predicted), *limits)


def _print(scores: Scores, title: str, kappa: Measured | None = None) -> None:
    about = "" if scores.positive is None else f" ({scores.positive!r} against the other class)"
    rows = [
        ["accuracy, per cent", *_cells(scores.accuracy, percent)],
        ["balanced accuracy, per cent", *_cells(scores.balanced_accuracy, percent)],
        [f"AUC{about}", *_cells(scores.auc, lambda value: number(value, ".3f"))],
        ["Brier score (0 is best)", *_cells(scores.brier, lambda value: number(value, ".3f"))],
        ["accuracy of the majority class", percent(scores.majority), ""],
    ]
    if kappa is not None:
        rows.insert(0, ["quadratic kappa", *_cells(kappa, lambda value: number(value, ".3f"))])
    print_table(["measure", "value", "95 % interval"], rows, title=title)
    click.echo()
    names = [repr(label) for label in scores.classes]
    cells = [[name, *map(str, row)] for name, row in zip(names, scores.confusion.tolist(), strict=True)]
    print_table(["label", *(f"predicted {name}" for name in names)], cells, title="Confusion matrix, in bags")


def _cells(measured: Measured, written: Any) -> tuple[str, str]:
    if measured.value != measured.value:
        return "-", ""
    return written(measured.value), f"{written(measured.low)} - {written(measured.high)}"
