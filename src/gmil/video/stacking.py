"""Stacking: models of several views of the same videos, their words and topics of them, with a weight for each view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import compute_sample_weight

from gmil.errors import VideoError
from gmil.io.model_files.damage import DamageError
from gmil.io.model_files.schema import Array, Count, Fitted, Items, OrMissing, OrNone, Record
from gmil.model_selection.folds import fit_with_groups
from gmil.stacking import logistic_weights
from gmil.video.topics import SAVED_TOPICS, TOPICS, Topics, learn_topics
from gmil.weighted import WeightedGMIL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sklearn.base import BaseEstimator

    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.video.vocabulary import Block


SAVED_VIEW = Record(
    {
        "topics": OrNone(SAVED_TOPICS),
        "models": Items(Fitted("decision_function"), least=1),
        "columns": OrMissing(Items(Count())),
    }
)
"""What `View.as_parts` is."""

SAVED_WEIGHTS = Record({"weights": Array("looks", "events", at_least=0), "shifts": Array("events")})
"""What `StackWeights` is."""
_PRIOR_WIDTH = 0.5


@dataclass(frozen=True)
class View:
    """One view of videos: the features of frames, and the models fitted to them.

    Attributes
    ----------
    topics : Topics or None
        What is made of the words of a frame; None is the features as they are.
    models : list of estimators
        One for every event, or a single one that knows them all.
    columns : tuple of int or None
        Where the features of this view begin and end; None is all of them.
    """

    topics: Topics | None
    models: list[Any]
    columns: tuple[int, int] | None = None

    def decide(self, bags: Bags) -> Floats:
        """Return the decisions of the models about videos, (n_bags, n_events).

        Parameters
        ----------
        bags : Bags
        """
        seen = self._seen(bags)
        return np.column_stack([np.asarray(model.decision_function(seen)) for model in self.models])

    def _seen(self, bags: Bags) -> Bags:
        own = bags if self.columns is None else _columns_of(bags, *self.columns)
        return own if self.topics is None else self.topics.of(own)

    def score_instances(self, bags: Bags, events: Integers) -> Floats:
        """Return the scores of frames by the models of some events, (n_instances, n_events).

        Parameters
        ----------
        bags : Bags
        events : array of int
        """
        seen = self._seen(bags)
        if len(self.models) == 1:  # it knows them all
            return np.asarray(self.models[0].score_instances(seen)).reshape(bags.n_instances, -1)[:, events]
        return np.column_stack([np.asarray(self.models[event].score_instances(seen)) for event in events])

    @property
    def scores_instances(self) -> bool:
        """Whether every model has scores of instances."""
        return all(hasattr(model, "score_instances") for model in self.models)

    def left_out(self) -> Floats:
        """Return the out-of-fold decisions of the models about the training videos, (n_bags, n_events)."""
        return np.column_stack([model.left_out_decisions_ for model in self.models])

    def as_parts(self) -> dict[str, Any]:
        """Return plain data and models, from which `from_parts` makes the same view."""
        parts = {"topics": None if self.topics is None else self.topics.as_parts(), "models": self.models}
        return parts if self.columns is None else {**parts, "columns": list(self.columns)}

    @classmethod
    def from_parts(cls, parts: dict[str, Any]) -> View:
        """Return the view of `as_parts`."""
        columns = parts.get("columns")
        if columns is not None and (len(columns) != 2 or not columns[0] < columns[1]):
            msg = f"columns must be where a view begins and ends, but they are {columns}"
            raise DamageError(msg)
        topics = None if parts["topics"] is None else Topics.from_parts(parts["topics"])
        return cls(topics, parts["models"], None if columns is None else (int(columns[0]), int(columns[1])))


def _columns_of(bags: Bags, start: int, stop: int) -> Bags:
    return bags.with_instances(np.ascontiguousarray(bags.instances[:, start:stop]))


def count_topics(asked: int | Sequence[int] | None, estimator: BaseEstimator, *, words: bool) -> tuple[int, ...]:
    """Return the numbers of topics, one for every further view: what is asked for, or what fits."""
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


def fit_views(
    estimator: BaseEstimator,
    bags: Bags,
    y: Integers,
    topics: Sequence[int],
    groups: Any = None,
    blocks: Sequence[Block] = (),
) -> list[View]:
    """Fit the view of features as they are, and one of so many topics for each number; of several blocks, each.

    Parameters
    ----------
    estimator : classifier of bags
    bags : Bags
    y : array of shape (n_bags, n_events)
    topics : sequence of int
        No number above that of the videos is used.
    groups : array of shape (n_bags,), optional
        What is left out together.
    blocks : sequence of Block
        What the features are; topics are of blocks of words. For `WeightedGMIL`: other estimators see all as one.
    """
    several = len(blocks) > 1 and isinstance(estimator, WeightedGMIL)
    if (topics or several) and estimator.get_params()["random_state"] is None:
        # One seed for all: they leave out the same videos.
        estimator = clone(estimator).set_params(random_state=int(np.random.default_rng().integers(2**31)))
    if not several:
        return list(_views_of_block(estimator, bags, y, topics, groups, None))
    return [
        view
        for block in blocks
        for view in _views_of_block(
            estimator,
            _columns_of(bags, block.start, block.stop),
            y,
            topics if block.words else (),
            groups,
            (block.start, block.stop),
        )
    ]


def _views_of_block(
    estimator: BaseEstimator,
    bags: Bags,
    y: Integers,
    topics: Sequence[int],
    groups: Any,
    columns: tuple[int, int] | None,
) -> Iterator[View]:
    """Yield the views of some columns of the features, which are all that the bags have."""
    yield View(None, _fit(estimator, bags, y, groups), columns)
    for count in sorted({min(count, len(bags)) for count in topics}):
        found = learn_topics(bags, count)
        yield View(found, _fit(estimator, found.of(bags), y, groups), columns)


def _fit(estimator: BaseEstimator, bags: Bags, y: Integers, groups: Any) -> list[Any]:
    if isinstance(estimator, WeightedGMIL) and estimator.class_weight is None and np.shape(y)[1] > 1:
        return [fit_with_groups(clone(estimator), bags, y, groups)]
    return [fit_with_groups(clone(estimator), bags, column, groups) for column in np.asarray(y).T]


class StackWeights(NamedTuple):
    """What makes log-odds of those of several views: weights and an intercept for every event."""

    weights: Floats  # (n_views, n_events), none negative
    shifts: Floats  # (n_events,)

    @classmethod
    def equal(cls, n_views: int, n_events: int) -> StackWeights:
        """Return the weights that average the views."""
        return cls(np.full((n_views, n_events), 1 / n_views), np.zeros(n_events))


def stack_views(views: Sequence[View], y: Integers) -> StackWeights:
    """Return the weights of the views of `fit_views` for every event; a single view is left as it is.

    Parameters
    ----------
    views : sequence of View
    y : array of shape (n_videos, n_events)
        What they were fitted to.
    """
    n_events = np.shape(y)[1]
    if len(views) == 1:
        return StackWeights.equal(1, n_events)
    class_weight = views[0].models[0].class_weight
    weights = [compute_sample_weight(class_weight, column) for column in np.asarray(y).T]
    return stack_weights([view.left_out() for view in views], y, np.column_stack(weights))


def stack_weights(left_out: Sequence[Floats], y: Integers, weights: Floats) -> StackWeights:
    """Return the weights of views for every event that predict best the out-of-fold decisions.

    The likelihood is that of logistic regression, with a normal prior around equal weights: with few videos the views
    are averaged, with many the better one prevails, and the sum is calibrated. The prior is as wide for many views as
    for few: weak views that are added must not take part in the decision because there are many.

    Parameters
    ----------
    left_out : sequence of arrays of shape (n_videos, n_events)
        For every view the log-odds of the training videos from fits without them; NaN where there are none.
    y : array of shape (n_videos, n_events)
    weights : array of shape (n_videos, n_events)
        How much a video counts.
    """
    each = np.stack(left_out)
    known = np.isfinite(each).all(axis=(0, 2))
    found = [
        _weights_of_event(each[:, known, event].T, np.asarray(y)[known, event] > 0, weights[known, event])
        for event in range(each.shape[2])
    ]
    return StackWeights(np.column_stack([own for own, _ in found]), np.array([shift for _, shift in found]))


def _weights_of_event(odds: Floats, positive: Booleans, weights: Floats) -> tuple[Floats, float]:
    """Return the weights of views, (n_views,), and the shift for one event; ``odds`` are (n_videos, n_views)."""
    n_views = odds.shape[1]
    equal = np.full(n_views, 1 / n_views)
    if not positive.any() or positive.all():
        return equal, 0.0  # nothing to learn from
    found, _ = logistic_weights(odds, positive, weights, equal, width=_PRIOR_WIDTH)
    return found[:-1], float(found[-1])
