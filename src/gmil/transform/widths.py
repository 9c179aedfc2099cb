"""Widths of Gaussian kernels between instances, from the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gmil.engine import closeness, column_sizes, sq_differences_of
from gmil.engine.reference import row_sq_norms

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers

_WIDTH_ROWS = 1000


def rows_for_width(n_instances: int, generator: np.random.Generator) -> Integers:
    """Return which instances the width is taken from: all, or 1000 that are drawn."""
    if n_instances <= _WIDTH_ROWS:
        return np.arange(n_instances)
    return np.sort(generator.choice(n_instances, _WIDTH_ROWS, replace=False))


def median_gamma(
    X: Instances, backend: Backend, generator: np.random.Generator, weights: Floats | None = None
) -> float:
    """Return one over the median squared distance between two instances; estimated on up to 1000 drawn instances.

    Where no two differ it is one. ``weights``, (n_instances,), say how often each counts; None: once.
    """
    if X.shape[0] < 2:
        return 1.0
    rows = rows_for_width(X.shape[0], generator)
    sample = X[rows]
    pairs = np.triu_indices(len(rows), k=1)
    squares = _sq_distances_of(sample, pairs, backend)
    if weights is None or (weights == weights[0]).all():
        return 1 / median_distance(squares)
    counts = weights[rows][pairs[0]] * weights[rows][pairs[1]]
    return 1 / median_distance(squares, counts)


def median_distance(distances: Floats, counts: Floats | None = None) -> float:
    """Return the median of the distances, or of their squares, that are above zero; one where none is.

    ``counts``, of the same shape, say how often each counts; None: once.

    >>> median_distance(np.array([0.0, 1.0, 3.0]))
    2.0
    """
    differ = distances > 0
    if not differ.any():
        return 1.0
    return float(np.median(distances[differ])) if counts is None else weighted_median(distances[differ], counts[differ])


def _sq_distances_of(sample: Instances, pairs: tuple[Integers, Integers], backend: Backend) -> Floats:
    """Return squared distances of pairs of rows; copies of a row have none, whatever rounding leaves."""
    first, second = pairs
    norms = row_sq_norms(sample)
    squares: Floats = backend.sq_distances(sample, sample)[pairs]
    close = np.flatnonzero(squares <= closeness(squares.dtype) * (norms[first] + norms[second]))
    squares[close] = sq_differences_of(sample, first[close], sample, second[close], column_sizes(sample))
    return squares


def weighted_median(values: Floats, weights: Floats) -> float:
    """Return the median of values that count so often as their weights say.

    >>> weighted_median(np.array([3.0, 1.0, 2.0]), np.array([2.0, 1.0, 1.0]))
    2.5
    """
    order = np.argsort(values)
    totals = np.cumsum(weights[order])
    middle = [int(np.searchsorted(totals, totals[-1] / 2, side=side)) for side in ("left", "right")]
    return float(values[order[middle]].mean())
