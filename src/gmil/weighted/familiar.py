"""How far bags are from the centres: which are unlike the training bags."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gmil.weighted.views import bag_features

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats
    from gmil.weighted.views import CentersInSpace

_MOST_KEPT = 1000
"""Of more training bags so many quantiles are kept."""


def familiar_distances(nearest: Floats) -> Floats:
    """Return how far training bags are from the nearest centre that is not of their own, sorted.

    ``nearest (n_bags, n_centers)`` are the distances between training bags and centres.
    """
    size = float(np.abs(nearest).max()) or 1.0
    elsewhere = np.where(nearest > 1e-3 * size, nearest, np.inf).min(axis=1)
    finite = np.sort(elsewhere[np.isfinite(elsewhere)])
    if len(finite) == 0:
        return np.zeros(1)
    return finite if len(finite) <= _MOST_KEPT else np.quantile(finite, np.linspace(0, 1, _MOST_KEPT))


def distances_to_centers(space: CentersInSpace, bags: Bags, backend: Backend) -> Floats:
    """Return how far the nearest instance of every bag is from every centre, (n_bags, n_centers)."""
    return bag_features(space.apply(bags.instances, backend), bags.offsets, "nearest", space.centers, backend)


def familiarity(distances: Floats, familiar: Floats) -> Floats:
    """Return the p-value of every bag: the share of training bags, itself among them, that are at least as far away.

    Parameters
    ----------
    distances : array of shape (n_bags,)
    familiar : array of shape (n,)
        Of training bags, sorted.

    Examples
    --------
    >>> familiarity(np.array([0.0, 2.5, 9.0]), np.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 0.5, 0.25]
    """
    farther = len(familiar) - np.searchsorted(familiar, distances, side="left")
    return np.asarray((farther + 1) / (len(familiar) + 1))
