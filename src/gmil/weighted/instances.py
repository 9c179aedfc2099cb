"""Scores of instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gmil.errors import BagValidationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.weighted.fitting import FittedViews

_INSTANCES_AT_ONCE = 4096


def instance_scores(fitted: FittedViews, bags: Bags, kind: str, backend: Backend) -> Floats:
    """Return scores of all instances, (n_instances, n_problems).

    "effect": the decision about the bag minus that about the bag without the instance; "alone": the decision
    about a bag of this instance; "share": what the instance adds to a linear decision.
    """
    parts = []
    for block in _blocks(bags):
        if kind == "alone":
            parts.append(fitted.decide(_each_alone(block), backend))
        elif kind == "share":
            parts.append(_shares(fitted, block, backend))
        else:
            parts.append(_effects(fitted, block, backend))
    return np.concatenate(parts)


def _blocks(bags: Bags) -> Iterator[Bags]:
    """Yield runs of bags of a bounded number of instances; a larger bag is a run of its own."""
    start = 0
    while start < len(bags):
        end = int(np.searchsorted(bags.offsets, bags.offsets[start] + _INSTANCES_AT_ONCE, side="right")) - 1
        end = max(end, start + 1)
        yield bags[start:end]
        start = end


def _each_alone(bags: Bags) -> Bags:
    return type(bags)(bags.instances, np.arange(bags.n_instances + 1))


def _effects(fitted: FittedViews, bags: Bags, backend: Backend) -> Floats:
    whole = np.repeat(fitted.decide(bags, backend), bags.sizes, axis=0)
    without = np.tile(fitted.intercepts, (bags.n_instances, 1))
    rest = np.repeat(bags.sizes > 1, bags.sizes)  # of a bag of one instance nothing is left but the intercept
    for space, views in fitted.by_space():
        scaled = space.apply(bags.instances, backend)
        for view in views:
            features = features_without(scaled, bags.offsets, view.kind, space.centers, backend)
            without[rest] += view.votes(features[rest], backend)
    return whole - without


def features_without(scaled: Instances, offsets: Integers, kind: str, centers: Floats, backend: Backend) -> Floats:
    """Return the vector of every bag without each of its instances, (n_instances, n_columns).

    Rows of bags of one instance have no meaning.
    """
    if kind == "range":
        lower = _minimum_without(scaled, offsets, backend)
        return np.hstack([lower, -_minimum_without(-scaled, offsets, backend)])
    if kind == "nearest":
        return np.sqrt(_minimum_without(backend.sq_distances(scaled, centers), offsets, backend))
    if kind == "mean":
        msg = "Instances of sparse bags have no effect scores. Pass kind='alone'."
        raise BagValidationError(msg)
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
