"""When an event happens: how sure a detector is about every stretch of a video, and where that is high."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gmil.bags import Bags

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gmil.engine.arrays import Booleans, Floats, Integers

_INSTANCES_AT_ONCE = 50_000
_ROUNDING = 1e-9
SHORTEST_GAP = 0.5
"""Seconds: segments with less between them are one."""
SHORTEST_SEGMENT = 0.4
"""Seconds: shorter segments are left out, but for the surest, which is widened to as much."""


class Segment(NamedTuple):
    """A stretch of time, in seconds, and the highest score in it."""

    start: float
    end: float
    score: float


@dataclass(frozen=True)
class TimeLine:
    """One event in one video.

    Attributes
    ----------
    event : str
    decision : float
        Above zero where the event is detected.
    probability : float
        That the video shows the event, from 0 to 1.
    times : array of shape (n_frames,)
        Seconds.
    scores : array of shape (n_frames,)
        How much every frame shows the event: log-odds, smoothed; or the decision about the stretch of video around it.
    segments : list of Segment
        When it happens, the surest first; none where it does not.
    probabilities : array of shape (n_frames,)
        The scores on a scale from 0 to 1 (the logistic curve of log-odds), which tells moments apart; they need not
        agree with ``probability``.
    threshold : float or None
        What ``probabilities`` are above where a moment counts as the event. Where it does not happen this is one half,
        the threshold of whole videos; None where all moments are alike and there is nothing to tell apart.
    """

    event: str
    decision: float
    probability: float
    times: Floats
    scores: Floats
    segments: list[Segment]
    probabilities: Floats
    threshold: float | None

    @classmethod
    def of(
        cls, event: str, decision: float, probability: float, times: Floats, scores: Floats, probabilities: Floats
    ) -> TimeLine:
        """Return the time line with its segments and their threshold.

        Parameters
        ----------
        event : str
        decision, probability : float
            About the whole video.
        times, scores, probabilities : array of shape (n_frames,)
        """
        found = segments(scores, times) if decision > 0 else []
        threshold = _threshold(scores, probabilities) if decision > 0 else 0.5
        return cls(event, decision, probability, times, scores, found, probabilities, threshold)


def _threshold(scores: Floats, probabilities: Floats) -> float | None:
    """Return the probability between those of the moments that count as the event and those that do not."""
    limit = score_threshold(scores)
    if limit is None:
        return 0.5 if scores.min() > 0 else None
    counts = scores > limit
    return float(probabilities[counts].min() + probabilities[~counts].max()) / 2


def stretch_scores(decide: Callable[[Bags], Floats], instances: Floats, times: Floats, seconds: float) -> Floats:
    """Return the decision about the stretch of a video around every frame, (n_frames, n_events).

    A stretch is scored as if it were a video of its own.

    Parameters
    ----------
    decide : callable
        Takes bags and returns decisions, (n_bags, n_events).
    instances : array of shape (n_frames, n_features)
    times : array of shape (n_frames,)
        Seconds, ascending.
    seconds : float
        The length of a stretch.
    """
    first = np.searchsorted(times, times - seconds / 2 - 1e-9)
    last = np.searchsorted(times, times + seconds / 2 + 1e-9)
    return np.concatenate([decide(stretches) for stretches in _stretches(instances, first, last)])


def _stretches(instances: Floats, first: Integers, last: Integers) -> Iterator[Bags]:
    """Yield stretches as bags, of a bounded number of instances together."""
    ends = np.cumsum(last - first)
    start = 0
    while start < len(first):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + _INSTANCES_AT_ONCE, side="right")))
        rows = np.concatenate([np.arange(a, b) for a, b in zip(first[start:stop], last[start:stop], strict=True)])
        offsets = np.concatenate([[0], ends[start:stop] - before])
        yield Bags(instances[rows], offsets)
        start = stop


def segments(scores: Floats, times: Floats) -> list[Segment]:
    """Return the segments of time in which scores are high, the surest first.

    High is above `score_threshold`; where there is none, the one segment is the whole video. Segments less than
    half a second apart are merged, and those shorter than 0.4 s are left out; the surest is widened to 0.4 s.

    Parameters
    ----------
    scores : array of shape (n_frames,)
    times : array of shape (n_frames,)
        Seconds, ascending.
    """
    step = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    whole = Segment(float(times[0]), float(times[-1]) + step, float(scores.max()))
    threshold = score_threshold(scores)
    if threshold is None:
        return [whole]
    found = [
        Segment(float(times[first]), float(times[last - 1]) + step, float(scores[first:last].max()))
        for first, last in _runs(scores > threshold)
    ]
    surest, *others = sorted(_merged(found), key=lambda segment: -segment.score)
    return [_widened(surest, whole), *(segment for segment in others if _length(segment) >= SHORTEST_SEGMENT)]


def score_threshold(scores: Floats) -> float | None:
    """Return the score above which a moment counts as the event, None where every moment does.

    It parts the scores best into two groups (Otsu): most videos that have the event have both kinds of time. Where no
    moment has a negative score, or the scores do not differ by more than rounding, there is no such number.

    Parameters
    ----------
    scores : array of shape (n_frames,)
    """
    if scores.min() > 0 or scores.min() == scores.max():
        return None
    limit = otsu(scores)[0]
    return limit if (scores > limit).any() else None  # between neighbouring numbers there is none


def _merged(found: list[Segment]) -> Iterator[Segment]:
    """Yield segments of ascending times, those with a short gap between them as one."""
    current = found[0]
    for segment in found[1:]:
        if segment.start - current.end < SHORTEST_GAP - _ROUNDING:
            current = Segment(current.start, segment.end, max(current.score, segment.score))
        else:
            yield current
            current = segment
    yield current


def _length(segment: Segment) -> float:
    return segment.end - segment.start + _ROUNDING


def _widened(segment: Segment, whole: Segment) -> Segment:
    """Return a segment that is not too short, around the same middle where the video allows that."""
    if _length(segment) >= SHORTEST_SEGMENT:
        return segment
    start = min((segment.start + segment.end - SHORTEST_SEGMENT) / 2, whole.end - SHORTEST_SEGMENT)
    start = max(start, whole.start)
    return Segment(start, min(start + SHORTEST_SEGMENT, whole.end), segment.score)


def _runs(high: Booleans) -> list[tuple[int, int]]:
    """Return where runs of true values begin and end."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], high, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def otsu(scores: Floats) -> tuple[float, float]:
    """Return the number that parts scores, which differ, into two groups with the largest variance between them.

    With it comes the share of the variance that lies between the groups, from 0 to 1.

    >>> otsu(np.array([0.0, 0.0, 1.0, 1.0]))
    (0.5, 1.0)
    """
    ordered = np.sort(np.asarray(scores, dtype=np.float64))
    counts = np.arange(1, len(ordered))
    sums = np.cumsum(ordered)[:-1]
    lower = sums / counts
    upper = (ordered.sum() - sums) / (len(ordered) - counts)
    between = counts * (len(ordered) - counts) * (upper - lower) ** 2
    at = int(np.argmax(between))
    share = float(between[at] / len(ordered) ** 2 / max(ordered.var(), np.finfo(np.float64).tiny))
    return float((ordered[at] + ordered[at + 1]) / 2), share


def overlap(first: tuple[float, float], second: tuple[float, float]) -> float:
    """Return the share of the time in either stretch that lies in both.

    >>> overlap((0, 2), (1, 3))
    0.3333333333333333
    """
    common = max(0.0, min(first[1], second[1]) - max(first[0], second[0]))
    either = max(first[1], second[1]) - min(first[0], second[0])
    return common / either if either > 0 else 0.0
