"""The points that a Gaussian process is built on: all training instances, or a few that stand for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gmil.engine.kmeans import kmeans
from gmil.engine.reference import dense_rows

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances

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
