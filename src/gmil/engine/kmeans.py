"""K-means: seeding, restarts and batches around the kernels of a backend."""

from __future__ import annotations

import functools
import math
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from gmil.engine.backends import resolve
from gmil.engine.reference import TIE, Clusters, GramClusters, dense_rows, lloyd, seed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine.arrays import Booleans, Floats, Instances, Integers
    from gmil.engine.backends import Backend

KMeansResult = Clusters
GramResult = GramClusters

SeedingRows: TypeAlias = int | Literal["auto", "all"]
"""From how many rows the starting centres are drawn."""

_ROWS_PER_CENTER = 40
_ROWS_PER_CENTER_OF_LARGE_DATA = 400
_SMALL_DATA = 100  # rows per centre up to which seeding looks at all of them
_MANY_CLUSTERS = 500
_ROWS_PER_CENTER_OF_MANY, _TRIALS_OF_MANY = 10, 5


class Seeding(NamedTuple):
    """How starting centres are drawn: the default is greedy, on some of the rows."""

    rows: SeedingRows = "auto"
    is_greedy: bool = True

    def n_trials(self, n_clusters: int) -> int:
        """Return how many candidates are compared for every centre.

        >>> Seeding().n_trials(10), Seeding().n_trials(1000), SEEDINGS["plain-k-means++"].n_trials(10)
        (4, 5, 1)
        """
        if not self.is_greedy:
            return 1
        return _TRIALS_OF_MANY if n_clusters >= _MANY_CLUSTERS else 2 + int(math.log(n_clusters))


SEEDINGS = {"k-means++": Seeding(), "plain-k-means++": Seeding("all", is_greedy=False)}
"""By name; the plain one is that of Arthur and Vassilvitskii (2007): every row, one draw for every centre."""


def n_seeding_rows(n_instances: int, n_clusters: int, seeding_rows: SeedingRows = "auto") -> int:
    """Return how many rows seeding looks at.

    Seeding on everything is most of the work of k-means. ``"auto"`` is 40 rows per centre, or 400 where that is at
    most a tenth of the data, and everything up to 100 rows per centre. Final inertia then is within 1 % of seeding on
    everything, or 2 to 3 % above it where a few instances lie far from all others: 40 rows may not hold them. That is
    also why small data gives all its rows; half of them were seen to cost up to 14 %. For 500 centres and more, as in
    vocabularies, it is 10 rows per centre, among which `far_and_near` sees to those that lie far from others.

    >>> n_seeding_rows(1000, 10), n_seeding_rows(10_000, 50), n_seeding_rows(1_000_000, 50)
    (1000, 2000, 20000)
    >>> n_seeding_rows(50_000, 1000)
    10000
    """
    if seeding_rows == "auto":
        seeding_rows = _automatic_rows(n_instances, n_clusters)
    if seeding_rows == "all":
        return n_instances
    return min(n_instances, max(seeding_rows, n_clusters))


def _automatic_rows(n_instances: int, n_clusters: int) -> int | Literal["all"]:
    if n_clusters >= _MANY_CLUSTERS:
        return _ROWS_PER_CENTER_OF_MANY * n_clusters
    if n_instances <= _SMALL_DATA * n_clusters:
        return "all"
    if n_instances >= 10 * _ROWS_PER_CENTER_OF_LARGE_DATA * n_clusters:
        return _ROWS_PER_CENTER_OF_LARGE_DATA * n_clusters
    return _ROWS_PER_CENTER * n_clusters


def kmeans(
    X: Instances,
    n_clusters: int,
    *,
    backend: Backend,
    generator: np.random.Generator,
    init: Floats | None = None,
    n_init: int = 1,
    max_iter: int = 300,
    seeding: Seeding = SEEDINGS["k-means++"],
    weights: Floats | None = None,
) -> KMeansResult:
    """Cluster the rows of ``X``: k-means++, then Lloyd; the best of ``n_init`` restarts by inertia.

    Given ``init``, the centres to start from, nothing is drawn and one run is made.

    Parameters
    ----------
    X : (n_instances, n_features)
    n_clusters : int
    backend : Backend
    generator : numpy.random.Generator
        Where the starts are drawn from.
    init : (n_clusters, n_features), optional
    n_init, max_iter : int
    seeding : Seeding
        Greedy or not, and among how many rows (`n_seeding_rows`) starts are chosen. They are drawn without replacement;
        for many clusters those far from the mean have a better chance (`far_and_near`).
    weights : (n_instances,), optional
        Above zero: a row of weight 2 counts as two rows of weight 1. Then only the assignment runs on the backend, and
        seeding looks at all rows, because few of them may carry most of the weight.
    """

    def run(start: Floats) -> KMeansResult:
        if weights is None:
            return backend.lloyd(X, start, max_iter)
        return lloyd(X, start, max_iter, weights, backend.assign)

    if init is not None:
        return run(init.astype(X.dtype))
    seeding = seeding if weights is None else seeding._replace(rows="all")
    draws = [Draws.make(X.shape[0], n_clusters, generator, seeding) for _ in range(n_init)]
    runs = (run(_start(X, n_clusters, draw, backend, weights)) for draw in draws)
    return functools.reduce(lambda best, run: run if is_better(run.inertia, best.inertia, X.dtype) else best, runs)


def kmeans_subsets(
    X: Instances,
    members: Booleans,
    n_clusters: int,
    *,
    backend: Backend,
    generators: Sequence[np.random.Generator],
    n_init: int = 1,
    max_iter: int = 300,
    seeding: Seeding = SEEDINGS["k-means++"],
) -> list[KMeansResult]:
    """Cluster several subsets of the rows, such as the training rows of all folds, side by side.

    The result is that of `kmeans` on ``X[members[job]]`` with ``generators[job]`` for every job; jobs are shared
    between the threads of the backend, one thread each.

    Parameters
    ----------
    X : (n_instances, n_features)
    members : (n_jobs, n_instances)
        Which rows each job clusters.
    n_clusters : int
    backend : Backend
    generators : one numpy.random.Generator for each job
    n_init, max_iter, seeding
        As in `kmeans`.
    """
    one_thread = resolve(backend.name, n_jobs=1)

    cluster = functools.partial(
        kmeans, n_clusters=n_clusters, backend=one_thread, n_init=n_init, max_iter=max_iter, seeding=seeding
    )
    with ThreadPoolExecutor(backend.n_threads) as pool:
        return list(pool.map(lambda rows, generator: cluster(X[rows], generator=generator), members, generators))


def gram_matrix(X: Instances, *, backend: Backend) -> Floats:
    """Return the products of all rows, moved to their mean, in double precision: what `gram_kmeans` needs.

    It takes 8 n_instances ** 2 bytes, and can be shared by every fold, seed and number of clusters.
    """
    return backend.gram_matrix(X)


def gram_kmeans(
    gram: Floats,
    members: Booleans,
    n_clusters: int,
    *,
    backend: Backend,
    generators: Sequence[np.random.Generator],
    n_init: int = 1,
    max_iter: int = 300,
    seeding: Seeding = SEEDINGS["k-means++"],
) -> GramResult:
    """Cluster several subsets of the rows from one Gram matrix: `kmeans` for all folds of a small data set.

    The partition is that of `kmeans` on ``X[members[job]]`` with ``generators[job]`` for every job. Labels and squared
    distances are for all rows, so that the rows of the test fold need no second look at the features.

    Parameters
    ----------
    gram : (n_instances, n_instances)
        From `gram_matrix`.
    members : (n_jobs, n_instances)
        Which rows train each job.
    n_clusters : int
    backend : Backend
    generators : one numpy.random.Generator for each job
    n_init, max_iter, seeding
        As in `kmeans`.

    Returns
    -------
    GramResult
        ``labels (n_jobs, n_instances)`` and ``sq_distances (n_jobs, n_instances, n_clusters)`` of all rows;
        ``inertia (n_jobs,)`` and ``n_iter (n_jobs,)`` of the rows that train.
    """
    sizes = [int(size) for size in members.sum(axis=1)]

    def run() -> GramResult:
        draws = [
            Draws.make(size, n_clusters, generator, seeding) for size, generator in zip(sizes, generators, strict=True)
        ]
        uniforms = np.stack([draw.uniforms for draw in draws])
        starts = backend.gram_seed(gram, _seeding_members(members, draws), uniforms)
        return backend.gram_lloyd(gram, members, starts, max_iter)

    return functools.reduce(_better, (run() for _ in range(n_init)))


class Draws(NamedTuple):
    """Everything random about one start, drawn beforehand so that every backend starts alike."""

    rows: Integers | None  # which rows to seed on, ascending; None is all
    uniforms: Floats  # (n_clusters, n_trials)
    waits: Floats | None = None  # (n_instances,), exponential: which rows to seed on, by `far_and_near`

    @classmethod
    def make(cls, n_instances: int, n_clusters: int, generator: np.random.Generator, seeding: Seeding) -> Draws:
        """Draw what one start needs."""
        size = n_seeding_rows(n_instances, n_clusters, seeding.rows)
        rows = waits = None
        if size < n_instances and n_clusters >= _MANY_CLUSTERS and seeding.rows == "auto":
            waits = generator.standard_exponential(n_instances)
        elif size < n_instances:
            rows = np.sort(generator.choice(n_instances, size, replace=False, shuffle=False))
        return cls(rows, generator.random((n_clusters, seeding.n_trials(n_clusters))), waits)


def far_and_near(sq_distances: Floats, waits: Floats, n_clusters: int) -> Integers:
    """Return rows to seed many clusters on: half of their chance is equal, half in proportion to the squared distance.

    This is the sample of Bachem, Lucic and Krause (2018), "Scalable k-means clustering via lightweight coresets". Of a
    few rows with equal chances those that lie far from all others are missing, and they cost most of the inertia.

    Parameters
    ----------
    sq_distances : (n_instances,)
        Of every row from the mean of all.
    waits : (n_instances,)
        Exponential draws; divided by the chances they are a race, and who comes first is drawn without replacement.
    n_clusters : int
    """
    total = float(sq_distances.sum(dtype=np.float64))
    chances = 1 / len(waits) + sq_distances.astype(np.float64) / (total or 1.0)
    size = n_seeding_rows(len(waits), n_clusters)
    return np.sort(np.argpartition(waits / chances, size)[:size])


def _start(X: Instances, n_clusters: int, draws: Draws, backend: Backend, weights: Floats | None) -> Floats:
    if weights is not None:
        return dense_rows(X, seed(X, n_clusters, draws.uniforms, weights))
    rows = draws.rows
    if draws.waits is not None:
        mean = np.asarray(X.mean(axis=0, dtype=np.float64), dtype=X.dtype).reshape(1, -1)
        rows = far_and_near(backend.sq_distances(X, mean)[:, 0], draws.waits, n_clusters)
    among = X if rows is None else X[rows]
    return dense_rows(among, backend.seed(among, n_clusters, draws.uniforms))


def _seeding_members(members: Booleans, draws: list[Draws]) -> Booleans:
    if all(draw.rows is None for draw in draws):
        return members
    among = members.copy()
    for job, draw in enumerate(draws):
        if draw.rows is not None:
            among[job] = False
            among[job, np.flatnonzero(members[job])[draw.rows]] = True
    return among


def _better(first: GramResult, second: GramResult) -> GramResult:
    wins = np.asarray(is_better(second.inertia, first.inertia, first.inertia.dtype))
    return GramResult(
        labels=np.where(wins[:, None], second.labels, first.labels),
        sq_distances=np.where(wins[:, None, None], second.sq_distances, first.sq_distances),
        inertia=np.where(wins, second.inertia, first.inertia),
        n_iter=np.where(wins, second.n_iter, first.n_iter),
    )


def is_better(inertia: Any, best: Any, dtype: Any) -> Any:
    """Restarts often end in one partition with its clusters renamed: rounding must not choose between those."""
    return inertia < best * (1 - TIE[np.dtype(dtype).name])
