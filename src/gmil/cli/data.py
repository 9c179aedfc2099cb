"""``gmil data list | info | convert | make``."""

from __future__ import annotations

import json
from typing import Any

import click
import numpy as np

from gmil import datasets
from gmil.cli.console import Progress, clear_errors, print_table, say
from gmil.cli.inputs import LabelledBags, data_options, read_data
from gmil.errors import listed
from gmil.safety.atomic import refuse_target


@click.group()
def data() -> None:
    """List, look at and convert data."""


@data.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def list_data(as_json: bool) -> None:
    """List the data sets that gmil knows."""
    with clear_errors():
        known = [datasets.describe(name) for name in datasets.dataset_names()]
        if as_json:
            fields = ("name", "kind", "n_bags", "n_positive", "n_instances", "n_features", "licence", "title")
            click.echo(json.dumps([{name: getattr(info, name) for name in fields} for info in known], indent=2))
            return
        rows = [
            [i.name, i.kind, str(i.n_bags), str(i.n_positive), str(i.n_instances), str(i.n_features), i.licence]
            for i in known
        ]
        print_table(["name", "kind", "bags", "positive", "instances", "features", "licence"], rows)


@data.command()
@click.argument("source", metavar="DATA")
@data_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def info(source: str, bag: str | None, label: str | None, features: str | None, as_json: bool) -> None:
    """Describe DATA, a data set or a file: bags, instances, sizes, classes."""
    with clear_errors():
        found = summary(read_data(source, bag, label, features))
        if as_json:
            click.echo(json.dumps(found, indent=2))
            return
        print_table(["", "value"], [[name, _as_text(value)] for name, value in found.items()])
        if source in datasets.dataset_names():
            say(str(datasets.describe(source)))


def _as_text(value: Any) -> str:
    return listed([str(item) for item in value], most=10) if isinstance(value, list) else str(value)


def summary(data: LabelledBags) -> dict[str, Any]:
    """Return what ``gmil data info`` says about bags."""
    bags, sizes = data.bags, data.bags.sizes
    labels = {} if data.y is None else dict(zip(*np.unique(data.y, return_counts=True), strict=True))
    return {
        "dataset": data.name,
        "bags": len(bags),
        "instances": bags.n_instances,
        "features": bags.n_features,
        "feature names": list(bags.feature_names or ()),
        "dtype": str(bags.dtype),
        "smallest bag": int(sizes.min()),
        "median bag": float(np.median(sizes)),
        "largest bag": int(sizes.max()),
        "classes": {str(name): int(count) for name, count in labels.items()},
        "info columns": [] if getattr(bags, "instance_info", None) is None else bags.instance_info.column_names,
    }


@data.command()
@click.argument("kind", type=click.Choice(["med11"]))
@click.option("-o", "--output", required=True, metavar="DIR", help="The folder to write; it must not exist.")
@click.option("--bags", default=813, show_default=True, help="Videos.")
@click.option("--instances", default=2_600_000, show_default=True, help="Frames of all videos.")
@click.option("--features", default=1000, show_default=True, help="Words, so numbers a frame.")
@click.option("--events", default=5, show_default=True, help="Events; a video takes one.")
@click.option("--seed", default=0, show_default=True, help="Seed.")
def make(kind: str, output: str, bags: int, instances: int, features: int, events: int, seed: int) -> None:
    """Make data to order: med11, frames of videos as word histograms with hidden witnesses, as Parquet files."""
    with clear_errors(), Progress(f"{kind}, instances") as progress:
        datasets.make_med11(
            output,
            n_bags=bags,
            n_instances=instances,
            n_features=features,
            n_events=events,
            random_state=seed,
            progress=progress,
        )
        say(f"{output}: {bags} bags, {instances} instances written.")


@data.command()
@click.argument("source", metavar="DATA")
@click.argument("target")
@data_options
def convert(source: str, target: str, bag: str | None, label: str | None, features: str | None) -> None:
    """Write DATA, a data set or a file, to TARGET in the format of its suffix."""
    with clear_errors():
        refuse_target(target, source)
        found = read_data(source, bag, label, features, stream=False)
        datasets.write(target, found.bags, found.y)
        say(f"{target}: {len(found.bags)} bags, {found.bags.n_instances} instances written.")
