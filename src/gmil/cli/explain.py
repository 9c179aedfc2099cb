"""``gmil explain``: what decided about one bag."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from gmil.cli.console import print_table
from gmil.cli.inputs import Reader
from gmil.cli.model import bag_table, instance_table
from gmil.errors import BagValidationError, listed

if TYPE_CHECKING:
    from gmil.bags import Bags


@click.command()
@click.argument("model")
@click.argument("data")
@click.option("--bag", "bag_id", metavar="ID", required=True, help="Which bag, by its id.")
@click.option("--bag-column", metavar="COLUMN", help="Column with the bag of every instance.")
@click.option("--top", default=10, show_default=True, help="How many instances to list, by score.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def explain(model: str, data: str, bag_id: str, bag_column: str | None, top: int, as_json: bool) -> None:
    """Explain what a saved MODEL predicts for one bag of DATA.

    It lists the instances by their score, the highest first, and the explanation that the method gives of the bag.
    """
    from gmil.io import model_files
    from gmil.model_selection.folds import last_step

    estimator, origin = model_files.load_with_origin(model)
    found = Reader(bag=bag_column).of_model(estimator, origin).read(data, in_memory=True, needs_labels=False)
    bag = found.bags[[_position(found.bags, bag_id)]]
    about = bag_table(estimator, bag).to_pylist()[0]
    reason = str(estimator.explain(bag)) if hasattr(estimator, "explain") else None
    rows = _ranked(estimator, bag)
    if as_json:
        click.echo(json.dumps({**about, "explanation": reason, "instances": rows[:top]}, indent=2, default=str))
        return
    click.echo(", ".join(f"{name} {_text(value)}" for name, value in about.items()))
    if reason is not None:
        click.echo(reason)
    if not rows:
        click.echo(f"{type(last_step(estimator)[1]).__name__} gives no scores to instances.")
        return
    title = f"{min(top, len(rows))} of {len(rows)} instances, the highest score first"
    print_table(list(rows[0]), [[_text(value) for value in row.values()] for row in rows[:top]], title=title)


def _position(bags: Bags, bag_id: str) -> int:
    """Return the place of the bag whose id is written so."""
    names = [str(name) for name in (range(len(bags)) if bags.bag_ids is None else bags.bag_ids.tolist())]
    if bag_id not in names:
        msg = f"There is no bag {bag_id!r}; the bags are {listed(names, most=12)}."
        raise BagValidationError(msg, parameter="bag", fix="Name another with {bag}")
    return names.index(bag_id)


def _ranked(estimator: Any, bag: Bags) -> list[dict[str, Any]]:
    """Return the instances of a bag with their scores, best first; those without a score last."""
    if not hasattr(estimator, "score_instances"):
        return []
    import numpy as np

    rows = instance_table(estimator, bag).drop_columns(["bag"]).to_pylist()
    scored = [name for name in rows[0] if name == "score" or name.startswith("score_")]
    column = scored[-1] if len(scored) == 1 else scored[int(np.argmax(np.ravel(estimator.decision_function(bag))))]
    return sorted(rows, key=lambda row: (row[column] is None, -(row[column] or 0.0)))


def _text(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
