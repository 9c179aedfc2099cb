"""Bags as vectors that say how their instances differ from a codebook or from a mixture; plain arrays in and out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import softmax

from gmil.engine.kmeans import kmeans
from gmil.methods.baselines.summaries import dense_bags
from gmil.methods.embeddings.mixtures import fit_from_clusters

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.methods.embeddings.mixtures import Mixture

_LEAST_VARIANCE = 1e-6
"""Relative to the mean variance of the features: what a component may not fall below."""


def vlad_vectors(
    X: Instances, offsets: Integers, centers: Floats, backend: Backend, *, occupancy: bool = False
) -> Floats:
    """Return differences between instances and their nearest centre, (n_bags, n_centers * n_features).

    They are summed over the instances nearest to each centre and divided by the size of the bag. With ``occupancy``
    the shares of instances nearest to each centre follow, n_centers more columns.
    """
    parts = []
    for block, cut in dense_bags(X, offsets):
        nearest, _ = backend.assign(block, centers)
        own = nearest[:, None] == np.arange(len(centers))  # (n_instances, n_centers)
        columns = [backend.bag_mean((block - center) * own[:, [k]], cut) for k, center in enumerate(centers)]
        if occupancy:
            columns.append(backend.bag_mean(own.astype(block.dtype), cut))
        parts.append(np.concatenate(columns, axis=1))
    return np.concatenate(parts)


def fisher_vectors(X: Floats, offsets: Integers, mixture: Mixture, backend: Backend) -> Floats:
    """Return the gradients of the log-likelihood of every bag, (n_bags, n_components * 2 * n_features).

    For every component: with respect to its means, then to its deviations, each in units of its Fisher information
    and divided by the size of the bag.
    """
    parts = []
    for block, cut in dense_bags(X, offsets):
        shares = responsibilities(block, mixture)
        gradients = []
        for k, weight in enumerate(mixture.weights):
            z = _standardized(block, mixture, k)
            share = shares[:, k, None]
            gradients += [share * z / np.sqrt(weight), share * (z**2 - 1) / np.sqrt(2 * weight)]
        parts.append(np.concatenate([backend.bag_mean(part, cut) for part in gradients], axis=1))
    return np.concatenate(parts)


def responsibilities(X: Floats, mixture: Mixture) -> Floats:
    """Return the probability of every component given an instance, (n_instances, n_components)."""
    logs = [
        np.log(weight) - (_standardized(X, mixture, k) ** 2).sum(axis=1) / 2 - np.log(mixture.variances[k]).sum() / 2
        for k, weight in enumerate(mixture.weights)
    ]
    return np.asarray(softmax(np.stack(logs, axis=1), axis=1))


def _standardized(X: Floats, mixture: Mixture, k: int) -> Floats:
    return np.asarray((X - mixture.means[k]) / np.sqrt(mixture.variances[k]))


def normalize_vectors(vectors: Floats) -> Floats:
    """Return signed square roots at unit length; a zero vector stays zero."""
    roots = np.sign(vectors) * np.sqrt(np.abs(vectors))
    lengths = np.linalg.norm(roots, axis=1, keepdims=True)
    return np.asarray(roots / np.where(lengths > 0, lengths, 1))


def fit_mixture(
    X: Floats, n_components: int, max_iter: int, backend: Backend, generator: np.random.Generator
) -> Mixture:
    """Fit a mixture of Gaussians that starts from the centres, sizes and variances of clusters."""
    X = X.astype(np.float64, copy=False)
    floor = max(_LEAST_VARIANCE * float(X.var(axis=0).mean()), float(np.finfo(np.float64).tiny) ** 0.5)
    clusters = kmeans(X, n_components, backend=backend, generator=generator)
    members = [clusters.labels == k for k in range(n_components)]
    variances = np.stack([X[rows].var(axis=0) if rows.any() else X.var(axis=0) for rows in members]) + floor
    return fit_from_clusters(X, clusters, floor, max_iter=max_iter, precisions_init=1 / variances)
