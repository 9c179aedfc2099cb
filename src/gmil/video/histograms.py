"""One word histogram per frame, while the frames come by."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gmil.video.hog3d import hog3d_by_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from gmil.engine import Backend
    from gmil.engine.arrays import Floats
    from gmil.video.decoding import Frame
    from gmil.video.hog3d import Descriptors
    from gmil.video.vocabulary import Vocabulary


class FrameHistograms(NamedTuple):
    """The histograms of one frame, one for every vocabulary."""

    frame: int
    time: float
    histograms: list[Floats]  # (n_words,) each, adding up to one, or all zero where nothing was seen


def frame_histograms(
    frames: Iterable[Frame], vocabularies: Sequence[Vocabulary], backend: Backend
) -> Iterator[FrameHistograms]:
    """Yield the histograms of frames; several vocabularies share one reading of the video.

    A descriptor belongs to the frame in its middle. The histogram of a frame counts the descriptors that belong to it
    and to the frames around it, ``window`` frames in all. Vocabularies must agree in everything but their words.

    Parameters
    ----------
    frames : iterable of Frame
    vocabularies : sequence of Vocabulary
    backend : Backend

    Yields
    ------
    FrameHistograms
    """
    settings = vocabularies[0].settings
    times: deque[float] = deque()
    counts = _Counts(vocabularies, backend)
    wait = settings.window // 2 + int(np.ceil(settings.descriptor.longest_box / 2)) + 1
    done = 0  # frames that are dealt with
    n_frames = 0
    for n_frames, found in enumerate(hog3d_by_frame(_grays(frames, times), settings.descriptor), start=1):
        counts.add(found)
        if n_frames - done > wait:  # nothing that is still to come belongs to the window of this frame
            yield from _emit(done, times, counts, settings.window, settings.every)
            done += 1
    for frame in range(done, n_frames):
        yield from _emit(frame, times, counts, settings.window, settings.every)


def _grays(frames: Iterable[Frame], times: deque[float]) -> Iterator[NDArray[np.uint8]]:
    for frame in frames:
        times.append(frame.time)
        yield frame.gray


def _emit(frame: int, times: deque[float], counts: _Counts, window: int, every: int) -> Iterator[FrameHistograms]:
    time, first = times.popleft(), frame - window // 2
    if frame % every == 0:
        yield FrameHistograms(frame, time, counts.of(range(first, first + window)))
    counts.forget(first)


class _Counts:
    """Words that belong to each of the last frames."""

    def __init__(self, vocabularies: Sequence[Vocabulary], backend: Backend) -> None:
        self.vocabularies, self.backend = vocabularies, backend
        self.by_frame: defaultdict[int, list[Floats]] = defaultdict(self._nothing)

    def _nothing(self) -> list[Floats]:
        return [np.zeros(len(vocabulary.words), dtype=np.float32) for vocabulary in self.vocabularies]

    def add(self, found: Iterable[Descriptors]) -> None:
        for descriptors in found:
            counts = self.by_frame[int(descriptors.frame + 0.5)]
            for count, vocabulary in zip(counts, self.vocabularies, strict=True):
                count += vocabulary.histogram(descriptors.values, self.backend)

    def of(self, frames: range) -> list[Floats]:
        totals = self._nothing()
        for near in frames:
            for total, count in zip(totals, self.by_frame.get(near, ()), strict=False):
                total += count
        return [total / max(total.sum(), np.float32(1e-12)) for total in totals]

    def forget(self, frame: int) -> None:
        self.by_frame.pop(frame, None)
