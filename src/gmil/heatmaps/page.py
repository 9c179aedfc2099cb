"""A page of maps: a gallery, and one or two slides to pan, zoom and search; it needs nothing but itself."""

from __future__ import annotations

import base64
import io
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import numpy as np

from gmil.heatmaps.colours import colour_table
from gmil.heatmaps.values import colour_limits
from gmil.safety.atomic import replacing
from gmil.templating import render
from gmil.templating.json_text import script_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gmil.heatmaps.heatmap import HeatMap
    from gmil.heatmaps.places import Places
    from gmil.heatmaps.thumbnails import SlideImage
    from gmil.heatmaps.writing import MapSettings, SlideMaps

MOST_BYTES = 50_000_000
"""Of the page; a patch takes about six, the picture of a slide about 100 000."""
_PICTURE = 900
"""Pixels of the longer side of a slide's picture on the page."""


class PageSlide(NamedTuple):
    """What the page has of one slide, as plain data."""

    n_bytes: int
    certainty: float
    data: dict[str, Any]


def page_slide(slide: SlideMaps, image: SlideImage | None = None, files: Sequence[list[str]] = ()) -> PageSlide:
    """Return a slide as the page needs it.

    Parameters
    ----------
    slide : SlideMaps
    image : SlideImage, optional
        What lies below the maps.
    files : sequence of list of str
        The files of every map, relative to the page.
    """
    places = slide.maps[0].places
    if image is not None and places.unit == "um":
        image = None if image.mpp is None else image
        places = places if image is None else places.in_pixels(image.mpp)
    results = [
        {
            **outcome._asdict(),
            "certainty": round(outcome.certainty, 6),
            "limits": list(found.limits if found.value == "score" else colour_limits(found.scores, found.colors)),
            "legend": replace(found, value="score").legend,
            "files": [quote(file) for file in (files[i] if files else [])],
        }
        for i, (found, outcome) in enumerate(zip(slide.maps, slide.outcomes, strict=True))
    ]
    data = {
        "name": slide.name,
        "bag": slide.bag,
        "given": slide.given,
        "n": len(places),
        "unit": places.unit,
        "picture": None if image is None else _picture(image),
        "results": results,
        **_packed(places, slide.maps),
    }
    size = len(data["packed"]) + (0 if image is None else len(data["picture"]["source"]))
    return PageSlide(size, slide.outcomes[0].certainty, data)


def _packed(places: Places, maps: Sequence[HeatMap]) -> dict[str, Any]:
    """Return places and scores as compressed bytes: differences of whole numbers, then scores of every model."""
    unit = 1.0 if all((axis == axis.round()).all() for axis in (places.x, places.y)) else 0.01
    columns = [np.round(axis / unit).astype(np.int64) for axis in (places.x, places.y)]
    steps = [np.diff(column, prepend=0).astype("<i4").tobytes() for column in columns]
    scores = [found.scores.astype("<f4").tobytes() for found in maps]
    sides = places.drawn_side
    one = bool((sides == sides[0]).all())
    extra = [] if one else [sides.astype("<f4").tobytes()]
    packed = base64.b64encode(zlib.compress(b"".join([*steps, *scores, *extra]), 6)).decode()
    return {"step": unit, "side": float(sides[0]) if one else None, "packed": packed}


def _picture(image: SlideImage) -> dict[str, Any]:
    """Return the picture of a slide as a small JPEG; who has OpenSlide has Pillow."""
    from PIL import Image

    picture, buffer = Image.fromarray(image.pixels), io.BytesIO()
    picture.thumbnail((_PICTURE, _PICTURE))
    picture.save(buffer, "JPEG", quality=80)
    source = f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    return {"source": source, "width": image.width, "height": image.height}


def page_data(slides: Sequence[PageSlide], models: Sequence[str], colors: str, value: str, scale: str) -> str:
    """Return what the script of the viewer needs, as JSON."""
    colours = colour_table(colors).tolist()
    data = {"models": list(models), "value": value, "scale": scale, "colours": colours}
    return script_json({**data, "slides": [slide.data for slide in slides]})


def write_page(
    path: Path, slides: Sequence[PageSlide], models: Sequence[str], title: str, settings: MapSettings
) -> None:
    """Write the page; of more slides than it can hold, it has some, evenly spaced in the order of certainty."""
    ordered = sorted(slides, key=lambda slide: -slide.certainty)
    shown = within(ordered, MOST_BYTES)
    text = render(
        "gmil.heatmaps",
        "templates",
        "page.html.j2",
        title=title,
        n_slides=len(slides),
        n_shown=len(shown),
        viewer=viewer(shown, models, settings.colors, settings.value, settings.scale),
    )
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def viewer(slides: Sequence[PageSlide], models: Sequence[str], colors: str, value: str, scale: str) -> str:
    """Return the gallery and the viewer as a part of a page: its own style, data and script."""
    data = page_data(slides, models, colors, value, scale)
    return render("gmil.heatmaps", "templates", "viewer.html.j2", data=data, several=len(models) > 1)


def within(slides: list[PageSlide], most: int) -> list[PageSlide]:
    """Return slides that take at most so many bytes together, evenly spaced; at least one."""
    n = len(slides)
    while n > 1:
        chosen = [slides[i] for i in np.unique(np.linspace(0, len(slides) - 1, n).round().astype(int))]
        if sum(slide.n_bytes for slide in chosen) <= most:
            return chosen
        n = min(n - 1, int(n * 0.9))
    return slides[:1]
