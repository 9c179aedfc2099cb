"""Frame-level AUC and AP over test videos, as this field reports them: over all, by class, in anomalous ones alone."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.errors import VideoError, count_of, listed
from gmil.model_selection.metrics import auc, average_precision
from gmil.video.snippets.annotations import NORMAL
from gmil.video.snippets.names import short_name
from gmil.video.snippets.reading import SNIPPET_FRAMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.video.snippets.annotations import Annotation


class FrameScores(NamedTuple):
    """What `score_frames` measures; NaN where there are frames of one kind only."""

    auc: float  # over the frames of all videos
    average_precision: float
    auc_anomalous: float  # over the frames of videos in which something happens
    average_precision_anomalous: float
    by_class: dict[str, tuple[float, float, int]]  # AUC, AP and number of videos: those of a class and all normal ones
    n_videos: int
    n_frames: int

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        classes = {
            name: {"auc": _plain(area), "average_precision": _plain(precision), "videos": n}
            for name, (area, precision, n) in self.by_class.items()
        }
        figures = {name: _plain(value) for name, value in self._asdict().items() if name != "by_class"}
        return {**figures, "by_class": classes}


def _plain(value: float) -> float | None:
    return None if value != value else value


def score_frames(
    names: Sequence[str],
    scores: Sequence[Floats],
    starts: Sequence[Integers],
    annotations: Mapping[str, Annotation],
    snippet_frames: int = SNIPPET_FRAMES,
) -> FrameScores:
    """Compare the scores of snippets with temporal annotations.

    Every frame of a snippet has the score of the snippet; several instances of one snippet (crops) have their mean.
    Events beyond the last snippet of their video are warned of.

    Parameters
    ----------
    names : sequence of str
        The videos.
    scores, starts : sequences of arrays of shape (n_instances,)
        For every video the scores of its instances, and the first frame of each.
    annotations : mapping of str to Annotation
        From `read_annotations`.
    snippet_frames : int
        The frames of the last snippet; others last until the next begins.
    """
    matched = [annotations.get(short_name(name)) for name in names]
    lost = [name for name, found in zip(names, matched, strict=True) if found is None]
    if lost:
        msg = f"{len(lost)} of {len(names)} videos are not annotated: {listed(lost, most=3)}. Add them."
        raise VideoError(msg)
    known = [found for found in matched if found is not None]
    frames = [_frames_of(*pair, snippet_frames) for pair in zip(scores, starts, strict=True)]
    _warn_of_events_beyond(names, known, [len(own) for own in frames])
    truths = [_truth(found, len(own)) for found, own in zip(known, frames, strict=True)]
    kinds = np.array([found.kind for found in known])

    def measured(which: Booleans) -> tuple[float, float]:
        chosen = np.flatnonzero(which)
        if not len(chosen):
            return float("nan"), float("nan")
        truth, own = (np.concatenate([parts[i] for i in chosen]) for parts in (truths, frames))
        return auc(truth, own), average_precision(truth, own)

    happens = kinds != NORMAL
    classes = {
        str(kind): (*measured(~happens | (kinds == kind)), int((kinds == kind).sum()))
        for kind in sorted(set(kinds.tolist()) - {NORMAL})
    }
    total = sum(map(len, frames))
    return FrameScores(*measured(np.ones(len(kinds), bool)), *measured(happens), classes, len(names), total)


def _frames_of(scores: Floats, starts: Integers, snippet_frames: int) -> Floats:
    """Return the score of every frame: that of the snippet that begins last at or before it."""
    firsts, place = np.unique(starts, return_inverse=True)
    means = np.bincount(place, weights=scores) / np.bincount(place)
    return np.repeat(means, np.diff([*firsts, firsts[-1] + snippet_frames]))


def _warn_of_events_beyond(names: Sequence[str], annotations: Sequence[Annotation], lengths: Sequence[int]) -> None:
    """Warn of events that begin after the last frame: most often the frames of a snippet are more."""
    beyond = [
        f"{name} ({start} to {end}, of {length} frames)"
        for name, annotation, length in zip(names, annotations, lengths, strict=True)
        for start, end in annotation.spans
        if start >= length
    ]
    if beyond:
        events = count_of(len(beyond), "annotated event lies", "annotated events lie")
        msg = (
            f"{events} beyond the frames that features cover: {listed(beyond, most=3)}. "
            "Check the annotations and the frames of a snippet."
        )
        warnings.warn(msg, UserWarning, stacklevel=3)


def _truth(annotation: Annotation, n_frames: int) -> Booleans:
    found = np.zeros(n_frames, dtype=bool)
    for start, end in annotation.spans:
        found[start : end + 1] = True
    return found
