"""Clustering of many fits at once where the instances lie: on the device of PyTorch."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.greedy.clustering import seeding_of
from gmil.scale import LazyBags

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.bags import Bags
    from gmil.engine.arrays import Integers
    from gmil.engine.kmeans import Seeding
    from gmil.greedy.streaming import Request

_NUMBERS_AT_ONCE = 1 << 29
"""Samples of so many numbers are clustered together, 2 GiB in single precision."""


def resident_bags(bags: Bags, backend: Any) -> LazyBags:
    """Return bags whose instances lie on the device of a backend that runs in PyTorch."""
    from gmil.engine.torch.tensors import to_device

    X = to_device(bags.instances, backend.device)
    return LazyBags.like(bags, X)


def can_cluster_on_device(model: Any) -> bool:
    """Tell whether a model's centres are the means of plain k-means."""
    return model.clustering == "k-means" and model.instance_weight == "instances" and model.centers == "mean"


def cluster_on_device(X: Any, requests: Sequence[Request], rows: Sequence[Integers], n_clusters: Sequence[int]) -> None:
    """Set the centres of every model, from its own rows of ``X``; fits of one shape are one batch."""
    batches: dict[Any, list[int]] = defaultdict(list)
    for number, (request, own) in enumerate(zip(requests, rows, strict=True)):
        model = request.model
        is_given = not isinstance(model.init, str)
        how = (model.n_init, model.max_iter, seeding_of(model), is_given)
        batches[len(own), n_clusters[number], how].append(number)
    for (n_rows, k, how), numbers in batches.items():
        at_once = max(1, _NUMBERS_AT_ONCE // (n_rows * X.shape[1]))
        for start in range(0, len(numbers), at_once):
            some = numbers[start : start + at_once]
            _cluster_batch(X, [requests[i] for i in some], [rows[i] for i in some], k, *how)


def _cluster_batch(
    X: Any,
    requests: list[Request],
    rows: list[Integers],
    n_clusters: int,
    n_init: int,
    max_iter: int,
    seeding: Seeding,
    is_given: bool,
) -> None:
    import torch

    from gmil.engine.torch.clustering import kmeans_jobs
    from gmil.engine.torch.tensors import numpy_dtype, to_device

    models = [request.model for request in requests]
    places = to_device(np.stack(rows), X.device)
    samples = [model.space_.on_device_of(X).apply(X[own]) for model, own in zip(models, places, strict=True)]
    init = None
    if is_given:
        init = [model.space_.apply(np.asarray(model.init, dtype=numpy_dtype(X))) for model in models]
    found = kmeans_jobs(
        torch.stack(samples),
        n_clusters,
        generators=[request.generator for request in requests],
        init=init,
        n_init=n_init,
        max_iter=max_iter,
        seeding=seeding,
    )
    for model, clusters in zip(models, found, strict=True):
        model.cluster_centers_, model.n_iter_ = clusters.centers, clusters.n_iter
