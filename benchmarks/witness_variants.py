"""Rules for the scores of instances that were tried in `WeightedGMIL`, to be measured beside the one that it has."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import gmil
from gmil.engine import resolve
from gmil.weighted.instances import instance_scores
from gmil.weighted.views import InSpaces


class OfKind(gmil.WeightedGMIL):
    """Another of the kinds of scores that `score_instances` offers."""

    kind = "effect"

    def score_instances(self, X: Any, kind: str = "auto") -> Any:
        return super().score_instances(X, kind=self.kind if kind == "auto" else kind)


class Alone(OfKind):
    kind = "alone"


class ChangedMixture(gmil.WeightedGMIL):
    """Other weights of the models of instances, and of what they tell beside the effect on the views."""

    def mixture(self, n_scorers: int) -> np.ndarray:
        return np.full(n_scorers, 1 / n_scorers)

    def within(self, fitted: np.ndarray) -> np.ndarray:
        return fitted

    def _fitted(self) -> Any:
        fitted = super()._fitted()
        model = fitted.witnesses
        shares = self.mixture(len(model.scorers))
        scorers = [
            scorer._replace(mixture=np.full_like(scorer.mixture, share))
            for scorer, share in zip(model.scorers, shares, strict=True)
        ]
        return fitted._replace(witnesses=model._replace(scorers=scorers, within=self.within(model.within)))


class OneModel(ChangedMixture):
    """One model of instances in place of three."""

    number = 0

    def mixture(self, n_scorers: int) -> np.ndarray:
        return np.eye(n_scorers)[min(self.number, n_scorers - 1)]


class GaussianModel(OneModel):
    number = 1


class RankedModel(OneModel):
    number = 2


class ModelsInFull(ChangedMixture):
    """Models count in full, whether or not differences within bags tell anything about labels."""

    def within(self, fitted: np.ndarray) -> np.ndarray:
        return np.ones_like(fitted)


class NoModels(ChangedMixture):
    """The effect on the views alone, as log-odds: p(instance) = P(bag) times a function of the effect."""

    def within(self, fitted: np.ndarray) -> np.ndarray:
        return np.zeros_like(fitted)


class ExactEffects(gmil.WeightedGMIL):
    """Effects by measuring every bag without each of its instances, not to first order."""

    def score_instances(self, X: Any, kind: str = "auto") -> Any:  # noqa: ARG002
        bags, fitted, backend = self._check_new(X), self._fitted(), resolve(self.backend, self.n_jobs)
        effects = instance_scores(fitted._replace(witnesses=None), bags, "effect", backend)
        scores = fitted.witnesses.scores(InSpaces(fitted.spaces, bags, backend))
        odds = fitted.witnesses.witness_scores(fitted.decide(bags, backend), effects, scores, bags.offsets)
        return odds[:, 0] if self._is_binary() else odds


VARIANTS = {
    "effect": OfKind,
    "alone": Alone,
    "without-model": partial(gmil.WeightedGMIL, witness_model=False),
    "linear-model": OneModel,
    "gaussian-model": GaussianModel,
    "ranked-model": RankedModel,
    "equal-mean": ChangedMixture,
    "models-in-full": ModelsInFull,
    "no-models": NoModels,
    "exact-effects": ExactEffects,
}
