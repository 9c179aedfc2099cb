"""Widths of Gaussian kernels between instances, from the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gmil.engine.reference import dense_rows

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Instances, Integers

_WIDTH_ROWS = 1000


def rows_for_width(n_instances: int, generator: np.random.Generator) -> Integers:
    """Return which instances the width is taken from: all, or 1000 that are drawn."""
    if n_instances <= _WIDTH_ROWS:
        return np.arange(n_instances)
    return np.sort(generator.choice(n_instances, _WIDTH_ROWS, replace=False))


def median_gamma(X: Instances, backend: Backend, generator: np.random.Generator) -> float:
    """Return one over the median squared distance between two instances; up to 1000 drawn instances stand for all.

    Where no two differ it is one.
    """
    if X.shape[0] < 2:
        return 1.0
    rows = rows_for_width(X.shape[0], generator)
    sample = dense_rows(X, rows)
    squares = backend.sq_distances(sample, sample)[np.triu_indices(len(rows), k=1)]
    apart = squares[squares > 0]
    return 1 / float(np.median(apart)) if len(apart) else 1.0
