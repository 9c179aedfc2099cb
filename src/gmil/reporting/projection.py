"""Instances and centres in a plane: the space of a model, and its two principal components."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA, TruncatedSVD

from gmil.engine import resolve
from gmil.engine.reference import dense_rows
from gmil.greedy.codebook_classifier import CodebookClassifier
from gmil.reporting.summary import InstanceMap
from gmil.transform.space import fit_scaling
from gmil.weighted import WeightedGMIL

if TYPE_CHECKING:
    from collections.abc import Callable

    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers

MOST_FITTED, MOST_SHOWN = 5000, 1200
"""Instances that the plane is fitted to, and that are drawn."""


class ModelCenters(NamedTuple):
    """The centres of a model, and what takes instances to where it compares them with these."""

    apply: Callable[[Instances], Instances]
    centers: Floats  # (n_centers, n_dimensions), none where the model has no centres
    positive: Integers  # C+ as positions in the centres
    negative: Integers  # C-

    def role(self, number: int) -> str:
        """Return "positive", "negative", "both" or nothing."""
        known = {(True, True): "both", (True, False): "positive", (False, True): "negative"}
        return known.get((number in self.positive, number in self.negative), "")

    def voters(self) -> Integers:
        """Return the centres that instances answer to: both codebooks, or all centres where there are none."""
        used = np.union1d(self.positive, self.negative).astype(np.int64)
        return used if len(used) else np.arange(len(self.centers))

    def answers(self, instances: Instances) -> tuple[Integers, Floats]:
        """Return the nearest centre that votes, and its distance, for instances of this space."""
        voters = self.voters()
        nearest, squares = resolve("auto", 1).assign(instances, self.centers[voters])
        return voters[nearest], np.sqrt(squares)


def space_of(model: Any, bags: Bags, column: int) -> ModelCenters:
    """Return the space of a model; for one without centres the standardised features."""
    none = np.empty(0, dtype=np.int64)
    if isinstance(model, CodebookClassifier):
        problem = column if np.ndim(model.positive_bins_) == 2 else 0
        bins = [np.atleast_2d(b)[problem] for b in (model.positive_bins_, model.negative_bins_)]
        return ModelCenters(model.space_.apply, np.asarray(model.cluster_centers_), bins[0], bins[1])
    if isinstance(model, WeightedGMIL):
        found = model._fitted().spaces[_loudest_space(model, column)]
        return ModelCenters(found.apply, np.asarray(found.centers), none, none)
    space = fit_scaling(bags.instances, None if sp.issparse(bags.instances) else "standard")
    return ModelCenters(space.apply, np.empty((0, bags.n_features)), none, none)


def _loudest_space(model: WeightedGMIL, column: int) -> int:
    """Return the scaling in which the distances to the centres have the largest weight, or any view where none has."""
    views = [v for v in model._fitted().views if v.kind == "nearest"] or model._fitted().views
    if not views:
        return 0
    strength = [float(np.abs(v.coefficients[:, min(column, v.coefficients.shape[1] - 1)]).sum()) for v in views]
    return views[int(np.argmax(strength))].space


class Projection(NamedTuple):
    """Two principal components."""

    model: Any
    share: float

    def place(self, points: Any) -> Floats:
        """Return coordinates, (n_points, 2); the second is zero where there is one feature only."""
        placed = np.asarray(self.model.transform(points), dtype=np.float64)
        return placed if placed.shape[1] == 2 else np.column_stack([placed, np.zeros(len(placed))])


def fit_plane(instances: Instances, generator: np.random.Generator) -> Projection:
    """Fit the plane to at most `MOST_FITTED` instances."""
    rows = np.sort(generator.permutation(instances.shape[0])[:MOST_FITTED])
    sample = instances[rows]
    n_components = min(2, *sample.shape)
    if sp.issparse(sample) and min(sample.shape) > 2:
        reducer = TruncatedSVD(n_components, random_state=0).fit(sample)
    else:
        sample = dense_rows(sample, np.arange(sample.shape[0]))
        reducer = PCA(n_components, svd_solver="full").fit(np.asarray(sample, dtype=np.float64))
    with np.errstate(invalid="ignore"):
        share = float(np.nan_to_num(reducer.explained_variance_ratio_.sum()))
    return Projection(reducer, share)


def map_instances(bags: Bags, positive: Booleans, space: ModelCenters) -> tuple[Projection, InstanceMap]:
    """Return the plane and what is drawn in it: a sample of the instances, and all centres (those that vote first)."""
    generator = np.random.default_rng(0)
    rows = np.sort(generator.permutation(bags.n_instances)[: max(MOST_FITTED, MOST_SHOWN)])
    instances = space.apply(bags.instances[rows])
    plane = fit_plane(instances, generator)
    shown = np.sort(generator.permutation(len(rows))[:MOST_SHOWN])
    coordinates = plane.place(dense_rows(instances, shown))
    nearest = np.full(len(shown), -1)
    centers: list[list[Any]] = []
    if len(space.centers):
        nearest, _ = resolve("auto", 1).assign(instances[shown], space.centers)
        places = plane.place(space.centers)
        centers = [[*_rounded(p), space.role(i), i] for i, p in enumerate(places)]
    in_positive = positive[bags.segment_ids[rows[shown]]]
    points = [
        [*_rounded(p), int(mark), int(center)]
        for p, mark, center in zip(coordinates, in_positive, nearest, strict=True)
    ]
    return plane, InstanceMap(points, centers, plane.share, bags.n_instances)


def _rounded(point: Floats) -> list[float]:
    return [float(f"{value:.4g}") for value in point]
