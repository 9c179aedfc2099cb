"""What was computed from a video, kept in files that are named by what went in: nothing is done twice.

Whoever uses a file renews its time, and files that nobody used for a week are removed (`Work.prune`). Runs side by side
need no lock for that: a file that is gone when it is to be read is made again (`again_if_gone`).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gmil.bags.bag_files import read_arrays
from gmil.bags.parquet_files import parquet_writer
from gmil.bags.tables import to_list_table
from gmil.engine import resolve
from gmil.errors import VideoError, count_of
from gmil.safety.atomic import replacing
from gmil.video.cuts import shots_of
from gmil.video.decoding import read_frames
from gmil.video.encoding.descriptors import HOG3D, descriptors_by_frame, widths_of
from gmil.video.histograms import frame_histograms
from gmil.video.kept_frames import SUFFIX, keeping, kept_frames, room_in
from gmil.video.vocabulary import DescriptorSample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gmil.engine.arrays import Floats
    from gmil.video.decoding import Frame
    from gmil.video.histograms import FrameHistograms
    from gmil.video.settings import IndexSettings
    from gmil.video.vocabulary import Vocabulary

_Read = TypeVar("_Read")
_ROWS_AT_ONCE = 1024
_UNUSED_SECONDS = 7 * 24 * 3600.0
_ENTRY = re.compile(r"[0-9a-f]{1,16}-([0-9a-f]{16})\.(npy|npz|parquet|frames)")  # content, and settings or vocabulary
_HALF_WRITTEN = re.compile(r"\.[0-9a-f]{1,16}-[0-9a-f]{16}-\w+\.(npy|npz|parquet|frames)")  # a killed run left it


@dataclass(frozen=True)
class Work:
    """What is done to a video, and the folder that keeps the results."""

    folder: Path
    settings: IndexSettings

    def sample(self, video: str | os.PathLike[str]) -> Path:
        """Return the file with descriptors drawn from a video, made now where it is not there yet.

        The frames are kept for `histograms`, which follows once there are words.
        """
        content = content_digest(video)
        suffix = "npy" if self.settings.descriptors == (HOG3D,) else "npz"
        target = self.folder / f"{content}-{self.settings.sample_key()}.{suffix}"
        if not _take_up(target):
            frames = keeping(frames_of(video, self.settings), self._frames(content), room_in(self.folder))
            drawn = _draw(frames, self.settings, seed=int(content, 16))
            values: dict[str, Any] = {family: sample.values.astype(np.float16) for family, sample in drawn.items()}
            with replacing(target) as temporary:
                np.save(temporary, values[HOG3D]) if suffix == "npy" else np.savez(temporary, **values)
        return target

    def histograms(self, video: str | os.PathLike[str], vocabularies: Sequence[Vocabulary]) -> list[Path]:
        """Return a file of word histograms for every vocabulary; the video is read once for all that are missing."""
        content = content_digest(video)
        targets = [self.folder / f"{content}-{vocabulary.digest}.parquet" for vocabulary in vocabularies]
        missing = [i for i, target in enumerate(targets) if not _take_up(target)]
        if missing:
            own = [vocabularies[i] for i in missing]
            kept = kept_frames(self._frames(content))
            frames = frames_of(video, self.settings) if kept is None else kept
            found = frame_histograms(frames, own, resolve("auto", 1))
            _write_histograms([targets[i] for i in missing], found)
        self._frames(content).unlink(missing_ok=True)
        return targets

    def _frames(self, content: str) -> Path:
        """Return where the frames of a video lie between two passes."""
        return self.folder / f"{content}-{self.settings.frames_key()}{SUFFIX}"

    def histogram(self, video: str | os.PathLike[str], vocabulary: Vocabulary) -> Path:
        """Return the file of word histograms for one vocabulary."""
        return self.histograms(video, [vocabulary])[0]

    def read_sample(self, video: str | os.PathLike[str], file: Path) -> Floats | dict[str, Floats]:
        """Return the descriptors in the file of `sample`, by family where there are others beside HOG3D."""
        return again_if_gone(_read_sample, file, functools.partial(self.sample, video))

    def prune(self, vocabulary: Vocabulary) -> list[str]:
        """Remove files that nobody used for a week, and return their names.

        The histograms of ``vocabulary`` and the samples under these settings stay, however old they are. What a killed
        run left half written goes too.
        """
        kept, removed = (vocabulary.digest, self.settings.sample_key()), []
        for path in self.folder.iterdir():
            entry = _ENTRY.fullmatch(path.name)
            prunable = entry[1] not in kept if entry else _HALF_WRITTEN.fullmatch(path.name) is not None
            with contextlib.suppress(OSError):  # another run was quicker, or its file is open
                if prunable and time.time() - path.stat().st_mtime > _UNUSED_SECONDS:
                    path.unlink()
                    removed.append(path.name)
        return removed


def count_words(video: str | os.PathLike[str], vocabularies: Sequence[Vocabulary]) -> Iterator[FrameHistograms]:
    """Yield the word histograms of the frames of a video, by every vocabulary."""
    return frame_histograms(frames_of(video, vocabularies[0].settings), vocabularies, resolve("auto", 1))


def frames_of(video: str | os.PathLike[str], settings: IndexSettings) -> Iterator[Frame]:
    """Yield the frames of a video that is large and long enough for a descriptor."""
    n_frames = 0
    frames = read_frames(video, rate=settings.rate, longest_side=settings.longest_side)
    for n_frames, frame in enumerate(frames, start=1):
        if n_frames == 1:
            refuse_small(video, frame.gray.shape, settings)
        yield frame
    refuse_short(video, n_frames, settings)


def refuse_small(video: str | os.PathLike[str], shape: tuple[int, ...], settings: IndexSettings) -> None:
    """Refuse pictures that are smaller than a descriptor."""
    smallest = settings.smallest_side
    if min(shape) < smallest:
        msg = f"{video} is {shape[1]}x{shape[0]} pixels, but a descriptor spans {smallest}x{smallest}. Leave it out."
        raise VideoError(msg)


def refuse_short(video: str | os.PathLike[str], n_frames: int, settings: IndexSettings) -> None:
    """Refuse a video that is shorter than a descriptor."""
    if n_frames < settings.fewest_frames:
        found = count_of(n_frames, "frame")
        msg = f"{video} has {found}, but a descriptor spans {settings.fewest_frames}. Leave it out."
        raise VideoError(msg)


def _take_up(path: Path) -> bool:
    """Tell whether a file is there, and renew its time, so that it is not pruned while it is in use."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    except OSError:  # the file may be read, but belongs to someone else
        return path.exists()
    return True


def again_if_gone(read: Callable[[Path], _Read], file: Path, make: Callable[[], Path]) -> _Read:
    """Return what is read from a file; where another run pruned it since it was taken up, it is made again."""
    try:
        return read(file)
    except FileNotFoundError:
        return read(make())


def content_digest(path: str | os.PathLike[str]) -> str:
    """Return sixteen characters that stand for the content of a file, whatever its name."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except OSError:
        return "0"  # reading it as a video says what is wrong


def _draw(frames: Iterator[Frame], settings: IndexSettings, seed: int) -> dict[str, DescriptorSample]:
    """Return descriptors drawn from every family; HOG3D alone and HOG3D beside others are drawn alike."""
    samples = {
        family: DescriptorSample(settings.sample_per_video, width, np.random.default_rng([settings.seed, seed]))
        for family, width in widths_of(settings).items()
    }
    for shot in shots_of(frames, settings):
        for found in descriptors_by_frame((frame.gray for frame in shot), settings):
            for family, sample in samples.items():
                for part in found.get(family, ()):
                    sample.add(part.values)
    return samples


def _read_sample(file: Path) -> Floats | dict[str, Floats]:
    return dict(read_arrays(file)) if file.suffix == ".npz" else np.load(file)


def _write_histograms(targets: list[Path], found: Iterator[FrameHistograms]) -> None:
    """Write histograms as they come, some rows at a time; nothing stays where the video breaks off."""
    with contextlib.ExitStack() as stack:
        temporaries = [stack.enter_context(replacing(target)) for target in targets]
        writers: list[Any] = []
        while block := list(itertools.islice(found, _ROWS_AT_ONCE)):
            for i, table in enumerate(_tables(block)):
                if len(writers) == i:
                    writer = parquet_writer(temporaries[i], table.schema, compression="zstd")
                    writers.append(stack.enter_context(writer))
                writers[i].write_table(table)


def _tables(block: list[FrameHistograms]) -> list[Any]:
    """Return frames as tables of frame, time and features, one for every vocabulary."""
    frames, times, histograms = zip(*block, strict=True)
    counted = {"frame": np.array(frames), "time": np.array(times)}
    return [to_list_table(counted, np.stack(own), None) for own in zip(*histograms, strict=True)]
