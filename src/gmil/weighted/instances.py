"""Scores of instances."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse as sp

from gmil.weighted.views import SPARSE_KINDS, bag_features, bag_means, unit_roots
from gmil.weighted.witness import blocks_of

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.weighted.fitting import FittedViews
    from gmil.weighted.witness import WitnessModel


def instance_scores(fitted: FittedViews, bags: Bags, kind: str, backend: Backend) -> Floats:
    """Return scores of all instances, (n_instances, n_problems).

    "witness": log-odds that the instance is a witness; "effect": the decision about the bag minus that about the bag
    without the instance; "alone": the decision about a bag of this instance; "share": what the instance adds to a
    linear decision.
    """
    return np.concatenate([_RULES[kind](fitted, block, backend) for block in blocks_of(bags)])


def _alone(fitted: FittedViews, bags: Bags, backend: Backend) -> Floats:
    return fitted.decide(type(bags)(bags.instances, np.arange(bags.n_instances + 1)), backend)


def _witness_scores(fitted: FittedViews, bags: Bags, backend: Backend) -> Floats:
    model = cast("WitnessModel", fitted.witnesses)
    scores = model.scores(fitted.spaces, bags.instances, backend)
    effects = first_order_effects(fitted, bags, backend)
    largest = np.stack([backend.bag_max(own, bags.offsets) for own in scores])
    decisions = model.stacked(fitted.decide_by_views(bags, backend), largest)
    return model.witness_scores(decisions, effects, scores, bags.offsets)


def _effects(fitted: FittedViews, bags: Bags, backend: Backend) -> Floats:
    if fitted.witnesses is None:
        return _effects_by_views(fitted, bags, backend)
    return _effects_with(fitted, bags, fitted.witnesses.scores(fitted.spaces, bags.instances, backend), backend)


def _effects_with(fitted: FittedViews, bags: Bags, scores: Floats, backend: Backend) -> Floats:
    """Return effects on the whole decision, given the log-odds of instances by every scorer."""
    model = cast("WitnessModel", fitted.witnesses)
    largest = np.stack([np.repeat(backend.bag_max(own, bags.offsets), bags.sizes, axis=0) for own in scores])
    rest = np.repeat(bags.sizes > 1, bags.sizes)[:, None]
    # Of a bag of one instance nothing is left, which adds nothing to a decision.
    nothing = model.nothing(bags.n_instances)
    without = np.where(rest, [-_minimum_without(-own, bags.offsets, backend) for own in scores], nothing)
    by_scorers = model.added(largest) - model.added(without)
    return model.base * _effects_by_views(fitted, bags, backend) + by_scorers


def _effects_by_views(fitted: FittedViews, bags: Bags, backend: Backend) -> Floats:
    whole = np.repeat(fitted.decide_by_views(bags, backend), bags.sizes, axis=0)
    without = np.tile(fitted.intercepts, (bags.n_instances, 1))
    rest = np.repeat(bags.sizes > 1, bags.sizes)  # of a bag of one instance nothing is left but the intercept
    for space, views in fitted.by_space():
        scaled = space.apply(bags.instances, backend)
        for view in views:
            features = features_without(scaled, bags.offsets, view.kind, space.centers, backend)
            without[rest] += view.votes(features[rest], backend)
    return whole - without


def first_order_effects(fitted: FittedViews, bags: Bags, backend: Backend) -> Floats:
    """Return effects on the views to first order: what leaving out an instance changes, times the gradient there.

    A vector of a bag is measured once, where exact effects need one for every instance. Instances of bags of one have
    no meaning.
    """
    effects = np.zeros((bags.n_instances, len(fitted.intercepts)))
    for space, views in fitted.by_space():
        scaled = space.apply(bags.instances, backend)
        for kind in dict.fromkeys(view.kind for view in views):
            features = bag_features(scaled, bags.offsets, kind, space.centers, backend)
            gradients = np.sum([view.gradients(features, backend) for view in views if view.kind == kind], axis=0)
            effects += _first_order(scaled, bags.offsets, kind, features, gradients, space.centers, backend)
    return effects


def _first_order(
    scaled: Instances,
    offsets: Integers,
    kind: str,
    features: Floats,
    gradients: Floats,
    centers: Floats,
    backend: Backend,
) -> Floats:
    """Return the first-order effects of instances on the views of one kind, (n_instances, n_problems)."""
    if kind == "nearest":
        return _of_minima(backend.sq_distances(scaled, centers), offsets, gradients, backend, np.sqrt)
    if kind == "range":
        lower, upper = np.split(gradients, 2, axis=1)
        return _of_minima(scaled, offsets, lower, backend) + _of_minima(-scaled, offsets, -upper, backend)
    without = features_without(scaled, offsets, kind, centers, backend)
    found = np.empty((without.shape[0], gradients.shape[2]))
    for bag, (start, end) in enumerate(itertools.pairwise(offsets)):
        rows, whole = without[start:end], features[[bag]]
        found[start:end] = np.asarray(whole @ gradients[bag]) - rows @ gradients[bag]
    return found


def _of_minima(
    values: Floats, offsets: Integers, gradients: Floats, backend: Backend, measure: Any = np.asarray
) -> Floats:
    """Give what the second smallest value would change, column by column, to the instance that has the smallest."""
    found = backend.bag_two_min(values, offsets)
    second = np.where(np.isfinite(found.second), found.second, found.smallest)  # a bag of one instance has none
    changes = (measure(found.smallest) - measure(second))[:, :, None] * gradients
    where = found.where.ravel()
    return np.column_stack(
        [np.bincount(where, changes[:, :, i].ravel(), minlength=len(values)) for i in range(changes.shape[2])]
    )


def features_without(scaled: Instances, offsets: Integers, kind: str, centers: Floats, backend: Backend) -> Floats:
    """Return the vector of every bag without each of its instances, (n_instances, n_columns).

    Rows of bags of one instance have no meaning.
    """
    if kind == "range":
        lower = _minimum_without(scaled, offsets, backend)
        return np.hstack([lower, -_minimum_without(-scaled, offsets, backend)])
    if kind == "nearest":
        return np.sqrt(_minimum_without(backend.sq_distances(scaled, centers), offsets, backend))
    if kind in SPARSE_KINDS:
        means = _sparse_mean_without(scaled, offsets, backend)
        return means if kind == "mean" else unit_roots(means)
    means = _mean_without(scaled, offsets, backend)
    squares = _mean_without(np.square(scaled, dtype=np.float64), offsets, backend)
    return np.hstack([means, np.sqrt(np.maximum(squares - means**2, 0))])


def _minimum_without(values: Floats, offsets: Integers, backend: Backend) -> Floats:
    """Return the minimum over the bag without each instance: the second smallest for the one that is the smallest."""
    found = backend.bag_two_min(values, offsets)
    sizes = np.diff(offsets)
    is_smallest = np.arange(len(values))[:, None] == np.repeat(found.where, sizes, axis=0)
    return np.where(is_smallest, np.repeat(found.second, sizes, axis=0), np.repeat(found.smallest, sizes, axis=0))


def _mean_without(values: Floats, offsets: Integers, backend: Backend) -> Floats:
    sizes = np.repeat(np.diff(offsets), np.diff(offsets))[:, None]
    totals = np.repeat(backend.bag_mean(values.astype(np.float64), offsets), np.diff(offsets), axis=0) * sizes
    return (totals - values) / np.maximum(sizes - 1, 1)


def _sparse_mean_without(scaled: Instances, offsets: Integers, backend: Backend) -> Floats:
    sizes = np.diff(offsets)
    own = np.repeat(sizes, sizes)
    means = bag_means(scaled, offsets, backend)[np.repeat(np.arange(len(sizes)), sizes)]
    totals = sp.diags_array(own.astype(np.float64)) @ means
    return sp.csr_array(sp.diags_array(1 / np.maximum(own - 1, 1)) @ (totals - scaled))


def _shares(fitted: FittedViews, bags: Bags, backend: Backend) -> Floats:
    """Give the contribution of every centre to the instance that is nearest to it."""
    shares = np.zeros((bags.n_instances, len(fitted.intercepts)))
    for space, views in fitted.by_space():
        squares = backend.sq_distances(space.apply(bags.instances, backend), space.centers)
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
