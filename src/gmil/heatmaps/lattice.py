"""From patches to pixels: the mean of all patches that cover a pixel, and nothing where none does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats, Integers
    from gmil.heatmaps.places import Places

LONGEST = 2048
"""Pixels of the longer side of a picture."""
_PLEASANT = 800
"""Pixels that a slide with few patches is enlarged to, if no patch becomes larger than `_LARGEST_PATCH`."""
_LARGEST_PATCH = 48


class Grid(NamedTuple):
    """Square pixels on a slide: the corner of the first, their side in the unit of the slide, how many there are."""

    left: float
    top: float
    pixel: float
    width: int
    height: int


def grid_around(places: Places, longest: int = LONGEST) -> Grid:
    """Return a grid that covers all patches, in which the usual patch is a whole number of pixels if it can be.

    Parameters
    ----------
    places : Places
    longest : int
        The most pixels along a side.
    """
    side = float(np.median(places.drawn_side))
    left, top = float(places.x.min()), float(places.y.min())
    width = float((places.x + places.drawn_side).max()) - left
    height = float((places.y + places.drawn_side).max()) - top
    across = max(width, height) / side
    per_patch = min(_LARGEST_PATCH, max(int(_PLEASANT / across), 1))
    pixel = side / per_patch if across * per_patch <= longest else max(width, height) / longest
    return Grid(left, top, pixel, _count(width, pixel), _count(height, pixel))


def _count(length: float, pixel: float) -> int:
    """Return how many pixels a length has; coordinates in 32 bits make no pixel of their own."""
    return max(1, int(np.ceil(length / pixel - 0.05)))


def rasterize(places: Places, values: Floats, grid: Grid) -> Floats:
    """Return the mean value of the patches that cover the middle of each pixel, NaN where there is none.

    Parameters
    ----------
    places : Places
    values : array of shape (n_patches,)
        NaN is no value.
    grid : Grid

    Returns
    -------
    array of shape (height, width)
    """
    has_value = np.isfinite(values)
    shown, amounts = places.take(has_value), values[has_value]
    columns = _covered(shown.x - grid.left, shown.drawn_side, grid.pixel, grid.width)
    rows = _covered(shown.y - grid.top, shown.drawn_side, grid.pixel, grid.height)
    middle = float(amounts.mean()) if len(amounts) else 0.0  # sums of small numbers lose no digits
    counts = _sums_over_squares(rows, columns, np.ones(len(amounts), dtype=np.int32), grid)
    means = _sums_over_squares(rows, columns, amounts - middle, grid)
    np.divide(means, counts, out=means, where=counts > 0)
    means += middle
    means[counts == 0] = np.nan
    return means


def _covered(starts: Floats, sides: Floats, pixel: float, most: int) -> tuple[Integers, Integers]:
    """Return the first pixel whose middle a patch covers, and the first behind; a small patch covers one."""
    first = np.ceil(starts / pixel - 0.5 - 1e-9).astype(np.int64)
    stop = np.ceil((starts + sides) / pixel - 0.5 - 1e-9).astype(np.int64)
    within = np.floor((starts + sides / 2) / pixel).astype(np.int64)
    none = stop <= first
    first, stop = np.where(none, within, first), np.where(none, within + 1, stop)
    return np.clip(first, 0, most), np.clip(stop, 0, most)


def _sums_over_squares(
    rows: tuple[Integers, Integers], columns: tuple[Integers, Integers], values: NDArray[Any], grid: Grid
) -> NDArray[Any]:
    """Return the sum of the values of all squares over each pixel: corners are marked, and summed along both axes."""
    marks = np.zeros((grid.height + 1, grid.width + 1), dtype=values.dtype)
    for row, column, sign in ((0, 0, 1), (0, 1, -1), (1, 0, -1), (1, 1, 1)):
        np.add.at(marks, (rows[row], columns[column]), sign * values)
    np.cumsum(marks, axis=0, out=marks)
    return np.cumsum(marks, axis=1, out=marks)[:-1, :-1]
