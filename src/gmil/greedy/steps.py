"""The steps in which GMIL is fitted, in memory and from blocks; numerics live in ``codebook`` and ``voting``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from gmil.greedy import codebook, voting
from gmil.greedy.clustering import find_centers, n_clustered, rows_to_cluster, weights_in_clusters
from gmil.greedy.settings import CodebookSize, check_initial_centers, choose_codebook_size
from gmil.greedy.soft_counts import choose_bandwidth, soft_votes
from gmil.greedy.streaming import Request, cluster_lazily
from gmil.greedy.voted import CodebookClassifier
from gmil.io.model_files.schema import Array, Count, Kind, Number, OrNone
from gmil.sampling import make_generator
from gmil.transform.space import fit_space

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers
    from gmil.scale import LazyBags


class FittingSteps(CodebookClassifier):
    """A classifier with two codebooks that can be fitted; its parameters are those of `gmil.GMIL`."""

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "positive_counts_": Array("K", at_least=0, by_class=True),
        "negative_counts_": Array("K", at_least=0, by_class=True),
        "bin_scores_": Array("K", infinite=True, by_class=True),
        "bandwidth_": OrNone(Number(at_least=0)),
        "n_iter_": Count(),
    }

    n_clusters: int | str
    n_positive: int | str
    n_negative: int | str
    epsilon: float | str
    threshold: float | str
    n_components: float | None
    counting: str
    weighting: str | None
    overlap: str
    negative_rank: str
    centers: str
    init: Any
    n_init: int
    max_iter: int
    sample_size: int | None
    sampling: str
    metric: str
    clustering: str
    instance_weight: str
    density: str
    random_state: Any

    def _fit_lazily(self, X: LazyBags, y: Any) -> Self:
        """Do the same from tables of one row a bag: what its instances add to every bin, and its distances."""
        bags, labels = self._check_lazy_training(X, y)
        positive = self._positive_bags(labels)
        request = Request(self, np.ones(len(bags), dtype=bool), make_generator(self.random_state))
        (tables,) = cluster_lazily([request], bags, labels, [positive], n_jobs=self.n_jobs)
        size = self._codebook_size(bags.n_instances, bags.n_features, positive)
        self.bandwidth_: float | None = None
        self._fit_codebook(tables.histograms, None, positive, size)
        self.threshold_ = None
        minima = tables.sq_minima[:, self._voter().used_bins]
        if not self.negative_bins_.shape[-1]:
            spreads = [tables.spread(bins) for bins in self._voter().positive_bins]
            self._choose_thresholds(
                self._judge_lazily(bags, voting.Voter.positive_distances, minima), positive, spreads
            )
        decisions = self._judge_lazily(bags, voting.Voter.bag_decisions, minima)
        self.slope_ = voting.fit_slope(self._oriented(decisions), labels)
        return self

    def _positive_bags(self, labels: Integers) -> Booleans:
        """Return which bags are positive, (n_bags, 1), or for every class, (n_bags, n_classes)."""
        n_classes = len(self.classes_)
        if n_classes > 2:
            return np.asarray(labels[:, None] == np.arange(n_classes))
        return self._is_positive(labels)[:, None]

    def _fit_space(self, X: Instances, generator: np.random.Generator) -> Instances:
        self.space_, instances = fit_space(X, self.scale, self.n_components, generator, self.metric)
        return instances

    def _codebook_size(self, n_instances: int, n_features: int, positive: Booleans) -> CodebookSize:
        n_clusters = self.n_clusters
        if not isinstance(self.init, str):
            n_clusters = check_initial_centers(self.init, n_clusters, n_features)
        clustered = n_clustered(n_instances, self.sample_size, self.clustering)
        return choose_codebook_size(n_clusters, self.n_positive, self.n_negative, n_instances, clustered, positive)

    def _fit_centers(
        self,
        instances: Instances,
        bags: Bags,
        labels: Integers,
        size: CodebookSize,
        backend: Backend,
        generator: np.random.Generator,
    ) -> Instances:
        """Set the centres; return the instances in the space where these lie."""
        rows = rows_to_cluster(bags, labels, self, generator)
        sample = instances if rows is None else instances[rows]
        self._find_centers(sample, weights_in_clusters(bags, rows, self), size.n_clusters, backend, generator)
        embedding = self.space_.embedding
        return instances if embedding is None else embedding.apply(instances)

    def _find_centers(
        self,
        sample: Instances,
        weights: Floats | None,
        n_clusters: int,
        backend: Backend,
        generator: np.random.Generator,
    ) -> None:
        """Set the centres from the instances to cluster, which are in the space of the model."""
        init = None
        if not isinstance(self.init, str):
            init = self.space_.apply(np.asarray(self.init, dtype=sample.dtype))
        self.cluster_centers_, self.n_iter_, embedding = find_centers(
            sample, n_clusters, self, weights=weights, init=init, backend=backend, generator=generator
        )
        self.space_ = self.space_._replace(embedding=embedding)

    def _soft_votes(
        self, instances: Instances, offsets: Integers, sq_nearest: Floats, backend: Backend
    ) -> Floats | None:
        self.bandwidth_ = None
        if self.density == "histogram":
            return None
        self.bandwidth_ = choose_bandwidth(np.sqrt(sq_nearest))
        return soft_votes(instances, offsets, self.cluster_centers_, self.bandwidth_, self.counting, backend)

    def _fit_codebook(self, histograms: Integers, votes: Floats | None, positive: Booleans, size: CodebookSize) -> None:
        book = codebook.build_codebook(
            histograms,
            positive,
            n_positive=size.n_positive,
            n_negative=size.n_negative,
            epsilon=self.epsilon,
            counting=self.counting,
            weighting=self.weighting,
            overlap=self.overlap,
            negative_rank=self.negative_rank,
            votes=votes,
        )
        # Two classes are one problem, and its axis is left out of what users see.
        problems = 0 if positive.shape[1] == 1 else slice(None)
        self.positive_counts_ = book.positive_counts[problems]
        self.negative_counts_ = book.negative_counts[problems]
        self.bin_scores_ = book.bin_scores[problems]
        self.positive_bins_ = book.positive_bins[problems]
        self.negative_bins_ = book.negative_bins[problems]

    def _fit_threshold(
        self,
        to_used: Floats,
        offsets: Integers,
        positive: Booleans,
        nearest: Integers,
        sq_nearest: Floats,
        backend: Backend,
    ) -> None:
        self.threshold_: Any = None
        if self.negative_bins_.shape[-1]:
            return
        voter = self._voter()
        distances = voter.positive_distances(to_used, offsets, backend)
        self._choose_thresholds(distances, positive, voter.spreads(nearest, sq_nearest))

    def _choose_thresholds(self, distances: Floats, positive: Booleans, spreads: list[float]) -> None:
        """Set tau from the distances between training bags and C+, (n_bags, n_problems)."""
        thresholds = [
            voting.choose_threshold(self.threshold, distances[:, i], positive[:, i], spreads[i])
            for i in range(positive.shape[1])
        ]
        self.threshold_ = thresholds[0] if len(thresholds) == 1 else np.array(thresholds)
