"""GMIL, exactly as the paper describes it: its parameters, and how it is fitted."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from gmil.base import register
from gmil.engine.kmeans import SEEDINGS
from gmil.greedy import codebook, voting
from gmil.greedy.batch import decide_folds, why_not_batched
from gmil.greedy.clustering import CLUSTERINGS, INSTANCE_WEIGHTS, cluster_instances, space_of
from gmil.greedy.codebook_classifier import CodebookClassifier
from gmil.greedy.settings import CodebookSize, codebook_size, paper_setting
from gmil.greedy.soft_counts import DENSITIES, choose_bandwidth, soft_votes
from gmil.greedy.streaming import Request, cluster_lazily
from gmil.io.model_files.schema import Array, Count, Kind, Number, OrNone
from gmil.parameters import (
    ABOVE_ZERO,
    AT_LEAST_ONE,
    INSIDE_UNIT,
    NO_FEWER_THAN_ZERO,
    NOT_NEGATIVE,
    parameter,
    parameters,
)
from gmil.scale import LazyBags
from gmil.stacking import fit_slope
from gmil.transform.scaling import SCALINGS
from gmil.transform.space import METRICS

if TYPE_CHECKING:
    from gmil.base import Training
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers
    from gmil.fold_work import FoldWork, Worker


@register(method="gmil")
@parameters
class GMIL(CodebookClassifier):
    """Greedy multiple instance learning: codebook by density ratio, nearest-neighbour voting (Chen & Corso).

    All training instances are clustered. Every cluster is a bin; bins that positive bags fill and negative bags
    do not become the positive codebook C+, the bins that negative bags fill most become the negative codebook
    C-. A bag is positive where its nearest instance lies nearer to C+ than to C-, or, with no negative codebook,
    nearer than a threshold.

    With the defaults the equations are as printed in the paper; where the paper is silent, a parameter below has
    the choices. Two defaults are not the literal reading: ``epsilon`` is 1/K where the paper has "a small positive
    constant", and k-means++ is greedy. :meth:`from_paper` gives the settings of its experiments, literally.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        K. "auto" is ``round(2.5 ln N)`` for N training instances.
    n_positive : int or "auto", default="auto"
        p, the number of bins in C+. "auto" is ``round(K / 5)``, or ``round(K / 16)`` where more than 60 % of
        the bags are negative; at least 1.
    n_negative : int or "auto", default="auto"
        q, the number of bins in C-. "auto" is p, or 3p where more than 60 % of the bags are negative. With 0
        there is no negative codebook and ``threshold`` decides.
    epsilon : float, "auto" or "negatives", default="auto"
        The constant added to h- in Eq. 6. "auto" is 1/K, as large as the share of an average bin; "negatives" is one
        over the number of instances in negative bags. The paper has a small one, as `from_paper`: it lets a bin
        without a negative instance win, were it filled by a single positive one.
    threshold : float or {"mean", "mean-positive", "midpoint", "best", "variance"}, default="mean"
        tau, used with ``n_negative=0``: the mean distance between all training bags and C+ (the text of the
        paper); between the positive ones and C+; the middle between the means of the classes; the value with
        the fewest errors on the training bags; the root mean square distance between the centres of C+ and
        the instances of their clusters; or a number.
    n_components : int, float or None, default=None
        Principal components kept after scaling: a number, or the share of the variance to keep. None: no PCA.
    counting : {"instances", "bags", "bag-mass"}, default="instances"
        What a bin counts in Eq. 3 and 4: instances; bags with an instance in it; or bags of mass 1 each,
        shared by their instances, so that no large bag dominates.
    weighting : {"bags", "mass", None}, default="bags"
        What the sigmoid of Eq. 6 compares the count of a bin with: the number of positive bags over K, as
        printed; all positive counts over K; None leaves the sigmoid out (Eq. 5).
    overlap : {"allow", "exclude", "exclude-positive"}, default="allow"
        Whether a bin may be in both codebooks; "exclude" leaves C+ out of C-, "exclude-positive" C- out of C+.
        Excluded bins come back, best first, where the others do not suffice.
    negative_rank : {"frequency", "ratio"}, default="frequency"
        Whether C- takes the bins with the largest h- or with the largest h- / (h+ + epsilon).
    centers : {"mean", "medoid"}, default="mean"
        Whether a centre is the mean of its cluster or the instance nearest to that mean.
    distance : {"min", "mean", "max", "hausdorff", "center-mean"}, default="min"
        Between a bag and a codebook: the nearest pair of instance and centre; mean or maximum over instances
        of the distance to the nearest centre; the symmetric Hausdorff distance; the mean over centres of the
        distance to the nearest instance.
    rule : {"nearest", "vote"}, default="nearest"
        Eq. 7, or a majority vote of the instances, each for its nearest codebook.
    init : {"k-means++", "plain-k-means++"} or array of shape (n_clusters, n_features), default="k-means++"
        Where clustering starts. "k-means++" is greedy: of a few rows drawn for every centre the best is kept, and with
        more than 100 rows per centre it draws from some of them. "plain-k-means++" is as published by Arthur and
        Vassilvitskii: one draw for every centre, from all rows that are clustered. Or given centres, in the units of
        the features passed.
    n_init : int, default=1
        Restarts of k-means; the clustering with the least inertia is kept.
    max_iter : int, default=300
        Iterations of Lloyd's algorithm at most.
    sample_size : int or None, default=10_000
        With more training instances than this, the clusters are learnt on a sample without replacement and
        all instances are then assigned. None: always all.
    sampling : {"uniform", "bags", "classes"}, default="uniform"
        Whether that sample takes every instance, every bag or every class with equal chance.
    metric : {"euclidean", "mahalanobis"}, default="euclidean"
        The distance between instances. "mahalanobis" whitens the scaled (and projected) training instances by their
        covariance, shrunk as Ledoit and Wolf do, so that no direction counts for its spread. Dense instances only.
    clustering : {"k-means", "spectral", "kernel"}, default="k-means"
        "spectral": k-means of the K leading eigenvectors of the random walk between instances. "kernel": kernel
        k-means with a Gaussian kernel of half the median distance. Both learn from 1000 instances at most, drawn
        as for ``sample_size``, and take all others along; centres and Eq. 7 are then in the space of the map.
    instance_weight : {"instances", "bags"}, default="instances"
        What weighs 1 while clustering: every instance, or every bag, shared by its instances. "bags" runs in NumPy.
    density : {"histogram", "gaussian"}, default="histogram"
        "gaussian" replaces the counts of Eq. 3 and 4 by a kernel density at the centres: an instance at the distance
        d counts exp(-d^2 / 2b^2) for every centre, with b the median distance of instances to their nearest centre.
    scale : {None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "global"}, default=None
        Scaling of the features, fitted on the training instances: none, deviation 1, range [0, 1], every
        instance to length 1, two combinations, or the range of the whole matrix to [0, 1] and distances as
        root mean squares over the features (the one reading under which the printed tau = 0.082 makes sense).
    backend : {"auto", "numpy", "native", "torch", "torch:cpu", "torch:cuda"}, default="auto"
        The implementation of the kernels: the fastest that can run here, the NumPy reference, the compiled one, or
        PyTorch, on a GPU where there is one.
    random_state : int, RandomState instance or None, default=None
        Seed of sampling and of k-means++.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features or n_components)
        Centres in the scaled (and projected, whitened, embedded) space.
    positive_counts_, negative_counts_ : arrays of shape (n_clusters,) or (n_classes, n_clusters)
        Eq. 3 and 4.
    bin_scores_ : array of shape (n_clusters,) or (n_classes, n_clusters)
        Eq. 6.
    positive_bins_, negative_bins_ : arrays of shape (p,) and (q,), or (n_classes, p) and (n_classes, q)
        C+ and C- as positions in ``cluster_centers_``, best first.
    threshold_ : float, array of shape (n_classes,), or None
        tau where there is no negative codebook.
    n_iter_ : int
        Iterations of Lloyd's algorithm.
    bandwidth_ : float or None
        b, where ``density="gaussian"``.

    Notes
    -----
    The decision for the positive class is dist(B, C-) - dist(B, C+), or tau - dist(B, C+).

    Training costs O(N K d) per iteration of k-means and one assignment of all instances; a new bag costs
    O(n (p + q) d). With more than two classes each is set against the others on one clustering.

    References
    ----------
    Chen, G. and Corso, J., "Greedy Multiple Instance Learning via Codebook Learning and Nearest Neighbor
    Voting", arXiv:1205.0610.

    Examples
    --------
    >>> from gmil import GMIL, make_bags
    >>> bags, y = make_bags(100, separation=8, random_state=0, return_X_y=True)
    >>> model = GMIL(20, 2, 0, random_state=0).fit(bags[:80], y[:80])
    >>> model.score(bags[80:], y[80:])
    1.0
    >>> model.score_instances(bags[:1]).shape == (len(bags[0]),)
    True
    """

    n_clusters: int | str = parameter(default="auto", rules=[AT_LEAST_ONE, {"auto"}], kw_only=False)
    n_positive: int | str = parameter(default="auto", rules=[AT_LEAST_ONE, {"auto"}], kw_only=False)
    n_negative: int | str = parameter(default="auto", rules=[NO_FEWER_THAN_ZERO, {"auto"}], kw_only=False)
    epsilon: float | str = parameter(default="auto", rules=[ABOVE_ZERO, {"auto", "negatives"}])
    threshold: float | str = parameter(default="mean", rules=[NOT_NEGATIVE, voting.THRESHOLDS])
    scale: str | None = parameter(default=None, rules=[SCALINGS, None])
    n_components: float | None = parameter(default=None, rules=[AT_LEAST_ONE, INSIDE_UNIT, None])
    counting: str = parameter(default="instances", rules=[codebook.COUNTINGS])
    weighting: str | None = parameter(default="bags", rules=[codebook.WEIGHTINGS, None])
    overlap: str = parameter(default="allow", rules=[codebook.OVERLAPS])
    negative_rank: str = parameter(default="frequency", rules=[codebook.NEGATIVE_RANKS])
    centers: str = parameter(default="mean", rules=[{"mean", "medoid"}])
    distance: str = parameter(default="min", rules=[voting.DISTANCES])
    rule: str = parameter(default="nearest", rules=[voting.RULES])
    init: Any = parameter(default="k-means++", rules=[SEEDINGS, "array-like"])
    n_init: int = parameter(default=1, rules=[AT_LEAST_ONE])
    max_iter: int = 300
    sample_size: int | None = parameter(default=10_000, rules=[AT_LEAST_ONE, None])
    sampling: str = parameter(default="uniform", rules=[{"uniform", "bags", "classes"}])
    metric: str = parameter(default="euclidean", rules=[METRICS])
    clustering: str = parameter(default="k-means", rules=[CLUSTERINGS])
    instance_weight: str = parameter(default="instances", rules=[INSTANCE_WEIGHTS])
    density: str = parameter(default="histogram", rules=[DENSITIES])
    pos_label: Any = None
    n_jobs: int | None = None
    backend: str = "auto"
    random_state: Any = None

    _reads_blocks = True
    _kept_parameters = ("distance", "rule")
    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "positive_counts_": Array("K", at_least=0, by_class=True),
        "negative_counts_": Array("K", at_least=0, by_class=True),
        "bin_scores_": Array("K", infinite=True, by_class=True),
        "bandwidth_": OrNone(Number(at_least=0)),
        "n_iter_": Count(),
    }

    @classmethod
    def from_paper(cls, name: str, **changes: Any) -> Self:
        """Return the classifier with the settings of one of the paper's experiments.

        Parameters
        ----------
        name : {"musk1", "musk2", "elephant", "fox", "tiger", "med11"}
            musk1: K=10, p=2, q=0, tau=0.082; musk2: K=22, p=2, q=2; elephant, fox and tiger: K=20, p=4, q=4;
            med11: K=50, p=3, q=9. In all: epsilon = 1e-6, the k-means++ that the paper cites, overlap allowed.
            The paper states no scaling. musk1 has ``scale="global"``, the one reading under which the printed tau
            makes sense; musk2 and med11 are raw; instances of the Corel sets have length 1, which was chosen knowing
            the results. The paper does not print the value of epsilon.
        **changes
            Other parameters.
        """
        return cls(**{**paper_setting(name), **changes})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.metric == "euclidean" or isinstance(self.n_components, Integral)
        return tags

    def _folds_together(self, work: FoldWork) -> Worker | None:
        alone = any(why_not_batched(self, setting) for setting in work.settings)
        return None if alone else partial(decide_folds, self)

    def _learn(self, training: Training) -> None:
        labels = np.searchsorted(self.classes_, training.y)  # whichever of two is positive
        learn = self._learn_lazily if isinstance(training.bags, LazyBags) else self._learn_in_memory
        decisions = learn(training._replace(labels=labels), self._positive_bags(labels))
        self.slope_ = fit_slope(self._oriented(decisions), labels)

    def _learn_in_memory(self, training: Training, positive: Booleans) -> Floats:
        """Learn the codebooks; return the decisions about training bags."""
        bags, labels, backend, generator = training.bags, training.labels, training.backend, training.generator
        space, instances = space_of(bags.instances, self, generator)
        size = codebook_size(self, bags.n_instances, bags.n_features, positive)
        found, instances = cluster_instances(instances, space, bags, labels, size.n_clusters, self, backend, generator)
        self.space_, self.cluster_centers_, self.n_iter_ = found
        nearest, sq_nearest = backend.assign(instances, found.centers)
        histograms = backend.bag_histograms(nearest, bags.offsets, size.n_clusters)
        self._keep_codebook(histograms, self._soft_votes(instances, bags.offsets, sq_nearest, backend), positive, size)
        to_used = self._distances(instances, backend)
        if self._needs_threshold():
            voter = self._voter()
            distances = voter.positive_distances(to_used, bags.offsets, backend)
            self._keep_thresholds(distances, positive, voter.spreads(nearest, sq_nearest))
        return self._voter().bag_decisions(to_used, bags.offsets, backend)

    def _learn_lazily(self, training: Training, positive: Booleans) -> Floats:
        """Do the same from tables of one row a bag: what its instances add to every bin, and its distances."""
        bags = training.bags
        request = Request(self, np.ones(len(bags), dtype=bool), training.generator)
        ((found, tables),) = cluster_lazily([request], bags, training.labels, [positive], n_jobs=self.n_jobs)
        self.space_, self.cluster_centers_, self.n_iter_ = found
        self.bandwidth_: float | None = None
        size = codebook_size(self, bags.n_instances, bags.n_features, positive)
        self._keep_codebook(tables.histograms, None, positive, size)
        minima = tables.sq_minima[:, self._voter().used_bins]
        if self._needs_threshold():
            spreads = [tables.spread(bins) for bins in self._voter().positive_bins]
            distances = self._measure_lazily(bags, voting.Voter.positive_distances, minima)
            self._keep_thresholds(distances, positive, spreads)
        return self._measure_lazily(bags, voting.Voter.bag_decisions, minima)

    def _soft_votes(
        self, instances: Instances, offsets: Integers, sq_nearest: Floats, backend: Backend
    ) -> Floats | None:
        """Return what every bag adds to a smooth density at every centre; None where it is a histogram."""
        self.bandwidth_ = None
        if self.density == "histogram":
            return None
        self.bandwidth_ = choose_bandwidth(np.sqrt(sq_nearest))
        return soft_votes(instances, offsets, self.cluster_centers_, self.bandwidth_, self.counting, backend)

    def _keep_codebook(
        self, histograms: Integers, votes: Floats | None, positive: Booleans, size: CodebookSize
    ) -> None:
        how = {name: getattr(self, name) for name in codebook.PARAMETERS}
        book = codebook.build_codebook(
            histograms, positive, n_positive=size.n_positive, n_negative=size.n_negative, votes=votes, **how
        )
        # Two classes are one problem, and its axis is left out of what users see.
        problems = 0 if positive.shape[1] == 1 else slice(None)
        for name, by_problem in book._asdict().items():
            setattr(self, f"{name}_", by_problem[problems])

    def _needs_threshold(self) -> bool:
        self.threshold_: Any = None
        return not self.negative_bins_.shape[-1]

    def _keep_thresholds(self, distances: Floats, positive: Booleans, spreads: list[float]) -> None:
        """Set tau from the distances between training bags and C+, (n_bags, n_problems)."""
        problems = zip(distances.T, positive.T, spreads, strict=True)
        thresholds = [voting.choose_threshold(self.threshold, *problem) for problem in problems]
        self.threshold_ = thresholds[0] if len(thresholds) == 1 else np.array(thresholds)
