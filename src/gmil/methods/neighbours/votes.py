"""Who votes about a bag in citation kNN, from distances between bags."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats

_TIE = 1e-7
"""How far apart, relative to themselves, two distances may be and still count as equal."""


def nth_smallest(values: Floats, n: int) -> Floats:
    """Return the n-th smallest value of every row, infinity where a row is shorter."""
    if n > values.shape[1]:
        return np.full(len(values), np.inf)
    return np.asarray(np.partition(values, n - 1, axis=1)[:, n - 1])


def citing_radii(within: Floats, n_citers: int) -> Floats:
    """Return the distance of every bag to its ``n_citers``-th nearest other bag, (n_bags,)."""
    others = within.copy()
    np.fill_diagonal(others, np.inf)
    return nth_smallest(others, n_citers)


def voters(to_training: Floats, radii: Floats, n_references: int) -> Floats:
    """Return how often every training bag votes about every query, (n_queries, n_training): 0, 1 or 2.

    A reference is one of the nearest training bags; bags as near as the last of them are references too, so that
    the order of the bags never matters. A citer is nearer to the query than its own radius. ``radii`` is
    (n_training,), or (n_queries, n_training) where they depend on the query.
    """
    last = nth_smallest(to_training, n_references)[:, None]
    references = to_training <= last * (1 + _TIE)
    citers = to_training < radii * (1 - _TIE)
    return references.astype(np.float64) + citers


def radii_without(within: Floats, n_citers: int) -> Floats:
    """Return the radius of bag j where bag i is left out, at [i, j]; infinity on the diagonal is not looked at."""
    others = within.copy()
    np.fill_diagonal(others, np.inf)
    nearest, next_nearest = nth_smallest(others, n_citers), nth_smallest(others, n_citers + 1)
    # Without one of its n nearest bags, the n-th nearest of the others is the next one.
    return np.where(others <= nearest * (1 + _TIE), next_nearest, nearest)
