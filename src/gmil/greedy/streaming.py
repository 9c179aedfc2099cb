"""GMIL on bags that are read in blocks: for every fit, whatever their number, one sample and one pass."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.bags.parts import moved_rows, rows_of_bags
from gmil.engine import resolve
from gmil.errors import BagValidationError
from gmil.greedy.bag_tables import BagTables, Clustering, measure_bags
from gmil.greedy.clustering import rows_to_cluster, weights_in_clusters
from gmil.greedy.device import can_cluster_on_device, cluster_on_device
from gmil.transform.scaling import is_fitted_on_columns, summarize_columns
from gmil.transform.space import fit_scaling, resident_tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.greedy.gmil import GMIL
    from gmil.scale import LazyBags


class Request(NamedTuple):
    """One fit: a model that gets its space and centres, and the bags that it learns from."""

    model: GMIL
    training: Booleans  # (n_bags,)
    generator: np.random.Generator


def cluster_lazily(
    requests: Sequence[Request],
    bags: LazyBags,
    labels: Integers,
    positive: Sequence[Booleans],
    *,
    n_jobs: int | None = None,
) -> list[BagTables]:
    """Fit the space and the centres of every model, and measure all bags against them.

    Bags are read twice, or three times where a scaling has to be fitted, however many models there are. Every model
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
        _refuse_what_needs_memory(request.model)
    backend = resolve(requests[0].model.backend, n_jobs)
    _fit_spaces(requests, bags, backend)
    rows = [rows_to_cluster(bags[r.training], labels[r.training], r.model, r.generator) for r in requests]
    _fit_centers(requests, bags, positive, rows, backend)
    clusterings = [Clustering(r.model.space_, r.model.cluster_centers_) for r in requests]
    return measure_bags(bags, clusterings, backend)


def _refuse_what_needs_memory(model: GMIL) -> None:
    name = what_needs_memory(model)
    if name is not None:
        msg = (
            f"{name}={getattr(model, name)!r} needs all instances in memory, but X is read in blocks. "
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


def _fit_spaces(requests: Sequence[Request], bags: LazyBags, backend: Backend) -> None:
    looking = [request for request in requests if is_fitted_on_columns(request.model.scale)]
    sets = {request.training.tobytes(): request.training for request in looking}
    summaries: dict[bytes, Any] = {}
    if sets:
        summaries = dict(zip(sets, summarize_columns(bags, list(sets.values()), backend), strict=True))
    for request in requests:
        summary = summaries.get(request.training.tobytes())
        request.model.space_ = fit_scaling(summary, request.model.scale)


def _fit_centers(
    requests: Sequence[Request],
    bags: LazyBags,
    positive: Sequence[Booleans],
    rows: Sequence[Integers | None],
    backend: Backend,
) -> None:
    """Read the instances that any model clusters, in one go, and cluster them, one model a thread."""
    places = [_among_all(bags, request.training, chosen) for request, chosen in zip(requests, rows, strict=True)]
    X = resident_tensor(bags, backend, [request.model.space_ for request in requests])
    if X is not None and all(can_cluster_on_device(request.model) for request in requests):
        sizes = [_n_clusters(request, bags, own) for request, own in zip(requests, positive, strict=True)]
        cluster_on_device(X, requests, [bags.rows_of_source(own) for own in places], sizes)
        return
    wanted = np.unique(np.concatenate(places))
    instances = bags.take(wanted)
    one_thread = resolve(backend.name, 1)

    def fit(number: int) -> None:
        model, training, generator = requests[number]
        n_clusters = _n_clusters(requests[number], bags, positive[number])
        sample: Floats = model.space_.apply(instances[np.searchsorted(wanted, places[number])])
        weights = weights_in_clusters(bags[training], rows[number], model)
        model._find_centers(sample, weights, n_clusters, one_thread, generator)

    with ThreadPoolExecutor(backend.n_threads) as pool:
        list(pool.map(fit, range(len(requests))))


def _n_clusters(request: Request, bags: LazyBags, positive: Booleans) -> int:
    own = bags[request.training]
    return request.model._codebook_size(own.n_instances, own.n_features, positive[request.training]).n_clusters


def _among_all(bags: LazyBags, training: Booleans, rows: Integers | None) -> Integers:
    """Return rows of training bags as rows of all bags."""
    chosen = np.flatnonzero(training)
    if rows is None:
        return rows_of_bags(bags.offsets, chosen)[0]
    return moved_rows(rows, bags[training].offsets, bags.offsets[chosen])
