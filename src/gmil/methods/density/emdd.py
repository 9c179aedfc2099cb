"""EM-DD: diverse density on one instance of every bag, chosen anew as the concept moves."""

from __future__ import annotations

from typing import Any

import numpy as np

from gmil.base import register
from gmil.methods.density.diverse_density import DensityClassifier
from gmil.methods.density.noisy_or import Concept, LabelledInstances, alternate
from gmil.methods.shared.alike import settings_together
from gmil.parameters import AT_LEAST_ONE, parameter, parameters


@register(method="emdd")
@parameters
class EMDD(DensityClassifier):
    """EM-DD: diverse density by expectation-maximisation (Zhang & Goldman 2001).

    From every start: choose in each bag the instance that is most probably of the concept; maximise the likelihood
    of the chosen instances; choose anew, and so on. Every round costs little, as each bag is one instance in it.

    The starts lead to different concepts. The best of them on the training bags are kept, and the probability of an
    instance is their mean. (The figures of the original publication come from a choice by the test bags.)

    Parameters
    ----------
    n_start_bags : int or None, default=5
        How many positive bags, drawn at random, the search starts from. None: all.
    n_starts_per_bag : int or None, default=5
        How many instances of each, drawn at random. None: all.
    initial_scale : float or "auto", default="auto"
        The scale of every feature at the start, as in `gmil.DiverseDensity`.
    threshold : float or "best", default="best"
        The probability above which a bag is positive; "best" is the one with the fewest errors on the training bags.
    combine : {"max", "noisy-or"}, default="max"
        The probability of a bag: that of its best instance, or that not all of its instances are negative.
    max_iter : int, default=25
        Iterations of L-BFGS at most, in every round.
    n_concepts : int, default=5
        How many concepts are kept. With 1 there is a single point, as published, and more chance in which it is.
    select : {"errors", "likelihood"}, default="errors"
        Which concepts are the best: those with the fewest errors on the training bags, each at its own threshold (of
        equals, those with the greatest likelihood), or those with the greatest likelihood of the training bags.
    max_rounds : int, default=10
        How often instances are chosen at most, from every start.
    n_jobs : int or None, default=None
        Starts that are worked on at the same time, in threads; None is one. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Attributes
    ----------
    points_ : array of shape (n_concepts, n_features_used)
        The concepts kept, in the scaled space, the best first.
    scales_ : array of shape (n_concepts, n_features_used)
        The scale of every feature; near zero where a feature does not matter.
    features_ : array of shape (n_features_used,)
        The features that were used: those that are not constant in training.
    nll_ : array of shape (n_concepts,)
        The negative log-likelihood of the training bags, by noisy-or.
    threshold_ : float
        Minus the log of the probability above which a bag is positive.
    n_iter_ : int
        Iterations of L-BFGS that led to a concept, in all rounds: the most, at least 1.

    Notes
    -----
    The decision for the positive class is log P(positive) less the log of the threshold.

    An E-step costs O(N d) for N training instances, an evaluation in the M-step O(n_bags d); for sparse
    instances, as much as they have entries that are not zero.

    References
    ----------
    Zhang, Q. and Goldman, S., "EM-DD: an improved multiple-instance learning technique", NIPS 2001.

    Examples
    --------
    >>> from gmil import EMDD, make_bags
    >>> bags, y = make_bags(100, separation=8, random_state=0, return_X_y=True)
    >>> model = EMDD(random_state=0).fit(bags[:80], y[:80])
    >>> model.score(bags[80:], y[80:]) > 0.9
    True
    """

    n_concepts: int = parameter(default=5, rules=[AT_LEAST_ONE])
    select: str = parameter(default="errors", rules=[{"errors", "likelihood"}])
    max_rounds: int = parameter(default=10, rules=[AT_LEAST_ONE])

    _folds_together = settings_together

    def _search(self, start: Concept, data: LabelledInstances) -> dict[int, Concept]:
        return {self.max_iter: alternate(start, data, self.max_iter, self.max_rounds)}

    def _search_key(self) -> tuple[Any, ...]:
        return *super()._search_key(), self.max_iter, self.max_rounds

    def _choose(self, concepts: list[Concept], data: LabelledInstances) -> list[Concept]:
        def cost(concept: Concept) -> tuple[int, float]:
            if self.select == "likelihood":
                return 0, concept.nll
            to_concept = self._training_distances([concept], data)
            predicted = to_concept < self._threshold(to_concept, data.positive)
            return int(np.sum(predicted != data.positive)), concept.nll

        return sorted(concepts, key=cost)[: self.n_concepts]
