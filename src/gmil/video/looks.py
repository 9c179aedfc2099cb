"""Several looks at the same videos, at words and at topics of them, and how much each counts for an event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from sklearn.base import clone
from sklearn.utils import compute_sample_weight

from gmil.errors import VideoError
from gmil.io.model_files.schema import Array, Fitted, Items, OrNone, Record
from gmil.video.topics import SAVED_TOPICS, TOPICS, Topics, learn_topics
from gmil.weighted import WeightedGMIL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sklearn.base import BaseEstimator

    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats, Integers


SAVED_LOOK = Record({"topics": OrNone(SAVED_TOPICS), "models": Items(Fitted("decision_function"), least=1)})
"""What `Look.as_parts` is."""

SAVED_WEIGHTS = Record({"weights": Array("looks", "events", at_least=0), "shifts": Array("events")})
"""What `LookWeights` is."""


@dataclass(frozen=True)
class Look:
    """One look at videos: what is seen, and the models that judge it.

    Attributes
    ----------
    topics : Topics or None
        What is made of the words of a frame; None is the features as they are.
    models : list of estimators
        One for every event, or a single one that knows them all.
    """

    topics: Topics | None
    models: list[Any]

    def decide(self, bags: Bags) -> Floats:
        """Return what the models say about videos, (n_bags, n_events).

        Parameters
        ----------
        bags : Bags
        """
        seen = bags if self.topics is None else self.topics.of(bags)
        return np.column_stack([np.asarray(model.decision_function(seen)) for model in self.models])

    def left_out(self) -> Floats:
        """Return what the models say about the training videos that they left out, (n_bags, n_events)."""
        return np.column_stack([model.left_out_decisions_ for model in self.models])

    def as_parts(self) -> dict[str, Any]:
        """Return plain data and models, from which `from_parts` makes the same look."""
        return {"topics": None if self.topics is None else self.topics.as_parts(), "models": self.models}

    @classmethod
    def from_parts(cls, parts: dict[str, Any]) -> Look:
        """Return the look of `as_parts`."""
        return cls(None if parts["topics"] is None else Topics.from_parts(parts["topics"]), parts["models"])


def count_topics(asked: int | Sequence[int] | None, estimator: BaseEstimator, *, words: bool) -> tuple[int, ...]:
    """Return the numbers of topics, one for every further look: what is asked for, or what fits."""
    if asked is None:
        return TOPICS if words and isinstance(estimator, WeightedGMIL) else ()
    counts = (asked,) if isinstance(asked, (int, np.integer)) else tuple(asked)
    if min(counts, default=0) < 0:
        msg = f"topics must be numbers of topics, or 0 for words alone, got {min(counts)}."
        raise VideoError(msg)
    counts = tuple(sorted({int(count) for count in counts} - {0}))
    if counts and not isinstance(estimator, WeightedGMIL):
        msg = f"topics are for WeightedGMIL, whose decisions are log-odds, but the method is {estimator}."
        raise VideoError(msg)
    return counts


def fit_looks(estimator: BaseEstimator, bags: Bags, y: Integers, topics: Sequence[int]) -> list[Look]:
    """Fit the look at features as they are, and one at so many topics for each number.

    Parameters
    ----------
    estimator : classifier of bags
    bags : Bags
    y : array of shape (n_bags, n_events)
    topics : sequence of int
        No number above that of the videos is used.
    """
    if topics and estimator.get_params()["random_state"] is None:
        # One seed for all: they leave out the same videos.
        estimator = clone(estimator).set_params(random_state=int(np.random.default_rng().integers(2**31)))
    looks = [Look(None, _fit(estimator, bags, y))]
    for count in sorted({min(count, len(bags)) for count in topics}):
        found = learn_topics(bags, count)
        looks.append(Look(found, _fit(estimator, found.of(bags), y)))
    return looks


def _fit(estimator: BaseEstimator, bags: Bags, y: Integers) -> list[Any]:
    if isinstance(estimator, WeightedGMIL) and estimator.class_weight is None and np.shape(y)[1] > 1:
        return [clone(estimator).fit(bags, y)]
    return [clone(estimator).fit(bags, column) for column in np.asarray(y).T]


class LookWeights(NamedTuple):
    """What makes log-odds of those of several looks: a weighted sum and a shift for every event."""

    weights: Floats  # (n_looks, n_events), none negative
    shifts: Floats  # (n_events,)

    @classmethod
    def equal(cls, n_looks: int, n_events: int) -> LookWeights:
        """Return what makes the mean."""
        return cls(np.full((n_looks, n_events), 1 / n_looks), np.zeros(n_events))


def weigh_looks(looks: Sequence[Look], y: Integers) -> LookWeights:
    """Return how much every look of `fit_looks` counts for every event; a single one is left as it is.

    Parameters
    ----------
    looks : sequence of Look
    y : array of shape (n_videos, n_events)
        What they were fitted to.
    """
    n_events = np.shape(y)[1]
    if len(looks) == 1:
        return LookWeights.equal(1, n_events)
    class_weight = looks[0].models[0].class_weight
    weights = [compute_sample_weight(class_weight, column) for column in np.asarray(y).T]
    return weigh([look.left_out() for look in looks], y, np.column_stack(weights))


def weigh(left_out: Sequence[Floats], y: Integers, weights: Floats) -> LookWeights:
    """Return how much every look counts for every event: what predicts best the videos that were left out.

    The likelihood is that of logistic regression, with a normal prior around equal weights, as wide as these: with few
    videos the looks are averaged, with many the better one has its way, and the sum is as sure as it may be.

    Parameters
    ----------
    left_out : sequence of arrays of shape (n_videos, n_events)
        For every look the log-odds of the training videos from fits without them; NaN where there are none.
    y : array of shape (n_videos, n_events)
    weights : array of shape (n_videos, n_events)
        How much a video counts.
    """
    each = np.stack(left_out)
    known = np.isfinite(each).all(axis=(0, 2))
    found = [
        _weigh_event(each[:, known, event].T, np.asarray(y)[known, event] > 0, weights[known, event])
        for event in range(each.shape[2])
    ]
    return LookWeights(np.column_stack([own for own, _ in found]), np.array([shift for _, shift in found]))


def _weigh_event(odds: Floats, positive: Booleans, weights: Floats) -> tuple[Floats, float]:
    """Return the weights of looks, (n_looks,), and the shift for one event; ``odds`` are (n_videos, n_looks)."""
    n_looks = odds.shape[1]
    equal = np.full(n_looks, 1 / n_looks)
    if not positive.any() or positive.all():
        return equal, 0.0  # nothing to learn from
    signs = np.where(positive, 1.0, -1.0)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        margins = signs * (odds @ parameters[:-1] + parameters[-1])
        away = (parameters[:-1] - equal) / equal
        pull = -weights * signs * expit(-margins)
        slopes = np.append(odds.T @ pull + away / equal, pull.sum())
        return float(away @ away / 2 - weights @ log_expit(margins)), slopes

    bounds = [(0, None)] * n_looks + [(None, None)]
    found: Any = minimize(loss, np.append(equal, 0.0), jac=True, method="L-BFGS-B", bounds=bounds)
    return found.x[:-1], float(found.x[-1])
