"""DensityRatio: Eq. 1 and 2 of the paper themselves, by brute force, before any clustering."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gmil.base import register
from gmil.engine.reference import dense_rows
from gmil.greedy import voting
from gmil.greedy.codebook_classifier import CodebookClassifier
from gmil.greedy.windows import KERNELS, choose_apart, choose_width, window_sums
from gmil.io.model_files.schema import Array, Count, Kind, Number
from gmil.parameters import ABOVE_ZERO, AT_LEAST_ONE, NOT_NEGATIVE, parameter, parameters
from gmil.stacking import fit_slope
from gmil.transform.scaling import SCALINGS
from gmil.transform.space import fit_space

if TYPE_CHECKING:
    from gmil.base import Training
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers

THRESHOLDS = tuple(how for how in voting.THRESHOLDS if how != "variance")


@register(method="density-ratio")
@parameters
class DensityRatio(CodebookClassifier):
    """Density-ratio estimation by brute force: the one best point, which GMIL approximates (Chen & Corso, Eq. 1 and 2).

    Around every candidate lies a window. The target is the candidate whose window holds the largest share of the
    instances of positive bags against that of negative bags; a bag is positive where its nearest instance is nearer to
    the target than a threshold (section 3.3). `gmil.GMIL` replaces windows by clusters and is much faster.

    Parameters
    ----------
    kernel : {"box", "gaussian"}, default="box"
        The window: a box with edge h_n, as printed, or a Gaussian with the standard deviation h_n.
    width : float or "auto", default="auto"
        h_n, in units of the scaled features. "auto": the median candidate's window holds sqrt(N) of N training
        instances. Where it is tiny every window holds its own candidate alone, where it is huge every window holds
        everything, and all ratios are the same: the target is then the first candidate.
    n_targets : int, default=1
        The number of targets: the best, then the next best whose window overlaps with none before. Fewer where the
        candidates do not suffice.
    n_candidates : int or None, default=1000
        With more instances in positive bags than this, the candidates are a sample of them. None: always all.
    epsilon : float or "auto", default="auto"
        Added to the share of negative instances, which may be zero. "auto" is one over their number, as if one more
        lay in every window.
    threshold : float or {"mean", "mean-positive", "midpoint", "best"}, default="mean"
        The distance below which a bag is positive: the mean distance between all training bags and the target, as
        printed, or another of `gmil.GMIL`.
    random_state : int, RandomState instance or None, default=None
        Seed of the samples of candidates and of the rule for the width.

    Attributes
    ----------
    target_ : array of shape (n_features,)
        The best target, in the scaled space.
    ratio_ : float
        Its density ratio.
    target_instance_ : int
        Which of the training instances it is, counted through all bags.
    cluster_centers_ : array of shape (n_targets, n_features)
        All targets, best first.
    ratios_ : array of shape (n_targets,)
        Their density ratios.
    width_ : float
        h_n.
    threshold_ : float
        The distance to the nearest target below which a bag is positive.

    Notes
    -----
    The decision for the positive class is tau less the distance between the bag and the targets.

    Training costs O(M N d) for M candidates and N instances of d features; of sparse instances, d are those
    that differ from zero. A new bag costs O(n d) for each target.

    References
    ----------
    Chen, G. and Corso, J., "Greedy Multiple Instance Learning via Codebook Learning and Nearest Neighbor
    Voting", arXiv:1205.0610.

    Examples
    --------
    >>> from gmil import DensityRatio, make_bags
    >>> bags, y = make_bags(100, separation=8, random_state=0, return_X_y=True)
    >>> model = DensityRatio().fit(bags[:80], y[:80])
    >>> model.score(bags[80:], y[80:])
    1.0
    """

    kernel: str = parameter(default="box", rules=[KERNELS])
    width: float | str = parameter(default="auto", rules=[ABOVE_ZERO, {"auto"}])
    n_targets: int = parameter(default=1, rules=[AT_LEAST_ONE])
    n_candidates: int | None = parameter(default=1000, rules=[AT_LEAST_ONE, None])
    epsilon: float | str = parameter(default="auto", rules=[ABOVE_ZERO, {"auto"}])
    threshold: float | str = parameter(default="mean", rules=[NOT_NEGATIVE, THRESHOLDS])
    scale: str | None = parameter(default=None, rules=[SCALINGS, None])
    pos_label: Any = None
    random_state: Any = None

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "target_": Array("e"),
        "ratios_": Array("K", infinite=True),
        "ratio_": Number(infinite=True),
        "target_instance_": Count(),
        "width_": Number(at_least=0),
    }

    _two_classes = True

    # What `CodebookClassifier` reads: targets are a positive codebook without a negative one.
    distance_ = "min"
    rule_ = "nearest"
    backend = "auto"
    n_jobs = None

    def _learn(self, training: Training) -> None:
        """Search the targets among the instances of positive bags, and a threshold."""
        bags, positive, backend, generator = training.bags, training.positive, training.backend, training.generator
        self.space_, instances = fit_space(bags.instances, self.scale, None, generator)
        self._fit_targets(instances, positive[bags.segment_ids], generator)
        self.threshold_ = None  # until it is known from the distances
        to_targets = self._distances(instances, backend)
        bag_distances = self._voter().positive_distances(to_targets, bags.offsets, backend)[:, 0]
        self.threshold_ = voting.choose_threshold(self.threshold, bag_distances, positive, 0.0)
        decisions = voting.decide(bag_distances, self.threshold_)
        self.slope_ = fit_slope(decisions, training.labels)

    def _fit_targets(self, instances: Instances, positive: Booleans, generator: np.random.Generator) -> None:
        candidates = self._candidates(positive, generator)
        points = instances[candidates].astype(np.float64)
        self.width_ = (
            choose_width(points, instances, self.kernel, generator)
            if isinstance(self.width, str)
            else float(self.width)
        )
        ratios = self._ratios(points, instances, positive)
        order = np.argsort(-ratios, kind="stable")
        best = choose_apart(points, order, self.n_targets, self.kernel, self.width_)
        self.cluster_centers_, self.ratios_ = dense_rows(instances, candidates[best]), ratios[best]
        self.target_, self.ratio_ = self.cluster_centers_[0], float(self.ratios_[0])
        self.target_instance_ = int(candidates[best[0]])
        self.positive_bins_, self.negative_bins_ = np.arange(len(best)), np.arange(0)

    def _candidates(self, positive: Booleans, generator: np.random.Generator) -> Integers:
        rows = np.flatnonzero(positive)
        if self.n_candidates is None or len(rows) <= self.n_candidates:
            return rows
        return np.sort(generator.choice(rows, self.n_candidates, replace=False))

    def _ratios(self, points: Instances, instances: Instances, positive: Booleans) -> Floats:
        """Return Eq. 2 at every point, from shares: constants do not move the largest."""
        inside, outside = window_sums(points, instances, positive, self.kernel, self.width_)
        n_positive = int(positive.sum())
        n_negative = len(positive) - n_positive
        epsilon = 1 / n_negative if isinstance(self.epsilon, str) else float(self.epsilon)
        ratios: Floats = (inside / n_positive) / (outside / n_negative + epsilon)
        return ratios
