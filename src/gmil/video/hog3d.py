"""HOG3D: histograms of gradient directions in space and time, densely sampled, frame by frame.

A. Klaeser, M. Marszalek, C. Schmid, "A spatio-temporal descriptor based on 3D-gradients", BMVC 2008. Every scale lays a
lattice of cells over the video. A cell is cut into blocks, the mean gradient of a block comes from the integral video
and is quantised on a polyhedron, and a cell adds up the histograms of its blocks. A descriptor is a box of neighbouring
cells, divided by its length, clipped, and divided by its length again. Cells are computed once and shared by all
descriptors that overlap there; of the past only the cells that a descriptor can still need are held.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from gmil.errors import VideoError
from gmil.video.integral import IntegralVideo, box_sums, gradients
from gmil.video.polyhedra import polyhedron, summed_histograms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats, Integers


@dataclass(frozen=True, kw_only=True)
class Hog3DSettings:
    """The size of a descriptor, and where descriptors are taken.

    Parameters
    ----------
    cell_pixels, cell_frames : float
        The size of a cell at the finest scale.
    cells_in_space, cells_in_time : int
        Cells of a descriptor along each side, and in time.
    blocks : int
        Blocks of a cell along each of its three sides.
    scales_in_space, scales_in_time : int
        How many scales; each is larger than the one before by the square root of two in space, by two in time.
    step_in_space, step_in_time : int
        How many cells lie between neighbouring descriptors.
    polyhedron : {"icosahedron", "dodecahedron"}
        Its faces are the bins of directions.
    half : bool
        Whether opposite directions share a bin.
    clip : float
        No entry of a normalised descriptor exceeds this before it is normalised again.
    min_gradient : float
        A box whose blocks have a mean gradient below this, in grey levels per pixel, has no descriptor.
    """

    cell_pixels: float = 6.0
    cell_frames: float = 3.0
    cells_in_space: int = 4
    cells_in_time: int = 3
    blocks: int = 3
    scales_in_space: int = 3
    scales_in_time: int = 2
    step_in_space: int = 2
    step_in_time: int = 1
    polyhedron: str = "icosahedron"
    half: bool = False
    clip: float = 0.25
    min_gradient: float = 0.5

    def __post_init__(self) -> None:
        for name in ("cells_in_space", "cells_in_time", "blocks", "scales_in_space", "scales_in_time"):
            _refuse(name, getattr(self, name), at_least=1)
        for name in ("step_in_space", "step_in_time"):
            _refuse(name, getattr(self, name), at_least=1)
        for name in ("cell_pixels", "cell_frames"):
            _refuse(name, getattr(self, name), at_least=self.blocks)  # a block needs a pixel and a frame of its own
        _refuse("clip", self.clip, at_least=0.01)
        polyhedron(self.polyhedron)

    @property
    def n_features(self) -> int:
        """The length of a descriptor."""
        bins = len(polyhedron(self.polyhedron, half=self.half).normals)
        return self.cells_in_space**2 * self.cells_in_time * bins

    @property
    def smallest_side(self) -> int:
        """The pixels that one descriptor of the finest scale spans."""
        return int(_edges(self.cell_pixels * self.cells_in_space, 2)[1])

    @property
    def fewest_frames(self) -> int:
        """The frames that one descriptor of the finest scale spans."""
        return int(_edges(self.cell_frames * self.cells_in_time, 2)[1])

    @property
    def longest_box(self) -> float:
        """The frames that one descriptor of the coarsest scale spans."""
        return self.cell_frames * self.cells_in_time * 2 ** (self.scales_in_time - 1)


def _refuse(name: str, value: float, *, at_least: float) -> None:
    if not value >= at_least:
        msg = f"{name} must be at least {at_least:g}, got {value!r}."
        raise VideoError(msg)


class Descriptors(NamedTuple):
    """Descriptors of one scale that end together."""

    values: Floats  # (n, n_features), float32
    x: Floats  # (n,), the centre in pixels
    y: Floats  # (n,)
    frame: float  # the centre in time
    pixels: float  # the side of the box
    frames: float  # its length in time


def hog3d(frames: Iterable[NDArray[np.uint8]], settings: Hog3DSettings | None = None) -> Iterator[Descriptors]:
    """Yield the descriptors of a video as they are complete; memory does not depend on its length.

    Parameters
    ----------
    frames : iterable of uint8 arrays of shape (height, width)
        Grey levels.
    settings : Hog3DSettings, optional

    Yields
    ------
    Descriptors

    Examples
    --------
    >>> import numpy as np
    >>> from gmil.video import hog3d
    >>> video = np.random.default_rng(0).integers(0, 256, (20, 48, 64), dtype=np.uint8)
    >>> next(hog3d(video)).values.shape
    (12, 960)
    """
    for found in hog3d_by_frame(frames, settings or Hog3DSettings()):
        yield from found


def hog3d_by_frame(frames: Iterable[NDArray[np.uint8]], settings: Hog3DSettings) -> Iterator[list[Descriptors]]:
    """Yield, for every frame, the descriptors that end with it."""
    lattices: list[_Lattice] = []
    for number, gradient in enumerate(gradients(frames), start=1):
        if number == 1:
            integral = IntegralVideo(*gradient.shape[1:])
            lattices = _lattices(settings, integral)
        integral.add(gradient)
        yield [found for lattice in lattices for found in lattice.advance(number, integral)]


def _lattices(settings: Hog3DSettings, integral: IntegralVideo) -> list[_Lattice]:
    """Return a lattice for every scale whose boxes fit into the picture."""
    height, width = integral.sums.shape[1] - 1, integral.sums.shape[2] - 1
    found = []
    for i in range(settings.scales_in_space):
        cell = settings.cell_pixels * 2 ** (i / 2)
        if int(min(height, width) / cell + 1e-9) >= settings.cells_in_space:
            found += [
                _Lattice(settings, integral, cell, settings.cell_frames * 2**j) for j in range(settings.scales_in_time)
            ]
    return found


def _edges(cell: float, n_edges: int) -> Integers:
    """Return multiples of a length, rounded to whole pixels."""
    return np.floor(np.arange(n_edges) * cell + 0.5).astype(np.int64)


class _Lattice:
    """The cells of one scale: what is held of the past, and the descriptors that are complete."""

    def __init__(self, settings: Hog3DSettings, integral: IntegralVideo, cell: float, cell_frames: float) -> None:
        self.settings, self.cell, self.cell_frames = settings, cell, cell_frames
        self.solid = polyhedron(settings.polyhedron, half=settings.half)
        height, width = integral.sums.shape[1] - 1, integral.sums.shape[2] - 1
        self.shape = int(height / cell + 1e-9), int(width / cell + 1e-9)  # in cells
        self.rows, self.columns = (_edges(cell / settings.blocks, n * settings.blocks + 1) for n in self.shape)
        self.areas = np.multiply.outer(np.diff(self.rows), np.diff(self.columns)).astype(np.float32)
        self.layer, self.layer_start = 0, 0  # blocks in time that are complete, and the frame where the next begins
        self.corners = integral.corners(self.rows, self.columns)
        self.open = self._no_cells()
        self.slabs: deque[tuple[Floats, Floats]] = deque(maxlen=settings.cells_in_time)

    def _no_cells(self) -> tuple[Floats, Floats]:
        n_cells = self.shape[0] * self.shape[1]
        return np.zeros((n_cells, len(self.solid.normals)), np.float32), np.zeros(n_cells, np.float32)

    def advance(self, n_frames: int, integral: IntegralVideo) -> Iterator[Descriptors]:
        """Take in the frames so far; yield the descriptors that end here."""
        if n_frames < self._layer_end():
            return
        corners = integral.corners(self.rows, self.columns)
        sums = box_sums(self.corners, corners)
        volumes = self.areas * np.float32(2 * (n_frames - self.layer_start))  # integrals hold twice the gradient
        histograms, lengths = summed_histograms(self._by_cell(sums / volumes), self.solid)
        self.open[0][...] += histograms
        self.open[1][...] += lengths
        self.corners, self.layer, self.layer_start = corners, self.layer + 1, n_frames
        if self.layer % self.settings.blocks == 0:
            self.slabs.append(self.open)
            self.open = self._no_cells()
            yield from self._complete()

    def _layer_end(self) -> int:
        return int(np.floor((self.layer + 1) * self.cell_frames / self.settings.blocks + 0.5))

    def _by_cell(self, means: Floats) -> Floats:
        """Bring gradients of blocks, (3, n_rows, n_columns), into the order of cells, (n_cells, blocks ** 2, 3)."""
        b = self.settings.blocks
        grid = means.reshape(3, means.shape[1] // b, b, means.shape[2] // b, b)
        return np.ascontiguousarray(grid.transpose(1, 3, 2, 4, 0)).reshape(-1, b * b, 3)

    def _complete(self) -> Iterator[Descriptors]:
        settings, n_cells = self.settings, self.layer // self.settings.blocks
        first = n_cells - settings.cells_in_time
        if first < 0 or first % settings.step_in_time:
            return
        cells = np.stack([slab[0].reshape(*self.shape, -1) for slab in self.slabs], axis=2)  # (ny, nx, nt, bins)
        lengths = np.asarray(sum(slab[1].reshape(self.shape) for slab in self.slabs))
        keep = self._boxes(lengths).sum(axis=(2, 3)) / self._blocks_of_a_box() >= settings.min_gradient
        if not keep.any():
            return
        boxes = self._boxes(cells)[keep]  # (n, nt, bins, cells, cells)
        values = normalised(np.moveaxis(boxes, (3, 4), (1, 2)).reshape(len(boxes), -1), settings.clip)
        side = self.cell * settings.cells_in_space
        rows, columns = np.nonzero(keep)
        step = self.cell * settings.step_in_space
        duration = self.cell_frames * settings.cells_in_time
        centre = (first + settings.cells_in_time / 2) * self.cell_frames - 0.5
        yield Descriptors(values, columns * step + side / 2, rows * step + side / 2, centre, side, duration)

    def _boxes(self, cells: Floats) -> Floats:
        """Return the boxes of cells that have a descriptor, the two axes inside a box at the end."""
        n, step = self.settings.cells_in_space, self.settings.step_in_space
        return sliding_window_view(cells, (n, n), axis=(0, 1))[::step, ::step]

    def _blocks_of_a_box(self) -> int:
        return self.settings.cells_in_space**2 * self.settings.cells_in_time * self.settings.blocks**3


def normalised(values: Floats, clip: float) -> Floats:
    """Return rows of length one with no entry above ``clip`` before they are normalised again; zeros stay zeros."""
    values = _unit(values)
    np.minimum(values, np.float32(clip), out=values)
    return _unit(values)


def _unit(values: Floats) -> Floats:
    lengths = np.sqrt(np.einsum("ij,ij->i", values, values))[:, None]
    return np.divide(values, lengths, out=np.zeros_like(values), where=lengths > 0)
