"""The picture of a map: patches on white or on the slide, and below a legend that names what is shown."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.heatmaps.colours import LEVELS, colour_table, colour_values
from gmil.heatmaps.lattice import Grid, grid_around, rasterize
from gmil.heatmaps.png import text_coverage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.heatmaps.heatmap import HeatMap
    from gmil.heatmaps.thumbnails import SlideImage

OPACITY = 0.5
"""Of the map on a slide: between the 0.4 and 0.6 that others take."""
_NARROWEST = 320
_READABLE = 1000
"""Pixels of width for which letters are made."""
_MARGIN, _BAR = 10, 14
_INK = 40


def draw_patches(found: HeatMap, grid: Grid | None = None) -> NDArray[np.uint8]:
    """Return the patches as red, green, blue and opacity; where there is no patch, nothing.

    Parameters
    ----------
    found : HeatMap
    grid : Grid, optional
        By default one around all patches.

    Returns
    -------
    array of shape (height, width, 4)
    """
    values = rasterize(found.places, found.values, grid_around(found.places) if grid is None else grid)
    opaque = np.where(np.isnan(values), 0, 255).astype(np.uint8)
    return np.dstack([colour_values(values, found.limits, found.colors) * (opaque > 0)[..., None], opaque])


def draw_picture(found: HeatMap, slide: SlideImage | None = None, *, legend: bool = True) -> NDArray[np.uint8]:
    """Return the whole picture, (height, width, 3).

    Parameters
    ----------
    found : HeatMap
    slide : SlideImage, optional
        What lies below the patches; white without one.
    legend : bool
    """
    if slide is None:
        patches = draw_patches(found)
        picture = np.full((*patches.shape[:2], 3), 255, dtype=np.uint8)
        share = 1.0
    else:
        picture = np.array(slide.pixels)
        height, width = picture.shape[:2]
        patches = draw_patches(found.at_pixels_of(slide), Grid(0.0, 0.0, slide.width / width, width, height))
        share = OPACITY
    covered = patches[..., 3] > 0
    picture[covered] = _clip(share * patches[covered, :3] + (1 - share) * picture[covered])
    return _stacked([picture, _enlarged_legend(found, max(picture.shape[1], _NARROWEST))]) if legend else picture


def _enlarged_legend(found: HeatMap, width: int) -> NDArray[np.uint8]:
    """Return a legend that can be read where the picture is large and shown small."""
    times = max(1, round(width / _READABLE))
    return draw_legend(found, width // times).repeat(times, axis=0).repeat(times, axis=1)


def draw_legend(found: HeatMap, width: int) -> NDArray[np.uint8]:
    """Return a bar of the colours with its ends, and below it what is shown, (height, width, 3)."""
    bar = np.full((_BAR, width, 3), 255, dtype=np.uint8)
    colours = colour_table(found.colors)[np.linspace(0, LEVELS - 1, width - 2 * _MARGIN).astype(int)]
    bar[:, _MARGIN : width - _MARGIN] = colours
    low, high = (text_coverage(text) for text in found.limit_texts())
    ends = np.zeros((low.shape[0], width))
    ends[:, _MARGIN : _MARGIN + low.shape[1]] = low[:, : width - _MARGIN]
    ends[:, width - _MARGIN - high.shape[1] : width - _MARGIN] += high
    letter = text_coverage("abcdefghij").shape[1] / 10
    lines = textwrap.wrap(found.legend, int((width - 2 * _MARGIN) / letter * 1.05))
    blank = np.full((_MARGIN, width, 3), 255, dtype=np.uint8)
    return np.vstack([blank, bar, _inked(ends), *(_inked(_line(text, width)) for text in lines), blank])


def _line(text: str, width: int) -> NDArray[Any]:
    letters = text_coverage(text)[:, : width - _MARGIN]
    return np.pad(letters, ((0, 0), (_MARGIN, width - _MARGIN - letters.shape[1])))


def _inked(coverage: NDArray[Any]) -> NDArray[np.uint8]:
    return np.repeat(_clip(255 - (255 - _INK) * np.clip(coverage, 0, 1))[..., None], 3, axis=2)


def _stacked(parts: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Return pictures one below the other, on white."""
    width = max(part.shape[1] for part in parts)
    wide = [np.pad(p, ((0, 0), (0, width - p.shape[1]), (0, 0)), constant_values=255) for p in parts]
    return np.vstack(wide)


def _clip(values: NDArray[Any]) -> NDArray[np.uint8]:
    return np.clip(np.round(values), 0, 255).astype(np.uint8)
