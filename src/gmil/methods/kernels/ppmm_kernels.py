"""Bags as mixtures of patterns: posteriors, compositions, and the exponent that suits the labels best."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import softmax

from gmil.engine.kmeans import kmeans
from gmil.transform.vectors.mixtures import fit_from_clusters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers
    from gmil.transform.space import Space

EXPONENTS = tuple(np.round(np.arange(0.1, 3.01, 0.1), 1).tolist())
"""What the exponent is chosen from."""

_LEAST_VARIANCE = 1e-3
"""Of a component, relative to the mean variance of the features."""

_LEAST_WIDTH = 1e-100


class Patterns(NamedTuple):
    """A mixture of patterns in the space of instances.

    ``log_weights`` and ``variances`` belong to a Gaussian mixture. For k-means they are None, and the posterior falls
    as exp(-d^2 / width).
    """

    centers: Floats  # (n_patterns, n_features)
    width: float
    log_weights: Floats | None = None  # (n_patterns,)
    variances: Floats | None = None  # (n_patterns, n_features)


class Book(NamedTuple):
    """Restarts of one clustering, and the shares of their patterns in the training bags for each assignment."""

    space: Space
    patterns: list[Patterns]
    shares: dict[str, list[Floats]]


def fit_kmeans(
    X: Instances, n_patterns: int, softness: float, backend: Backend, generator: np.random.Generator
) -> Patterns:
    """Find patterns by k-means; the width is ``softness`` times the mean squared distance to the nearest centre."""
    found = kmeans(X, n_patterns, backend=backend, generator=generator)
    return Patterns(found.centers, softness * found.inertia / X.shape[0])


def fit_mixture(X: Floats, n_patterns: int, backend: Backend, generator: np.random.Generator) -> Patterns:
    """Find patterns by a Gaussian mixture with diagonal covariances that starts from k-means."""
    clusters = kmeans(X, n_patterns, backend=backend, generator=generator)
    floor = _LEAST_VARIANCE * max(float(X.var(axis=0).mean()), _LEAST_WIDTH)
    mixture = fit_from_clusters(X, clusters, floor, tol=1e-2, random_state=int(generator.integers(2**31 - 1)))
    return Patterns(mixture.means, 1.0, np.log(mixture.weights), mixture.variances)


def posteriors(X: Instances, patterns: Patterns, assignment: str, backend: Backend) -> Floats:
    """Return how much every instance is of every pattern, (n_instances, n_patterns); rows sum to one."""
    if patterns.variances is not None:
        logits = _mixture_logits(X, patterns)
    else:
        logits = backend.sq_distances(X, patterns.centers) / -max(patterns.width, _LEAST_WIDTH)
    if assignment == "soft":
        return np.asarray(softmax(logits, axis=1))
    hard = np.zeros(logits.shape)
    hard[np.arange(len(hard)), logits.argmax(axis=1)] = 1
    return hard


def _mixture_logits(X: Instances, patterns: Patterns) -> Floats:
    """Return log weight plus log density up to a constant."""
    centers, variances = patterns.centers, np.asarray(patterns.variances)
    squares = X**2 @ (1 / variances).T - 2 * X @ (centers / variances).T + (centers**2 / variances).sum(axis=1)
    return np.asarray(patterns.log_weights - (squares + np.log(variances).sum(axis=1)) / 2)


def compositions(X: Instances, offsets: Integers, patterns: Patterns, assignment: str, backend: Backend) -> Floats:
    """Return how much every bag is of every pattern, (n_bags, n_patterns); rows sum to one."""
    return backend.bag_mean(posteriors(X, patterns, assignment, backend), offsets)


def powered(shares: Floats, exponent: float) -> Floats:
    """Return the shares to a power, each bag then to length one: products of rows are the kernel."""
    raised = shares**exponent
    return raised / np.linalg.norm(raised, axis=1, keepdims=True)


def centred_alignment(features: Floats, positive: Booleans) -> float:
    """Return how well products of rows agree with products of labels, both centred: a cosine, at most 1.

    Centring keeps a kernel that is large everywhere, or classes of different size, from looking like agreement.
    """
    signs = np.where(positive, 1.0, -1.0)
    signs -= signs.mean()
    centred = features - features.mean(axis=0)
    # Products of columns have the norm of products of rows, and are fewer.
    length = np.linalg.norm(centred.T @ centred if len(centred) > centred.shape[1] else centred @ centred.T)
    return float(((centred.T @ signs) ** 2).sum() / (length * (signs @ signs))) if length > 0 else 0.0


class Adapted(NamedTuple):
    """The restart and the exponent that suit the labels best."""

    restart: int
    exponent: float
    alignment: float


def adapt(shares: Sequence[Floats], positive: Booleans, exponents: Sequence[float]) -> Adapted:
    """Choose among restarts, compositions of the same bags, and exponents by centred alignment; of equals the first."""
    found = [
        Adapted(restart, exponent, centred_alignment(powered(h, exponent), positive))
        for restart, h in enumerate(shares)
        for exponent in exponents
    ]
    return max(found, key=lambda candidate: candidate.alignment)
