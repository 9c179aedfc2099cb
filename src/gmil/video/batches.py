"""One thing done to many videos side by side; a video that fails is named, and the rest goes on."""

from __future__ import annotations

import functools
import os
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from joblib import Parallel, delayed

from gmil.errors import VideoError
from gmil.safety.processes import bound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Returned = TypeVar("Returned")


def takes_n_jobs(function: Callable[..., Returned]) -> Callable[..., Returned]:
    """Let a function that has ``n_processes`` take it as ``n_jobs``, its name in the first version, with a warning."""

    @functools.wraps(function)
    def renamed(*args: Any, **options: Any) -> Returned:
        if "n_jobs" in options:
            msg = f"n_jobs of {function.__name__} is called n_processes now, for it counts processes. Use n_processes."
            warnings.warn(msg, FutureWarning, stacklevel=2)
            options["n_processes"] = options.pop("n_jobs")
        return function(*args, **options)

    return renamed


@dataclass(frozen=True)
class Batch:
    """How videos are worked on, and which of them failed.

    Attributes
    ----------
    n_processes : int, optional
        Processes over videos; None is one, -1 is every core.
    progress : callable, optional
        Called with what is being done, the number of videos done and of all videos.
    failures : dict of str
        Why a video failed, by its name.
    """

    n_processes: int | None = None
    progress: Callable[[str, int, int], None] | None = None
    failures: dict[str, str] = field(default_factory=dict)

    def each(self, what: str, function: Callable[[Path], Any], videos: Mapping[str, Path]) -> dict[str, Any]:
        """Call a function with every video, in several processes; return results by name of the video.

        Parameters
        ----------
        what : str
            What is being done.
        function : callable
            Takes a path; a `VideoError` that it raises is the reason for a failure.
        videos : mapping of str to Path
            The videos by name.
        """
        results: dict[str, Any] = {}
        tasks = (delayed(bound(_attempt))(function, path) for path in videos.values())
        found = Parallel(n_jobs=self.n_processes, return_as="generator")(tasks)
        for done, (name, (value, reason)) in enumerate(zip(videos, found, strict=True), start=1):
            if reason is None:
                results[name] = value
            else:
                self.failures[name] = reason
            if self.progress is not None:
                self.progress(what, done, len(videos))
        return results


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
