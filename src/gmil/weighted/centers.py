"""The codebook of `WeightedGMIL`, in every scaling."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gmil.engine import kmeans
from gmil.engine.resident import as_array
from gmil.greedy import codebook
from gmil.weighted.views import CentersInSpace, fit_spaces

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers

CENTERS = ("random", "k-means", "ranked")
_MOST_CLUSTERED = 10_000
_AUTOMATIC = (200, 500)


def choose_centers(
    bags: Bags,
    scales: tuple[str | None, ...],
    n_centers: int | str,
    how: str,
    positive: Booleans,
    *,
    backend: Backend,
    generator: np.random.Generator,
    order: Integers | None = None,
) -> list[CentersInSpace]:
    """Fit every scaling and choose its centres.

    Random centres are the same instances in all scalings; clusters are learnt in each. Where instances have a random
    ``order`` already, (n_instances,), those that come first are taken.
    """
    if isinstance(n_centers, str):
        n_centers = int(np.clip(bags.n_instances // 100, *_AUTOMATIC))
    n_centers = min(n_centers, bags.n_instances)
    drawn = generator.choice(bags.n_instances, n_centers, replace=False) if order is None else order[:n_centers]
    rows = np.sort(drawn)
    spaces = fit_spaces(bags.instances, scales, rows, backend)
    if how == "random":
        return spaces
    sample = np.sort(generator.choice(bags.n_instances, min(bags.n_instances, _MOST_CLUSTERED), replace=False))
    clustered = []
    for space in spaces:
        instances = as_array(space.apply(bags.instances, backend))
        n_clusters = min(len(sample), n_centers if how == "k-means" else 5 * n_centers)
        found = kmeans(instances[sample], n_clusters, backend=backend, generator=generator, max_iter=20)
        centers = found.centers
        if how == "ranked":
            centers = _best_centers(instances, centers, bags, positive, n_centers, backend)
        clustered.append(space._replace(centers=centers))
    return clustered


def _best_centers(
    instances: Instances, centers: Floats, bags: Bags, positive: Booleans, n_centers: int, backend: Backend
) -> Floats:
    """Return the centres with the best scores by Eq. 6, of any class."""
    nearest, _ = backend.assign(instances, centers)
    histograms = backend.bag_histograms(nearest, bags.offsets, len(centers))
    both = np.column_stack([positive, ~positive]) if positive.shape[1] == 1 else positive
    counts = codebook.count_bins(histograms, both, "bags")
    epsilon = 1 / len(centers)
    scores = codebook.score_bins(*counts, both.sum(axis=0), epsilon=epsilon, weighting="bags")
    ranks = np.argsort(np.argsort(-scores, axis=1), axis=1).min(axis=0)  # the best rank in any class
    return centers[np.sort(np.argsort(ranks, kind="stable")[:n_centers])]
