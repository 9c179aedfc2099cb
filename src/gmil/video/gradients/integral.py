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

    Gray = NDArray[np.uint8]


def in_threes(frames: Iterable[Gray]) -> Iterator[tuple[Gray, Gray, Gray]]:
    """Yield every frame between the one before it and the one after it; at the ends of the video it is its own."""
    before: Gray | None = None
    now: Gray | None = None
    for frame in frames:
        after = np.ascontiguousarray(frame, dtype=np.uint8)
        if now is not None:
            yield now if before is None else before, now, after
        before, now = now, after
    if now is not None:
        yield now if before is None else before, now, now


def gradient(before: Gray, now: Gray, after: Gray) -> NDArray[np.int16]:
    """Return twice the gradient of a frame in x, y and time, (3, height, width), by central differences.

    At the borders of the picture the outermost pixel is repeated.
    """
    padded = np.pad(now, 1, mode="edge").astype(np.int16)
    out = np.empty((3, *now.shape), dtype=np.int16)
    np.subtract(padded[1:-1, 2:], padded[1:-1, :-2], out=out[0])
    np.subtract(padded[2:, 1:-1], padded[:-2, 1:-1], out=out[1])
    np.subtract(after, before, out=out[2], dtype=np.int16)
    return out


def no_sums(height: int, width: int) -> NDArray[np.int32]:
    """Return the integral of a video without frames: the sums left of, above and before every corner."""
    return np.zeros((3, height + 1, width + 1), dtype=np.int32)


def integrate(sums: NDArray[np.int32], gradient: NDArray[Any]) -> None:
    """Go on by the gradient of one frame, (3, height, width)."""
    frame = np.cumsum(gradient, axis=2, dtype=np.int32)
    sums[:, 1:, 1:] += np.cumsum(frame, axis=1, out=frame)


def corners(sums: NDArray[np.int32], rows: Integers, columns: Integers) -> NDArray[np.int32]:
    """Return the sums at the corners of a lattice, (3, n_rows, n_columns)."""
    return sums[:, rows[:, None], columns]


def box_sums(earlier: NDArray[np.int32], later: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the sums over the cuboids between two layers of corners, (3, n_rows - 1, n_columns - 1)."""
    slab = later - earlier
    rows = slab[:, 1:] - slab[:, :-1]
    return rows[:, :, 1:] - rows[:, :, :-1]
