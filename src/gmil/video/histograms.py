"""The features of every frame, by default a word histogram, while the frames come by."""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gmil.video.cuts import shots_of
from gmil.video.encoding.descriptors import descriptors_by_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from gmil.engine import Backend
    from gmil.engine.arrays import Floats
    from gmil.video.decoding import Frame
    from gmil.video.hog3d import Descriptors
    from gmil.video.settings import IndexSettings
    from gmil.video.vocabulary import Vocabulary


AT_ONCE = 25
"""Frames: of a small picture these have enough descriptors to be counted together."""
_ENOUGH = 2048  # descriptors


class FrameHistograms(NamedTuple):
    """The features of one frame, by every vocabulary."""

    frame: int
    time: float
    histograms: list[Floats]  # (n_features,) each; words add up to one, or are all zero where nothing was seen


def frame_histograms(
    frames: Iterable[Frame], vocabularies: Sequence[Vocabulary], backend: Backend, *, at_once: int = AT_ONCE
) -> Iterator[FrameHistograms]:
    """Yield the histograms of frames; several vocabularies share one reading of the video.

    A descriptor belongs to the frame in its middle. The histogram of a frame counts the descriptors that belong to it
    and to the frames around it, ``window`` frames in all. Neither reaches across a cut. Vocabularies must agree in
    everything but their words.

    Parameters
    ----------
    frames : iterable of Frame
    vocabularies : sequence of Vocabulary
    backend : Backend
    at_once : int
        The histograms of at most so many frames come together, which is faster; they come so much later.

    Yields
    ------
    FrameHistograms
    """
    for final, _ in _batches(frames, vocabularies, backend, at_once, ahead=False):
        yield from final


def histograms_so_far(
    frames: Iterable[Frame], vocabulary: Vocabulary, backend: Backend, *, at_once: int
) -> Iterator[tuple[list[FrameHistograms], list[FrameHistograms]]]:
    """Yield histograms that are new, and those of all newer frames as if the video ended with the newest one.

    Parameters
    ----------
    frames : iterable of Frame
    vocabulary : Vocabulary
    backend : Backend
    at_once : int
        They come every so many frames.
    """
    yield from _batches(frames, [vocabulary], backend, at_once, ahead=True)


def _batches(
    frames: Iterable[Frame], vocabularies: Sequence[Vocabulary], backend: Backend, at_once: int, *, ahead: bool
) -> Iterator[tuple[list[FrameHistograms], list[FrameHistograms]]]:
    numbers, settings = itertools.count(), vocabularies[0].settings
    for shot in shots_of(frames, settings):
        yield from _batches_of_shot(shot, numbers, _Counts(vocabularies, backend), settings, at_once, ahead=ahead)


def _batches_of_shot(
    frames: Iterable[Frame],
    numbers: Iterator[int],
    counts: _Counts,
    settings: IndexSettings,
    at_once: int,
    *,
    ahead: bool,
) -> Iterator[tuple[list[FrameHistograms], list[FrameHistograms]]]:
    """Yield the histograms of one shot; ``numbers`` counts the frames of the whole video."""
    seen: deque[tuple[int, float]] = deque()
    wait = settings.window // 2 + int(np.ceil(settings.longest_box / 2)) + 1
    done = 0  # frames that are dealt with
    n_frames = 0
    for n_frames, found in enumerate(descriptors_by_frame(_grays(frames, numbers, seen), settings), start=1):
        counts.add(found)
        is_time = n_frames % at_once == 0 if ahead else n_frames - done >= wait + at_once
        if is_time or counts.n_waiting >= _ENOUGH:
            counts.settle()
            # Nothing that is still to come belongs to the windows of these frames.
            final = list(_emit(range(done, n_frames - wait), seen, counts, settings))
            done = max(done, n_frames - wait)
            yield final, list(_so_far(range(done, n_frames), seen, counts, settings)) if ahead else []
    counts.settle()
    yield list(_emit(range(done, n_frames), seen, counts, settings)), []


def _grays(
    frames: Iterable[Frame], numbers: Iterator[int], seen: deque[tuple[int, float]]
) -> Iterator[NDArray[np.uint8]]:
    for frame in frames:
        seen.append((next(numbers), frame.time))
        yield frame.gray


def _emit(
    frames: range, seen: deque[tuple[int, float]], counts: _Counts, settings: IndexSettings
) -> Iterator[FrameHistograms]:
    """Yield the histograms of frames, and forget what no later one needs."""
    for frame in frames:
        (number, time), first = seen.popleft(), frame - settings.window // 2
        if number % settings.every == 0:
            yield FrameHistograms(number, time, counts.of(range(first, first + settings.window)))
        counts.forget(first)


def _so_far(
    frames: range, seen: deque[tuple[int, float]], counts: _Counts, settings: IndexSettings
) -> Iterator[FrameHistograms]:
    """Yield the histograms of frames that are not over; nothing is forgotten."""
    for frame, (number, time) in zip(frames, seen, strict=False):  # descriptors may read one frame ahead
        if number % settings.every == 0:
            first = frame - settings.window // 2
            yield FrameHistograms(number, time, counts.of(range(first, first + settings.window)))


class _Counts:
    """What descriptors that belong to each of the last frames add up to, for every block of every vocabulary.

    Descriptors wait until there are many: to find their words, all words are made ready first.
    """

    def __init__(self, vocabularies: Sequence[Vocabulary], backend: Backend) -> None:
        self.encoders, self.backend = [vocabulary.encoders() for vocabulary in vocabularies], backend
        self.by_frame: defaultdict[int, list[list[Floats]]] = defaultdict(self._nothing)
        self.waiting: defaultdict[str, list[Descriptors]] = defaultdict(list)
        self.n_waiting = 0

    def _nothing(self) -> list[list[Floats]]:
        return [[np.zeros(encoder.n_sums, dtype=np.float32) for _, encoder in own] for own in self.encoders]

    def add(self, found: Mapping[str, Iterable[Descriptors]]) -> None:
        """Let descriptors wait."""
        for family, parts in found.items():
            for descriptors in parts:
                if len(descriptors.values):
                    self.waiting[family].append(descriptors)
                    self.n_waiting += len(descriptors.values)

    def settle(self) -> None:
        """Count all descriptors that wait."""
        for family, parts in self.waiting.items():
            values = np.concatenate([part.values for part in parts])
            offsets = np.cumsum([0, *(len(part.values) for part in parts)])
            frames = [int(part.frame + 0.5) for part in parts]
            for vocabulary, encoders in enumerate(self.encoders):
                for block, (place, encoder) in enumerate(encoders):
                    if place.family == family:
                        rows = np.ascontiguousarray(values[:, place.columns])
                        for frame, sums in zip(frames, encoder.sums(rows, offsets, self.backend), strict=True):
                            self.by_frame[frame][vocabulary][block] += sums
        self.waiting.clear()
        self.n_waiting = 0

    def of(self, frames: range) -> list[Floats]:
        totals = self._nothing()
        for near in frames:
            for total, count in zip(totals, self.by_frame.get(near, ()), strict=False):
                for whole, part in zip(total, count, strict=True):
                    whole += part
        return [
            np.concatenate([encoder.vector(total) for total, (_, encoder) in zip(own, encoders, strict=True)])
            for own, encoders in zip(totals, self.encoders, strict=True)
        ]

    def forget(self, frame: int) -> None:
        self.by_frame.pop(frame, None)
