"""New videos through trained detectors: what happens in them, how sure that is, and when."""

from __future__ import annotations

import functools
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags import Bags
from gmil.errors import VideoError, listed
from gmil.video.batches import Batch, named_videos, takes_n_jobs
from gmil.video.cache import count_words
from gmil.video.decoding import video_info
from gmil.video.features import read_features, times_are_known
from gmil.video.indexing import index_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from gmil.video.events import EventDetectors
    from gmil.video.timeline import Segment, TimeLine
    from gmil.video.vocabulary import Vocabulary


@dataclass(frozen=True)
class Detection:
    """What was found in a video.

    Attributes
    ----------
    video : str
        Its name.
    path : Path
    time_lines : list of TimeLine
        One for every event, the surest first.
    """

    video: str
    path: Path
    time_lines: list[TimeLine]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "video": self.video,
            "path": str(self.path),
            "events": [
                {
                    "event": line.event,
                    "happens": line.decision > 0,
                    "probability": round(line.probability, 4),
                    "decision": round(line.decision, 4),
                    "segments": [_segment(segment) for segment in line.segments],
                    "threshold": None if line.threshold is None else round(line.threshold, 4),
                    "time_line": {
                        "time": [round(float(t), 4) for t in line.times],
                        "score": [round(float(s), 4) for s in line.scores],
                        "probability": [round(float(p), 4) for p in line.probabilities],
                    },
                }
                for line in self.time_lines
            ],
        }


def _segment(segment: Segment) -> dict[str, float]:
    return {name: round(value, 4) for name, value in segment._asdict().items()}


@takes_n_jobs
def detect(
    detectors: EventDetectors,
    videos: Sequence[str | os.PathLike[str]],
    *,
    features: str | os.PathLike[str] | None = None,
    rate: float | None = None,
    n_processes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[list[Detection], dict[str, str]]:
    """Detect events in videos.

    Parameters
    ----------
    detectors : EventDetectors
    videos : sequence of paths
    features : path, optional
        Frame features of these videos, for detectors that were trained on features from elsewhere.
    rate : float, optional
        Rows of ``features`` per second where they hold no times.
    n_processes : int, optional
        Processes over videos; None is one, -1 is every core.
    progress : callable, optional
        Called with the number of videos done and of all videos.

    Returns
    -------
    detections : list of Detection
    failures : dict of str
        Why a video could not be read, by its name.
    """
    named = named_videos(videos)
    if features is not None:
        _refuse_other_words(detectors, features)
        bags, failures = _given_features(named, features, rate)
    elif detectors.vocabulary is None:
        msg = "These detectors were trained on features from elsewhere. Pass those of the videos with --features."
        raise VideoError(msg)
    else:
        batch = Batch(n_processes, None if progress is None else lambda _, *done: progress(*done))
        count = functools.partial(_frames, vocabulary=detectors.vocabulary)
        bags, failures = batch.each("Counting words", count, named), batch.failures
    found = []
    for name, frames in bags.items():
        [lines] = detectors.time_lines(frames)
        found.append(Detection(name, named[name], sorted(lines, key=lambda line: -line.probability)))
    return found, failures


def _refuse_other_words(detectors: EventDetectors, features: str | os.PathLike[str]) -> None:
    """Refuse features other than word histograms by the vocabulary of the detectors, where these have one."""
    known = detectors.vocabulary
    if known is not None and (index_of(features) or {}).get("vocabulary") != known.digest:
        msg = (
            f"These detectors were trained on an index and compute their features from videos, but {features} was not "
            "indexed with their vocabulary. Leave out --features."
        )
        raise VideoError(msg)


def _frames(video: Path, vocabulary: Vocabulary) -> Bags:
    """Return the frames of a video as one bag of word histograms."""
    frames, times, histograms = zip(*count_words(video, [vocabulary]), strict=True)
    features = np.concatenate(histograms)
    return Bags(features, np.array([0, len(features)]), None, None, {"frame": frames, "time": times})


def _given_features(
    named: Mapping[str, Path], features: str | os.PathLike[str], rate: float | None
) -> tuple[dict[str, Bags], dict[str, str]]:
    bags = read_features(features, rate=rate)
    known = {str(name): i for i, name in enumerate(bags.bag_ids)}  # type: ignore[arg-type]
    shared = Counter(short for path in named.values() for short in {path.name, path.stem})
    found, failures = {}, {}
    for name, path in named.items():
        shorts = [short for short in (path.name, path.stem) if shared[short] == 1]  # features belong to one video only
        at = next((known[short] for short in (name, *shorts) if short in known), None)
        if at is None:
            failures[name] = f"{path} has no features in {features}, which knows {listed(sorted(known), most=3)}."
            continue
        try:
            found[name] = _spread(bags[at : at + 1], path)
        except VideoError as error:
            failures[name] = str(error)
    return found, failures


def _spread(bags: Bags, path: Path) -> Bags:
    """Return frames with times: evenly over the length of the video where nothing else tells them."""
    if times_are_known(bags):
        return bags
    seconds = video_info(path).seconds
    if seconds is None or not math.isfinite(seconds):
        msg = f"{path} does not state its length. Pass the rows of features per second with --rate."
        raise VideoError(msg)
    info = {name: bags.instance_info.column(name) for name in ("video", "frame")}  # type: ignore[union-attr]
    times = np.arange(bags.n_instances) * (seconds / bags.n_instances)
    return Bags(bags.instances, bags.offsets, bags.bag_ids, None, {**info, "time": times})
