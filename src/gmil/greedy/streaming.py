"""GMIL on bags that are read in blocks: for every fit, whatever their number, one sample and one pass."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.bags.parts import moved_rows, rows_of_bags
from gmil.engine import resolve
from gmil.errors import BagValidationError
from gmil.greedy.bag_tables import BagTables, measure_bags
from gmil.greedy.clustering import Clustering, cluster_sample, rows_to_cluster, weights_in_clusters
from gmil.greedy.device import can_cluster_on_device, cluster_on_device
from gmil.greedy.settings import codebook_size
from gmil.transform.scaling import is_fitted_on_columns, summarize_columns
from gmil.transform.space import fit_scaling, resident_tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.scale import LazyBags
    from gmil.transform.space import Space


class Request(NamedTuple):
    """One fit: the parameters of `gmil.GMIL`, and the bags that it learns from."""

    parameters: Any
    training: Booleans  # (n_bags,)
    generator: np.random.Generator


def cluster_lazily(
    requests: Sequence[Request],
    bags: LazyBags,
    labels: Integers,
    positive: Sequence[Booleans],
    *,
    n_jobs: int | None = None,
) -> list[tuple[Clustering, BagTables]]:
    """Fit the space and the centres of every request, and measure all bags against them.

    Bags are read twice, or three times where a scaling has to be fitted, however many requests there are. Every one
    draws the instances that it would draw in memory.

    Parameters
    ----------
    requests : sequence of Request
    bags : LazyBags
    labels : (n_bags,)
    positive : one array of shape (n_bags, n_problems) for every request
    n_jobs : int, optional
    """
    for request in requests:
        _refuse_what_needs_memory(request.parameters)
    backend = resolve(requests[0].parameters.backend, n_jobs)
    spaces = _fit_spaces(requests, bags, backend)
    rows = [rows_to_cluster(bags[r.training], labels[r.training], r.parameters, r.generator) for r in requests]
    clusterings = _fit_centers(requests, spaces, bags, positive, rows, backend)
    return list(zip(clusterings, measure_bags(bags, clusterings, backend), strict=True))


def _refuse_what_needs_memory(parameters: Any) -> None:
    name = what_needs_memory(parameters)
    if name is not None:
        msg = (
            f"{name}={getattr(parameters, name)!r} needs all instances in memory, but X is read in blocks. "
            "Pass X.load(), or leave the parameter as it is by default."
        )
        raise BagValidationError(msg)


def what_needs_memory(parameters: Any) -> str | None:
    """Return the parameter for which all instances have to be in memory, if there is one."""
    wrong = {
        "n_components": parameters.n_components is not None,
        "metric": parameters.metric != "euclidean",
        "density": parameters.density != "histogram",
        "sample_size": parameters.sample_size is None,
    }
    return next((name for name, is_wrong in wrong.items() if is_wrong), None)


def _fit_spaces(requests: Sequence[Request], bags: LazyBags, backend: Backend) -> list[Space]:
    on_columns = [request for request in requests if is_fitted_on_columns(request.parameters.scale)]
    sets = {request.training.tobytes(): request.training for request in on_columns}
    summaries: dict[bytes, Any] = {}
    if sets:
        summaries = dict(zip(sets, summarize_columns(bags, list(sets.values()), backend), strict=True))
    return [fit_scaling(summaries.get(r.training.tobytes()), r.parameters.scale) for r in requests]


def _fit_centers(
    requests: Sequence[Request],
    spaces: Sequence[Space],
    bags: LazyBags,
    positive: Sequence[Booleans],
    rows: Sequence[Integers | None],
    backend: Backend,
) -> list[Clustering]:
    """Read the instances that any request clusters, in one go, and cluster them, one request a thread."""
    places = [_among_all(bags, request.training, chosen) for request, chosen in zip(requests, rows, strict=True)]
    sizes = [_n_clusters(request, bags, own) for request, own in zip(requests, positive, strict=True)]
    X = resident_tensor(bags, backend, spaces)
    if X is not None and all(can_cluster_on_device(request.parameters) for request in requests):
        return cluster_on_device(X, requests, spaces, [bags.rows_of_source(own) for own in places], sizes)
    wanted = np.unique(np.concatenate(places))
    instances = bags.take(wanted)
    one_thread = resolve(backend.name, 1)

    def fit(number: int) -> Clustering:
        parameters, training, generator = requests[number]
        sample: Floats = spaces[number].apply(instances[np.searchsorted(wanted, places[number])])
        weights = weights_in_clusters(bags[training], rows[number], parameters)
        space, n_clusters = spaces[number], sizes[number]
        return cluster_sample(
            sample, space, n_clusters, parameters, weights=weights, backend=one_thread, generator=generator
        )

    with ThreadPoolExecutor(backend.n_threads) as pool:
        return list(pool.map(fit, range(len(requests))))


def _n_clusters(request: Request, bags: LazyBags, positive: Booleans) -> int:
    own = bags[request.training]
    return codebook_size(request.parameters, own.n_instances, own.n_features, positive[request.training]).n_clusters


def _among_all(bags: LazyBags, training: Booleans, rows: Integers | None) -> Integers:
    """Return rows of training bags as rows of all bags."""
    chosen = np.flatnonzero(training)
    if rows is None:
        return rows_of_bags(bags.offsets, chosen)[0]
    return moved_rows(rows, bags[training].offsets, bags.offsets[chosen])
