"""Event detectors: which events a video shows, how sure that is, and when they happen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.utils import compute_sample_weight

from gmil import persistence
from gmil.classifiers import WeightedGMIL
from gmil.errors import VideoError
from gmil.video.features import times_of
from gmil.video.looks import weigh_looks
from gmil.video.timeline import Segment, segments, stretch_scores
from gmil.video.topics import TOPICS, Topics, learn_topics
from gmil.video.vocabulary import Vocabulary

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from sklearn.base import BaseEstimator

    from gmil.bags import Bags
    from gmil.engine.arrays import Floats, Integers

KIND = "set of video event detectors"
STRETCH = 0.2
"""Seconds of video that are judged together on a time line."""


@dataclass(frozen=True)
class TimeLine:
    """One event in one video.

    Attributes
    ----------
    event : str
    decision : float
        Above zero where the detector says that the event happens.
    probability : float
        How sure, from 0 to 1.
    times : array of shape (n_frames,)
        Seconds.
    scores : array of shape (n_frames,)
        The decision about the stretch of video around every frame.
    segments : list of Segment
        When it happens, the surest first; none where it does not.
    """

    event: str
    decision: float
    probability: float
    times: Floats
    scores: Floats
    segments: list[Segment]


@dataclass(frozen=True)
class EventDetectors:
    """A detector for every event, and the vocabulary that its features need.

    Attributes
    ----------
    events : list of str
    models : list of estimators
        One for every event, or a single one that knows them all.
    vocabulary : Vocabulary or None
        None where the features come from elsewhere.
    stretch : float
        Seconds of video that are judged together on a time line.
    shifts : list of float
        What is added to the decisions about every event.
    topics : Topics or None
        What makes topics of the words of a frame, for a second look at every video.
    topic_models : list of estimators
        Like ``models``, for topics.
    look_weights : array of shape (n_looks, n_events) or None
        What the log-odds from words, and from topics where there are any, count for every event; None is their mean.
    """

    events: list[str]
    models: list[Any]
    vocabulary: Vocabulary | None = None
    stretch: float = STRETCH
    shifts: list[float] = field(default_factory=list)
    topics: Topics | None = None
    topic_models: list[Any] = field(default_factory=list)
    look_weights: Floats | None = None

    @classmethod
    def fit(
        cls,
        bags: Bags,
        y: Integers,
        events: Sequence[str],
        *,
        estimator: BaseEstimator | None = None,
        vocabulary: Vocabulary | None = None,
        stretch: float = STRETCH,
        balanced: bool = False,
        topics: int | None = None,
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
        stretch : float
        balanced : bool
            Decide as if every event happened in half of the videos: rare events are found more often, at the price of
            more false alarms. For `WeightedGMIL`, whose decisions are log-odds, from which those of the training
            videos are subtracted.
        topics : int, optional
            Words are condensed into so many topics for a second look at every video, and both looks are added up with
            weights that predict best the training videos that were left out; 0 is no second look. For `WeightedGMIL`,
            whose decisions are log-odds. None is 50 where there is a vocabulary, and 0 for features from elsewhere and
            for other estimators.
        """
        estimator = WeightedGMIL(random_state=0) if estimator is None else estimator
        if balanced and not isinstance(estimator, WeightedGMIL):
            msg = f"balanced is for WeightedGMIL, whose decisions are log-odds, but the method is {estimator}."
            raise VideoError(msg)
        if not stretch >= 0:
            msg = f"stretch must be a number of seconds, 0 or more, got {stretch}."
            raise VideoError(msg)
        n_topics = count_topics(topics, estimator, words=vocabulary is not None)
        shifts = _rarity(y) if balanced else np.zeros(np.shape(y)[1])
        if not n_topics:
            return cls(list(events), _fit(estimator, bags, y), vocabulary, stretch, shifts.tolist())
        found = learn_topics(bags, n_topics)
        looks = _fit_alike(estimator, [bags, found.of(bags)], y)
        weights = [compute_sample_weight(estimator.get_params()["class_weight"], column) for column in np.asarray(y).T]
        weighed = weigh_looks([_left_out(models) for models in looks], y, np.column_stack(weights))
        shifts = shifts + weighed.shifts
        return cls(list(events), looks[0], vocabulary, stretch, shifts.tolist(), found, looks[1], weighed.weights)

    def decide(self, bags: Bags) -> Floats:
        """Return how much every video shows every event, (n_bags, n_events); above zero it does.

        Parameters
        ----------
        bags : Bags
        """
        looks = [_decisions(self.models, bags)]
        if self.topics is not None:
            looks.append(_decisions(self.topic_models, self.topics.of(bags)))
        weights = np.full((len(looks), 1), 1 / len(looks)) if self.look_weights is None else self.look_weights
        return sum(weight * look for weight, look in zip(weights, looks, strict=True)) + np.asarray(self.shifts)

    def probabilities(self, bags: Bags) -> Floats:
        """Return how sure it is that every video shows every event, (n_bags, n_events).

        Models without probabilities give the logistic curve of their decision, which is not calibrated.

        Parameters
        ----------
        bags : Bags
        """
        if isinstance(self.models[0], WeightedGMIL):  # its decisions are log-odds
            return np.asarray(expit(self.decide(bags)))
        columns = [
            model.predict_proba(bags)[:, 1] if hasattr(model, "predict_proba") else expit(model.decision_function(bags))
            for model in self.models
        ]
        return np.column_stack(columns)

    def time_lines(self, bags: Bags) -> list[list[TimeLine]]:
        """Return, for every video, the time line of every event.

        Parameters
        ----------
        bags : Bags
            From `gmil.video.read_features`, with the time of every frame.
        """
        if bags.n_features != self.models[0].n_features_in_:
            msg = (
                f"The detectors were trained on {self.models[0].n_features_in_} features per frame, but these videos "
                f"have {bags.n_features}. Use the features that they were trained on."
            )
            raise VideoError(msg)
        decisions, probabilities = self.decide(bags), self.probabilities(bags)
        times = times_of(bags)
        found = []
        for i in range(len(bags)):
            own = times[bags.offsets[i] : bags.offsets[i + 1]]
            order = np.argsort(own, kind="stable")  # rows of a file may come in any order
            own = own[order]
            scores = stretch_scores(self.decide, bags[i][order], own, self.stretch)
            found.append(
                [
                    TimeLine(
                        event,
                        float(decisions[i, j]),
                        float(probabilities[i, j]),
                        own,
                        scores[:, j],
                        segments(scores[:, j], own) if decisions[i, j] > 0 else [],
                    )
                    for j, event in enumerate(self.events)
                ]
            )
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write detectors and vocabulary to one file that cannot run code.

        Parameters
        ----------
        path : path
        """
        vocabulary = None if self.vocabulary is None else self.vocabulary.as_parts()
        topics = None if self.topics is None else self.topics.as_parts()
        names = ("events", "models", "stretch", "shifts", "topic_models", "look_weights")
        parts = {name: getattr(self, name) for name in names}
        persistence.save_parts({"kind": KIND, **parts, "vocabulary": vocabulary, "topics": topics}, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> EventDetectors:
        """Read what `save` wrote.

        Parameters
        ----------
        path : path
        """
        parts = persistence.load_parts(path, KIND)
        with persistence.clear_damage(path):
            words, topics = parts["vocabulary"], parts.get("topics")  # older files have no topics
            return cls(
                parts["events"],
                parts["models"],
                None if words is None else Vocabulary.from_parts(words),
                parts["stretch"],
                parts["shifts"],
                None if topics is None else Topics.from_parts(topics),
                parts.get("topic_models", []),
                parts.get("look_weights"),
            )


def count_topics(asked: int | None, estimator: BaseEstimator, *, words: bool) -> int:
    """Return the number of topics for the second look: what is asked for, or what fits."""
    if asked is None:
        return TOPICS if words and isinstance(estimator, WeightedGMIL) else 0
    if asked < 0:
        msg = f"topics must be a number of topics, or 0 for no second look, got {asked}."
        raise VideoError(msg)
    if asked and not isinstance(estimator, WeightedGMIL):
        msg = f"topics are for WeightedGMIL, whose decisions are log-odds, but the method is {estimator}."
        raise VideoError(msg)
    return asked


def _rarity(y: Integers) -> Floats:
    """Return the log-odds of no event, (n_events,); 0 for one that happens never or always: it is no more likely."""
    shares = np.asarray(y).mean(axis=0)
    known = (shares > 0) & (shares < 1)
    return -logit(np.where(known, shares, 0.5))


def _fit(estimator: BaseEstimator, bags: Bags, y: Integers) -> list[Any]:
    """Return one model for every event, or a single one that knows them all."""
    if isinstance(estimator, WeightedGMIL) and estimator.class_weight is None and np.shape(y)[1] > 1:
        return [clone(estimator).fit(bags, y)]
    return [clone(estimator).fit(bags, column) for column in np.asarray(y).T]


def _fit_alike(estimator: BaseEstimator, looks: list[Bags], y: Integers) -> list[list[Any]]:
    """Return the models of every look at the same videos, all with one seed: they leave out the same videos."""
    if estimator.get_params()["random_state"] is None:
        estimator = clone(estimator).set_params(random_state=int(np.random.default_rng().integers(2**31)))
    return [_fit(estimator, bags, y) for bags in looks]


def _left_out(models: list[Any]) -> Floats:
    return np.column_stack([model.left_out_decisions_ for model in models])


def _decisions(models: list[Any], bags: Bags) -> Floats:
    return np.column_stack([np.asarray(model.decision_function(bags)) for model in models])
