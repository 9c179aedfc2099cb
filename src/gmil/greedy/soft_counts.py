"""A Gaussian kernel density in place of the hard histogram of Eq. 3 and 4."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gmil.bags.parts import blocks_of_bags
from gmil.engine.distances import distances

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers

DENSITIES = ("histogram", "gaussian")


def choose_bandwidth(nearest: Floats) -> float:
    """Return the median distance of training instances to their nearest centre; the mean where that is zero."""
    return float(np.median(nearest)) or float(nearest.mean(dtype=np.float64))


def soft_votes(
    instances: Instances, offsets: Integers, centers: Floats, bandwidth: float, counting: str, backend: Backend
) -> Floats:
    """Return what every bag adds to the density at every centre, (n_bags, n_clusters).

    Parameters
    ----------
    instances : (n_instances, n_features)
    offsets : (n_bags + 1,)
    centers : (n_clusters, n_features)
    bandwidth : float
    counting : {"instances", "bags", "bag-mass"}
    backend : Backend
    """
    votes = np.empty((len(offsets) - 1, len(centers)))
    for block in blocks_of_bags(offsets):
        inside = offsets[block.start : block.stop + 1]
        to_centers = distances(instances[inside[0] : inside[-1]], centers, backend)
        votes[block] = bag_votes(to_centers, inside - inside[0], bandwidth, counting, backend)
    return votes


def bag_votes(to_centers: Floats, offsets: Integers, bandwidth: float, counting: str, backend: Backend) -> Floats:
    """Sum exp(-d^2 / (2 bandwidth^2)) over the instances of every bag.

    Bags that count once take the largest instead: the soft form of having an instance there. Bags of mass 1 take the
    mean.
    """
    nearness = _nearness(to_centers.astype(np.float64), bandwidth)
    if counting == "bags":
        return backend.bag_max(nearness, offsets)
    means = backend.bag_mean(nearness, offsets)
    return means if counting == "bag-mass" else means * np.diff(offsets)[:, None]


def _nearness(to_centers: Floats, bandwidth: float) -> Floats:
    if bandwidth == 0:  # every instance is on a centre
        return (to_centers == 0).astype(np.float64)
    return np.exp(-0.5 * np.square(to_centers / bandwidth))
