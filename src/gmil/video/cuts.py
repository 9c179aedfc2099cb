"""Cuts: where a video jumps from one scene to another. That is no motion, and nothing is described across it."""

from __future__ import annotations

import itertools
from collections import deque
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats
    from gmil.video.decoding import Frame
    from gmil.video.settings import IndexSettings

AHEAD = 2
"""Frames after a cut that are looked at before it counts."""
_BEHIND = 5
_GRID = (12, 16)
_LEAST = 0.4  # change: of unrelated pictures it is about 1, of a fast camera it may be 0.8
_STANDS_OUT = 4.0  # times the changes around it: a fast camera changes all frames, a flash two
_NOISE = 4.0  # grey levels squared: two dark frames are alike


def shots_of(frames: Iterable[Frame], settings: IndexSettings) -> Iterator[Iterator[Frame]]:
    """Yield the shots of a video, or the whole of it where settings let descriptors reach across cuts."""
    return shots(frames) if settings.cuts else iter([iter(frames)])


def shots(frames: Iterable[Frame]) -> Iterator[Iterator[Frame]]:
    """Yield the frames of every shot of a video, which must be taken before the next shot is asked for.

    A shot ends where the picture changes much, and far more than it does from frame to frame before and after. A frame
    is handed on when the two after it are there. Fades are no cuts, nor is a cut that follows another within 5 frames.

    Parameters
    ----------
    frames : iterable of Frame
    """
    for _, own in itertools.groupby(_numbered(frames), key=itemgetter(0)):
        yield (frame for _, frame in own)


def _numbered(frames: Iterable[Frame]) -> Iterator[tuple[int, Frame]]:
    """Yield frames with the number of their shot."""
    shot, before = 0, None
    waiting: deque[Frame] = deque()
    changes: deque[float] = deque([0.0] * _BEHIND, maxlen=_BEHIND + 1 + AHEAD)
    for frame in frames:
        now = _reduced(frame.gray)
        waiting.append(frame)
        changes.append(0.0 if before is None else change(before, now))
        before = now
        if len(waiting) > AHEAD:
            shot += _is_cut(changes)
            yield shot, waiting.popleft()
    for frame in list(waiting):
        changes.append(0.0)  # nothing follows
        shot += _is_cut(changes)
        yield shot, frame


def _is_cut(changes: Iterable[float]) -> bool:
    """Tell whether there is a cut before the frame in question, by the changes around it and its own."""
    *behind, own, one, two = changes
    return own >= max(_LEAST, _STANDS_OUT * max(*behind, one, two))


def _reduced(gray: NDArray[np.uint8]) -> Floats:
    """Return the mean grey levels of a few cells of a picture, around the mean of the whole: lights go on and off."""
    starts = [np.arange(min(n, side)) * side // min(n, side) for n, side in zip(_GRID, gray.shape, strict=True)]
    sums = np.add.reduceat(np.add.reduceat(gray, starts[0], axis=0, dtype=np.int32), starts[1], axis=1)
    means = sums / np.multiply.outer(*(np.diff([*s, n]) for s, n in zip(starts, gray.shape, strict=True)))
    return np.asarray(means - means.mean())


def change(before: Floats, now: Floats) -> float:
    """Return how far two reduced pictures differ: 0 for the same, about 1 for unrelated ones, 2 for negatives."""
    return float(np.square(now - before).sum() / (np.square(before).sum() + np.square(now).sum() + _NOISE * now.size))
