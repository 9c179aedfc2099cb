"""Event detectors: which events a video shows, how sure that is, and when they happen."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit

from gmil.bags import Bags
from gmil.errors import VideoError
from gmil.io import model_files
from gmil.io.model_files.probing import is_choosy, probe_decisions
from gmil.io.model_files.schema import Choice, Flag, Items, Number, OrMissing, OrNone, Record
from gmil.video.features import times_are_known, times_of
from gmil.video.smoothing import choose_bandwidth, drawn_videos, smoothed, step_of
from gmil.video.stacking import SAVED_VIEW, SAVED_WEIGHTS, StackWeights, View, count_topics, fit_views, stack_views
from gmil.video.timeline import TimeLine, stretch_scores
from gmil.video.vocabulary import SAVED_VOCABULARY, Vocabulary
from gmil.weighted import WeightedGMIL

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from sklearn.base import BaseEstimator

    from gmil.engine.arrays import Floats, Integers
    from gmil.video.vocabulary import Block

KIND = "set of video event detectors"
SAVED_DETECTORS = {
    "events": Items(Choice(), "events", least=1),
    "looks": Items(SAVED_VIEW, "looks", least=1),
    "vocabulary": OrNone(Record(SAVED_VOCABULARY)),
    "stretch": Number(at_least=0),
    "weights": SAVED_WEIGHTS,
    "smoothing": OrMissing(Number(at_least=0)),
    "smoothing_in_rows": OrMissing(Flag()),
}
"""What a file of detectors holds; views are called looks there, as in the first version."""

STRETCH = 0.2
"""Seconds of video that one decision of a time line is about, where frames have no scores of their own."""


@dataclass(frozen=True)
class EventDetectors:
    """A detector for every event, and the vocabulary that its features need.

    Attributes
    ----------
    events : list of str
    views : list of View
        Of the features as they are and, where these are words, of topics of them.
    vocabulary : Vocabulary or None
        None where the features come from elsewhere.
    stretch : float
        Seconds of video that one decision of a time line is about, where ``smoothing`` is None.
    weights : StackWeights
        What makes one decision of those of all views.
    smoothing : float or None
        Seconds: the bandwidth with which scores of frames are smoothed into time lines. None is decisions about
        stretches, for models without scores of frames, and of the first version.
    smoothing_in_rows : bool
        Whether ``smoothing`` counts rows of a video instead: it was chosen on features whose times were not known.
    """

    events: list[str]
    views: list[View]
    vocabulary: Vocabulary | None
    stretch: float
    weights: StackWeights
    smoothing: float | None = None
    smoothing_in_rows: bool = False

    @property
    def looks(self) -> list[View]:
        """The old name of ``views``."""
        warnings.warn("EventDetectors.looks is called views now. Use views.", FutureWarning, stacklevel=2)
        return self.views

    @classmethod
    def fit(
        cls,
        bags: Bags,
        y: Integers,
        events: Sequence[str],
        *,
        estimator: BaseEstimator | None = None,
        vocabulary: Vocabulary | None = None,
        stretch: float | None = None,
        balanced: bool = False,
        topics: int | Sequence[int] | None = None,
        groups: Any = None,
        smoothing: float | None = None,
        blocks: Sequence[Block] | None = None,
    ) -> EventDetectors:
        """Train detectors.

        Parameters
        ----------
        bags : Bags
        y : array of shape (n_bags, n_events)
            One where the event happens.
        events : sequence of str
        estimator : classifier of bags, optional
            `WeightedGMIL` by default, which sees all events on one embedding; any other is fitted for every event.
        vocabulary : Vocabulary, optional
        stretch : float, optional
            Make time lines of decisions about stretches of so many seconds, instead of scores of frames.
        balanced : bool
            Decide as if every event happened in half of the videos: rare events are found more often, at the price of
            more false alarms. For `WeightedGMIL`, whose decisions are log-odds, from which those of the training
            videos are subtracted.
        topics : int or sequence of int, optional
            Words are condensed into so many topics for one more view of every video, for each number, and all views
            are added up with weights that predict best the training videos that were left out; 0 is words alone. For
            `WeightedGMIL`, whose decisions are log-odds. None is 25, 50 and 100 where there is a vocabulary, and 0 for
            features from elsewhere and for other estimators.
        groups : array of shape (n_bags,), optional
            What videos belong to, such as their camera. Whatever is chosen on the training videos then leaves out whole
            groups; for estimators whose ``fit`` takes groups.
        smoothing : float, optional
            The bandwidth of time lines in seconds. By default the one with which frames of training videos that show an
            event fall best into two groups: in seconds, or in rows where the times of frames are not known.
        blocks : sequence of Block, optional
            What the features of a frame are: each block is a view of its own. Those of the vocabulary by default.
        """
        estimator = WeightedGMIL(random_state=0) if estimator is None else estimator
        if balanced and not isinstance(estimator, WeightedGMIL):
            msg = f"balanced is for WeightedGMIL, whose decisions are log-odds, but the method is {estimator}."
            raise VideoError(msg)
        for name, seconds in (("stretch", stretch), ("smoothing", smoothing)):
            if seconds is not None and not seconds >= 0:
                msg = f"{name} must be a number of seconds, 0 or more, got {seconds}."
                raise VideoError(msg)
        blocks = vocabulary.blocks if blocks is None and vocabulary is not None else blocks or ()
        has_words = vocabulary is not None and any(block.words for block in blocks)
        views = fit_views(estimator, bags, y, count_topics(topics, estimator, words=has_words), groups, blocks)
        weights = stack_views(views, y)
        if balanced:
            weights = weights._replace(shifts=weights.shifts + _rarity(y))
        found = cls(list(events), views, vocabulary, STRETCH if stretch is None else stretch, weights)
        if stretch is not None or not all(view.scores_instances for view in views):
            return found
        if smoothing is not None:
            return replace(found, smoothing=smoothing)
        chosen = found._chosen_smoothing(bags, y)
        return replace(found, smoothing=chosen, smoothing_in_rows=not times_are_known(bags))

    def _chosen_smoothing(self, bags: Bags, y: Integers) -> float:
        drawn = drawn_videos(y)
        some = bags[drawn]
        return choose_bandwidth(self.score_instances(some), some, np.asarray(y)[drawn])

    def score_instances(self, bags: Bags) -> Floats:
        """Return how much every frame shows every event, (n_instances, n_events), as log-odds where models have them.

        Parameters
        ----------
        bags : Bags
        """
        return self._scores_of(bags, np.arange(len(self.events)))

    def _scores_of(self, bags: Bags, events: Integers) -> Floats:
        """Return the scores of frames for some events, (n_instances, n_events)."""
        scores = np.stack([view.score_instances(bags, events) for view in self.views])
        weights, shifts = self.weights.weights[:, events], self.weights.shifts[events]
        return np.asarray(np.einsum("lie,le->ie", scores, weights) + shifts)

    @property
    def n_features(self) -> int:
        """How many features a frame has."""
        first, ends = self.views[0], [view.columns[1] for view in self.views if view.columns is not None]
        if ends:
            return max(ends)
        return int(first.models[0].n_features_in_ if first.topics is None else len(first.topics.weights))

    @property
    def tolerance(self) -> float:
        """Seconds by which the start or the end of a segment may be off: what features and time lines blur.

        NaN where smoothing is in rows: `tolerance_of` knows how far apart these are.
        """
        return float("nan") if self.smoothing_in_rows else self._tolerance(self.smoothing)

    def tolerance_of(self, times: Floats) -> float:
        """Return the seconds by which the start or the end of a segment of one video may be off.

        Parameters
        ----------
        times : array of shape (n_frames,)
            Of the frames, in seconds, ascending.
        """
        return self._tolerance(self._bandwidth(times))

    def _tolerance(self, bandwidth: float | None) -> float:
        window = 0.0
        if self.vocabulary is not None:
            window = self.vocabulary.settings.window / self.vocabulary.settings.rate
        return window / 2 + (self.stretch / 2 if bandwidth is None else bandwidth)

    def _bandwidth(self, times: Floats) -> float | None:
        """Return the bandwidth of smoothing in the unit of the times of a video."""
        if self.smoothing is None or not self.smoothing_in_rows:
            return self.smoothing
        return self.smoothing * step_of(times)

    def decide(self, bags: Bags) -> Floats:
        """Return how much every video shows every event, (n_bags, n_events); above zero it does.

        Parameters
        ----------
        bags : Bags
        """
        votes = np.stack([view.decide(bags) for view in self.views])
        return np.asarray(np.einsum("lbe,le->be", votes, self.weights.weights) + self.weights.shifts)

    def probabilities(self, bags: Bags) -> Floats:
        """Return how sure it is that every video shows every event, (n_bags, n_events).

        Models without probabilities give the logistic curve of their decision, which is not calibrated.

        Parameters
        ----------
        bags : Bags
        """
        return self._decide_with_probabilities(bags)[1]

    def _decide_with_probabilities(self, bags: Bags) -> tuple[Floats, Floats]:
        """Return decisions and probabilities, each (n_bags, n_events)."""
        decisions = self.decide(bags)
        models = self.views[0].models
        if isinstance(models[0], WeightedGMIL):  # its decisions are log-odds
            return decisions, np.asarray(expit(decisions))
        columns = [
            model.predict_proba(bags)[:, 1] if hasattr(model, "predict_proba") else expit(own)
            for model, own in zip(models, decisions.T, strict=True)
        ]
        return decisions, np.column_stack(columns)

    def time_lines(self, bags: Bags, *, detected_only: bool = False) -> list[list[TimeLine]]:
        """Return, for every video, the time line of every event.

        Parameters
        ----------
        bags : Bags
            From `gmil.video.read_features`, with the time of every frame.
        detected_only : bool
            Leave out events that a video does not show; their frames are not scored, which takes most of the time.
        """
        expected = self.n_features
        if bags.n_features != expected:
            msg = (
                f"The detectors were trained on {expected} features per frame, but these videos have "
                f"{bags.n_features}. Use the features that they were trained on."
            )
            raise VideoError(msg)
        decisions, probabilities = self._decide_with_probabilities(bags)
        times, lines = times_of(bags), []
        for i, (start, stop) in enumerate(pairwise(bags.offsets.tolist())):
            events = np.flatnonzero(decisions[i] > 0) if detected_only else np.arange(len(self.events))
            known = decisions[i], probabilities[i]
            lines.append(self._time_lines_of(bags[i], times[start:stop], *known, events) if len(events) else [])
        return lines

    def smoothed_scores(self, bags: Bags) -> Floats:
        """Return how much every frame shows every event, (n_instances, n_events), smoothed as in time lines.

        Parameters
        ----------
        bags : Bags
            From `gmil.video.read_features`.
        """
        found, times = self.score_instances(bags), times_of(bags)
        for start, stop in pairwise(bags.offsets.tolist()):
            order = start + np.argsort(times[start:stop], kind="stable")
            found[order] = smoothed(found[order], times[order], self._bandwidth(times[order]) or 0.0)
        return found

    def _time_lines_of(
        self, frames: Floats, times: Floats, decisions: Floats, shares: Floats, events: Integers
    ) -> list[TimeLine]:
        order = np.argsort(times, kind="stable")  # rows of a file may come in any order
        frames, times = frames[order], times[order]
        bandwidth = self._bandwidth(times)
        if bandwidth is None:
            both = stretch_scores(
                lambda bags: np.hstack(self._decide_with_probabilities(bags)), frames, times, self.stretch
            )
            scores, chances = (part[:, events] for part in np.split(both, 2, axis=1))
        else:
            found = self._scores_of(Bags(frames, np.array([0, len(frames)])), events)
            scores = smoothed(found, times, bandwidth)
            chances = expit(scores)
        return [
            TimeLine.of(self.events[event], float(decisions[event]), float(shares[event]), times, own, own_chances)
            for event, own, own_chances in zip(events, scores.T, chances.T, strict=True)
        ]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write detectors and vocabulary to one file that cannot run code.

        Parameters
        ----------
        path : path
        """
        parts = {
            "kind": KIND,
            "events": self.events,
            "looks": [view.as_parts() for view in self.views],
            "vocabulary": None if self.vocabulary is None else self.vocabulary.as_parts(),
            "stretch": self.stretch,
            "weights": self.weights._asdict(),
        }
        if self.smoothing is not None:
            parts["smoothing"] = self.smoothing
        if self.smoothing_in_rows:
            parts["smoothing_in_rows"] = True
        model_files.save_parts(parts, path, SAVED_DETECTORS)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> EventDetectors:
        """Read what `save` wrote.

        Parameters
        ----------
        path : path
        """
        parts = model_files.load_parts(path, KIND, SAVED_DETECTORS)
        with model_files.clear_damage(path):
            words = parts["vocabulary"]
            found = cls(
                parts["events"],
                [View.from_parts(view) for view in parts["looks"]],
                None if words is None else Vocabulary.from_parts(words),
                parts["stretch"],
                StackWeights(**parts["weights"]),
                parts.get("smoothing"),
                bool(parts.get("smoothing_in_rows")),
            )
            found._probe()
            return found

    def _probe(self) -> None:
        """Refuse views that do not fit each other: they could not decide about all events from the same features."""
        raised = probe_decisions(self.decide, self.n_features, len(self.events))
        if raised and not any(is_choosy(model) for view in self.views for model in view.models):
            msg = f"its detectors cannot decide ({raised})"
            raise model_files.DamageError(msg)


def _rarity(y: Integers) -> Floats:
    """Return the log-odds of no event, (n_events,); 0 for one that happens never or always: it is no more likely."""
    shares = np.asarray(y).mean(axis=0)
    known = (shares > 0) & (shares < 1)
    return -logit(np.where(known, shares, 0.5))
