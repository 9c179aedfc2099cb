"""Rules for the scores of instances that were tried in `WeightedGMIL`, to be measured beside the one that it has."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import gmil
from gmil.engine import resolve
from gmil.weighted.effects import effects_by_views, first_order_effects
from gmil.weighted.views import KINDS, SPARSE_KINDS, InSpaces


class OfKind(gmil.WeightedGMIL):
    """Another of the kinds of scores that `score_instances` offers."""

    kind = "effect"

    def score_instances(self, X: Any, kind: str = "auto") -> Any:
        return super().score_instances(X, kind=self.kind if kind == "auto" else kind)


class Alone(OfKind):
    kind = "alone"


class ChangedMixture(gmil.WeightedGMIL):
    """Other weights of the models of instances, and of what they tell beside the effect on the views."""

    def mixture(self, fitted: np.ndarray) -> np.ndarray:
        return fitted

    def within(self, fitted: np.ndarray) -> np.ndarray:
        return fitted

    def _fitted(self) -> Any:
        fitted = super()._fitted()
        model = fitted.witnesses
        shares = self.mixture(np.stack([scorer.mixture for scorer in model.scorers]))
        scorers = [scorer._replace(mixture=share) for scorer, share in zip(model.scorers, shares, strict=True)]
        return fitted._replace(witnesses=model._replace(scorers=scorers, within=self.within(model.within)))


class EqualMean(ChangedMixture):
    """All models of instances with the same weight."""

    def mixture(self, fitted: np.ndarray) -> np.ndarray:
        return np.full_like(fitted, 1 / len(fitted))


class OneModel(ChangedMixture):
    """One model of instances in place of three."""

    number = 0

    def mixture(self, fitted: np.ndarray) -> np.ndarray:
        only = np.zeros_like(fitted)
        only[min(self.number, len(fitted) - 1)] = 1
        return only


class GaussianModel(OneModel):
    number = 1


class RankedModel(OneModel):
    number = 2


class ModelsInFull(ChangedMixture):
    """Models count in full, whether or not differences within bags tell anything about labels."""

    def within(self, fitted: np.ndarray) -> np.ndarray:
        return np.ones_like(fitted)


class HalfShare(ChangedMixture):
    """Models count half: their share and the effect are weighted alike."""

    def within(self, fitted: np.ndarray) -> np.ndarray:
        return fitted / 2


class NoModels(ChangedMixture):
    """The effect on the views alone, as log-odds: p(instance) = P(bag) times a function of the effect."""

    def within(self, fitted: np.ndarray) -> np.ndarray:
        return np.zeros_like(fitted)


class OtherEffects(gmil.WeightedGMIL):
    """Effects on all views, also on those by minima and maxima."""

    def effects(self, fitted: Any, taken: InSpaces) -> np.ndarray:
        of_kinds = [[view for view in fitted.views if view.kind == kind] for kind in (*KINDS, *SPARSE_KINDS)]
        return sum(first_order_effects(fitted._replace(views=some), taken) for some in of_kinds)

    def score_instances(self, X: Any, kind: str = "auto") -> Any:  # noqa: ARG002
        bags, fitted, backend = self._check_new(X), self._fitted(), resolve(self.backend, self.n_jobs)
        taken = InSpaces(fitted.spaces, bags, backend)
        effects, scores = self.effects(fitted, taken), fitted.witnesses.scores(taken)
        odds = fitted.witnesses.witness_scores(fitted.decide(bags, backend), effects, scores, bags.offsets)
        return odds[:, 0] if self._is_binary() else odds


class EffectsOnRanges(OtherEffects):
    """Effects on views by means, minima and maxima, and not on distances to centres."""

    def effects(self, fitted: Any, taken: InSpaces) -> np.ndarray:
        some = [view for view in fitted.views if view.kind != "nearest"]
        return super().effects(fitted._replace(views=some), taken)


class ExactEffects(OtherEffects):
    """Effects by measuring every bag without each of its instances, not to first order."""

    def effects(self, fitted: Any, taken: InSpaces) -> np.ndarray:
        some = [view for view in fitted.views if view.kind not in ("range", "nearest")]
        return effects_by_views(fitted._replace(views=some or fitted.views), taken)


VARIANTS = {
    "effect": OfKind,
    "alone": Alone,
    "without-model": partial(gmil.WeightedGMIL, witness_model=False),
    "linear-model": OneModel,
    "gaussian-model": GaussianModel,
    "ranked-model": RankedModel,
    "equal-mean": EqualMean,
    "models-in-full": ModelsInFull,
    "no-models": NoModels,
    "exact-effects": ExactEffects,
    "effects-on-all-views": OtherEffects,
    "effects-on-ranges": EffectsOnRanges,
    "half-share": HalfShare,
}
