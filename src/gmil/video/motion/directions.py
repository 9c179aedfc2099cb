"""Every pixel of a field as histograms of directions: of its brightness, its motion, and where motion changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.video.motion.settings import DIRECTIONS, FINE_GRID

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats, Integers
    from gmil.video.motion.flow import Field

KINDS = {"hog": slice(0, 8), "hof": slice(8, 17), "mbh": slice(17, 33)}
"""Where the histograms of `pixel_histograms` lie: HOF has one bin more, of what stands still."""
_N_BINS = 33


def oriented(dx: Floats, dy: Floats) -> Floats:
    """Return vectors as histograms of directions, (..., 8): each counts for the two nearest, by its length.

    >>> import numpy as np
    >>> oriented(np.array([2.0, 0.0]), np.array([0.0, -1.0])).round(3).tolist()
    [[2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]]
    """
    lengths = np.sqrt(dx * dx + dy * dy)
    places = np.arctan2(dy, dx) * np.float32(DIRECTIONS / (2 * np.pi))
    low = np.floor(places)
    upper = lengths * (places - low)
    first = low.astype(np.intp) & (DIRECTIONS - 1)  # counted round the circle
    rows = np.arange(0, lengths.size * DIRECTIONS, DIRECTIONS).reshape(lengths.shape)
    found = np.zeros(lengths.size * DIRECTIONS, dtype=np.float32)
    found[rows + first] = lengths - upper
    found[rows + ((first + 1) & (DIRECTIONS - 1))] = upper
    return found.reshape(*lengths.shape, DIRECTIONS)


def pixel_histograms(field: Field, still: float, cv2: Any) -> tuple[Floats, Floats]:
    """Return histograms of every pixel, (height, width, 33), and of its motion without a bin of what stands still."""
    found = np.empty((*field.gray.shape, _N_BINS), dtype=np.float32)
    found[..., KINDS["hog"]] = oriented(*_slopes(field.gray, cv2))
    motion = oriented(field.own[..., 0], field.own[..., 1])
    stands = np.hypot(field.own[..., 0], field.own[..., 1]) < still
    found[..., 8:16] = np.where(stands[..., None], 0, motion)
    found[..., 16] = np.where(stands, still, 0)
    for start, part in ((17, 0), (25, 1)):
        found[..., start : start + DIRECTIONS] = oriented(*_slopes(np.ascontiguousarray(field.own[..., part]), cv2))
    return found, motion


def _slopes(values: Floats, cv2: Any) -> tuple[Floats, Floats]:
    """Return half the central differences across and down."""
    across, down = (cv2.Sobel(values, cv2.CV_32F, dx, 1 - dx, ksize=1) for dx in (1, 0))
    return across / 2, down / 2


def energies(motion: Floats, changes: Floats) -> Floats:
    """Return the mean histograms of motion and of its changes in cells of the picture, of both grids, (60 * 24,)."""
    every = np.concatenate([motion, changes], axis=2)
    rows, columns = (_starts(length, n) for length, n in zip(every.shape[:2], FINE_GRID, strict=True))
    sums = np.add.reduceat(np.add.reduceat(every, rows, axis=0), columns, axis=1)
    lengths = (np.diff([*s, n]) for s, n in zip((rows, columns), every.shape[:2], strict=True))
    areas = np.multiply.outer(*(np.maximum(own, 1) for own in lengths))  # tiny pictures have fewer pixels than cells
    coarse = _in_fours(sums) / _in_fours(areas[..., None])
    return np.concatenate([part.ravel() for part in (coarse, sums / areas[..., None])], dtype=np.float32)


def _in_fours(cells: Floats) -> Floats:
    """Return sums over two by two cells."""
    rows, columns, n = cells.shape
    return np.asarray(cells.reshape(rows // 2, 2, columns // 2, 2, n).sum(axis=(1, 3)))


def _starts(length: int, n_parts: int) -> Integers:
    return np.arange(n_parts) * length // n_parts
