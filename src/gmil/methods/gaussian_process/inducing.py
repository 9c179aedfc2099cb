"""What makes many instances bearable: a few points that stand for all, and a sample of every bag."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gmil.engine.kmeans import kmeans
from gmil.engine.reference import dense_rows

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers

_LLOYD_STEPS = 20
"""Inducing points need to cover the instances, not to be the best of clusters."""


class Basis(NamedTuple):
    """Points, and whether they are inducing points and not the instances themselves."""

    points: Floats  # (n_points, n_features)
    inducing: bool


def choose_basis(X: Instances, n_inducing: int | None, backend: Backend, generator: np.random.Generator) -> Basis:
    """Return the centres of ``n_inducing`` clusters, or all instances where they are not more than that."""
    if n_inducing is None or X.shape[0] <= n_inducing:
        return Basis(dense_rows(X, np.arange(X.shape[0])), inducing=False)
    found = kmeans(X, n_inducing, backend=backend, generator=generator, max_iter=_LLOYD_STEPS)
    # Equal centres, of which there may be some where instances are equal, would say everything twice.
    return Basis(np.unique(found.centers, axis=0), inducing=True)


def thin_bags(offsets: Integers, most: int | None, generator: np.random.Generator) -> tuple[Integers, Integers]:
    """Draw about ``most`` instances, the same share of every bag and at least one; return them and their offsets.

    The soft maximum is a function of a mean over the bag, so that of a sample estimates that of the bag.
    """
    n_instances = int(offsets[-1])
    if most is None or n_instances <= most:
        return np.arange(n_instances), offsets
    sizes = np.diff(offsets)
    kept = np.maximum(1, np.round(sizes * (most / n_instances)).astype(np.int64))
    bag_of = np.repeat(np.arange(len(sizes)), sizes)
    shuffled = np.lexsort((generator.random(n_instances), bag_of))  # every bag in an order of its own
    place = np.arange(n_instances) - np.repeat(offsets[:-1], sizes)
    rows = np.sort(shuffled[place < np.repeat(kept, sizes)])
    return rows, np.concatenate([[0], np.cumsum(kept)])
