"""Videos as a stream of grey frames at a steady rate; whatever is wrong with a file is one clear sentence."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.errors import BackendUnavailableError, VideoError, installing

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

RATE = 25.0
"""Frames per second of a video that names no rate of its own near it."""
LONGEST_SIDE = 320
_NEAR = 1.25  # a steady video whose own rate is nearer than this factor to what is asked for keeps it
_LONGEST_GAP = 600.0
_LONGEST_PAUSE = 10.0  # of a stream that is live
_MISSING_SHARE, _MISSING_SECONDS = 0.05, 0.15


class Frame(NamedTuple):
    """One picture and when it is shown."""

    gray: NDArray[np.uint8]  # (height, width)
    time: float  # seconds from the first frame


class VideoInfo(NamedTuple):
    """The metadata of a video file."""

    width: int
    height: int
    rate: float | None  # frames per second on average
    seconds: float | None


def read_frames(
    path: str | os.PathLike[str], *, rate: float = RATE, longest_side: int | None = LONGEST_SIDE
) -> Iterator[Frame]:
    """Yield the frames of a video in grey; one is held at a time.

    A video with a rate of its own within a quarter of ``rate`` keeps that rate; all others are brought to ``rate`` by
    taking the frame that is nearest in time. A variable rate so becomes a steady one.

    Parameters
    ----------
    path : path
        Anything that FFmpeg can read.
    rate : float
        Frames per second.
    longest_side : int or None
        Larger pictures are made smaller, to so many pixels on their longer side.

    Yields
    ------
    Frame
    """
    with opened(path) as container, _clear_errors(path):
        stream = video_stream(container, path)
        info = _info(container, stream)
        size = _reduced(info, longest_side)
        shown = _Shown(path)
        for frame in _steady(shown.watch(_decoded(container, stream)), _rate_of(info, rate)):
            yield Frame(_gray(frame.picture, size), frame.time)
        shown.check(info)


def steady_frames(container: Any, stream: Any, rate: float, longest_side: int | None) -> Iterator[Frame]:
    """Yield the frames of an open stream at a steady rate, for as long as it lasts; its pictures may change their size.

    Parameters
    ----------
    container, stream : PyAV's
    rate : float
    longest_side : int or None
    """
    info = _info(container, stream)
    for frame in _steady(_without_jumps(_decoded(container, stream)), _rate_of(info, rate)):
        own = info._replace(width=frame.picture.width, height=frame.picture.height)
        yield Frame(_gray(frame.picture, _reduced(own, longest_side)), frame.time)


def _gray(picture: Any, size: tuple[int, int]) -> NDArray[np.uint8]:
    """Return a picture of PyAV in grey, as it is to be shown: telephones film on their side, and say so."""
    gray: NDArray[np.uint8] = picture.reformat(*size, format="gray").to_ndarray()
    turns = round((getattr(picture, "rotation", 0) or 0) / 90) % 4
    return np.ascontiguousarray(np.rot90(gray, turns)) if turns else gray


def video_info(path: str | os.PathLike[str]) -> VideoInfo:
    """Return the size, rate and length that a file states.

    Parameters
    ----------
    path : path
        Anything that FFmpeg can read.
    """
    with opened(path) as container, _clear_errors(path):
        return _info(container, video_stream(container, path))


# -------------------------------------------------------------------------------- the file


@contextlib.contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Any]:
    """Yield an open file of PyAV; what is wrong with it is one sentence."""
    path = Path(path)
    if path.is_dir():
        msg = f"{path} is a folder, not a video. Name the files in it, such as {path}/*.mp4."
        raise VideoError(msg)
    if not path.exists():
        msg = f"{path} does not exist. Check the name; the working folder is {Path.cwd()}."
        raise VideoError(msg)
    if path.stat().st_size == 0:
        msg = f"{path} is empty: it has 0 bytes. Copy or download it again."
        raise VideoError(msg)
    av = import_av()
    try:
        container = av.open(f"file:{path}")  # a colon in a name is no protocol
    except (av.FFmpegError, OSError, ValueError) as error:
        msg = f"{path} cannot be read as a video: {_reason(error)}. It may be cut short, or no video at all."
        raise VideoError(msg) from error
    with container:
        yield container


def import_av() -> Any:
    """Return PyAV; where it is missing, the error has the command that installs it."""
    try:
        import av
    except ImportError as error:
        msg = f"Reading videos needs PyAV, which is not installed. {installing('video')}"
        raise BackendUnavailableError(msg) from error
    av.logging.set_level(av.logging.PANIC)  # what is wrong with a file is said once, by us
    return av


@contextlib.contextmanager
def _clear_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    import av

    try:
        yield
    except av.FFmpegError as error:
        msg = f"{path} is damaged: {_reason(error)}. Copy or encode it again."
        raise VideoError(msg) from error


def _reason(error: Any) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).rstrip(".")


def video_stream(container: Any, path: str | os.PathLike[str]) -> Any:
    """Return the stream of pictures of an open file."""
    # A cover picture in a sound file is a video stream too, of one frame.
    streams = [s for s in container.streams.video if not s.disposition & s.disposition.__class__.attached_pic]
    if not streams:
        kinds = sorted({stream.type for stream in container.streams})
        found = f"only {' and '.join(kinds)}" if kinds else "nothing at all: it may be cut short"
        msg = f"{path} has no video in it, {found}. Leave it out."
        raise VideoError(msg)
    streams[0].thread_type = "NONE"  # videos are worked on side by side, each by one core
    return streams[0]


def _info(container: Any, stream: Any) -> VideoInfo:
    seconds = None
    if stream.duration is not None and stream.time_base is not None:
        seconds = float(stream.duration * stream.time_base)
    elif "DURATION" in stream.metadata:
        seconds = _clock(stream.metadata["DURATION"])
    elif container.duration is not None and len(container.streams) == 1:
        seconds = container.duration / 1e6
    rate = stream.average_rate
    return VideoInfo(stream.width, stream.height, float(rate) if rate else None, seconds)


def _clock(text: str) -> float | None:
    """Return seconds from 00:01:02.500000000; None for anything else."""
    try:
        hours, minutes, seconds = text.split(":")
        return 3600 * int(hours) + 60 * int(minutes) + float(seconds)
    except ValueError:
        return None


def _reduced(info: VideoInfo, longest_side: int | None) -> tuple[int, int]:
    """Return the width and height that fit into ``longest_side``."""
    share = 1.0 if longest_side is None else min(1.0, longest_side / max(info.width, info.height))
    return max(1, round(info.width * share)), max(1, round(info.height * share))


# -------------------------------------------------------------------------------- the frames


class _Picture(NamedTuple):
    picture: Any  # a frame of PyAV
    time: float


def _decoded(container: Any, stream: Any) -> Iterator[_Picture]:
    """Yield every frame with its time from the first one; one without a time follows the one before."""
    step = float(1 / (stream.average_rate or Fraction(25)))
    start, last = None, -step
    for picture in container.decode(stream):
        time = last + step if picture.time is None else picture.time - (start or 0.0)
        if start is None:
            start, time = picture.time or 0.0, 0.0
        if time > last:  # a frame that comes out of order, or twice, is left out
            last = time
            yield _Picture(picture, time)


def _rate_of(info: VideoInfo, wanted: float) -> float:
    own = info.rate
    return own if own is not None and 1 / _NEAR <= own / wanted <= _NEAR else wanted


def _steady(pictures: Iterable[_Picture], rate: float) -> Iterator[_Picture]:
    """Yield the picture that is nearest to every tick of a clock."""
    tick, step = 0, 1 / rate
    held: _Picture | None = None
    for picture in pictures:
        if held is not None:
            while tick * step <= (held.time + picture.time) / 2:
                yield _Picture(held.picture, tick * step)
                tick += 1
        held = picture
    if held is not None:
        while tick * step < held.time + step / 2 - 1e-6:  # a tick in the middle belongs to the next frame
            yield _Picture(held.picture, tick * step)
            tick += 1


def _without_jumps(pictures: Iterable[_Picture]) -> Iterator[_Picture]:
    """Yield pictures until their time stamps jump: a stream that was cut off goes on, but not as it was."""
    last = 0.0
    for picture in pictures:
        if picture.time - last > _LONGEST_PAUSE:
            msg = f"its time stamps jump from {last:.1f} s to {picture.time:.1f} s."
            raise VideoError(msg)
        last = picture.time
        yield picture


class _Shown:
    """Watches what is decoded, to tell a file that ends too early."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self.n_frames, self.last = 0, 0.0

    def watch(self, pictures: Iterable[_Picture]) -> Iterator[_Picture]:
        for picture in pictures:
            if picture.time - self.last > _LONGEST_GAP:
                msg = (
                    f"{self.path} is damaged: its time stamps jump from {self.last:.1f} s to {picture.time:.1f} s. "
                    "Encode it again."
                )
                raise VideoError(msg)
            self.n_frames, self.last = self.n_frames + 1, picture.time
            yield picture

    def check(self, info: VideoInfo) -> None:
        """Refuse a video without frames, and one that ends long before the length in its metadata."""
        if self.n_frames == 0:
            msg = f"{self.path} has no frames: there is a video stream, but nothing in it. Leave it out."
            raise VideoError(msg)
        end = self.last + 1 / (info.rate or RATE)
        if info.seconds is not None and info.seconds - end > max(_MISSING_SECONDS, _MISSING_SHARE * info.seconds):
            msg = (
                f"{self.path} is cut short: it should last {info.seconds:.2f} s, but ends after {end:.2f} s. "
                "Copy or download it again."
            )
            raise VideoError(msg)
