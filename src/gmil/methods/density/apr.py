"""APR: an axis-parallel rectangle that holds an instance of every positive bag and as few negative ones as can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gmil.base import register
from gmil.engine import reference
from gmil.io.model_files.schema import Array, Count, Kind, Number
from gmil.methods.density.growing import grow
from gmil.methods.density.rectangles import discriminating_features, expand, inside_of, minimax_seed, overshoot
from gmil.methods.shared.alike import once, settings_together
from gmil.methods.shared.columns import dense_columns, varying_columns
from gmil.methods.shared.scaled import ScaledClassifier
from gmil.parameters import INSIDE_UNIT, NOT_NEGATIVE, parameter, parameters

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.base import Training
    from gmil.engine.arrays import Floats, Instances, Integers

_AUTOMATIC_MARGIN = 1.25
"""The margin in deviations, before rounding: on both Musk data sets it becomes the published 100."""

_LEAST_HALF_WIDTH = 1e-3
"""Half the width, in deviations, of a box on a feature where all of its instances are equal."""

_CLEARANCE = 1e-9
"""How far, in deviations, edges lie outside the instances that the box was grown on: those are inside, not at zero."""


def automatic_margin(deviations: Floats) -> float:
    """Return a margin with one digit, so that it is the same in all folds of the same data.

    >>> automatic_margin(np.array([70.0, 80.0, 90.0])), automatic_margin(np.array([0.19]))
    (100.0, 0.2)
    """
    return float(f"{_AUTOMATIC_MARGIN * np.median(deviations):.0e}")


class _Grown(NamedTuple):
    """A box before it is expanded."""

    features: Integers  # (n_features_kept,)
    deviations: Floats  # (n_features_kept,)
    edges: Floats  # (2, n_features_kept)
    inside: Floats  # (n_inside, n_features_kept), the instances of positive bags inside
    margin: float
    n_iter: int


@register(method="apr")
@parameters
class APR(ScaledClassifier):
    """Axis-parallel rectangle by iterated discrimination (Dietterich, Lathrop & Lozano-Perez 1997).

    A box is grown from a central instance until it holds an instance of every positive bag, with as little width as
    greedy steps and exchanges allow. The features on which it keeps negative instances out are kept, and a box is
    grown on these, until no feature is dropped. At last its edges are moved outwards by a kernel estimate. A bag is
    positive where an instance lies inside on all features kept.

    Parameters
    ----------
    margin : float or "auto", default="auto"
        How far outside the box, in the units of the (scaled) features, a negative instance must lie for a feature
        to exclude it for certain. Published: 100 on the Musk data, which is 1 angstrom. "auto" is 1.25 times the
        median deviation of the features that vary, rounded to one digit: 100 on raw Musk data, 1 on features of
        deviation 1.
    tau : float, default=0.999
        The mass that a kernel in the middle of the box keeps inside: the larger, the narrower are the kernels.
    epsilon : float, default=0.01
        The mass of the kernel estimate that stays outside the expanded box.
    max_iter : int, default=20
        How often a box is grown at most.
    scale : {None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "global"}, default=None
        Scaling of the features, fitted on the training instances, as in `gmil.GMIL`. None, as published, suits
        features of one unit: the size of a box is the sum of its widths.

    Attributes
    ----------
    lower_, upper_ : arrays of shape (n_features_kept,)
        The edges of the box.
    features_ : array of shape (n_features_kept,)
        The features that it lies on.
    deviations_ : array of shape (n_features_kept,)
        The deviations of these features in training: the units of decisions.
    margin_ : float
        The margin used.
    n_iter_ : int
        How often a box was grown.

    Notes
    -----
    The decision for the positive class is how far inside the box the best instance lies, on its worst feature, in
    deviations.

    The edges belong to the box: it holds an instance of every positive training bag, also where the kernel estimate, of
    many instances inside, does not move them.

    The box starts from an instance in the middle of all positive bags. Where these hold mostly background, with a
    single instance of their own, the box is grown on the background and excludes nothing; `gmil.EMDD` suits such bags.

    Growing costs O(n d) for n instances of positive bags; a step or an exchange, as much for the features whose edges
    it moves. Sparse instances are made dense, on the features that vary: 8 bytes for every value.

    References
    ----------
    Dietterich, T., Lathrop, R. and Lozano-Perez, T., "Solving the multiple instance problem with axis-parallel
    rectangles", Artificial Intelligence 89, 1997.

    Examples
    --------
    >>> from gmil import APR, load_musk1
    >>> bags, y = load_musk1(return_X_y=True)
    >>> model = APR().fit(bags[::2], y[::2])
    >>> model.score(bags[1::2], y[1::2]) > 0.7
    True
    """

    margin: float | str = parameter(default="auto", rules=[NOT_NEGATIVE, {"auto"}])
    tau: float = parameter(default=0.999, rules=[INSIDE_UNIT])
    epsilon: float = parameter(default=0.01, rules=[INSIDE_UNIT])
    max_iter: int = 20
    scale: str | None = None

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "features_": Array("k", dtype="i", at_least=0, below="d"),
        "deviations_": Array("k", above=0),
        "lower_": Array("k", infinite=True),
        "upper_": Array("k", infinite=True),
        "margin_": Number(at_least=0),
        "n_iter_": Count(),
    }

    _two_classes = True

    _folds_together = settings_together

    def _learn(self, training: Training) -> None:
        """Grow, discriminate and expand a box."""
        bags = training.bags
        bags = bags.with_instances(bags.instances.astype(np.float64))
        scaled = self._fit_scaled(bags)
        grown = once(self, ("box", self.scale, self.margin, self.max_iter), lambda: self._grow(scaled, bags, training))
        self.features_, self.deviations_ = grown.features, grown.deviations
        self.margin_, self.n_iter_ = grown.margin, grown.n_iter
        edges = expand(grown.edges, grown.inside, self.tau, self.epsilon)
        least = _LEAST_HALF_WIDTH * self.deviations_
        middle = edges.mean(axis=0)
        clearance = np.maximum(_CLEARANCE * self.deviations_, np.spacing(np.abs(edges).max(axis=0)))
        self.lower_ = np.minimum(edges[0], middle - least) - clearance
        self.upper_ = np.maximum(edges[1], middle + least) + clearance

    def _grow(self, scaled: Instances, bags: Bags, training: Training) -> _Grown:
        """Grow boxes on fewer and fewer features."""
        varying = varying_columns(scaled)
        instances = dense_columns(scaled, varying)
        deviations = instances.std(axis=0)
        deviations[deviations == 0] = 1
        margin = automatic_margin(deviations) if isinstance(self.margin, str) else float(self.margin)
        in_positive = np.repeat(training.positive, bags.sizes)
        members, negatives = instances[in_positive], instances[~in_positive]
        offsets = np.concatenate([[0], np.cumsum(bags.sizes[training.positive])])
        kept = np.arange(instances.shape[1])
        edges = once(
            self, ("first box", self.scale), lambda: grow(members, offsets, minimax_seed(members, offsets)).edges
        )
        for n_iter in range(1, self.max_iter + 1):
            discriminating = discriminating_features(negatives[:, kept], edges, margin)
            if len(discriminating) == len(kept) or n_iter == self.max_iter:
                break
            kept = kept[discriminating]
            chosen = members[:, kept]
            edges = grow(chosen, offsets, minimax_seed(chosen, offsets)).edges
        return _Grown(varying[kept], deviations[kept], edges, inside_of(members[:, kept], edges), margin, n_iter)

    def _decide(self, X: Any) -> Floats:
        """Return how far inside the box the best instance of every bag lies, (n_bags,); outside it is negative."""
        scores, offsets = self._score_instances(X)
        return reference.bag_max(scores, offsets)

    def score_instances(self, X: Any) -> Floats:
        """Return how far inside the box every instance lies, (n_instances,); the decision about a bag is the largest.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        """
        return self._score_instances(X)[0]

    def _score_instances(self, X: Any) -> tuple[Floats, Integers]:
        bags, scaled = self._new_scaled(X)
        instances = dense_columns(scaled, self.features_)
        return -overshoot(instances, np.stack([self.lower_, self.upper_]), self.deviations_), bags.offsets
