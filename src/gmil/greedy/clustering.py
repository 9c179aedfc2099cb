"""Instances -> centres, by k-means, spectral clustering or kernel k-means, with instances or bags of equal weight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.engine.kmeans import SEEDINGS, Seeding, kmeans
from gmil.greedy import codebook
from gmil.greedy.settings import n_clustered
from gmil.sampling import sample_rows
from gmil.transform.embedding import (
    Embedding,
    as_landmarks,
    gaussian_gram,
    gram_coordinates,
    kernel_embedding,
    spectral_embedding,
)
from gmil.transform.space import Space, fit_space

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine import Backend, KMeansResult
    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.scale import LazyBags

CLUSTERINGS = ("k-means", "spectral", "kernel")
INSTANCE_WEIGHTS = ("instances", "bags")

Embedded = tuple[Embedding, "Floats", int]
"""An embedding, the centres in it, and the number of iterations."""


class Clustering(NamedTuple):
    """Centres, and the space in which they lie."""

    space: Space
    centers: Floats  # (n_clusters, n_features or n_dimensions)
    n_iter: int = 0


def space_of(X: Instances, parameters: Any, generator: np.random.Generator) -> tuple[Space, Instances]:
    """Fit the space that the parameters ask for; return it and the instances in it."""
    return fit_space(X, parameters.scale, parameters.n_components, generator, parameters.metric)


def rows_to_cluster(
    bags: Bags | LazyBags, labels: Integers, parameters: Any, generator: np.random.Generator
) -> Integers | None:
    """Return which of the training instances are clustered, in order; None means all of them.

    ``sample_size``, ``clustering`` and ``sampling`` of the parameters are read.
    """
    most = n_clustered(bags.n_instances, parameters.sample_size, parameters.clustering)
    return sample_rows(bags, labels, most, parameters.sampling, generator)


def weights_in_clusters(bags: Bags | LazyBags, rows: Integers | None, parameters: Any) -> Floats | None:
    """Return the weight of every instance that is clustered; None where all weigh the same."""
    return None if parameters.instance_weight == "instances" else _bag_weights(bags, rows)


def cluster_sample(
    sample: Instances,
    space: Space,
    n_clusters: int,
    parameters: Any,
    *,
    weights: Floats | None,
    backend: Backend,
    generator: np.random.Generator,
) -> Clustering:
    """Cluster training instances, or a sample of them.

    Parameters
    ----------
    sample : (n_clustered, n_features)
        The instances that `rows_to_cluster` chose, in the space.
    space : Space
    n_clusters : int
    parameters : GMIL
        Its parameters ``clustering``, ``centers``, ``init``, ``n_init`` and ``max_iter`` are read.
    weights : (n_clustered,), optional
        From `weights_in_clusters`.
    backend : Backend
    generator : numpy.random.Generator
    """
    init = None if isinstance(parameters.init, str) else space.apply(np.asarray(parameters.init, dtype=sample.dtype))
    how = (parameters.n_init, parameters.max_iter, seeding_of(parameters))
    cluster = _Clusterer(n_clusters, weights, *how, backend, generator)
    medoids = parameters.centers == "medoid"
    if parameters.clustering == "k-means":
        found = cluster(sample, init)
        centers = codebook.medoids(sample, found.centers, backend) if medoids else found.centers
        return Clustering(space, centers, found.n_iter)
    find = _spectral_centers if parameters.clustering == "spectral" else _kernel_centers
    embedding, centers, n_iter = find(as_landmarks(sample), init, cluster, medoids=medoids)
    return Clustering(space._replace(embedding=embedding), centers.astype(sample.dtype), n_iter)


def cluster_instances(
    instances: Instances,
    space: Space,
    bags: Bags,
    labels: Integers,
    n_clusters: int,
    parameters: Any,
    backend: Backend,
    generator: np.random.Generator,
) -> tuple[Clustering, Instances]:
    """Cluster the instances of bags, which are in a space already; return them where the centres lie, too."""
    rows = rows_to_cluster(bags, labels, parameters, generator)
    found = cluster_sample(
        instances if rows is None else instances[rows],
        space,
        n_clusters,
        parameters,
        weights=weights_in_clusters(bags, rows, parameters),
        backend=backend,
        generator=generator,
    )
    embedding = found.space.embedding
    return found, instances if embedding is None else embedding.apply(instances)


def seeding_of(parameters: Any) -> Seeding:
    """Return how the centres to start from are drawn; given centres are not drawn."""
    return SEEDINGS[parameters.init] if isinstance(parameters.init, str) else Seeding()


def _bag_weights(bags: Bags | LazyBags, rows: Integers | None) -> Floats:
    """Return weights that add up to 1 over the instances of every bag that are clustered."""
    bag_of = bags.segment_ids if rows is None else bags.segment_ids[rows]
    weights: Floats = 1 / np.bincount(bag_of)[bag_of]
    return weights


class _Clusterer(NamedTuple):
    """K-means with everything but the points decided."""

    n_clusters: int
    weights: Floats | None
    n_init: int
    max_iter: int
    seeding: Seeding
    backend: Backend
    generator: np.random.Generator

    def __call__(self, points: Instances, init: Floats | None) -> KMeansResult:
        how: dict[str, Any] = {
            "backend": self.backend,
            "generator": self.generator,
            "init": init,
            "n_init": self.n_init,
            "max_iter": self.max_iter,
            "seeding": self.seeding,
            "weights": self.weights,
        }
        return kmeans(points, self.n_clusters, **how)


def _spectral_centers(landmarks: Floats, init: Floats | None, cluster: _Clusterer, *, medoids: bool) -> Embedded:
    embedding = spectral_embedding(landmarks, cluster.n_clusters)
    points = embedding.apply(landmarks)
    found = cluster(points, _start_at(landmarks, init, points, cluster.backend))
    centers = codebook.medoids(points, found.centers, cluster.backend) if medoids else found.centers
    return embedding, centers, found.n_iter


def _kernel_centers(landmarks: Floats, init: Floats | None, cluster: _Clusterer, *, medoids: bool) -> Embedded:
    gram, width = gaussian_gram(landmarks)
    points = gram_coordinates(gram)
    found = cluster(points, _start_at(landmarks, init, points, cluster.backend))
    to_centers = cluster.backend.sq_distances(points, found.centers)
    members = _member_weights(found.labels, cluster.weights, to_centers.argmin(axis=0), only_nearest=medoids)
    embedding, centers = kernel_embedding(landmarks, gram, width, members)
    return embedding, centers, found.n_iter


def _start_at(landmarks: Floats, init: Floats | None, points: Floats, backend: Backend) -> Floats | None:
    """Return the points of the landmarks that are nearest to given centres: a centre has no place among them."""
    if init is None:
        return None
    nearest = backend.sq_distances(landmarks, np.asarray(init, dtype=np.float64)).argmin(axis=0)
    return np.asarray(points[nearest])


def _member_weights(labels: Integers, weights: Floats | None, nearest: Integers, *, only_nearest: bool) -> Floats:
    """Return the weight of every landmark in the mean of every cluster, (n_clusters, n_landmarks)."""
    members = np.zeros((len(nearest), len(labels)))
    if not only_nearest:
        members[labels, np.arange(len(labels))] = 1 if weights is None else weights
    # A cluster without members is where it started.
    alone = members.sum(axis=1) == 0
    members[alone, nearest[alone]] = 1
    shares: Floats = members / members.sum(axis=1, keepdims=True)
    return shares
