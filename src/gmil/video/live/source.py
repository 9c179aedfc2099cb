"""A file, a device or an address on the network as one stream of frames; whatever happens to it is said."""

from __future__ import annotations

import contextlib
import queue
import re
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from gmil.errors import VideoError, count_of
from gmil.video.decoding import import_av, opened, steady_frames, video_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gmil.video.decoding import Frame

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_DEVICE = re.compile(r"/dev/video\d+")
_MOST_WAITING = 50  # frames: two seconds; of a live source that is too fast the newest wait, others are dropped
_LONGEST_PAUSE = 30.0


class Happening(NamedTuple):
    """Something that happened to a source: "connected", "stalled", "lost", "resized", "small", "behind" or "ended"."""

    status: str
    text: str
    restarts: bool  # whether frames before it and after it are apart


@dataclass(frozen=True)
class Source:
    """Where frames come from.

    Attributes
    ----------
    name : str
        A file, ``/dev/video0``, or an address such as ``rtsp://camera/stream``.
    rate : float
        Frames per second that are asked for.
    longest_side : int or None
        Larger pictures are made smaller.
    realtime : bool
        Whether a file is played at its own speed.
    patience : float
        Seconds without a frame after which a live source has stalled.
    reconnects : int or None
        How often in a row a live source is opened again; None is without end.
    """

    name: str
    rate: float
    longest_side: int | None
    realtime: bool = False
    patience: float = 10.0
    reconnects: int | None = None

    @property
    def shown(self) -> str:
        """The name without a password, for what is printed."""
        return re.sub(r"//[^/@]*@", "//", self.name)

    @property
    def is_live(self) -> bool:
        """Whether frames come when they come: a device or an address, no file."""
        return _ADDRESS.match(self.name) is not None or _DEVICE.fullmatch(self.name) is not None

    @contextlib.contextmanager
    def open(self) -> Iterator[Any]:
        """Yield the open source."""
        if not self.is_live:
            with opened(self.name) as container:
                yield container
            return
        av = import_av()
        # Over TCP no packet is lost, but some servers know UDP alone.
        options = {"rtsp_flags": "prefer_tcp"} if self.name.lower().startswith("rtsp") else {}
        kind = "v4l2" if _DEVICE.fullmatch(self.name) else None
        try:
            container = av.open(self.name, format=kind, options=options, timeout=(self.patience, self.patience))
        except (av.FFmpegError, OSError, ValueError) as error:
            msg = (
                f"{self.shown} cannot be opened: {getattr(error, 'strerror', None) or 'no answer'}. Check the address."
            )
            raise VideoError(msg) from error
        with container:
            yield container

    def frames(self) -> Iterator[Frame | Happening]:
        """Yield frames and what happens to the source; a thread reads ahead, and holds a bounded number of frames."""
        reader = _Reader(self)
        thread = threading.Thread(target=reader.run, daemon=True)
        thread.start()
        try:
            yield from reader.items()
        finally:
            reader.stop.set()


class _Reader:
    """Reads a source in a thread of its own."""

    def __init__(self, source: Source, clock: Callable[[], float] = time.monotonic) -> None:
        self.source, self.clock, self.start = source, clock, clock()
        self.waiting: queue.Queue[Any] = queue.Queue(_MOST_WAITING)
        self.stop = threading.Event()
        self.dropped = 0

    def items(self) -> Iterator[Any]:
        while (item := self.waiting.get()) is not None:
            if isinstance(item, VideoError):
                raise item
            yield item

    def run(self) -> None:
        try:
            self._read_until_lost()
        except VideoError as error:
            self._put(error)
        finally:
            self._put(None)

    def _read_until_lost(self) -> None:
        """Read the source to its end, and a live one again and again."""
        failures = 0
        while not self.stop.is_set():
            n_read = 0
            try:
                for n_read in self._read_once():  # noqa: B007  the last one counts
                    failures = 0
                reason = "ended"
            except VideoError as error:
                if not self.source.is_live or (failures == 0 and n_read == 0 and self.source.reconnects == 0):
                    raise
                reason = str(error)
            if not self.source.is_live:
                self._put(Happening("ended", f"{self.source.shown} ended.", restarts=True))
                return
            if self.source.reconnects is not None and failures >= self.source.reconnects:
                self._put(Happening("ended", f"{self.source.shown} is given up: {reason}", restarts=True))
                return
            failures += 1
            self._put(Happening("lost", f"{self.source.shown}: {reason} It is opened again.", restarts=True))
            self.stop.wait(min(2.0 ** (failures - 1), _LONGEST_PAUSE))

    def _read_once(self) -> Iterator[int]:
        """Read the source until it ends; yield how many frames there were so far."""
        av = import_av()
        with self.source.open() as container:
            stream = video_stream(container, self.source.name)
            self._put(Happening("connected", f"{self.source.shown} is open.", restarts=True))
            offset = self.clock() - self.start if self.source.is_live else 0.0
            began, size = self.clock(), None
            frames = steady_frames(container, stream, self.source.rate, self.source.longest_side)
            try:
                for number, frame in enumerate(frames, start=1):
                    if size not in (None, frame.gray.shape):
                        text = f"{self.source.shown} changed from {_size(size)} to {_size(frame.gray.shape)} pixels."
                        self._put(Happening("resized", text, restarts=True))
                    size = frame.gray.shape
                    if self.source.realtime and not self.source.is_live:
                        self.stop.wait(max(0.0, frame.time - (self.clock() - began)))
                    if self.stop.is_set():
                        return
                    self._hand_on(frame._replace(time=frame.time + offset))
                    yield number
            except (av.FFmpegError, OSError) as error:
                raise VideoError(self._what_broke(error)) from error

    def _what_broke(self, error: Exception) -> str:
        if not self.source.is_live:
            return f"{self.source.shown} is damaged. Copy or encode it again."
        stalled = isinstance(error, (import_av().error.ExitError, TimeoutError))
        return f"no frame for {self.source.patience:g} s." if stalled else "it broke off."

    def _hand_on(self, frame: Frame) -> None:
        """Let a frame wait; where a live source is too fast, the oldest that waits is dropped, and that is said."""
        if not (self.source.is_live or self.source.realtime):
            self._put(frame)
            return
        while True:
            try:
                self.waiting.put_nowait(frame)
            except queue.Full:
                with contextlib.suppress(queue.Empty):
                    self._drop(self.waiting.get_nowait())
            else:
                return

    def _drop(self, item: Any) -> None:
        if isinstance(item, Happening):  # is not dropped, but a frame in its place
            self._put(item)
            return
        self.dropped += 1
        if self.dropped & (self.dropped - 1) == 0:  # 1, 2, 4, 8: a long file of complaints helps nobody
            lost = count_of(self.dropped, "frame is", "frames are")
            text = f"{self.source.shown} is faster than this machine: {lost} dropped so far."
            with contextlib.suppress(queue.Full):
                self.waiting.put_nowait(Happening("behind", text, restarts=False))

    def _put(self, item: Any) -> None:
        while not self.stop.is_set():
            with contextlib.suppress(queue.Full):
                self.waiting.put(item, timeout=0.1)
                return


def _size(shape: tuple[int, ...] | None) -> str:
    return "nothing" if shape is None else f"{shape[1]}x{shape[0]}"
