"""``gmil slides heatmap``: maps of the scores of patches, and a page of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gmil.cli.console import FAILED, Progress, say
from gmil.cli.options import block_options
from gmil.errors import BagValidationError

if TYPE_CHECKING:
    from gmil.cli.inputs import Reader

_SHOWN_NOTES = 5
_SETTINGS = {"class_label": "label", "above": "threshold", "gzip": "compressed"}
"""Options that have another name in Python."""


@click.group()
def slides() -> None:
    """Map where in slides the scores of patches are high."""


@slides.command()
@click.argument("model")
@click.argument("data", metavar="FOLDER")
@click.option("-o", "--output", required=True, metavar="DIR", help="Where the files go; made where it is not there.")
@click.option("--compare", multiple=True, metavar="MODEL", help="Another model, beside the first on the page.")
@click.option("--slides", "slide_files", metavar="DIR", help="Slide files, whose pictures OpenSlide reads.")
@click.option(
    "--class", "class_label", metavar="LABEL", help="The class to show; by default the positive or predicted one."
)
@click.option(
    "--scale",
    type=click.Choice(["slide", "cohort"]),
    default="slide",
    show_default=True,
    help="Colours from low to high scores of each slide, or of all slides.",
)
@click.option(
    "--value",
    type=click.Choice(["score", "percentile"]),
    default="score",
    show_default=True,
    help="What colours show: scores, or their ranks within the slide.",
)
@click.option("--smooth", is_flag=True, help="Average scores over neighbouring patches.")
@click.option(
    "--colors",
    type=click.Choice(["viridis", "inferno", "cividis", "diverging"]),
    default="viridis",
    show_default=True,
    help="The colour map; diverging is for scores on both sides of 0.",
)
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="GeoJSON of the N highest patches of a slide.")
@click.option("--above", type=float, metavar="VALUE", help="GeoJSON of patches with at least this value.")
@click.option("--gzip", is_flag=True, help="Write .geojson.gz, which QuPath opens too.")
@block_options
def heatmap(
    model: str,
    data: str,
    output: str,
    compare: tuple[str, ...],
    slide_files: str | None,
    reader: Reader,
    **settings: Any,
) -> None:
    """Map the scores that a saved MODEL gives the patches of slides.

    FOLDER has bags whose instance_info has x and y: a folder of slides, or any file that keeps them. Every slide gets a
    PNG, a GeoJSON for QuPath and a CSV file; index.html shows all of them.
    """
    from gmil.heatmaps import write_maps
    from gmil.io import model_files
    from gmil.io.slide_folders import is_slide_folder

    _refuse_same(output, data)
    estimator, origin = model_files.load_with_origin(model)
    models = {Path(model).stem: estimator}
    for path in compare:
        models[_unlike(Path(path).stem, models)] = model_files.load_with_origin(path)[0]
    settings |= {"patch_size": reader.patch_size, "mpp": reader.mpp}
    if not (
        reader.layout or (Path(data).is_dir() and is_slide_folder(Path(data)))
    ):  # what keeps x and y in other files has no sizes to be read with
        reader = reader._replace(patch_size=None, mpp=None)
    found = reader.of_model(estimator, origin).read(data, needs_labels=False)
    for option, name in _SETTINGS.items():
        settings[name] = settings.pop(option)
    title = f"{' and '.join(models)} on {found.name}: maps of slides"
    with Progress("Slides") as progress:
        written = write_maps(
            models, found.bags, output, y=found.y, slides=slide_files, title=title, progress=progress, **settings
        )
    for note in written.notes[:_SHOWN_NOTES]:
        say(note)
    if len(written.notes) > _SHOWN_NOTES:
        say(f"... and {len(written.notes) - _SHOWN_NOTES} notes more.")
    for name, reason in written.failures.items():
        say(f"left out: {name}: {reason}")
    n = len(written.slides)
    say(f"{Path(output) / 'index.html'}: maps of {n} slide{'s' * (n != 1)}." if n else "No slide has a map.")
    if written.failures:
        sys.exit(FAILED)


def _refuse_same(output: str, data: str) -> None:
    if Path(output).exists() and Path(data).exists() and Path(output).samefile(data):
        msg = f"{output} is what is read. Name another folder with --output."
        raise BagValidationError(msg)


def _unlike(name: str, taken: dict[str, Any]) -> str:
    """Return a name that no other model has."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name} {number}", number + 1
    return found
