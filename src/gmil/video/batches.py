"""One thing done to many videos side by side; a video that fails is named, and the rest goes on."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from joblib import Parallel, delayed

from gmil.errors import VideoError
from gmil.safety.processes import bound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class Outcome(NamedTuple):
    """What became of a batch."""

    results: dict[str, Any]  # by name of the video
    failures: dict[str, str]  # the reason, by name of the video


def for_each_video(
    function: Callable[[Path], Any],
    videos: Mapping[str, Path],
    *,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Outcome:
    """Call a function with every video, in several processes.

    Parameters
    ----------
    function : callable
        Takes a path; a `VideoError` that it raises is the reason for a failure.
    videos : mapping of str to Path
        The videos by name.
    n_jobs : int, optional
        Processes; None is one, -1 is every core.
    progress : callable, optional
        Called with the number of videos done and of all videos.
    """
    outcome = Outcome({}, {})
    tasks = (delayed(bound(_attempt))(function, path) for path in videos.values())
    results = Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
    for done, (name, (value, reason)) in enumerate(zip(videos, results, strict=True), start=1):
        if reason is None:
            outcome.results[name] = value
        else:
            outcome.failures[name] = reason
        if progress is not None:
            progress(done, len(videos))
    return outcome


def progress_of(what: str, progress: Callable[[str, int, int], None] | None) -> Callable[[int, int], None] | None:
    """Return a callable for ``progress`` of `for_each_video` that says what is being done."""
    return None if progress is None else functools.partial(progress, what)


def _attempt(function: Callable[[Path], Any], path: Path) -> tuple[Any, str | None]:
    try:
        return function(path), None
    except VideoError as error:
        return None, str(error)


def named_videos(paths: Sequence[str | os.PathLike[str]]) -> dict[str, Path]:
    """Return videos by name: the name of the file, or its path where two files have the same name.

    >>> list(named_videos(["a/x.mp4", "a/y.mp4"])), list(named_videos(["a/x.mp4", "b/x.mp4"]))
    (['x.mp4', 'y.mp4'], ['a/x.mp4', 'b/x.mp4'])
    """
    unique = {Path(os.path.abspath(path)): None for path in paths}  # noqa: PTH100  links keep their names
    if not unique:
        msg = "No videos are listed. Name at least one video file."
        raise VideoError(msg)
    if len({path.name for path in unique}) == len(unique):
        return {path.name: path for path in unique}
    common = os.path.commonpath([path.parent for path in unique])
    return {path.relative_to(common).as_posix(): path for path in unique}
