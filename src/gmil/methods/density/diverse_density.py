"""Diverse density and EM-DD: one point that is near to every positive bag and far from all negative instances."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from scipy.special import logsumexp

from gmil.base import register
from gmil.engine import reference
from gmil.engine.reference import dense_rows
from gmil.greedy import voting
from gmil.io.model_files.schema import Array, Count, Kind, Number
from gmil.methods.density.noisy_or import (
    MANY_NUMBERS,
    Concept,
    LabelledInstances,
    bag_nll,
    exponents_of,
    labelled_instances,
    likelihood_path,
    likelihood_paths,
)
from gmil.methods.shared.alike import alike, once, settings_together
from gmil.methods.shared.columns import dense_columns, varying_columns, working_columns
from gmil.methods.shared.scaled import ScaledClassifier
from gmil.parameters import ABOVE_ZERO, AT_LEAST_ONE, INSIDE_UNIT, parameter, parameters

if TYPE_CHECKING:
    from gmil.base import Training
    from gmil.engine.arrays import Booleans, Floats, Integers


# ------------------------------------------------------------------ numerics apart


def choose_starts(
    offsets: Integers, positive: Booleans, n_bags: int | None, per_bag: int | None, generator: np.random.Generator
) -> Integers:
    """Draw positive bags, and instances from each; None takes all of them. Return the instances, in order."""
    bags = generator.permutation(np.flatnonzero(positive))[:n_bags]
    rows = [generator.permutation(np.arange(offsets[i], offsets[i + 1]))[:per_bag] for i in bags]
    return np.sort(np.concatenate(rows))


def mean_exponents(exponents: list[Floats]) -> Floats:
    """Return -log of the mean over concepts of the probability of every instance, from -log of each."""
    if len(exponents) == 1:
        return exponents[0]
    stacked = np.array(exponents)
    return np.maximum(np.log(len(stacked)) - logsumexp(-stacked, axis=0), 0)


def bag_distances(exponents: Floats, offsets: Integers, combine: str) -> Floats:
    """Return -log P(positive) of every bag: of its best instance, or of all of them by noisy-or."""
    return reference.bag_min(exponents, offsets) if combine == "max" else bag_nll(exponents, offsets)[0]


@parameters
class DensityClassifier(ScaledClassifier):
    """What `DiverseDensity` and `EMDD` share: starts, choice of the best concept, threshold, decisions."""

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "features_": Array("k", dtype="i", at_least=0, below="d"),
        "points_": Array("m", "k"),
        "scales_": Array("m", "k", at_least=0),
        "nll_": Array("m", infinite=True),
        "threshold_": Number(),
        "n_iter_": Count(),
    }

    n_start_bags: int | None = parameter(default=5, rules=[AT_LEAST_ONE, None])
    n_starts_per_bag: int | None = parameter(default=5, rules=[AT_LEAST_ONE, None])
    initial_scale: float | str = parameter(default="auto", rules=[ABOVE_ZERO, {"auto"}])
    threshold: float | str = parameter(default="best", rules=[INSIDE_UNIT, {"best"}])
    combine: str = parameter(default="max", rules=[{"max", "noisy-or"}])
    max_iter: int = 25
    scale: str | None = "standard"
    n_jobs: int | None = None
    random_state: Any = None

    combine_: str = field(init=False)
    _two_classes = True
    _kept_parameters = ("combine",)

    def _learn(self, training: Training) -> None:
        """Search the concept from many starts, and a threshold."""
        bags, positive = training.bags, training.positive
        # The search may end elsewhere after the least rounding: both precisions take the same way.
        scaled = self._fit_scaled(bags.with_instances(bags.instances.astype(np.float64)))
        self.features_ = varying_columns(scaled)
        instances, origin = working_columns(scaled, self.features_), np.zeros(len(self.features_))
        # The search expands squares, which round by the distance of the data from the origin: where most is zero, that
        # is their mean as good as any.
        if self.space_.shift is None and not sp.issparse(instances):
            origin = instances.mean(axis=0)
            instances -= origin
        starts = choose_starts(bags.offsets, positive, self.n_start_bags, self.n_starts_per_bag, training.generator)
        data = labelled_instances(instances, bags.offsets, positive)
        initial = np.full(len(self.features_), self._initial_scale(len(self.features_)))
        begin = [Concept(point, initial) for point in dense_rows(instances, starts)]
        found = once(self, self._search_key(), lambda: self._search_all(begin, data))
        kept = self._choose([concepts[self.max_iter] for concepts in found], data)
        self.points_ = np.array([concept.point for concept in kept]) + origin
        self.scales_ = np.abs([concept.scales for concept in kept])
        self.nll_ = np.array([concept.nll for concept in kept])
        self.n_iter_ = max(1, *(concept.n_iter for concept in kept))
        self.threshold_ = self._threshold(self._training_distances(kept, data), data.positive)

    def _search_all(self, starts: list[Concept], data: LabelledInstances) -> list[dict[int, Concept]]:
        tasks = (delayed(self._search)(start, data) for start in starts)
        found: list[dict[int, Concept]] = Parallel(n_jobs=self.n_jobs, prefer="threads")(tasks)
        return found

    @abstractmethod
    def _search(self, start: Concept, data: LabelledInstances) -> dict[int, Concept]:
        """Return the concept that a start leads to, with its likelihood on the training bags, by ``max_iter``."""

    def _search_key(self) -> tuple[Any, ...]:
        """Return all that the concepts found depend on; a class adds its own."""
        return self.scale, self.n_start_bags, self.n_starts_per_bag, self.initial_scale

    def _choose(self, concepts: list[Concept], data: LabelledInstances) -> list[Concept]:  # noqa: ARG002  EMDD uses it
        """Return the concept with the greatest likelihood, the first of equals."""
        return [min(concepts, key=lambda concept: concept.nll)]

    def _initial_scale(self, n_features: int) -> float:
        return 1 / float(np.sqrt(n_features)) if isinstance(self.initial_scale, str) else float(self.initial_scale)

    def _threshold(self, to_concept: Floats, positive: Booleans) -> float:
        if isinstance(self.threshold, str):
            return voting.choose_threshold("best", to_concept, positive, 0.0)
        return float(-np.log(self.threshold))

    def _training_distances(self, concepts: list[Concept], data: LabelledInstances) -> Floats:
        exponents = [exponents_of(data.terms, concept.point, concept.scales) for concept in concepts]
        return bag_distances(mean_exponents(exponents), data.offsets, self.combine_)

    def _decide(self, X: Any) -> Floats:
        """Return log P(positive) of every bag minus the log of the threshold, (n_bags,)."""
        exponents, offsets = self._new_exponents(X)
        return self.threshold_ - bag_distances(exponents, offsets, self.combine_)

    def score_instances(self, X: Any) -> Floats:
        """Return log p of every instance minus the log of the threshold, (n_instances,).

        With ``combine="max"`` the decision about a bag is the largest of these.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        """
        return self.threshold_ - self._new_exponents(X)[0]

    def _new_exponents(self, X: Any) -> tuple[Floats, Integers]:
        bags, scaled = self._new_scaled(X)
        instances = dense_columns(scaled, self.features_)
        # By differences: an expanded square would round by the distance of the data from the origin.
        exponents = [
            np.square((instances - point) * scales).sum(axis=1)
            for point, scales in zip(self.points_, self.scales_, strict=True)
        ]
        return mean_exponents(exponents), bags.offsets


@register(method="dd")
@parameters
class DiverseDensity(DensityClassifier):
    """Diverse density: the concept point that explains all bags best (Maron & Lozano-Perez 1998).

    An instance is of the concept with the probability exp(-sum_d s_d^2 (x_d - t_d)^2); a bag is positive unless none
    of its instances is (noisy-or). The point t and the scales s of all features maximise the likelihood of the
    training bags, by L-BFGS from many instances of positive bags.

    Parameters
    ----------
    n_start_bags : int or None, default=5
        How many positive bags, drawn at random, the search starts from. None: all, as published.
    n_starts_per_bag : int or None, default=5
        How many instances of each, drawn at random. None: all, as published.
    initial_scale : float or "auto", default="auto"
        The scale s of every feature at the start. "auto" is one over the root of the number of features: exponents
        are then means over the features. Where it is too large no bag is near to anything.
    threshold : float or "best", default="best"
        The probability above which a bag is positive; "best" is the one with the fewest errors on the training bags.
    combine : {"max", "noisy-or"}, default="max"
        The probability of a new bag: that of its best instance, or that not all of its instances are negative. With a
        threshold that is a number, such as 0.5, "noisy-or" is the better choice.
    max_iter : int, default=25
        Iterations of L-BFGS at most, from every start. Few on purpose: there are two parameters for every feature,
        and the likelihood of the training bags goes on growing when new bags have long stopped to gain.
    n_jobs : int or None, default=None
        Starts that are worked on at the same time, in threads; None is one. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Attributes
    ----------
    points_ : array of shape (1, n_features_used)
        The concept t, in the scaled space.
    scales_ : array of shape (1, n_features_used)
        The scale s of every feature; near zero where a feature does not matter.
    features_ : array of shape (n_features_used,)
        The features that were used: those that are not constant in training.
    nll_ : array of shape (1,)
        The negative log-likelihood of the training bags.
    threshold_ : float
        Minus the log of the probability above which a bag is positive.
    n_iter_ : int
        Iterations of L-BFGS that led to the concept, at least 1.

    Notes
    -----
    The decision for the positive class is log P(positive) less the log of the threshold.

    An evaluation of the likelihood and its gradient costs O(N d) for N training instances, and for sparse ones as
    much as they have entries that are not zero.

    References
    ----------
    Maron, O. and Lozano-Perez, T., "A framework for multiple-instance learning", NIPS 1998.

    Examples
    --------
    >>> from gmil import DiverseDensity, make_bags
    >>> bags, y = make_bags(100, separation=8, random_state=0, return_X_y=True)
    >>> model = DiverseDensity(random_state=0).fit(bags[:80], y[:80])
    >>> model.score(bags[80:], y[80:]) > 0.9
    True
    """

    _folds_together = settings_together

    def _search_all(self, starts: list[Concept], data: LabelledInstances) -> list[dict[int, Concept]]:
        # Of many numbers it is faster to read each once for all searches, in step, than for every search again.
        if data.terms.size < MANY_NUMBERS:
            return super()._search_all(starts, data)
        return likelihood_paths(starts, data, self._wanted())

    def _search(self, start: Concept, data: LabelledInstances) -> dict[int, Concept]:
        return likelihood_path(start, data, self._wanted())

    def _wanted(self) -> set[int]:
        """Return the iterations of all models alike: a search with fewer is the beginning of one with more."""
        return {model.max_iter for model in alike(self) if model._search_key() == self._search_key()}
