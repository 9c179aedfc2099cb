"""From video files to one Parquet file of frames, with the vocabulary beside it."""

from __future__ import annotations

import contextlib
import functools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmil.bags.parquet_files import open_parquet, parquet_writer
from gmil.errors import FormatError, GmilError, ModelFileError, VideoError, count_of
from gmil.safety.atomic import replacing
from gmil.video.batches import Batch, named_videos, takes_n_jobs
from gmil.video.cache import Work, again_if_gone
from gmil.video.settings import IndexSettings
from gmil.video.vocabulary import Vocabulary, learn_vocabulary

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

METADATA_KEY = b"gmil_video"
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class IndexResult:
    """What `index_videos` did.

    Attributes
    ----------
    names : list of str
        The videos that are in the file now.
    failures : dict of str
        Why a video is not, by its name.
    vocabulary : Vocabulary
    learned : bool
        Whether the vocabulary is new.
    dropped : list of str
        Videos of the file that was there before, which were not listed and are no longer in it.
    """

    names: list[str]
    failures: dict[str, str]
    vocabulary: Vocabulary
    learned: bool
    dropped: list[str] = field(default_factory=list)


def vocabulary_path(features: str | os.PathLike[str]) -> Path:
    """Return where the vocabulary of a file of features lies."""
    path = Path(features)
    return path.with_name(f"{path.stem}.vocabulary.safetensors")


def cache_path(features: str | os.PathLike[str]) -> Path:
    """Return the folder beside a file of features that keeps what was computed."""
    path = Path(features)
    return path.with_name(f"{path.stem}.index")


@takes_n_jobs
def index_videos(
    videos: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    settings: IndexSettings | None = None,
    *,
    vocabulary: Vocabulary | None = None,
    n_processes: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> IndexResult:
    """Turn videos into a Parquet file with one row per frame.

    What was computed from a video is kept in a folder beside ``output``, by the content of the video and the settings,
    so that a run that was stopped goes on. Where a vocabulary lies beside ``output`` that was learned under the same
    settings, it is used again.

    Parameters
    ----------
    videos : sequence of paths
    output : path
        The Parquet file; it holds the videos listed, and no others.
    settings : IndexSettings, optional
        Not together with ``vocabulary``, which brings its own.
    vocabulary : Vocabulary, optional
        Words to use again.
    n_processes : int, optional
        Processes over videos; None is one, -1 is every core.
    progress : callable, optional
        Called with what is being done, the number of videos done and of all videos.

    Returns
    -------
    IndexResult
    """
    if Path(output).suffix.lower() != ".parquet":
        msg = f"The frames are written to a .parquet file, got {str(output)!r}. Name one."
        raise VideoError(msg)
    named = named_videos(videos)
    dropped = _dropped(output, named)
    batch = Batch(n_processes, progress)
    if vocabulary is None:
        vocabulary = _kept_vocabulary(output, settings or IndexSettings())
    settings = (settings or IndexSettings()) if vocabulary is None else vocabulary.settings
    work = Work(_made_folder(cache_path(output)), settings)
    learned = vocabulary is None
    if vocabulary is None:
        drawn = _some(batch.each("Drawing descriptors", work.sample, named), batch)
        named = {name: named[name] for name in drawn}
        samples = [work.read_sample(named[name], file) for name, file in drawn.items()]
        vocabulary = learn_vocabulary(samples, settings)
        vocabulary.save(vocabulary_path(output))
    count = functools.partial(work.histogram, vocabulary=vocabulary)
    files = _some(batch.each("Counting words", count, named), batch)
    about = {"vocabulary": vocabulary.digest, "videos": {name: str(named[name]) for name in files}}
    _join(files, output, about, make=lambda name: count(named[name]))
    vocabulary.save(vocabulary_path(output))
    work.prune(vocabulary)
    return IndexResult(list(files), batch.failures, vocabulary, learned, dropped)


def _dropped(output: str | os.PathLike[str], named: Mapping[str, Path]) -> list[str]:
    """Return the videos of a file that is there already and will not hold them any more."""
    before = None
    with contextlib.suppress(GmilError, OSError):  # what cannot be read is written anew
        before = index_of(output)
    listed = {str(path) for path in named.values()}
    return [name for name, path in (before or {"videos": {}})["videos"].items() if path not in listed]


def _some(results: dict[str, Any], batch: Batch) -> dict[str, Any]:
    """Return results of videos; that all have failed is an error."""
    if not results:
        msg = f"None of {count_of(len(batch.failures), 'video')} can be indexed: {next(iter(batch.failures.values()))}"
        raise VideoError(msg)
    return results


def _kept_vocabulary(output: str | os.PathLike[str], settings: IndexSettings) -> Vocabulary | None:
    """Return the vocabulary beside the output where it was learned under these settings."""
    path = vocabulary_path(output)
    if not path.exists():
        return None
    try:
        found = Vocabulary.load(path)
    except ModelFileError:
        return None
    return found if found.settings == settings else None


def _made_folder(folder: Path) -> Path:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        msg = f"{folder} cannot be made, and results need it: {error.strerror}. Choose another output."
        raise VideoError(msg) from error
    return folder


def _join(
    files: Mapping[str, Path],
    output: str | os.PathLike[str],
    about: Mapping[str, Any],
    *,
    make: Callable[[str], Path],
) -> None:
    """Write the rows of all videos into one file, some at a time, the rows of a video next to each other."""
    import pyarrow as pa

    with replacing(output) as temporary, contextlib.ExitStack() as stack:
        writer = None
        for name, path in files.items():
            file = again_if_gone(open_parquet, path, functools.partial(make, name))
            for batch in file.iter_batches(_ROWS_AT_ONCE):
                names = pa.array([name] * len(batch))
                table = pa.Table.from_batches([batch])
                table = table.add_column(0, "video", names.dictionary_encode()).add_column(0, "bag", names)
                if writer is None:
                    schema = table.schema.with_metadata({METADATA_KEY: json.dumps(about).encode()})
                    writer = stack.enter_context(parquet_writer(temporary, schema, compression="zstd"))
                writer.write_table(table.cast(writer.schema))


def index_of(features: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return what `index_videos` wrote about a file: its vocabulary and its videos; None for other files.

    Parameters
    ----------
    features : path
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(features)
    if path.is_dir() or path.suffix != ".parquet":
        return None
    try:
        metadata = pq.read_schema(path).metadata or {}
        return json.loads(metadata[METADATA_KEY]) if METADATA_KEY in metadata else None
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, (FileNotFoundError, PermissionError)):
            raise
        msg = f"{path} cannot be read as Parquet. Index the videos again."
        raise FormatError(msg) from error


def vocabulary_of(features: str | os.PathLike[str]) -> Vocabulary | None:
    """Return the vocabulary of a file that `index_videos` wrote, None for frame features of another kind.

    Parameters
    ----------
    features : path
    """
    about = index_of(features)
    if about is None:
        return None
    path = vocabulary_path(features)
    if not path.exists():
        msg = f"{features} needs its vocabulary, but {path} is not there. Put it back, or index the videos again."
        raise VideoError(msg)
    vocabulary = Vocabulary.load(path)
    if vocabulary.digest != about["vocabulary"]:
        msg = f"{path} is not the vocabulary of {features}. Index the videos again."
        raise VideoError(msg)
    return vocabulary
