"""The witness model of `WeightedGMIL`: which instances make a bag positive.

Small models of single instances, learnt under noisy-or, are scored by how well they predict bags that they were not
fitted on. They join the decision about the bag by their largest score, and that about an instance by their log-odds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import log_expit

from gmil.engine.resident import beside, in_double, is_tensor, namespace
from gmil.io.model_files.schema import Array, Choice, Count, Items, Number, OrMissing, Record
from gmil.weighted.noisy_or import bag_log_probabilities
from gmil.weighted.views import rows_at_once

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.weighted.views import CentersInSpace, InSpaces

_MOST_LANDMARKS = 300
_HALVINGS = 20
_EFFECT_FLOOR = 0.2
"""The effect (in log-odds) of a witness for which others of its bag stand in."""
_SHARE_FLOOR = 0.02
"""What an instance has at least of the probability that its bag has a witness."""

_SCORER = Record(
    {
        "space": Count(below="spaces"),
        "kernel": Choice("gaussian", "linear"),
        "gamma": Number(above=0),
        "coefficients": Array("n", "P"),
        "intercepts": Array("P"),
        "center": Array("P"),
        "spread": Array("P", above=0),
        "mixture": Array("P", at_least=0),
        "stacking": Array("P", at_least=0),
    },
    local=("n",),
)
WITNESSES = OrMissing(
    Record(
        {
            "scorers": Items(_SCORER, least=1),
            "base": Array("P", at_least=0),
            "shifts": Array("P"),
            "within": Array("P", at_least=0),
        }
    )
)
"""What `WitnessModel.as_plain` returns; models of older versions, and linear votes, have none."""


class Scorer(NamedTuple):
    """A model of single instances, and what its log-odds are worth, for every problem."""

    space: int
    kernel: str  # "gaussian": the columns are similarities to landmarks; "linear": the features
    gamma: float
    coefficients: Floats  # (n_columns, n_problems)
    intercepts: Floats  # (n_problems,)
    center: Floats  # (n_problems,): mean of the largest log-odds of training bags
    spread: Floats  # (n_problems,): their deviation
    mixture: Floats  # (n_problems,): the weight in the log-odds of an instance, one in sum over scorers
    stacking: Floats  # (n_problems,): the weight of the largest log-odds in the decision about a bag

    def scores(self, scaled: Instances, landmarks: Floats, backend: Backend) -> Floats:
        """Return log-odds of instances in the space, (n_instances, n_problems)."""
        return self.scores_of(columns_of(scaled, self.kernel, self.gamma, landmarks, backend))

    def scores_of(self, columns: Any) -> Floats:
        """Return the same from the columns of instances, see `columns_of`."""
        return affine(columns, self.coefficients, self.intercepts)


def columns_of(scaled: Instances, kernel: str, gamma: float, landmarks: Floats, backend: Backend) -> Any:
    """Return what a scorer multiplies with its coefficients."""
    return scaled if kernel == "linear" else similarities(backend.sq_distances(scaled, landmarks), gamma)


def similarities(squares: Floats, gamma: float) -> Floats:
    """Return similarities of instances to landmarks from squared distances: a Gaussian kernel."""
    return namespace(squares).exp(-gamma * squares)


def affine(columns: Any, coefficients: Floats, intercepts: Floats) -> Any:
    """Return the product with coefficients, (n_columns, ...), plus intercepts, (...), in double precision.

    The product is in the precision of the columns; of a tensor it is a tensor.
    """
    own = coefficients.reshape(len(coefficients), -1)
    flat = columns @ (beside(own, columns) if is_tensor(columns) else own.astype(columns.dtype))
    found = in_double(flat) if is_tensor(flat) else np.asarray(flat, dtype=np.float64)
    return found.reshape(-1, *intercepts.shape) + beside(intercepts, columns, wide=True)


def _rise(odds: Floats, decisions: Floats, offsets: Integers) -> Floats:
    """Return by how much odds must rise for a bag to have a witness as likely as it is positive, (n_bags, n_problems).

    Odds are at most those of the bag, so that a bag has one for sure where its best instance reaches that bound.
    """
    sizes, goal = np.diff(offsets), log_expit(decisions)
    low = np.zeros(decisions.shape)
    high = np.maximum(decisions - np.maximum.reduceat(odds, offsets[:-1], axis=0), 0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        raised = np.minimum(odds + np.repeat(middle, sizes, axis=0), np.repeat(decisions, sizes, axis=0))
        enough = bag_log_probabilities(raised, offsets) >= goal
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def landmarks_of(space: CentersInSpace) -> Floats:
    """Return the centres that instances are compared with; a bound keeps the cost apart from the size of a codebook."""
    return space.centers[:: landmark_step(space)]


def landmark_step(space: CentersInSpace) -> int:
    """Return n where every nth centre is a landmark."""
    return -(-len(space.centers) // _MOST_LANDMARKS)


def scores_by_each(scorers: list[Any], taken: InSpaces, *shape: int) -> Floats:
    """Return what every scorer tells of every instance, (n_scorers, n_instances, *shape), some rows at a time."""
    n_instances, at_once = taken.bags.n_instances, rows_at_once(taken.bags.n_features)
    found = np.empty((len(scorers), n_instances, *shape))
    for own, scorer in zip(found, scorers, strict=True):
        scaled, landmarks = taken[scorer.space], landmarks_of(taken.spaces[scorer.space])
        for start in range(0, n_instances, at_once):
            rows = slice(start, start + at_once)
            own[rows] = scorer.scores(scaled[rows], landmarks, taken.backend)
    return found


def last_fold(table: Floats, n_axes: int) -> Floats:
    """Return what the fit to all bags found; tables of drafts have an axis more, with the inner folds before it."""
    return table if table.ndim == n_axes else table[..., -1, :]


class WitnessModel(NamedTuple):
    """Scorers of instances, stacked with the views of the bag."""

    scorers: list[Scorer]
    base: Floats  # (n_problems,): the weight of the views in the decision
    shifts: Floats  # (n_problems,)
    within: Floats  # (n_problems,): how much of what scorers know of bags lies in differences within bags, 0 to 1

    @property
    def decides(self) -> bool:
        """Whether any scorer has a weight in the decision about a bag."""
        return any(scorer.stacking.any() for scorer in self.scorers)

    def scores(self, taken: InSpaces) -> Floats:
        """Return log-odds of instances by every scorer, (n_scorers, n_instances, n_problems)."""
        return scores_by_each(self.scorers, taken, len(self.base))

    def largest(self, taken: InSpaces) -> Floats:
        """Return the largest log-odds in every bag by every scorer, (n_scorers, n_bags, n_problems).

        Where no scorer has a weight in the decision, their means stand in for them.
        """
        if not self.decides:
            return self.nothing(len(taken.bags))
        return np.stack([taken.backend.bag_max(own, taken.bags.offsets) for own in self.scores(taken)])

    def pooled_of(self, tables: Mapping[tuple[int, str], Floats]) -> Floats:
        """Return what `largest` does, from the tables of a pass over bags in blocks."""
        return np.stack([last_fold(tables[number, "largest"], 2) for number in range(len(self.scorers))])

    def effects(self, taken: InSpaces) -> Floats:
        """Return what the largest log-odds of a bag add to its decision, less that without each instance."""
        bags, scores = taken.bags, self.scores(taken)
        # Of a bag of one instance nothing is left, which adds nothing to a decision.
        without = self.nothing(bags.n_instances)
        largest = np.empty_like(without)
        rest = np.repeat(bags.sizes > 1, bags.sizes)
        for own, all_of_them, others in zip(scores, largest, without, strict=True):
            found = taken.backend.bag_two_min(-own, bags.offsets)
            all_of_them[:] = -np.repeat(found.smallest, bags.sizes, axis=0)
            is_largest = np.arange(bags.n_instances)[:, None] == np.repeat(found.where, bags.sizes, axis=0)
            second = -np.repeat(found.second, bags.sizes, axis=0)
            others[rest] = np.where(is_largest, second, all_of_them)[rest]
        return self.added(largest) - self.added(without)

    def nothing(self, n_bags: int) -> Floats:
        """Return largest log-odds that add nothing to a decision, (n_scorers, n_bags, n_problems)."""
        return np.stack([np.tile(scorer.center, (n_bags, 1)) for scorer in self.scorers])

    def stacked(self, decisions: Floats, largest: Floats) -> Floats:
        """Return log-odds of bags from those of the views and the largest log-odds of their instances by every scorer.

        ``decisions`` are (n_bags, n_problems), ``largest`` (n_scorers, n_bags, n_problems).
        """
        return decisions * self.base + self.shifts + self.added(largest)

    def added(self, scores: Floats) -> Floats:
        """Return what log-odds of best instances, (n_scorers, ..., n_problems), add to the decision."""
        total = np.zeros(scores.shape[1:])
        for scorer, own in zip(self.scorers, scores, strict=True):
            total += (own - scorer.center) / scorer.spread * scorer.stacking
        return total

    def witness_scores(self, decisions: Floats, effects: Floats, scores: Floats, offsets: Integers) -> Floats:
        """Return log-odds that an instance is a witness, (n_instances, n_problems).

        They are the log-probability of the bag, plus the log of the share of the instance in the probability that the
        bag has a witness, plus half the log of its effect on the decision, as a multiple of that of an instance
        without any. The share counts as much as differences within bags tell about labels. No instance is more
        likely a witness than its bag is positive; that the bag has one is at least as likely, see `_rise`.

        Parameters
        ----------
        decisions : array of shape (n_bags, n_problems)
        effects : array of shape (n_instances, n_problems)
        scores : array of shape (n_scorers, n_instances, n_problems)
        offsets : array of shape (n_bags + 1,)
        """
        sizes = np.diff(offsets)
        mixed = sum(scorer.mixture * own for scorer, own in zip(self.scorers, scores, strict=True))
        share = np.exp(log_expit(mixed) - np.repeat(bag_log_probabilities(mixed, offsets), sizes, axis=0))
        by_model = np.log(_SHARE_FLOOR + share) - np.log1p(_SHARE_FLOOR)
        # An instance without which the bag would be more positive goes on downwards with the same slope.
        by_effect = np.log1p(np.maximum(effects, 0) / _EFFECT_FLOOR) + np.minimum(effects, 0) / _EFFECT_FLOOR
        bags = np.repeat(decisions, sizes, axis=0)
        odds = log_expit(bags) + self.within * by_model + by_effect / 2
        return np.minimum(odds + np.repeat(_rise(odds, decisions, offsets), sizes, axis=0), bags)

    def as_plain(self) -> dict[str, Any]:
        """Return dicts of arrays, which can be saved."""
        return {**self._asdict(), "scorers": [scorer._asdict() for scorer in self.scorers]}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> WitnessModel:
        """Rebuild from what `as_plain` returned."""
        return cls(**{**plain, "scorers": [Scorer(**entry) for entry in plain["scorers"]]})
