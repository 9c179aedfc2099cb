"""Scores of instances."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from gmil.errors import BagValidationError
from gmil.weighted.effects import effects_by_views, first_order_effects
from gmil.weighted.views import by_blocks

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats
    from gmil.weighted.fitting import FittedViews
    from gmil.weighted.views import InSpaces
    from gmil.weighted.witness import WitnessModel


def instance_scores(fitted: FittedViews, bags: Bags, kind: str, backend: Backend) -> Floats:
    """Return scores of all instances, (n_instances, n_problems).

    "witness": log-odds that the instance is a witness; "effect": the decision about the bag minus that about the bag
    without the instance; "alone": the decision about a bag of this instance; "share": what the instance adds to a
    linear decision.
    """
    return by_blocks(partial(_RULES[kind], fitted), fitted.spaces, bags, backend)


def _alone(fitted: FittedViews, taken: InSpaces) -> Floats:
    bags = taken.bags
    return fitted.decide(type(bags)(bags.instances, np.arange(bags.n_instances + 1)), taken.backend)


def _witness_scores(fitted: FittedViews, taken: InSpaces) -> Floats:
    model, offsets = cast("WitnessModel", fitted.witnesses), taken.bags.offsets
    scores = model.scores(taken)
    largest = np.stack([taken.backend.bag_max(own, offsets) for own in scores])
    decisions = model.stacked(fitted.decide_by_views(taken), largest)
    return model.witness_scores(decisions, first_order_effects(fitted, taken), scores, offsets)


def _effects(fitted: FittedViews, taken: InSpaces) -> Floats:
    by_views = effects_by_views(fitted, taken)
    model = fitted.witnesses
    return by_views if model is None else model.base * by_views + model.effects(taken)


def _shares(fitted: FittedViews, taken: InSpaces) -> Floats:
    """Give the contribution of every centre to the instance that is nearest to it."""
    bags, backend = taken.bags, taken.backend
    shares = np.zeros((bags.n_instances, len(fitted.intercepts)))
    for space, _, views in fitted.by_kind():
        squares = backend.sq_distances(taken[space], taken.spaces[space].centers)
        nearest = backend.bag_two_min(squares, bags.offsets)
        for view in views:
            columns = view.standardised(np.sqrt(nearest.smallest)).astype(np.float64)  # (n_bags, n_centers)
            for problem in range(shares.shape[1]):
                words = columns * view.coefficients[:, problem]
                shares[:, problem] += np.bincount(
                    nearest.where.ravel(), weights=words.ravel(), minlength=bags.n_instances
                )
    return shares


_RULES = {"witness": _witness_scores, "effect": _effects, "alone": _alone, "share": _shares}
KINDS_OF_SCORES = tuple(_RULES)


def check_kind(kind: str, fitted: FittedViews, kernels: set[str]) -> None:
    """Refuse scores that there are none of, or that a model with these kernels does not have."""
    if kind not in KINDS_OF_SCORES:
        msg = f"kind must be one of {['auto', *KINDS_OF_SCORES]}, got {kind!r}."
        raise BagValidationError(msg)
    if kind == "share" and kernels - {"linear"}:
        msg = "Shares add up for the linear vote only. Pass kind='effect', or fit with vote='linear'."
        raise BagValidationError(msg)
    if kind == "witness" and fitted.witnesses is None:
        msg = "This model has no witness model. Pass kind='effect', or fit with witness_model=True and vote='kernel'."
        raise BagValidationError(msg)
