"""HOG3D: histograms of gradient directions in space and time, densely sampled, frame by frame.

A. Klaeser, M. Marszalek, C. Schmid, "A spatio-temporal descriptor based on 3D-gradients", BMVC 2008. Every scale lays a
lattice of cells over the video. A cell is cut into blocks, the mean gradient of a block comes from the integral video
and is quantised on a polyhedron, and a cell adds up the histograms of its blocks. A descriptor is a box of neighbouring
cells, divided by its length, clipped, and divided by its length again. Cells are computed once and shared by all
descriptors that overlap there; of the past only the cells that a descriptor can still need are held.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from gmil.engine import why_not
from gmil.errors import VideoError
from gmil.video.gradients import cells as in_numpy
from gmil.video.gradients.cells import Grid
from gmil.video.gradients.integral import in_threes, no_sums
from gmil.video.gradients.polyhedra import polyhedron

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats, Integers
    from gmil.video.gradients.cells import CellKernels


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
    kernels, lattices = _cell_kernels(), list[_Lattice]()
    for number, three in enumerate(in_threes(frames), start=1):
        if number == 1:
            sums = no_sums(*three[1].shape)
            lattices = _lattices(settings, three[1].shape, kernels)
        kernels.integrate_gradients(*three, sums)
        yield [found for lattice in lattices for found in lattice.advance(number, sums)]


def _cell_kernels() -> CellKernels:
    """Return the compiled kernels, or those of NumPy where there are none."""
    if why_not("native") is not None:
        return in_numpy
    from gmil.engine.native import cells as compiled

    return compiled


def _lattices(settings: Hog3DSettings, picture: tuple[int, ...], kernels: CellKernels) -> list[_Lattice]:
    """Return a lattice for every scale whose boxes fit into the picture."""
    found = []
    for i in range(settings.scales_in_space):
        cell = settings.cell_pixels * 2 ** (i / 2)
        if int(min(picture) / cell + 1e-9) >= settings.cells_in_space:
            durations = [settings.cell_frames * 2**j for j in range(settings.scales_in_time)]
            found += [_Lattice(settings, picture, cell, duration, kernels) for duration in durations]
    return found


def _edges(cell: float, n_edges: int) -> Integers:
    """Return multiples of a length, rounded to whole pixels."""
    return np.floor(np.arange(n_edges) * cell + 0.5).astype(np.int64)


class _Lattice:
    """The cells of one scale: what is held of the past, and the descriptors that are complete."""

    def __init__(
        self,
        settings: Hog3DSettings,
        picture: tuple[int, ...],
        cell: float,
        cell_frames: float,
        kernels: CellKernels,
    ) -> None:
        self.settings, self.cell, self.cell_frames, self.kernels = settings, cell, cell_frames, kernels
        self.solid = polyhedron(settings.polyhedron, half=settings.half)
        shape = [int(side / cell + 1e-9) for side in picture]  # in cells
        rows, columns = (_edges(cell / settings.blocks, n * settings.blocks + 1) for n in shape)
        self.grid = Grid(rows, columns, settings.blocks)
        self.layer, self.layer_start = 0, 0  # blocks in time that are complete, and the frame where the next begins
        self.corners = np.zeros((3, len(rows), len(columns)), dtype=np.int32)
        # Layers of cells in time, as a ring: of the past only those that a descriptor can still need.
        self.cells = np.zeros((settings.cells_in_time, *shape, len(self.solid.normals)), dtype=np.float32)
        self.lengths = np.zeros(self.cells.shape[:3], dtype=np.float32)

    def advance(self, n_frames: int, sums: NDArray[np.int32]) -> Iterator[Descriptors]:
        """Take in the frames so far; yield the descriptors that end here."""
        if n_frames < self._layer_end():
            return
        number, block = divmod(self.layer, self.settings.blocks)
        cells, lengths = (ring[number % len(ring)] for ring in (self.cells, self.lengths))
        if block == 0:
            cells[...], lengths[...] = 0, 0
        n_new = n_frames - self.layer_start
        self.kernels.add_directions(sums, self.corners, self.grid, n_new, self.solid, cells, lengths)
        self.layer, self.layer_start = self.layer + 1, n_frames
        if block + 1 == self.settings.blocks:
            yield from self._complete(number + 1 - self.settings.cells_in_time)

    def _layer_end(self) -> int:
        return int(np.floor((self.layer + 1) * self.cell_frames / self.settings.blocks + 0.5))

    def _complete(self, first: int) -> Iterator[Descriptors]:
        """Yield the descriptors that begin with this layer of cells."""
        settings = self.settings
        if first < 0 or first % settings.step_in_time:
            return
        keep = self._lengths_of_boxes() / self._blocks_of_a_box() >= settings.min_gradient
        places = np.argwhere(keep) * settings.step_in_space
        if not len(places):
            return
        oldest, n = first % settings.cells_in_time, settings.cells_in_space
        values = self.kernels.cell_boxes(self.cells, oldest, places, n, settings.clip)
        side = self.cell * n
        y, x = places.T * self.cell + side / 2
        duration = self.cell_frames * settings.cells_in_time
        centre = (first + settings.cells_in_time / 2) * self.cell_frames - 0.5
        yield Descriptors(values, x, y, centre, side, duration)

    def _lengths_of_boxes(self) -> Floats:
        """Return the lengths of all gradients of every box that may have a descriptor."""
        n, step = self.settings.cells_in_space, self.settings.step_in_space
        boxes = sliding_window_view(self.lengths.sum(axis=0), (n, n))[::step, ::step]
        return np.asarray(boxes.sum(axis=(2, 3)))

    def _blocks_of_a_box(self) -> int:
        return self.settings.cells_in_space**2 * self.settings.cells_in_time * self.settings.blocks**3
