"""``gmil data list | show | info | convert | make``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

import gmil
from gmil.cli.console import Progress, print_table, say
from gmil.cli.options import data_options, json_option, seed_option
from gmil.errors import count_of, listed
from gmil.safety.atomic import refuse_target

if TYPE_CHECKING:
    from gmil.cli.inputs import LabelledBags, Reader


@click.group()
def data() -> None:
    """List, describe and convert data."""


@data.command("list")
@json_option
def list_data(as_json: bool) -> None:
    """List the data sets that gmil knows."""
    known = [gmil.datasets.describe(name) for name in gmil.datasets.dataset_names()]
    if as_json:
        fields = ("name", "kind", "task", "n_bags", "n_positive", "n_instances", "n_features", "licence", "title")
        click.echo(json.dumps([{name: getattr(info, name) for name in fields} for info in known], indent=2))
        return
    rows = [
        [i.name, i.kind, i.task, *map(_count, (i.n_bags, i.n_positive, i.n_instances, i.n_features)), i.licence]
        for i in known
    ]
    print_table(["name", "kind", "task", "bags", "positive", "instances", "features", "licence"], rows)


def _count(n: int | None) -> str:
    """Return a number of things; videos have no instances yet, and bags with values no positive ones."""
    return str(n) if n else "-"


@data.command("show")
@click.argument("name")
def show_card(name: str) -> None:
    """Show the card of the data set NAME: source, licence, folds, how its labels are checked, defects of copies."""
    click.echo(str(gmil.datasets.describe(name)))


@data.command()
@click.argument("source", metavar="DATA")
@data_options
@json_option
def info(source: str, reader: Reader, as_json: bool) -> None:
    """Describe DATA, a data set or a file: bags, instances, sizes, classes."""
    found = summary(reader.read(source))
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    print_table(["", "value"], [[name, _as_text(value)] for name, value in found.items()])
    if source in gmil.datasets.dataset_names():
        say(str(gmil.datasets.describe(source)))


def _as_text(value: Any) -> str:
    if isinstance(value, dict):
        return listed([f'{count} of "{label}"' for label, count in value.items()], most=10)
    return listed([str(item) for item in value], most=10) if isinstance(value, list) else str(value)


def summary(data: LabelledBags) -> dict[str, Any]:
    """Return what ``gmil data info`` says about bags."""
    import numpy as np

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


@data.group()
def make() -> None:
    """Generate data: frames of videos, or slides."""


_new_folder = click.option(
    "-o", "--output", required=True, metavar="DIR", help="The folder to write; it must not exist."
)


@make.command()
@_new_folder
@click.option("--bags", "n_bags", default=813, show_default=True, help="Videos.")
@click.option("--instances", "n_instances", default=2_600_000, show_default=True, help="Frames of all videos.")
@click.option("--features", "n_features", default=1000, show_default=True, help="Words, so numbers a frame.")
@click.option("--events", "n_events", default=5, show_default=True, help="Events; a video takes one.")
@click.option("--seed", "random_state", default=0, show_default=True, help="Seed.")
def med11(output: str, **sizes: int) -> None:
    """Generate frames of videos as word histograms with hidden witnesses, as Parquet files."""
    with Progress("med11, instances") as progress:
        gmil.datasets.make_med11(output, progress=progress, **sizes)
        say(f"{output}: {sizes['n_bags']} bags, {sizes['n_instances']} instances written.")


@make.command()
@_new_folder
@click.option("--layout", default="trident", show_default=True, metavar="TOOL", help="As which tool writes them.")
@click.option("--slides", "n_slides", default=60, show_default=True, help="Slides.")
@click.option("--patches", "n_patches", default=300, show_default=True, help="Patches a slide.")
@click.option("--features", "n_features", default=64, show_default=True, help="Numbers a patch.")
@click.option("--tumour-share", default=0.02, show_default=True, help="Share of tumour patches in positive slides.")
@click.option("--separation", default=5.0, show_default=True, help="Distance of tumour from other patches.")
@click.option("--dtype", default="float16", show_default=True, help="float16, float32 or float64.")
@seed_option("all slides")
def slides(output: str, seed: int, **how: Any) -> None:
    """Generate slides with known tumour regions: embeddings of patches, coordinates, labels and patients."""
    with Progress("slides") as progress:
        made = gmil.make_slides(output, random_state=seed, progress=progress, **how)
    options = f"--bag {made.bag} --label {made.label} --group {made.group}"
    tables = [made.labels] if isinstance(made.labels, str) else made.labels
    say(f"{output} is written: {how['n_slides']} slides as {how['layout']} writes them. Validate with")
    say(f"  gmil cv {output} {' '.join(f'--labels {table}' for table in tables)} {options}")


@data.command()
@click.argument("source", metavar="DATA")
@click.argument("target")
@data_options
@click.option("--dtype", type=click.Choice(["float32", "float64"]), help="Of features; float32 in Parquet by default.")
def convert(source: str, target: str, reader: Reader, dtype: str | None) -> None:
    """Write DATA, a data set or a file, to TARGET in the format of its suffix."""
    refuse_target(target, source)
    found = reader.read(source, in_memory=True)
    gmil.datasets.write(target, found.bags, found.y, dtype=dtype)
    say(f"{target}: {count_of(len(found.bags), 'bag')}, {count_of(found.bags.n_instances, 'instance')} written.")
