"""Energies of the flow of whole pictures as vectors in which the place of a cell does not matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gmil.video.motion.settings import DIRECTIONS, FINE_GRID, GRID, N_BINS

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats

_LEAST = 1e-3  # pixels per frame: what is less is noise
_COARSE = (1, 1), (2, 2), GRID
"""The grids of a pyramid that every cell of is described; of the finest one only the liveliest are."""
_LIVELIEST = 12
_BINS = np.arange(DIRECTIONS)
_MIRRORED = np.concatenate([(4 - _BINS) % 8, 8 + -_BINS % 8, 16 + (4 - _BINS) % 8])
"""The bin that each of the three histograms of a cell has in a mirror: of motion, and of changes of its two parts."""
_FOLDED = np.flatnonzero(np.arange(N_BINS) <= _MIRRORED)

N_SUMS = {"flow": GRID[0] * GRID[1] * N_BINS + 1, "pyramid": FINE_GRID[0] * FINE_GRID[1] * N_BINS + 1}
"""How many numbers add up over fields: energies, and one for every field."""
N_FEATURES = {
    "flow": GRID[0] * GRID[1] * N_BINS,
    "pyramid": (sum(down * across for down, across in _COARSE) + _LIVELIEST) * len(_FOLDED),
}


def energy_vector(descriptor: str, sums: Floats) -> Floats:
    """Return logarithms of mean energies, cells sorted by how much moves in them.

    Parameters
    ----------
    descriptor : {"flow", "pyramid"}
        In "pyramid" there are cells of four sizes, and what differs by left and right alone counts as the same.
    sums : array of shape (n_cells * 24 + 1,)
        The energies of all fields, and how many fields there were.
    """
    means = sums[:-1] / max(float(sums[-1]), 1.0)
    if descriptor == "flow":
        return _sorted_logs(means.reshape(-1, N_BINS)).ravel()
    cells = means.reshape(*FINE_GRID, N_BINS)
    cells = ((cells + cells[..., _MIRRORED]) / 2)[..., _FOLDED]
    levels = [_sorted_logs(_merged(cells, *grid)) for grid in _COARSE]
    finest = _sorted_logs(cells.reshape(-1, len(_FOLDED)))[:_LIVELIEST]
    return np.concatenate([*levels, finest]).ravel()


def _merged(cells: Floats, down: int, across: int) -> Floats:
    """Return the means over the cells of a coarser grid, (n_cells, n_bins)."""
    rows, columns, n_bins = cells.shape
    parts = cells.reshape(down, rows // down, across, columns // across, n_bins)
    return np.asarray(parts.mean(axis=(1, 3))).reshape(-1, n_bins)


def _sorted_logs(cells: Floats) -> Floats:
    order = np.argsort(-cells.sum(axis=1), kind="stable")
    return np.log(cells[order] + _LEAST).astype(np.float32)
