"""Scores of frames, smoothed over time; how much is chosen on the training videos."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.ndimage import gaussian_filter1d

from gmil.video.features import times_are_known, times_of
from gmil.video.timeline import otsu
from gmil.witnesses.smoothing import gaussian_means

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats, Integers

_STEPS = (0, 1, 2, 4, 8, 16, 32)
"""Bandwidths that are tried, in steps between frames."""
_MOST_VIDEOS = 60
_STEADY = 0.01  # of a step: times that differ by less are steady


def smoothed(scores: Floats, times: Floats, bandwidth: float) -> Floats:
    """Return scores of the frames of one video, averaged with a Gaussian over time.

    Parameters
    ----------
    scores : array of shape (n_frames,) or (n_frames, n_events)
    times : array of shape (n_frames,)
        Ascending.
    bandwidth : float
        The standard deviation, in the unit of the times; 0 leaves scores as they are.
    """
    if bandwidth <= 0 or len(times) < 2:
        return scores
    steps = np.diff(times)
    step = float(np.median(steps))
    if step <= 0 or np.abs(steps - step).max() > _STEADY * step:
        return gaussian_means(scores, times[:, None] / bandwidth)
    width = bandwidth / step
    total, weights = (
        gaussian_filter1d(part, width, axis=0, mode="constant") for part in (scores, np.ones_like(scores))
    )
    return np.asarray(total / weights)


def step_of(times: Floats) -> float:
    """Return the usual time between a frame and the next, 0 for a single frame.

    >>> step_of(np.array([0.0, 0.5, 1.0, 4.0]))
    0.5
    """
    return float(np.median(np.diff(times))) if len(times) > 1 else 0.0


def choose_bandwidth(scores: Floats, bags: Bags, y: Integers) -> float:
    """Return the bandwidth with which frames of videos that show an event fall best into two groups (Otsu).

    Without smoothing the groups are blurred by the noise of single frames, with too much by the other frames around.
    It is in seconds, or in rows where the times of frames are not known.

    Parameters
    ----------
    scores : array of shape (n_instances, n_events)
        Of the frames of training videos.
    bags : Bags
    y : array of shape (n_bags, n_events)
    """
    times, in_seconds = times_of(bags), times_are_known(bags)
    videos = [
        (own[order], when[order] if in_seconds else _in_rows(when[order]), shown == 1)
        for a, b, shown in zip(bags.offsets[:-1], bags.offsets[1:], np.asarray(y), strict=True)
        for own, when in [(scores[a:b], times[a:b])]
        for order in [np.argsort(when, kind="stable")]
    ]
    gaps = np.concatenate([np.diff(when) for _, when, _ in videos])
    step = float(np.median(gaps)) if len(gaps) else 0.0
    found = {steps * step: _two_groups(videos, steps * step) for steps in _STEPS}
    return max(found, key=lambda bandwidth: found[bandwidth])


def _in_rows(times: Floats) -> Floats:
    """Return times whose unit is the step between frames."""
    step = step_of(times)
    return times / step if step > 0 else times


def _two_groups(videos: list[tuple[Floats, Floats, Booleans]], bandwidth: float) -> float:
    """Return the mean share of variance between two groups of frames, over events and videos that show them."""
    found = [
        otsu(column)[1]
        for scores, times, shown in videos
        for column in smoothed(scores, times, bandwidth).T[shown]
        if column.min() < column.max()
    ]
    return float(np.mean(found)) if found else 0.0


def drawn_videos(y: Integers) -> Integers:
    """Return which videos a bandwidth is chosen on: all, or of many some that are spread evenly over the events."""
    order = np.lexsort(np.asarray(y).T)
    return np.sort(order[np.linspace(0, len(order) - 1, min(len(order), _MOST_VIDEOS)).astype(np.int64)])
