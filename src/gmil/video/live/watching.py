"""Decisions about the last seconds of a stream, and events that begin and end."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags import Bags
from gmil.engine import resolve
from gmil.errors import VideoError
from gmil.video.cache import refuse_short, refuse_small
from gmil.video.cuts import AHEAD
from gmil.video.histograms import histograms_so_far
from gmil.video.live.source import Happening, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gmil.engine.arrays import Floats
    from gmil.video.decoding import Frame
    from gmil.video.events import EventDetectors
    from gmil.video.histograms import FrameHistograms
    from gmil.video.timeline import TimeLine

CONTEXT = 3.0
"""Seconds of the past that a decision is about."""
EVERY = 0.2
"""Seconds between decisions."""
GAP = 1.0
"""Seconds without the event after which it has ended."""
_AT_ONCE = 5  # frames whose features come together
_ROUNDING = 1e-6  # seconds


def watch(
    detectors: EventDetectors,
    source: str,
    *,
    realtime: bool = False,
    context: float = CONTEXT,
    every: float = EVERY,
    reconnects: int | None = None,
    patience: float = 10.0,
) -> Iterator[dict[str, Any]]:
    """Yield what happens in a stream, as plain data: events that begin and end, and what happens to the source.

    The memory that is used does not grow: frames are held for ``context`` seconds at most.

    Parameters
    ----------
    detectors : EventDetectors
        With a vocabulary.
    source : str
        A file, a device (``/dev/video0``) or an address (``rtsp://...``).
    realtime : bool
        Play a file at its own speed.
    context : float
        Seconds of the past that a decision is about; as long as the videos of training.
    every : float
        Seconds between decisions.
    reconnects : int, optional
        How often in a row a device or an address is opened again; without end by default.
    patience : float
        Seconds without a frame after which a device or an address has stalled.

    Yields
    ------
    dict
        ``kind`` is "event" (``state`` "begins" or "ends"; ``start``, ``end`` and ``time`` in seconds of the stream;
        ``delay``, the seconds between ``start`` and the newest frame that was read) or "source" (``status`` and
        ``text``).
    """
    if detectors.vocabulary is None:
        msg = "These detectors were trained on features from elsewhere, and a stream has none. Train on an index."
        raise VideoError(msg)
    for name, value in (("context", context), ("every", every), ("patience", patience)):
        if not 0 < value < math.inf:
            msg = f"must be a number of seconds above 0, got {value}."
            raise VideoError(msg, parameter=name)
    settings = detectors.vocabulary.settings
    where = Source(source, settings.rate, settings.longest_side, realtime, patience, reconnects)
    return _Watch(detectors, context, every).reports(where)  # what is wrong above is said at once


def stated_delay(detectors: EventDetectors, every: float = EVERY) -> float:
    """Return how many seconds may pass until what a frame shows is decided about, on a machine that keeps up.

    A descriptor is complete when its last frame is there, and belongs to the frame in its middle.
    """
    settings = detectors.vocabulary.settings  # type: ignore[union-attr]  # watch refuses detectors without
    ahead = AHEAD if settings.cuts else 0
    return (math.ceil(settings.longest_box / 2) + ahead + _AT_ONCE) / settings.rate + every


@dataclass
class _Open:
    """An event that has begun."""

    start: float
    last: float
    probability: float


@dataclass
class _Watch:
    """What is known of the stream so far."""

    detectors: EventDetectors
    context: float
    every: float
    rows: deque[tuple[float, Floats]] = field(default_factory=deque)
    open: dict[str, _Open] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)  # where the last one of every event ended
    newest: float = 0.0
    n_frames: int = 0
    decided: float = -math.inf
    notes: list[Happening] = field(default_factory=list)
    is_over: bool = False

    def reports(self, source: Source) -> Iterator[dict[str, Any]]:
        """Yield all reports; frames between two breaks of the source are one piece."""
        items, backend = source.frames(), resolve("auto", 1)
        words: Any = self.detectors.vocabulary
        while not self.is_over:
            for found, newer in histograms_so_far(self._piece(items, source), words, backend, at_once=_AT_ONCE):
                yield from self._told()
                yield from self._take(found, newer)
            yield from self._told()
            yield from self._close_all()
            self.rows.clear()
            self.ended.clear()
            self.decided = -math.inf
        if not source.is_live:
            refuse_short(source.shown, self.n_frames, words.settings)

    def _piece(self, items: Iterator[Frame | Happening], source: Source) -> Iterator[Frame]:
        """Yield frames until the source breaks off."""
        is_first = True
        for item in items:
            if isinstance(item, Happening):
                self.notes.append(item)
                if item.restarts:
                    return
            else:
                if is_first:
                    self._check_size(item, source)
                is_first, self.newest, self.n_frames = False, item.time, self.n_frames + 1
                yield item
        self.is_over = True

    def _check_size(self, frame: Frame, source: Source) -> None:
        """Refuse a file whose pictures are too small; a live source may change them, so that it is only said."""
        words: Any = self.detectors.vocabulary
        try:
            refuse_small(source.shown, frame.gray.shape, words.settings)
        except VideoError as error:
            if not source.is_live:
                raise
            self.notes.append(Happening("small", str(error), restarts=False))

    def _told(self) -> Iterator[dict[str, Any]]:
        while self.notes:
            note = self.notes.pop(0)
            yield {"kind": "source", "time": round(self.newest, 3), "status": note.status, "text": note.text}

    def _take(self, found: list[FrameHistograms], newer: list[FrameHistograms]) -> Iterator[dict[str, Any]]:
        """Take in the features of frames; decide where it is time to.

        A decision is about the last seconds as if the video ended now: until nothing about the newest frames can change
        most of a second passes.
        """
        self.rows.extend((own.time, own.histograms[0]) for own in found)
        while self.rows and self.rows[0][0] < self.newest - self.context:
            self.rows.popleft()
        rows = [*self.rows, *((own.time, own.histograms[0]) for own in newer)]
        if rows and min(self.newest - self.decided, rows[-1][0] - rows[0][0]) >= self.every - _ROUNDING:
            self.decided = self.newest
            times, features = (np.array(part) for part in zip(*rows, strict=True))
            info = {"video": np.full(len(times), ""), "frame": np.arange(len(times)), "time": times}
            bag = Bags(features, np.array([0, len(times)]), np.array([""]), None, info)
            lines = {line.event: line for line in self.detectors.time_lines(bag, detected_only=True)[0]}
            for event in self.detectors.events:
                yield from self._decide(event, lines.get(event))

    def _decide(self, event: str, line: TimeLine | None) -> Iterator[dict[str, Any]]:
        """Begin or end an event by its time line of the last seconds; there is none where they do not show it."""
        now, known = self.decided, self.open.get(event)
        if line is not None:
            end = max((segment.end for segment in line.segments), default=now)
            if known is not None:
                known.last, known.probability = max(known.last, end), max(known.probability, line.probability)
            elif end > self.ended.get(event, -math.inf) + GAP:  # before that, it is what was reported already
                start = max(line.segments[0].start, self.ended.get(event, -math.inf))
                self.open[event] = _Open(start, end, line.probability)
                yield self._report(event, "begins", self.open[event], now)
        elif known is not None and now - known.last >= GAP:
            self.ended[event] = known.last
            yield self._report(event, "ends", self.open.pop(event), now)

    def _close_all(self) -> Iterator[dict[str, Any]]:
        for event in list(self.open):
            yield self._report(event, "ends", self.open.pop(event), self.newest)

    def _report(self, event: str, state: str, known: _Open, now: float) -> dict[str, Any]:
        found = {"kind": "event", "event": event, "state": state, "start": round(known.start, 3)}
        if state == "ends":
            found["end"] = round(known.last, 3)
        delay = self.newest - (known.start if state == "begins" else known.last)
        about = {"probability": round(known.probability, 4), "time": round(now, 3), "delay": round(delay, 3)}
        return {**found, **about}
