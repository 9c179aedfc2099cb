"""What a decision about a bag loses without one of its instances: exactly, and to first order.

Most instances are the nearest to no centre, and the smallest or largest in no feature: without them the vectors of
their bag stay as they are. Only what changes is measured, where minima and maxima are taken.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gmil.bags.parts import blocks_of_bags
from gmil.weighted.model import dissimilarity
from gmil.weighted.views import bag_features, bag_means, unit_roots

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.weighted.fitting import FittedViews
    from gmil.weighted.model import View
    from gmil.weighted.views import InSpaces

_ROWS_AT_ONCE = 500
"""Instances whose means without them are compared at once: what is made of them stays in the caches."""
_ENTRIES_AT_ONCE = 1_000_000
_OF_EXTREMES = ("nearest", "range")
"""The vectors of bags that most instances do not change."""


class Changes(NamedTuple):
    """Entries of vectors of bags that are others without an instance, in the order of the instances."""

    instance: Integers  # (n_changes,)
    bag: Integers  # (n_changes,)
    column: Integers  # (n_changes,)
    value: Floats  # (n_changes,): without the instance


def effects_by_views(fitted: FittedViews, taken: InSpaces) -> Floats:
    """Return the decision of the views about a bag, less that without each instance, (n_instances, n_problems).

    The only instance of a bag has the whole decision but the intercept.
    """
    bags, backend = taken.bags, taken.backend
    effects = np.zeros((bags.n_instances, len(fitted.intercepts)))
    alone = bags.sizes == 1
    for space, kind, views in fitted.by_kind():
        scaled, centers = taken[space], taken.spaces[space].centers
        features = bag_features(scaled, bags.offsets, kind, centers, backend)
        if kind in _OF_EXTREMES:
            changes = changes_without(scaled, bags.offsets, kind, centers, backend)
            for view in views:
                _add_effects_of_changes(effects, view, features, changes, backend)
        else:
            _add_effects_of_means(effects, views, features, scaled, bags.offsets, kind, backend)
        if alone.any():
            rows = bags.offsets[:-1][alone]
            effects[rows] += sum(view.votes(features[alone], backend) for view in views)
    return effects


def _add_effects_of_changes(effects: Floats, view: View, features: Floats, changes: Changes, backend: Backend) -> None:
    """Add effects on a view of minima or maxima: distances to points change by the entries that change."""
    columns = np.asarray(view.standardised(features), dtype=np.float64)
    before, after = columns[changes.bag, changes.column], view.standardised_entries(changes.value, changes.column)
    if view.points is None:
        _add_sums(effects, changes.instance, (before - after)[:, None] * view.coefficients[changes.column])
        return
    distances = np.asarray(dissimilarity(columns.astype(np.float32), view.points, view.kernel, backend), np.float64)
    whole = np.exp(distances / -view.width) @ view.coefficients
    points, power = view.points.T.astype(np.float64), 2 if view.kernel == "gaussian" else 1
    for rows, starts in _runs_of_instances(changes.instance, len(view.points)):
        to_points = points[changes.column[rows]]  # (n_rows, n_points)
        difference = np.abs(after[rows, None] - to_points) ** power - np.abs(before[rows, None] - to_points) ** power
        bag = changes.bag[rows][starts]
        without = np.exp((distances[bag] + np.add.reduceat(difference, starts)) / -view.width) @ view.coefficients
        effects[changes.instance[rows][starts]] += whole[bag] - without


def _add_effects_of_means(
    effects: Floats,
    views: list[View],
    features: Floats,
    scaled: Instances,
    offsets: Integers,
    kind: str,
    backend: Backend,
) -> None:
    """Add effects on views in which every instance changes every column."""
    whole = [view.votes(features, backend) for view in views]
    for bags, rows, own in _runs_of_bags(offsets):
        without = means_without(scaled[rows], own, kind, backend)
        for view, votes in zip(views, whole, strict=True):
            effect = np.repeat(votes[bags], np.diff(own), axis=0) - view.votes(without, backend)
            effects[rows] += np.where(np.repeat(np.diff(own) > 1, np.diff(own))[:, None], effect, 0.0)


def first_order_effects(fitted: FittedViews, taken: InSpaces) -> Floats:
    """Return effects on the views to first order: what leaving out an instance changes, times the gradient there.

    Gradients are those of the bag, where exact effects measure every bag without every instance. Instances of bags
    of one have no meaning. Views by means tell every instance of a bag apart; those by minima and maxima tell the
    extreme ones alone, and count only where there are no others.
    """
    effects = np.zeros((taken.bags.n_instances, len(fitted.intercepts)))
    views_of = list(fitted.by_kind())
    by_means = [entry for entry in views_of if entry[1] not in _OF_EXTREMES]
    for space, kind, views in by_means or views_of:
        scaled, centers = taken[space], taken.spaces[space].centers
        features = bag_features(scaled, taken.bags.offsets, kind, centers, taken.backend)
        gradients = np.sum([view.gradients(features, taken.backend) for view in views], axis=0)
        if kind in _OF_EXTREMES:
            changes = changes_without(scaled, taken.bags.offsets, kind, centers, taken.backend)
            lost = features[changes.bag, changes.column] - changes.value
            _add_sums(effects, changes.instance, lost[:, None] * gradients[changes.bag, changes.column])
            continue
        for bags, rows, own in _runs_of_bags(taken.bags.offsets):
            without = means_without(scaled[rows], own, kind, taken.backend)
            for bag, (start, end) in enumerate(itertools.pairwise(own), bags.start):
                slopes = gradients[bag]
                effects[rows][start:end] += np.asarray(features[[bag]] @ slopes) - without[start:end] @ slopes
    return effects


# -------------------------------------------------------------------------------- vectors of bags without an instance


def changes_without(scaled: Instances, offsets: Integers, kind: str, centers: Floats, backend: Backend) -> Changes:
    """Return what changes of minima ("nearest") or of minima and maxima ("range") without each instance."""
    if kind == "nearest":
        return _sorted(_minima_without(backend.sq_distances(scaled, centers), offsets, backend, np.sqrt))
    lower, upper = (_minima_without(sign * scaled, offsets, backend) for sign in (1, -1))
    upper = upper._replace(column=upper.column + scaled.shape[1], value=-upper.value)
    return _sorted(Changes(*(np.concatenate(both) for both in zip(lower, upper, strict=True))))


def _minima_without(values: Floats, offsets: Integers, backend: Backend, measure: Any = np.asarray) -> Changes:
    """Return the second smallest values, for the instances that have the smallest; a bag of one has none."""
    found = backend.bag_two_min(values, offsets)
    bag, column = np.nonzero((found.second > found.smallest) & np.isfinite(found.second))
    return Changes(found.where[bag, column], bag, column, measure(found.second[bag, column]).astype(np.float64))


def _sorted(changes: Changes) -> Changes:
    order = np.argsort(changes.instance, kind="stable")
    return Changes(changes.instance[order], changes.bag[order], changes.column[order], changes.value[order])


def means_without(scaled: Instances, offsets: Integers, kind: str, backend: Backend) -> Any:
    """Return the vectors of bags by means ("moments", "mean", "vlad") without each of their instances.

    Rows of bags of one instance have no meaning.
    """
    sizes = np.diff(offsets)
    if sp.issparse(scaled):
        own = np.repeat(sizes, sizes)
        means = bag_means(scaled, offsets, backend)[np.repeat(np.arange(len(sizes)), sizes)]
        totals = sp.diags_array(own.astype(np.float64)) @ means
        rest = sp.csr_array(sp.diags_array(1 / np.maximum(own - 1, 1)) @ (totals - scaled))
        return rest if kind == "mean" else unit_roots(rest)
    own = scaled.astype(np.float64)
    means = np.repeat(backend.bag_mean(own, offsets), sizes, axis=0)
    if kind == "mean":
        return means - (own - means) / np.repeat(np.maximum(sizes - 1, 1), sizes)[:, None]
    squares = np.square(np.subtract(own, means, out=own))
    others = np.repeat(np.maximum(sizes - 1, 1), sizes)[:, None]
    # Without an instance at a distance d from the mean, the sum of n squared deviations falls by d^2 n / (n - 1).
    variances = np.repeat(backend.bag_mean(squares, offsets), sizes, axis=0)
    variances -= np.divide(squares, others, out=squares)
    variances *= (others + 1) / others
    means -= np.divide(own, others, out=own)
    return np.hstack([means, np.sqrt(np.maximum(variances, 0, out=variances), out=variances)])


# -------------------------------------------------------------------------------- in pieces


def _add_sums(effects: Floats, instance: Integers, values: Floats) -> None:
    """Add to every instance the values that are its own; instances are in order."""
    if len(instance):
        starts = np.flatnonzero(np.diff(instance, prepend=-1))
        effects[instance[starts]] += np.add.reduceat(values, starts)


def _runs_of_instances(instance: Integers, n_points: int) -> Iterator[tuple[slice, Integers]]:
    """Yield runs of changes of whole instances, and where each instance begins in them."""
    starts = np.append(np.flatnonzero(np.diff(instance, prepend=-1)), len(instance))
    cuts = np.arange(0, len(instance), max(1, _ENTRIES_AT_ONCE // n_points))
    edges = np.unique(np.append(np.searchsorted(starts, cuts), len(starts) - 1))
    for first, last in itertools.pairwise(edges.tolist()):
        yield slice(starts[first], starts[last]), starts[first:last] - starts[first]


def _runs_of_bags(offsets: Integers) -> Iterator[tuple[slice, slice, Integers]]:
    """Yield a few bags at once, their instances, and their offsets."""
    for bags in blocks_of_bags(offsets, _ROWS_AT_ONCE):
        own = offsets[bags.start : bags.stop + 1]
        yield bags, slice(own[0], own[-1]), own - own[0]
