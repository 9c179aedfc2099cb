"""The compiled steps of HOG3D; `gmil.video.gradients.cells` documents them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.engine.native import _kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats, Integers

integrate_gradients = _kernels.integrate_gradients


def add_directions(
    sums: NDArray[np.int32],
    held: NDArray[np.int32],
    grid: Any,
    n_frames: int,
    solid: Any,
    histograms: Floats,
    lengths: Floats,
) -> None:
    """Add a layer of blocks to the histograms of their cells."""
    blocks = grid.rows, grid.columns, grid.blocks
    faces = solid.normals.astype(np.float32), solid.neighbour_cosine, solid.half
    _kernels.add_directions(sums, held, *blocks, n_frames, *faces, histograms, lengths)


def cell_boxes(cells: Floats, first: int, places: Integers, side: int, clip: float) -> Floats:
    """Return boxes of cells as descriptors."""
    out = np.empty((len(places), side * side * cells.shape[0] * cells.shape[3]), dtype=np.float32)
    if len(places):
        _kernels.cell_boxes(cells, first, np.ascontiguousarray(places), side, clip, out)
    return out
