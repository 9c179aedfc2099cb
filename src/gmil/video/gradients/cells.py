"""The steps of HOG3D that take the time, in NumPy: the specification of the compiled ones, and what runs without them.

Frames are added up to integrals, integrals become histograms of cells, cells become boxes of length one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from gmil.video.gradients.integral import box_sums, corners, gradient, integrate
from gmil.video.gradients.polyhedra import summed_histograms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats, Integers
    from gmil.video.gradients.polyhedra import Polyhedron


class Grid(NamedTuple):
    """The edges of blocks in pixels, and how many blocks a cell has along a side."""

    rows: Integers
    columns: Integers
    blocks: int


class CellKernels(Protocol):
    """What this module and `gmil.engine.native.cells` have both."""

    def integrate_gradients(  # noqa: D102
        self, before: NDArray[np.uint8], now: NDArray[np.uint8], after: NDArray[np.uint8], sums: NDArray[np.int32]
    ) -> None: ...

    def add_directions(  # noqa: D102
        self,
        sums: NDArray[np.int32],
        held: NDArray[np.int32],
        grid: Grid,
        n_frames: int,
        solid: Polyhedron,
        histograms: Floats,
        lengths: Floats,
    ) -> None: ...

    def cell_boxes(  # noqa: D102
        self, cells: Floats, first: int, places: Integers, side: int, clip: float
    ) -> Floats: ...


def integrate_gradients(
    before: NDArray[np.uint8], now: NDArray[np.uint8], after: NDArray[np.uint8], sums: NDArray[np.int32]
) -> None:
    """Go on with the sums of an integral video by the gradient of one frame.

    Parameters
    ----------
    before, now, after : arrays of shape (height, width)
    sums : array of shape (3, height + 1, width + 1)
        Changed.
    """
    integrate(sums, gradient(before, now, after))


def add_directions(
    sums: NDArray[np.int32],
    held: NDArray[np.int32],
    grid: Grid,
    n_frames: int,
    solid: Polyhedron,
    histograms: Floats,
    lengths: Floats,
) -> None:
    """Add a layer of blocks to the histograms of their cells.

    Parameters
    ----------
    sums : array of shape (3, height + 1, width + 1)
        Of the integral video now.
    held : array of shape (3, n_rows, n_columns)
        The sums at the edges of blocks when the layer began; changed to those of now.
    grid : Grid
    n_frames : int
        How many frames the layer has.
    solid : Polyhedron
    histograms, lengths : arrays of shape (cells_y, cells_x, n_faces) and (cells_y, cells_x)
        The histograms of cells, and the lengths of the gradients of their blocks; both are changed.
    """
    now = corners(sums, grid.rows, grid.columns)
    areas = np.multiply.outer(np.diff(grid.rows), np.diff(grid.columns))
    means = box_sums(held, now) / (2.0 * n_frames * areas)  # integrals hold twice the gradient
    found, sizes = summed_histograms(_by_cell(means, grid.blocks), solid)
    histograms += found.reshape(histograms.shape)
    lengths += sizes.reshape(lengths.shape)
    held[...] = now


def _by_cell(means: Floats, blocks: int) -> Floats:
    """Bring gradients of blocks, (3, n_rows, n_columns), into the order of cells, (n_cells, blocks ** 2, 3)."""
    grid = means.reshape(3, means.shape[1] // blocks, blocks, means.shape[2] // blocks, blocks)
    return np.ascontiguousarray(grid.transpose(1, 3, 2, 4, 0)).reshape(-1, blocks * blocks, 3)


def cell_boxes(cells: Floats, first: int, places: Integers, side: int, clip: float) -> Floats:
    """Return boxes of cells as descriptors, (n, side * side * n_layers * n_faces).

    Parameters
    ----------
    cells : array of shape (n_layers, cells_y, cells_x, n_faces)
        The last layers in time, as a ring.
    first : int
        The oldest layer.
    places : array of shape (n, 2)
        The row and the column of the first cell of every box.
    side : int
        Cells of a box along each side.
    clip : float
    """
    boxes = sliding_window_view(np.roll(cells, -first, axis=0), (side, side), axis=(1, 2))
    boxes = boxes[:, places[:, 0], places[:, 1]]  # (n_layers, n, n_faces, side, side)
    return normalised(boxes.transpose(1, 3, 4, 0, 2).reshape(len(places), -1), clip)


def normalised(values: Floats, clip: float) -> Floats:
    """Return rows of length one with no entry above ``clip`` before they are normalised again; zeros stay zeros."""
    values = _unit(values)
    np.minimum(values, np.float32(clip), out=values)
    return _unit(values)


def _unit(values: Floats) -> Any:
    lengths = np.sqrt(np.einsum("ij,ij->i", values, values))[:, None]
    return np.divide(values, lengths, out=np.zeros_like(values), where=lengths > 0)
