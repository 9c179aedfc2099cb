"""Boxes that go along with what they show, or stay, and what is seen in them: dense trajectories.

H. Wang, A. Klaeser, C. Schmid, C.-L. Liu, "Dense trajectories and motion boundary descriptors for action recognition",
IJCV 2013. Boxes start on a grid every few frames, whatever is there; those in which nothing moves have no descriptor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.video.hog3d import Descriptors
from gmil.video.motion.directions import KINDS
from gmil.video.motion.settings import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gmil.engine.arrays import Floats
    from gmil.video.motion.flow import Field
    from gmil.video.motion.settings import MotionSettings

_MEDIAN = 5  # pixels: of the flow that boxes follow


class Tracks:
    """The boxes that are open, each generation with its sums so far."""

    def __init__(self, settings: MotionSettings, cv2: Any) -> None:
        self.settings, self.cv2 = settings, cv2
        self.generations: list[_Generation] = []

    def advance(self, number: int, field: Field, histograms: Floats) -> Iterator[Descriptors]:
        """Take in the field after frame ``number``; yield the descriptors of boxes that end here."""
        settings = self.settings
        if number % settings.step_in_time == 0:
            self.generations.append(_Generation(settings, number, field.gray.shape))
        side = settings.cell_pixels
        sums = self.cv2.boxFilter(histograms, -1, (side, side), normalize=False, borderType=self.cv2.BORDER_REPLICATE)
        np.maximum(sums, 0, out=sums)  # running sums: rounding leaves some below zero, and they are rooted
        flow = np.stack([self.cv2.medianBlur(np.ascontiguousarray(field.flow[..., i]), _MEDIAN) for i in (0, 1)], -1)
        for generation in self.generations:
            generation.advance(sums, flow, field.own)
        if self.generations and self.generations[0].age == settings.frames:
            yield from self.generations.pop(0).descriptors()


class _Generation:
    """Boxes that started together."""

    def __init__(self, settings: MotionSettings, start: int, shape: tuple[int, ...]) -> None:
        self.settings, self.start, self.shape, self.age = settings, start, shape, 0
        half = settings.smallest_side // 2
        ys, xs = (np.arange(half, n - half + 1, settings.step_in_space) for n in shape)
        grid = np.meshgrid(ys, xs, indexing="ij")
        self.places = np.stack([part.ravel() for part in grid], axis=1).astype(np.float32)  # rows of y, x
        cells = settings.cells_in_space**2
        self.sums = np.zeros((len(self.places), settings.cells_in_time, cells, KINDS["mbh"].stop), np.float32)
        self.moves = np.zeros((len(self.places), settings.frames, 2), np.float32)
        corners = (np.arange(settings.cells_in_space) - (settings.cells_in_space - 1) / 2) * settings.cell_pixels
        self.offsets = np.stack(np.meshgrid(corners, corners, indexing="ij"), axis=-1).reshape(-1, 2)

    def advance(self, sums: Floats, flow: Floats, own: Floats) -> None:
        cell = self.age * self.settings.cells_in_time // self.settings.frames
        ys, xs = self._pixels(self.places[:, None, :] + self.offsets)
        self.sums[:, cell] += sums[ys, xs]
        ys, xs = self._pixels(self.places)
        self.moves[:, self.age] = own[ys, xs]
        if self.settings.follow:
            self.places += flow[ys, xs, ::-1]
            np.clip(self.places, 0, np.array(self.shape) - 1, out=self.places)
        self.age += 1

    def _pixels(self, places: Floats) -> tuple[Any, Any]:
        """Return whole pixels inside of the picture, rows and columns."""
        whole = np.floor(places + 0.5).astype(np.int64)
        return np.clip(whole[..., 0], 0, self.shape[0] - 1), np.clip(whole[..., 1], 0, self.shape[1] - 1)

    def descriptors(self) -> Iterator[Descriptors]:
        settings = self.settings
        motion = self.sums[..., KINDS["hof"]][..., :DIRECTIONS].sum(axis=(1, 2, 3))
        keep = motion / (settings.smallest_side**2 * settings.frames) >= settings.min_motion
        if not keep.any():
            return
        parts = [_rooted(self.sums[keep][..., columns]) for columns in KINDS.values()]
        values = np.concatenate([*parts, _shapes(self.moves[keep])], axis=1)
        y, x = self.places[keep].T
        middle = self.start + settings.frames / 2
        yield Descriptors(values, x, y, middle, float(settings.smallest_side), float(settings.frames))


def _rooted(sums: Floats) -> Floats:
    """Return rows of histograms that add up to one, rooted: Euclidean distances are then those of Hellinger."""
    rows = sums.reshape(len(sums), -1)
    return np.sqrt(rows / np.maximum(rows.sum(axis=1, keepdims=True), np.float32(1e-12)))


def _shapes(moves: Floats) -> Floats:
    """Return the steps of tracks, divided by the length of the way."""
    ways = np.linalg.norm(moves, axis=2).sum(axis=1)
    return (moves / np.maximum(ways, np.float32(1e-12))[:, None, None]).reshape(len(moves), -1)
