"""Integral videos: the sums of gradients over any cuboid from eight numbers.

Sums are kept in 32-bit integers that may wrap around. The difference between two corners is exact nevertheless, because
the sum over any cuboid that is asked for fits; so precision does not suffer from the length of a video.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from gmil.engine.arrays import Integers


def gradients(frames: Iterable[NDArray[np.uint8]]) -> Iterator[NDArray[np.int16]]:
    """Yield twice the gradient of every frame in x, y and time, (3, height, width), by central differences.

    At the borders, of the picture as of the video, the outermost frame or pixel is repeated. Three frames are held.
    """
    before: NDArray[np.int16] | None = None
    now: NDArray[np.int16] | None = None
    for frame in frames:
        after = frame.astype(np.int16)
        if now is not None:
            yield _gradient(now if before is None else before, now, after)
        before, now = now, after
    if now is not None:
        yield _gradient(now if before is None else before, now, now)


def _gradient(before: NDArray[np.int16], now: NDArray[np.int16], after: NDArray[np.int16]) -> NDArray[np.int16]:
    padded = np.pad(now, 1, mode="edge")
    out = np.empty((3, *now.shape), dtype=np.int16)
    np.subtract(padded[1:-1, 2:], padded[1:-1, :-2], out=out[0])
    np.subtract(padded[2:, 1:-1], padded[:-2, 1:-1], out=out[1])
    np.subtract(after, before, out=out[2])
    return out


class IntegralVideo:
    """Sums of gradients over everything left of, above and before a corner, (3, height + 1, width + 1)."""

    def __init__(self, height: int, width: int) -> None:
        self.sums: NDArray[np.int32] = np.zeros((3, height + 1, width + 1), dtype=np.int32)
        self._frame: NDArray[np.int32] = np.empty((3, height, width), dtype=np.int32)

    def add(self, gradient: NDArray[Any]) -> None:
        """Go on by the gradient of one frame, (3, height, width)."""
        np.cumsum(gradient, axis=2, dtype=np.int32, out=self._frame)
        np.cumsum(self._frame, axis=1, out=self._frame)
        self.sums[:, 1:, 1:] += self._frame

    def corners(self, rows: Integers, columns: Integers) -> NDArray[np.int32]:
        """Return the sums at the corners of a lattice, (3, n_rows, n_columns)."""
        return self.sums[:, rows[:, None], columns]


def box_sums(earlier: NDArray[np.int32], later: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the sums over the cuboids between two layers of corners, (3, n_rows - 1, n_columns - 1)."""
    slab = later - earlier
    rows = slab[:, 1:] - slab[:, :-1]
    return rows[:, :, 1:] - rows[:, :, :-1]
