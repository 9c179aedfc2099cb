"""The grey frames of a video on disk, between two passes over it: it is decoded once."""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.errors import VideoError
from gmil.safety.temporaries import make_temporary, remove_leftovers
from gmil.video.decoding import Frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

SUFFIX = ".frames"
MOST_BYTES = 4 << 30
"""In one folder, in all; videos whose frames have no room there are decoded again."""
_SHARE_OF_DISK = 4  # one in so many of the bytes that are free


def room_in(folder: Path) -> int:
    """Return how many bytes of frames a folder still takes."""
    kept = 0
    for path in folder.glob(f"*{SUFFIX}"):
        with contextlib.suppress(OSError):  # another run was quicker
            kept += path.stat().st_size
    return min(MOST_BYTES - kept, shutil.disk_usage(folder).free // _SHARE_OF_DISK)


def keeping(frames: Iterable[Frame], target: Path, most: int) -> Iterator[Frame]:
    """Yield frames, and write them to a file on the way.

    There is no file where they take more than ``most`` bytes, where the disk is full, or where the video breaks off.

    Parameters
    ----------
    frames : iterable of Frame
    target : path
    most : int
    """
    writer = _Writer(target, most)
    try:
        for frame in frames:
            writer.write(frame)
            yield frame
        writer.finish()
    finally:
        writer.give_up()


def kept_frames(path: Path) -> Iterator[Frame] | None:
    """Return the frames that were written to a file; None where there is none.

    Parameters
    ----------
    path : path
    """
    import pyarrow as pa

    try:
        file = pa.OSFile(str(path))
    except OSError:
        return None
    return _read(file, path)


def _read(file: Any, path: Path) -> Iterator[Frame]:
    import pyarrow as pa

    height = None
    with file, contextlib.suppress(pa.ArrowException), pa.ipc.open_stream(file) as reader:
        for batch in reader:
            time, height, gray = (column[0] for column in batch.columns)
            if height.as_py() == 0:
                return
            pixels = np.frombuffer(gray.as_buffer(), dtype=np.uint8)
            yield Frame(pixels.reshape(height.as_py(), -1), time.as_py())
    msg = f"{path} is damaged: it has no end. Remove it; the video is decoded again."
    raise VideoError(msg)


class _Writer:
    """Writes frames under another name, until it is finished or given up."""

    def __init__(self, target: Path, most: int) -> None:
        self.target, self.most = target, most
        self.open: contextlib.ExitStack | None = None
        if most > 0:
            with contextlib.suppress(OSError):
                self._begin()

    def _begin(self) -> None:
        import pyarrow as pa

        remove_leftovers(self.target.parent, self.target)
        self.temporary = make_temporary(self.target)
        self.schema = pa.schema({"time": pa.float64(), "height": pa.int32(), "gray": pa.binary()})
        with contextlib.ExitStack() as stack:
            self.file = stack.enter_context(pa.OSFile(str(self.temporary), "wb"))
            options = pa.ipc.IpcWriteOptions(compression="zstd")
            self.writer = stack.enter_context(pa.ipc.new_stream(self.file, self.schema, options=options))
            self.open = stack.pop_all()

    def write(self, frame: Frame) -> None:
        """Write a frame, unless the file was given up."""
        if self.open is None:
            return
        try:
            self._add(frame.time, frame.gray.shape[0], frame.gray.tobytes())
            too_large = self.file.tell() > self.most
        except OSError:  # the disk is full
            too_large = True
        if too_large:
            self.give_up()

    def _add(self, *row: Any) -> None:
        import pyarrow as pa

        columns = [pa.array([value], kind) for value, kind in zip(row, self.schema.types, strict=True)]
        self.writer.write_batch(pa.record_batch(columns, schema=self.schema))

    def finish(self) -> None:
        """Mark the end, and give the file its name."""
        if self.open is not None:
            with contextlib.suppress(OSError):
                self._add(0.0, 0, b"")
                self.open.close()
                self.temporary.replace(self.target)
        self.give_up()

    def give_up(self) -> None:
        """Remove what was written; a file that has its name stays."""
        if self.open is not None:
            with contextlib.suppress(OSError):
                self.open.close()
            self.open = None
            self.temporary.unlink(missing_ok=True)
