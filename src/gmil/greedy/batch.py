"""Cross-validation of GMIL as one job.

Folds, repeats and settings share what they can: settings that differ only behind the clusters share clusters, and
where scaling does not depend on the fold all folds share one Gram matrix. The results are those of fold by fold.
"""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gmil.bags import Bags
from gmil.bags.parts import blocks_of_bags
from gmil.compat import validate_parameter_constraints
from gmil.engine import closeness, column_sizes, distances, gram_kmeans, gram_matrix, is_torch, resolve, sq_differences
from gmil.engine.sparse_rows import filled_columns
from gmil.greedy.clustering import cluster_instances, seeding_of, space_of
from gmil.greedy.device import can_cluster_on_device, resident_bags
from gmil.greedy.settings import CodebookSize, codebook_size
from gmil.greedy.soft_counts import bag_votes, choose_bandwidth
from gmil.greedy.streaming import Request, cluster_lazily, what_needs_memory
from gmil.greedy.sweep import FoldClusters, Sweep, sum_spreads, sweep_decisions
from gmil.greedy.voting import FROM_NEAREST
from gmil.model_selection.folds import is_indicator, strata
from gmil.sampling import make_generator
from gmil.scale import LazyBags
from gmil.transform.space import fit_scaling

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers
    from gmil.fold_work import FoldWork, Receiver
    from gmil.greedy.gmil import GMIL

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


def why_not_batched(estimator: GMIL, setting: Mapping[str, Any]) -> str | None:
    """Return what about a setting needs more than the nearest instances of a bag, or None."""
    distance, rule = setting.get("distance", estimator.distance), setting.get("rule", estimator.rule)
    if rule != "nearest":
        return f"rule={rule!r}"
    return None if distance in FROM_NEAREST else f"distance={distance!r}"


def decide_folds(estimator: GMIL, work: FoldWork, receive: Receiver) -> None:
    """Work on all folds and settings, and hand over decisions as they come."""
    batch = _Batch(estimator, work)
    batch.move_to_device()
    batch.drop_empty_columns()
    groups = batch.groups()
    streamed = batch.cluster_lazily(groups) if isinstance(batch.bags, LazyBags) else None
    for done, group in enumerate(groups, start=1):
        batch.decide(group, batch.cluster(group) if streamed is None else streamed[done - 1], receive)
        work.report(done * work.n_fits // len(groups))


class _Group(NamedTuple):
    """Jobs that are clustered in the same way, and the settings that use their clusters."""

    n_clusters: int
    jobs: list[int]
    settings: list[int]


class _Batch:
    """All jobs and settings of one cross-validation, and what they share."""

    def __init__(self, estimator: GMIL, work: FoldWork) -> None:
        self.new = type(estimator)
        self.bags: Any = work.bags
        self.jobs, self.n_jobs = work.folds, work.n_jobs
        self.parameters = checked_parameters(estimator, work.settings)
        self.n_features = work.bags.n_features
        self.varied = {name for setting in work.settings for name in setting}
        self.classes, self.labels = np.unique(strata(work.y), return_inverse=True)
        self.indicator = work.y > 0 if is_indicator(work.y) else None
        self.training = np.array([fold.training for fold in work.folds])  # (n_jobs, n_bags)
        self._positive: dict[Any, Booleans] = {}
        self._sizes: dict[Any, list[CodebookSize]] = {}
        self._grams: dict[str | None, tuple[Instances, Floats]] = {}

    @cached_property
    def members(self) -> Booleans:
        """Which instances train which job, (n_jobs, n_instances)."""
        return np.repeat(self.training, self.bags.sizes, axis=1)

    def positive(self, parameters: Any) -> Booleans:
        """Return which bags are positive under a setting, (n_bags, n_problems)."""
        if self.indicator is not None:
            return self.indicator
        if parameters.pos_label not in self._positive:
            model = self.new(pos_label=parameters.pos_label)
            model._set_classes(self.classes)
            self._positive[parameters.pos_label] = model._positive_bags(self.labels)
        return self._positive[parameters.pos_label]

    def sizes(self, parameters: Any) -> list[CodebookSize]:
        """Return K, p and q in every job; sizes that are "auto" may differ between folds."""
        init = None if isinstance(parameters.init, str) else id(parameters.init)
        asked = parameters.n_clusters, parameters.n_positive, parameters.n_negative
        key = (*asked, parameters.sample_size, parameters.clustering, parameters.pos_label, init)
        if key not in self._sizes:
            self._sizes[key] = self._sizes_under(parameters, self.positive(parameters))
        return self._sizes[key]

    @cached_property
    def _training_sizes(self) -> list[int]:
        """How many instances train every job."""
        n_instances: list[int] = (self.training @ self.bags.sizes).tolist()
        return n_instances

    def _sizes_under(self, parameters: Any, positive: Booleans) -> list[CodebookSize]:
        n_features = self.n_features
        if "auto" not in {parameters.n_clusters, parameters.n_positive, parameters.n_negative}:
            # The smallest fold must have room.
            return [codebook_size(parameters, min(self._training_sizes), n_features, positive)] * len(self.jobs)
        return [
            codebook_size(parameters, n, n_features, positive[inside])
            for n, inside in zip(self._training_sizes, self.training, strict=True)
        ]

    def groups(self) -> list[_Group]:
        """Put together jobs and settings that share clusters, in pieces of bounded memory."""
        by_key: dict[Any, list[int]] = defaultdict(list)
        for i, parameters in enumerate(self.parameters):
            by_key[_clustering_key(parameters, self.varied)].append(i)
        groups = []
        for settings in by_key.values():
            by_size: dict[int, list[int]] = defaultdict(list)
            for job, size in enumerate(self.sizes(self.parameters[settings[0]])):
                by_size[size.n_clusters].append(job)
            for n_clusters, jobs in by_size.items():
                at_once = max(1, _MOST_DISTANCES_AT_ONCE // (self.bags.n_instances * n_clusters))
                pieces = [jobs[i : i + at_once] for i in range(0, len(jobs), at_once)]
                groups += [_Group(n_clusters, piece, settings) for piece in pieces]
        return groups

    def decide(self, group: _Group, clusters: FoldClusters, receive: Receiver) -> None:
        """Decide under every setting of a group about the bags as its clusters see them."""
        by_jobs: dict[Any, list[Sweep]] = defaultdict(list)
        for setting in group.settings:
            parameters = self.parameters[setting]
            of_jobs = self.sizes(parameters)
            for size, alike in _places([of_jobs[job] for job in group.jobs]).items():
                by_jobs[parameters.pos_label, alike].append(Sweep(setting, parameters, size))
        for (_, alike), settings in by_jobs.items():
            jobs = [group.jobs[i] for i in alike]
            some = clusters if len(jobs) == len(group.jobs) else clusters.of_jobs(list(alike))
            positive = self.positive(settings[0].parameters)
            for setting, decisions in sweep_decisions(some, positive, self.training[jobs], settings):
                receive(setting, jobs, decisions)

    # ---------------------------------------------------------------- clusters

    def move_to_device(self) -> None:
        """Take all instances to the device of PyTorch, once, where every setting asks for it and can be met there."""
        if isinstance(self.bags, LazyBags) or sp.issparse(self.bags.instances):
            return
        backends = {own.backend for own in self.parameters}
        if len(backends) == 1 and is_torch(min(backends)) and all(map(self._can_be_on_device, self.parameters)):
            self.bags = resident_bags(self.bags, resolve(min(backends)))

    def _can_be_on_device(self, model: Any) -> bool:
        return what_needs_memory(model) is None and can_cluster_on_device(model) and not self._uses_gram(model)

    def drop_empty_columns(self) -> None:
        """Leave out columns that are zero in all bags, where decisions do not depend on how many there are.

        For one setting that saves little, and ties between centres fall as they do in `fit`, which has all columns.
        """
        if isinstance(self.bags, LazyBags) or len(self.parameters) == 1:
            return
        filled = filled_columns(self.bags.instances)
        if filled is not None and all(map(_is_blind_to_zeros, self.parameters)):
            self.bags = Bags(self.bags.instances[:, filled], self.bags.offsets)

    def cluster_lazily(self, groups: list[_Group]) -> list[FoldClusters]:
        """Cluster the jobs of all groups at once, for bags that are read in blocks."""
        places = [(group, job) for group in groups for job in group.jobs]
        parameters = [self.parameters[group.settings[0]] for group, _ in places]
        requests = [
            Request(own, self.training[job], make_generator(self.jobs[job].seed))
            for own, (_, job) in zip(parameters, places, strict=True)
        ]
        positive = [self.positive(own) for own in parameters]
        found = cluster_lazily(requests, self.bags, self.labels, positive, n_jobs=self._threads(parameters[0]))
        tables = iter([table for _, table in found])
        return [
            FoldClusters.of_tables([next(tables) for _ in group.jobs], self.training[group.jobs]) for group in groups
        ]

    def cluster(self, group: _Group) -> FoldClusters:
        """Cluster the jobs of a group."""
        parameters = self.parameters[group.settings[0]]
        if self._uses_gram(parameters):
            return self._cluster_from_gram(parameters, group)
        one_thread = resolve(parameters.backend, 1)
        with ThreadPoolExecutor(resolve("auto", self._threads(parameters)).n_threads) as pool:
            found = list(pool.map(lambda job: self._cluster_one(parameters, job, one_thread), group.jobs))
        return FoldClusters.stacked(found)

    def _threads(self, model: Any) -> int | None:
        return self.n_jobs if self.n_jobs is not None else model.n_jobs

    def _uses_gram(self, model: Any) -> bool:
        n_instances = self.bags.n_instances
        return (
            model.scale in (None, "l2", "global")
            and model.n_components is None
            and model.metric == "euclidean"
            and model.clustering == "k-means"
            and model.instance_weight == "instances"
            and model.density == "histogram"
            and model.centers == "mean"
            and isinstance(model.init, str)
            and (model.sample_size is None or model.sample_size >= n_instances)
            and n_instances <= _MOST_INSTANCES_OF_A_GRAM_MATRIX
            and not sp.issparse(self.bags.instances)
        )

    def _gram(self, scale: str | None, backend: Backend) -> tuple[Instances, Floats]:
        scale = None if scale == "global" else scale  # it divides everything by one number, and clusters stay
        if scale not in self._grams:
            instances = fit_scaling(self.bags.instances, scale).apply(self.bags.instances)
            self._grams[scale] = instances, gram_matrix(instances, backend=backend)
        return self._grams[scale]

    def _global_units(self, jobs: list[int]) -> Floats:
        """Return the squared number by which "global" divides every feature in these jobs, (n_jobs, 1, 1)."""
        training, (low, high) = self.training[jobs], self._ranges
        widths = np.where(training, high, -np.inf).max(axis=1) - np.where(training, low, np.inf).min(axis=1)
        return np.where(widths > 0, widths**2 * self.bags.n_features, 1.0)[:, None, None]

    @cached_property
    def _ranges(self) -> tuple[Floats, Floats]:
        """The least and the largest number of every bag, (n_bags,)."""
        X, starts = self.bags.instances, self.bags.offsets[:-1]
        return np.minimum.reduceat(X.min(axis=1), starts), np.maximum.reduceat(X.max(axis=1), starts)

    def _cluster_from_gram(self, model: Any, group: _Group) -> FoldClusters:
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
            seeding=seeding_of(model),
        )
        histograms, minima = self._reduce(found.labels, found.sq_distances, backend)
        self._measure_close_bags_again(minima, found.labels, members, instances, float(gram.diagonal().max()))
        spreads = sum_spreads(found.labels, found.sq_distances, members) if self._needs_spreads(group) else None
        if model.scale == "global":
            units = self._global_units(group.jobs)
            minima, spreads = minima / units, None if spreads is None else spreads / units[..., 0]
        return FoldClusters(histograms, minima, spreads)

    def _needs_spreads(self, group: _Group) -> bool:
        return any(self.parameters[setting].threshold == "variance" for setting in group.settings)

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
        sizes = column_sizes(instances) if len(jobs) else np.empty(0)
        for place in zip(jobs.tolist(), bags.tolist(), clusters.tolist(), strict=True):
            job, bag, cluster = place
            if (job, cluster) not in centers:
                rows = np.flatnonzero(members[job] & (labels[job] == cluster))
                if len(rows) == 0:  # an empty cluster keeps its start, which the Gram matrix alone knows
                    continue
                centers[job, cluster] = instances[rows].mean(axis=0, dtype=np.float64)
            inside = instances[self.bags.offsets[bag] : self.bags.offsets[bag + 1]]
            minima[place] = sq_differences(inside, centers[job, cluster], sizes).min()

    def _cluster_one(self, parameters: Any, job: int, backend: Backend) -> FoldClusters:
        """Cluster one job directly on features; return what `FoldClusters` holds of it."""
        generator, training = make_generator(self.jobs[job].seed), self.training[job]
        bags, labels = self.bags[training], self.labels[training]
        space, instances = space_of(bags.instances, parameters, generator)
        n_clusters = self.sizes(parameters)[job].n_clusters
        found, instances = cluster_instances(instances, space, bags, labels, n_clusters, parameters, backend, generator)
        histograms = np.empty((len(self.bags), n_clusters), dtype=np.int64)
        minima = np.empty((len(self.bags), n_clusters))
        spread = np.zeros(n_clusters)
        votes, bandwidth = None, 0.0
        if parameters.density == "gaussian":
            votes = np.empty_like(minima)
            bandwidth = choose_bandwidth(np.sqrt(backend.assign(instances, found.centers)[1]))
        for block in blocks_of_bags(self.bags.offsets):
            some = self.bags[block]
            to_centers = distances(found.space.apply(some.instances), found.centers, backend)
            nearest = to_centers.argmin(axis=1).astype(np.int32)
            histograms[block] = backend.bag_histograms(nearest, some.offsets, n_clusters)
            minima[block] = np.square(backend.bag_min(to_centers, some.offsets), dtype=np.float64)
            if votes is not None:
                votes[block] = bag_votes(to_centers, some.offsets, bandwidth, parameters.counting, backend)
            inside = np.repeat(training[block], some.sizes)
            squares = np.square(to_centers[np.arange(len(nearest)), nearest][inside], dtype=np.float64)
            spread += np.bincount(nearest[inside], weights=squares, minlength=n_clusters)
        return FoldClusters(histograms, minima, spread, votes)


def checked_parameters(estimator: GMIL, settings: Sequence[Mapping[str, Any]]) -> list[SimpleNamespace]:
    """Return all parameters of every setting; each value is checked once."""
    estimator._validate_params()
    base = estimator.get_params(deep=False)
    values = {(name, repr(value)): value for setting in settings for name, value in setting.items()}
    for (name, _), value in values.items():
        if name not in base:
            estimator.__class__().set_params(**{name: value})  # refuses it, and says what there is
        constraints = {name: estimator._parameter_constraints[name]}
        validate_parameter_constraints(constraints, {name: value}, caller_name=type(estimator).__name__)
    return [SimpleNamespace(**{**base, **setting}) for setting in settings]


def _is_blind_to_zeros(parameters: SimpleNamespace) -> bool:
    """Tell whether columns of zeros change nothing: no number of features, no centres and no draws depend on them."""
    return parameters.scale != "global" and parameters.n_components is None and isinstance(parameters.init, str)


def _clustering_key(parameters: SimpleNamespace, varied: set[str]) -> str:
    """Return what tells two clusterings apart; smooth counts are made with the clusters, hard ones behind them."""
    behind = set(_BEHIND_THE_CLUSTERS) - ({"counting"} if parameters.density == "gaussian" else set())
    return repr([getattr(parameters, name) for name in sorted(varied - behind)])


def _places(sizes: list[CodebookSize]) -> dict[CodebookSize, tuple[int, ...]]:
    """Return every size with its places in the list; most often there is one size."""
    if sizes.count(sizes[0]) == len(sizes):
        return {sizes[0]: tuple(range(len(sizes)))}
    return {size: tuple(i for i, found in enumerate(sizes) if found == size) for size in set(sizes)}
