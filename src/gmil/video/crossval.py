"""Cross-validation of event detectors: the vocabulary, too, is learned from the training videos alone."""

from __future__ import annotations

import functools
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.errors import VideoError, listed
from gmil.model_selection.folds import estimator_seed, fold_numbers, with_seed
from gmil.model_selection.result import CVResult
from gmil.model_selection.scoring import fold_area
from gmil.video.batches import Batch, takes_n_jobs
from gmil.video.cache import Work, again_if_gone
from gmil.video.events import EventDetectors
from gmil.video.features import read_video
from gmil.video.indexing import cache_path, index_of, vocabulary_of
from gmil.video.stacking import count_topics
from gmil.video.timeline import overlap
from gmil.video.vocabulary import learn_vocabulary
from gmil.weighted import WeightedGMIL

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from sklearn.base import BaseEstimator

    from gmil.bags import Bags
    from gmil.engine.arrays import Integers
    from gmil.model_selection.scoring import Measured
    from gmil.video.labels import LabelledVideos
    from gmil.video.timeline import TimeLine
    from gmil.video.vocabulary import Block

VOCABULARIES = ("folds", "shared")
NO_VOCABULARY = "none"
"""Where the vocabulary comes from for features that are no words."""
_ENOUGH = 0.5  # of the time that either the detector or the truth names must be named by both


@dataclass(frozen=True)
class EventCV:
    """Out-of-fold results of event detectors.

    Attributes
    ----------
    events : list of str
    results : list of CVResult
        One for every event.
    time_lines : list of list of TimeLine
        For every video the time lines of all events, made while it was in the test fold; empty where not asked for.
    vocabulary : str
        "learned in the training folds", "shared by all folds" or "none" (features from elsewhere).
    topics : tuple of int
        The most topics of every view of topics; empty where there was none.
    """

    events: list[str]
    results: list[CVResult]
    time_lines: list[list[TimeLine]]
    vocabulary: str
    topics: tuple[int, ...]

    def measures(self, videos: LabelledVideos) -> list[dict[str, Any]]:
        """Return the measures of every event; ``time_found`` is None where the labels tell no times.

        The AUC is the mean over folds that have videos with and without the event, NaN where there is none such.
        ``auc_folds_dropped`` counts the others. Intervals are by bootstrap over videos, or over groups where
        videos have any.

        Parameters
        ----------
        videos : LabelledVideos
        """
        return [
            {
                "event": event,
                "positives": int(videos.y[:, j].sum()),
                "accuracy": found.accuracy(),
                "accuracy_interval": list(found.accuracy_interval()),
                "balanced_accuracy": found.balanced_accuracy(),
                "auc": found.auc(),
                "auc_interval": list(_area(found)[1:]),
                "auc_folds_dropped": found.auc_folds_dropped(),
                "time_found": self._time_found(videos, j),
            }
            for j, (event, found) in enumerate(zip(self.events, self.results, strict=True))
        ]

    def _time_found(self, videos: LabelledVideos, event: int) -> float | None:
        """Return the share of positive videos whose surest stretch shares half its time with the true one.

        A video whose event is not detected at all is one whose time is not found.
        """
        name, hits = self.events[event], []
        for spans, lines in zip(videos.spans, self.time_lines, strict=False):
            if name in spans:
                best = lines[event].segments[:1]
                hits.append(bool(best) and max(overlap(best[0][:2], span) for span in spans[name]) >= _ENOUGH)
        return float(np.mean(hits)) if hits else None


def _area(found: CVResult) -> Measured:
    return fold_area(found.y == 1, found.decisions[0, 0], found.folds[0], found.groups)


def label_folds(y: Integers, n_folds: int, seed: int, groups: Any = None) -> Integers:
    """Return the test fold of every video, stratified by the events in it.

    A combination of events that is rarer than there are folds counts as its rarest event. Videos of one group are in
    the same fold.

    Parameters
    ----------
    y : array of shape (n_videos, n_events)
    n_folds : int
    seed : int
    groups : array of shape (n_videos,), optional
    """
    combinations = ["".join(map(str, row)) for row in y.tolist()]
    frequent = Counter(combinations)
    rarest = np.where(y == 1, y.sum(axis=0), len(y) + 1).argmin(axis=1)
    strata = [
        text if frequent[text] >= n_folds or "1" not in text else f"event {event}"
        for text, event in zip(combinations, rarest, strict=True)
    ]
    counts = Counter(strata)
    # What is left alone joins the largest stratum: a fold cannot be stratified by one video.
    largest, most = counts.most_common(1)[0]
    if n_folds > most:
        msg = (
            f"is too many folds for {len(y)} videos, of which at most {most} show the same events. "
            f"Take {max(most, 2)} folds or fewer, or label more videos."
        )
        raise VideoError(msg, parameter="cv", value=n_folds)
    return fold_numbers(n_folds, np.array([s if counts[s] > 1 else largest for s in strata]), groups, seed)


def cross_validate_events(
    videos: LabelledVideos,
    bags_of_folds: Callable[[int], Bags],
    folds: Integers,
    *,
    estimator: BaseEstimator | None = None,
    vocabulary: str = NO_VOCABULARY,
    stretch: float | None = None,
    balanced: bool = False,
    topics: int | Sequence[int] | None = None,
    time_lines: bool = True,
    seed: int = 0,
    blocks: Sequence[Block] = (),
    progress: Callable[[int, int], None] | None = None,
) -> EventCV:
    """Train detectors on all folds but one and decide about the videos of that one, fold by fold.

    Where videos have groups, whatever is chosen on training videos leaves out whole groups.

    Parameters
    ----------
    videos : LabelledVideos
    bags_of_folds : callable
        Takes the number of the test fold and returns the bags of all videos as seen in that fold.
    folds : array of shape (n_videos,)
        The test fold of every video.
    estimator : classifier of bags, optional
        `WeightedGMIL` by default.
    vocabulary : str
        Where the vocabulary comes from, as `bags_for_folds` returns it.
    stretch : float, optional
        As in `EventDetectors.fit`.
    balanced : bool
        As in `EventDetectors.fit`.
    topics : int or sequence of int, optional
        As in `EventDetectors.fit`; there is no vocabulary where ``vocabulary`` is "none".
    time_lines : bool
        Whether to make the time lines of the test videos.
    seed : int
        The seed of the estimator, together with the number of the fold.
    blocks : sequence of Block
        What the features of a frame are, where they are several things: ``vocabulary_of(features).blocks``.
    progress : callable, optional
        Called with the number of folds done and of all folds.
    """
    estimator = WeightedGMIL() if estimator is None else estimator
    has_words = vocabulary != NO_VOCABULARY and (not blocks or any(block.words for block in blocks))
    counts = count_topics(topics, estimator, words=has_words)
    decisions = np.empty(videos.y.shape)
    lines: list[list[TimeLine]] = [[] for _ in videos.y]
    n_folds = int(folds.max()) + 1
    seconds = np.zeros((2, n_folds))
    for fold in range(n_folds):
        bags, test = bags_of_folds(fold), folds == fold
        model = with_seed(estimator, estimator_seed(seed, 0, fold))
        started = time.perf_counter()
        options = {"estimator": model, "stretch": stretch, "balanced": balanced, "topics": counts, "blocks": blocks}
        options["smoothing"] = None if time_lines else 0.0  # which nobody sees
        groups = None if videos.groups is None else videos.groups[~test]
        detectors = EventDetectors.fit(bags[~test], videos.y[~test], videos.events, groups=groups, **options)
        fitted = time.perf_counter()
        decisions[test] = detectors.decide(bags[test])
        seconds[:, fold] = fitted - started, time.perf_counter() - fitted
        if time_lines:
            for i, found in zip(np.flatnonzero(test), detectors.time_lines(bags[test]), strict=True):
                lines[i] = found
        if progress is not None:
            progress(fold + 1, n_folds)
    results = [
        _result(videos.y[:, j], decisions[:, j], folds, seconds, videos.groups) for j in range(len(videos.events))
    ]
    return EventCV(videos.events, results, lines if time_lines else [], vocabulary, counts)


def _result(y: Integers, decisions: Any, folds: Integers, seconds: Any, groups: Any) -> CVResult:
    predictions = (decisions > 0).astype(np.int64)
    fit, predict = (part[None, None] for part in seconds)
    every = predictions[None, None], decisions[None, None], folds[None], fit, predict
    return CVResult(y, *every, positive_label=1, groups=groups)


@takes_n_jobs
def bags_for_folds(
    features: str | os.PathLike[str],
    videos: LabelledVideos,
    folds: Integers,
    *,
    vocabulary: str = "folds",
    n_processes: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[Callable[[int], Bags], str]:
    """Return a function that gives the bags of a fold, and where the vocabulary comes from.

    With ``vocabulary="folds"`` a vocabulary is learned from the training videos of every fold, and one more pass over
    every video counts the words of all of them.

    Parameters
    ----------
    features : path
        What `index_videos` wrote, or other frame features, which have no vocabulary.
    videos : LabelledVideos
    folds : array of shape (n_videos,)
    vocabulary : {"folds", "shared"}
    n_processes : int, optional
        Processes over videos.
    progress : callable, optional
        Called with what is being done, the number of videos done and of all videos.
    """
    if vocabulary not in VOCABULARIES:
        msg = f"vocabulary must be one of {list(VOCABULARIES)}, got {vocabulary!r}."
        raise VideoError(msg)
    shared = vocabulary_of(features)
    if shared is None or vocabulary == "shared":
        return lambda _: videos.bags, NO_VOCABULARY if shared is None else "shared by all folds"
    paths = _videos_of(features, videos)
    work = Work(cache_path(features), shared.settings)
    batch = Batch(n_processes, progress)
    drawn = _all(batch.each("Drawing descriptors", work.sample, paths), batch)
    samples = [work.read_sample(path, file) for path, file in zip(paths.values(), drawn, strict=True)]
    learned = [
        learn_vocabulary([samples[i] for i in np.flatnonzero(folds != fold)], shared.settings)
        for fold in range(int(folds.max()) + 1)
    ]
    count = functools.partial(work.histograms, vocabularies=learned)
    counted = _all(batch.each("Counting words of all folds", count, paths), batch)
    work.prune(shared)

    def bags_of_fold(fold: int) -> Bags:
        matrices = [
            again_if_gone(read_video, files[fold], functools.partial(work.histogram, path, learned[fold])).instances
            for path, files in zip(paths.values(), counted, strict=True)
        ]
        return videos.bags.with_instances(np.concatenate(matrices))

    return bags_of_fold, "learned in the training folds"


def _videos_of(features: str | os.PathLike[str], videos: LabelledVideos) -> dict[str, Path]:
    """Return the video files behind the bags, in their order."""
    known = (index_of(features) or {})["videos"]
    names = [str(name) for name in videos.bags.bag_ids]  # type: ignore[union-attr]
    gone = [known[name] for name in names if not Path(known[name]).exists()]
    if gone:
        msg = (
            f"Vocabularies of folds need the videos, but {len(gone)} are gone: {listed(gone, most=3)}. Put them back, "
            "or pass --vocabulary shared."
        )
        raise VideoError(msg)
    return {name: Path(known[name]) for name in names}


def _all(results: dict[str, Any], batch: Batch) -> list[Any]:
    """Return results of videos in their order; none may have failed."""
    for reason in batch.failures.values():
        raise VideoError(reason)
    return list(results.values())
