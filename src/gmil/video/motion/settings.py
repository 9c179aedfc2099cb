"""What decides which motion is described, and how."""

from __future__ import annotations

from dataclasses import dataclass

from gmil.errors import VideoError

FLOWS = ("dis", "farneback")
CAMERAS = ("median", "affine", "none")
DIRECTIONS = 8
N_BINS = 3 * DIRECTIONS
"""Of a cell of the whole picture: directions of motion, and of the changes of its two parts."""
GRID, FINE_GRID = (3, 4), (6, 8)
"""Cells of the whole picture, down and across, whose energies are described; the finer ones lie within the others."""


@dataclass(frozen=True, kw_only=True)
class MotionSettings:
    """The size of a box, where boxes are taken, and how flow is computed.

    Pixels are those of the picture that flow is computed on.

    Parameters
    ----------
    longest_side : int
        Pictures are made smaller to so many pixels for the flow.
    flow : {"dis", "farneback"}
        Dense inverse search (Kroeger et al. 2016), or polynomial expansion (Farnebäck 2003).
    camera : {"median", "affine", "none"}
        What is subtracted from the flow of a frame as the motion of the camera: its median, or the affine motion that
        most of the picture follows.
    follow : bool
        Whether a box goes along with what it shows (a short trajectory), or stays where it is.
    cell_pixels, cells_in_space, cells_in_time : int
        A box has so many cells along each side, of so many pixels, and in time.
    frames : int
        The length of a box, a multiple of ``cells_in_time``.
    step_in_space, step_in_time : int
        Pixels between neighbouring boxes, and frames between their starts.
    still : float
        Pixels per frame: slower motion counts as none.
    min_motion : float
        A box with a mean motion below this, in pixels per frame, has no descriptor.
    """

    longest_side: int = 160
    flow: str = "dis"
    camera: str = "median"
    follow: bool = True
    cell_pixels: int = 8
    cells_in_space: int = 2
    cells_in_time: int = 3
    frames: int = 15
    step_in_space: int = 5
    step_in_time: int = 5
    still: float = 0.2
    min_motion: float = 0.1

    def __post_init__(self) -> None:
        counts = ("cell_pixels", "cells_in_space", "cells_in_time", "step_in_space", "step_in_time")
        for name in ("longest_side", "frames", *counts):
            if not getattr(self, name) >= 1:
                msg = f"{name} must be at least 1, got {getattr(self, name)!r}."
                raise VideoError(msg)
        if self.frames % self.cells_in_time:
            msg = f"frames must be a multiple of cells_in_time, {self.cells_in_time}, got {self.frames}."
            raise VideoError(msg)
        for name, known in (("flow", FLOWS), ("camera", CAMERAS)):
            if getattr(self, name) not in known:
                msg = f"{name} must be one of {list(known)}, got {getattr(self, name)!r}."
                raise VideoError(msg)

    @property
    def columns(self) -> dict[str, slice]:
        """Where in a row of descriptors of a box each kind lies."""
        cells = self.cells_in_space**2 * self.cells_in_time
        widths = {
            "hog": cells * DIRECTIONS,
            "hof": cells * (DIRECTIONS + 1),
            "mbh": cells * 2 * DIRECTIONS,
            "trajectory": 2 * self.frames,
        }
        found, start = {}, 0
        for name, width in widths.items():
            found[name] = slice(start, start + width)
            start += width
        return found

    @property
    def n_features(self) -> int:
        """The length of a row that describes a box."""
        return self.columns["trajectory"].stop

    @property
    def picture_columns(self) -> dict[str, slice]:
        """Where in a row of energies of the whole picture each kind lies."""
        coarse = GRID[0] * GRID[1] * N_BINS
        return {"flow": slice(0, coarse), "pyramid": slice(coarse, coarse + FINE_GRID[0] * FINE_GRID[1] * N_BINS)}

    @property
    def smallest_side(self) -> int:
        """The pixels that one box spans."""
        return self.cell_pixels * self.cells_in_space
