"""Clustering of many fits at once where the instances lie: on the device of PyTorch."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.greedy.clustering import Clustering, seeding_of
from gmil.scale import LazyBags

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.bags import Bags
    from gmil.engine.arrays import Integers
    from gmil.engine.kmeans import Seeding
    from gmil.greedy.streaming import Request
    from gmil.transform.space import Space

_NUMBERS_AT_ONCE = 1 << 29
"""Samples of so many numbers are clustered together, 2 GiB in single precision."""


def resident_bags(bags: Bags, backend: Any) -> LazyBags:
    """Return bags whose instances lie on the device of a backend that runs in PyTorch."""
    from gmil.engine.torch.tensors import to_device

    X = to_device(bags.instances, backend.device)
    return LazyBags.like(bags, X)


def can_cluster_on_device(parameters: Any) -> bool:
    """Tell whether the centres are the means of plain k-means."""
    plain = parameters.instance_weight == "instances" and parameters.centers == "mean"
    return plain and parameters.clustering == "k-means"


def cluster_on_device(
    X: Any,
    requests: Sequence[Request],
    spaces: Sequence[Space],
    rows: Sequence[Integers],
    n_clusters: Sequence[int],
) -> list[Clustering]:
    """Cluster, for every request, its own rows of ``X`` in its own space; fits of one shape are one batch."""
    batches: dict[Any, list[int]] = defaultdict(list)
    for number, (request, own) in enumerate(zip(requests, rows, strict=True)):
        parameters = request.parameters
        how = (parameters.n_init, parameters.max_iter, seeding_of(parameters), not isinstance(parameters.init, str))
        batches[len(own), n_clusters[number], how].append(number)
    found: dict[int, Clustering] = {}
    for (n_rows, k, how), numbers in batches.items():
        at_once = max(1, _NUMBERS_AT_ONCE // (n_rows * X.shape[1]))
        for start in range(0, len(numbers), at_once):
            some = numbers[start : start + at_once]
            alike = [(requests[i], spaces[i], rows[i]) for i in some]
            found.update(zip(some, _cluster_batch(X, alike, k, *how), strict=True))
    return [found[number] for number in range(len(requests))]


def _cluster_batch(
    X: Any,
    alike: list[tuple[Request, Space, Integers]],
    n_clusters: int,
    n_init: int,
    max_iter: int,
    seeding: Seeding,
    is_given: bool,
) -> list[Clustering]:
    import torch

    from gmil.engine.torch.clustering import kmeans_jobs
    from gmil.engine.torch.tensors import numpy_dtype, to_device

    places = to_device(np.stack([rows for _, _, rows in alike]), X.device)
    samples = [space.on_device_of(X).apply(X[own]) for (_, space, _), own in zip(alike, places, strict=True)]
    init = None
    if is_given:
        dtype = numpy_dtype(X)
        init = [space.apply(np.asarray(request.parameters.init, dtype=dtype)) for request, space, _ in alike]
    found = kmeans_jobs(
        torch.stack(samples),
        n_clusters,
        generators=[request.generator for request, _, _ in alike],
        init=init,
        n_init=n_init,
        max_iter=max_iter,
        seeding=seeding,
    )
    return [
        Clustering(space, clusters.centers, clusters.n_iter)
        for (_, space, _), clusters in zip(alike, found, strict=True)
    ]
