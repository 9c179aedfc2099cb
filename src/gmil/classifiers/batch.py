"""Cross-validation of GMIL as one job.

Folds, repeats and settings share what they can: settings that differ only behind the clusters share clusters, and
where scaling does not depend on the fold all folds share one Gram matrix. The results are those of fold by fold.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from gmil import codebook, voting
from gmil.classifiers.gmil import GMIL
from gmil.classifiers.settings import make_generator
from gmil.engine import closeness, distances, gram_kmeans, gram_matrix, resolve, sq_differences
from gmil.scaling import apply_scaling, fit_scaling

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers

_BEHIND_THE_CLUSTERS = (
    "n_positive",
    "n_negative",
    "epsilon",
    "threshold",
    "counting",
    "weighting",
    "overlap",
    "negative_rank",
    "distance",
    "rule",
    "pos_label",
)
_MOST_INSTANCES_OF_A_GRAM_MATRIX = 3000
_MOST_DISTANCES_AT_ONCE = 1 << 23
_INSTANCES_AT_ONCE = 1 << 16


class Job(NamedTuple):
    """One fold of one repeat."""

    training: Booleans  # (n_bags,)
    seed: int


class FoldClusters(NamedTuple):
    """Clusterings of several jobs, as seen from the bags; training bags and test bags alike."""

    histograms: Integers  # (n_jobs, n_bags, n_clusters)
    sq_minima: Floats  # (n_jobs, n_bags, n_clusters): squared distance of the nearest instance
    spreads: Floats  # (n_jobs, n_clusters): squared distances of training instances to their centre, summed

    def of_jobs(self, places: list[int]) -> FoldClusters:
        """Return the clusterings of some of the jobs."""
        return FoldClusters(self.histograms[places], self.sq_minima[places], self.spreads[places])


def can_batch(estimator: Any, settings: Sequence[Mapping[str, Any]], y: NDArray[Any], folds: Integers) -> bool:
    """Tell whether the folds of this estimator can be worked on together.

    That is so for GMIL itself (a subclass may do anything) where a bag is judged by its nearest instances, and
    every training fold has every class.
    """
    if type(estimator) is not GMIL:
        return False
    for setting in settings:
        parameters = {**estimator.get_params(), **setting}
        if parameters["distance"] not in ("min", "center-mean") or parameters["rule"] != "nearest":
            return False
    by_class = [folds[:, y == label] for label in np.unique(y)]
    return all((row != row[0]).any() for rows in by_class for row in rows)


def batch_decisions(
    estimator: GMIL,
    settings: Sequence[Mapping[str, Any]],
    bags: Bags,
    y: NDArray[Any],
    jobs: Sequence[Job],
    n_jobs: int | None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[list[GMIL], Floats]:
    """Return a model per setting (that knows its classes, and is not fitted) and decisions about all bags.

    The decisions have the shape (n_settings, n_jobs, n_problems, n_bags).
    """
    models = [_prepared(estimator, setting, y) for setting in settings]
    batch = _Batch(bags, y, jobs, models, n_jobs)
    groups = batch.groups()
    for done, group in enumerate(groups, start=1):
        batch.work_on(group)
        if progress is not None:
            progress(done * batch.decisions.shape[0] * len(jobs) // len(groups), len(settings) * len(jobs))
    return models, batch.decisions


def _prepared(estimator: GMIL, setting: Mapping[str, Any], y: NDArray[Any]) -> GMIL:
    model: GMIL = clone(estimator).set_params(**setting)
    model._validate_params()
    model.classes_ = np.unique(y)
    return model


class _Group(NamedTuple):
    """Jobs that are clustered in the same way, and the settings that use their clusters."""

    n_clusters: int
    jobs: list[int]
    settings: list[int]


class _Batch:
    """All jobs and settings of one cross-validation, and what they share."""

    def __init__(
        self, bags: Bags, y: NDArray[Any], jobs: Sequence[Job], models: list[GMIL], n_jobs: int | None
    ) -> None:
        self.bags, self.jobs, self.models = bags, jobs, models
        encoded = np.searchsorted(models[0].classes_, y)
        self.labels = encoded
        self.positive = [model._positive_bags(encoded) for model in models]
        self.training = np.array([job.training for job in jobs])  # (n_jobs, n_bags)
        self.members = np.repeat(self.training, bags.sizes, axis=1)  # (n_jobs, n_instances)
        self.n_jobs = n_jobs
        self.decisions = np.empty((len(models), len(jobs), self.positive[0].shape[1], len(bags)))
        self._grams: dict[str | None, tuple[Instances, Floats]] = {}

    def groups(self) -> list[_Group]:
        """Put together jobs and settings that share clusters, in pieces of bounded memory."""
        by_key: dict[Any, list[int]] = defaultdict(list)
        for i, model in enumerate(self.models):
            by_key[_clustering_key(model)].append(i)
        groups = []
        for settings in by_key.values():
            by_size: dict[int, list[int]] = defaultdict(list)
            for job in range(len(self.jobs)):
                by_size[self._size(settings[0], job).n_clusters].append(job)
            for n_clusters, jobs in by_size.items():
                at_once = max(1, _MOST_DISTANCES_AT_ONCE // (self.bags.n_instances * n_clusters))
                pieces = [jobs[i : i + at_once] for i in range(0, len(jobs), at_once)]
                groups += [_Group(n_clusters, piece, settings) for piece in pieces]
        return groups

    def _size(self, setting: int, job: int) -> Any:
        training = self.training[job]
        n_instances = int(self.bags.sizes @ training)
        return self.models[setting]._codebook_size(n_instances, self.bags.n_features, self.positive[setting][training])

    def work_on(self, group: _Group) -> None:
        """Cluster the jobs of a group once, then decide under every setting."""
        clusters = self._cluster(group)
        for setting in group.settings:
            # Sizes that are "auto" may differ between folds, which differ a little in their bags.
            by_size: dict[Any, list[int]] = defaultdict(list)
            for i, job in enumerate(group.jobs):
                by_size[self._size(setting, job)].append(i)
            for size, places in by_size.items():
                jobs = [group.jobs[i] for i in places]
                some = clusters if len(places) == len(group.jobs) else clusters.of_jobs(places)
                self.decisions[setting, jobs] = _decide(
                    self.models[setting], some, self.positive[setting], self.training[jobs], size
                )

    # ---------------------------------------------------------------- clusters

    def _cluster(self, group: _Group) -> FoldClusters:
        model = self.models[group.settings[0]]
        if self._uses_gram(model):
            return self._cluster_from_gram(model, group)
        one_thread = resolve(model.backend, 1)
        with ThreadPoolExecutor(resolve("auto", self._threads(model)).n_threads) as pool:
            found = list(pool.map(lambda job: self._cluster_one(model, job, one_thread), group.jobs))
        return FoldClusters(*(np.stack(part) for part in zip(*found, strict=True)))

    def _threads(self, model: GMIL) -> int | None:
        return self.n_jobs if self.n_jobs is not None else model.n_jobs

    def _uses_gram(self, model: GMIL) -> bool:
        n_instances = self.bags.n_instances
        return (
            model.scale in (None, "l2")
            and model.n_components is None
            and model.centers == "mean"
            and isinstance(model.init, str)
            and (model.sample_size is None or model.sample_size >= n_instances)
            and n_instances <= _MOST_INSTANCES_OF_A_GRAM_MATRIX
            and not sp.issparse(self.bags.instances)
        )

    def _gram(self, scale: str | None, backend: Backend) -> tuple[Instances, Floats]:
        if scale not in self._grams:
            instances = apply_scaling(self.bags.instances, fit_scaling(self.bags.instances, scale))
            self._grams[scale] = instances, gram_matrix(instances, backend=backend)
        return self._grams[scale]

    def _cluster_from_gram(self, model: GMIL, group: _Group) -> FoldClusters:
        backend = resolve(model.backend, self._threads(model))
        instances, gram = self._gram(model.scale, backend)
        members = self.members[group.jobs]
        found = gram_kmeans(
            gram,
            members,
            group.n_clusters,
            backend=backend,
            generators=[make_generator(self.jobs[job].seed) for job in group.jobs],
            n_init=model.n_init,
            max_iter=model.max_iter,
        )
        histograms, minima = self._reduce(found.labels, found.sq_distances, backend)
        self._measure_close_bags_again(minima, found.labels, members, instances, float(gram.diagonal().max()))
        nearest = np.take_along_axis(found.sq_distances, found.labels[..., None], axis=-1)[..., 0]
        return FoldClusters(histograms, minima, _spreads(found.labels, nearest, members, group.n_clusters))

    def _reduce(self, labels: Integers, squares: Floats, backend: Backend) -> tuple[Integers, Floats]:
        """Take labels and distances of instances to bags, all jobs in one call."""
        n_jobs, n_instances, n_clusters = squares.shape
        starts = self.bags.offsets[:-1] + n_instances * np.arange(n_jobs)[:, None]
        offsets = np.append(starts.ravel(), n_jobs * n_instances)
        histograms = backend.bag_histograms(labels.ravel(), offsets, n_clusters)
        minima = backend.bag_min(squares.reshape(-1, n_clusters), offsets)
        shape = (n_jobs, len(self.bags), n_clusters)
        return histograms.reshape(shape), minima.reshape(shape)

    def _measure_close_bags_again(
        self, minima: Floats, labels: Integers, members: Booleans, instances: Instances, largest: float
    ) -> None:
        """Replace rounding by the truth where an instance lies on a centre, as `gmil.engine.distances` does."""
        jobs, bags, clusters = np.nonzero(minima <= closeness(np.float64) * largest)
        centers: dict[tuple[int, int], Floats] = {}
        for place in zip(jobs.tolist(), bags.tolist(), clusters.tolist(), strict=True):
            job, bag, cluster = place
            if (job, cluster) not in centers:
                rows = np.flatnonzero(members[job] & (labels[job] == cluster))
                if len(rows) == 0:  # an empty cluster keeps its start, which the Gram matrix alone knows
                    continue
                centers[job, cluster] = instances[rows].mean(axis=0, dtype=np.float64)
            inside = instances[self.bags.offsets[bag] : self.bags.offsets[bag + 1]]
            minima[place] = sq_differences(inside, centers[job, cluster]).min()

    def _cluster_one(self, model: GMIL, job: int, backend: Backend) -> tuple[Integers, Floats, Floats]:
        """Cluster one job directly on features; return what `FoldClusters` holds of it."""
        generator = make_generator(self.jobs[job].seed)
        training = self.training[job]
        fold = clone(model)
        bags = self.bags[training]
        instances = fold._fit_space(bags.instances, generator)
        size = fold._codebook_size(bags.n_instances, bags.n_features, self.positive[0][training])
        fold._fit_centers(instances, bags, self.labels[training], size, backend, generator)
        histograms = np.empty((len(self.bags), size.n_clusters), dtype=np.int64)
        minima = np.empty((len(self.bags), size.n_clusters))
        spread = np.zeros(size.n_clusters)
        for block in _blocks_of_bags(self.bags):
            some = self.bags[block]
            to_centers = distances(fold._space().apply(some.instances), fold.cluster_centers_, backend)
            nearest = to_centers.argmin(axis=1).astype(np.int32)
            histograms[block] = backend.bag_histograms(nearest, some.offsets, size.n_clusters)
            minima[block] = np.square(backend.bag_min(to_centers, some.offsets), dtype=np.float64)
            inside = np.repeat(training[block], some.sizes)
            squares = np.square(to_centers[np.arange(len(nearest)), nearest][inside], dtype=np.float64)
            spread += np.bincount(nearest[inside], weights=squares, minlength=size.n_clusters)
        return histograms, minima, spread


def _clustering_key(model: GMIL) -> str:
    """Return what tells two clusterings apart."""
    parameters = model.get_params()
    return repr([(name, parameters[name]) for name in sorted(parameters) if name not in _BEHIND_THE_CLUSTERS])


def _blocks_of_bags(bags: Bags) -> list[slice]:
    """Cut all bags into runs of about as many instances as fit well into memory at once."""
    cuts = np.searchsorted(bags.offsets, np.arange(_INSTANCES_AT_ONCE, bags.n_instances, _INSTANCES_AT_ONCE))
    edges = np.unique(np.concatenate([[0], cuts, [len(bags)]]))
    return [slice(start, stop) for start, stop in itertools.pairwise(edges.tolist())]


def _spreads(labels: Integers, nearest: Floats, members: Booleans, n_clusters: int) -> Floats:
    """Return the squared distances of training instances to their centre, summed over clusters."""
    rows = labels + n_clusters * np.arange(len(labels))[:, None]
    sums: Any = np.bincount(rows[members], weights=nearest[members], minlength=len(labels) * n_clusters)
    return sums.reshape(len(labels), n_clusters)


# -------------------------------------------------------------------------------- decisions


def _decide(model: GMIL, clusters: FoldClusters, positive: Booleans, training: Booleans, size: Any) -> Floats:
    """Return decisions about all bags, (n_jobs, n_problems, n_bags)."""
    book = codebook.build_codebook(
        clusters.histograms,
        positive,
        n_positive=size.n_positive,
        n_negative=size.n_negative,
        epsilon=model.epsilon,
        counting=model.counting,
        weighting=model.weighting,
        overlap=model.overlap,
        negative_rank=model.negative_rank,
        training=training,
    )
    to_positive = _to_codebook(clusters.sq_minima, book.positive_bins, model.distance)
    if size.n_negative:
        return voting.decide(to_positive, _to_codebook(clusters.sq_minima, book.negative_bins, model.distance))
    thresholds = np.empty(to_positive.shape[:2])
    counts = np.einsum("jb,jbk->jk", training, clusters.histograms)
    for job, problem in np.ndindex(*thresholds.shape):
        inside, bins = training[job], book.positive_bins[job, problem]
        n_members = counts[job, bins].sum()
        spread = np.sqrt(clusters.spreads[job, bins].sum() / n_members) if n_members else 0.0
        thresholds[job, problem] = voting.choose_threshold(
            model.threshold, to_positive[job, problem, inside], positive[inside, problem], float(spread)
        )
    return voting.decide(to_positive, thresholds[..., None])


def _to_codebook(sq_minima: Floats, bins: Integers, how: str) -> Floats:
    """Return the distance between every bag and a codebook, (n_jobs, n_problems, n_bags)."""
    picked = np.take_along_axis(sq_minima[:, None], bins[:, :, None, :], axis=-1)
    if how == "min":
        return np.sqrt(picked.min(axis=-1))
    return np.sqrt(picked).mean(axis=-1)
