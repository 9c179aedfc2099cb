"""WeightedGMILOrdinal: ordered grades of bags by stacked views."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import log_softmax
from sklearn.utils.validation import check_is_fitted

from gmil.base import BagClassifier, register
from gmil.compat import checks_parameters
from gmil.errors import BagValidationError, listed
from gmil.io.model_files.schema import Array, Kind, Number
from gmil.parameters import parameter, parameters
from gmil.targets.cumulative import fit_cumulative, grade_probabilities
from gmil.targets.stacked import TargetViews

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.scale import LazyBags
    from gmil.weighted.fitting import Learning
    from gmil.weighted.weighing import LeftOut


@register(method="weighted-gmil-ordinal")
@parameters
class WeightedGMILOrdinal(TargetViews, BagClassifier):
    """Ordered grades of bags: stacked views predict a score, and cumulative logits the probability of every grade.

    Views of a bag, as in `WeightedGMIL`, predict the grade as a number, and leave out every bag in closed form. Models
    of single instances join them, as in `WeightedGMILRegressor`. On scores of bags that were left out, a slope and a
    threshold between every two grades are fitted: with a larger score every higher grade is more likely.

    Parameters
    ----------
    n_centers : int or "auto", default="auto"
        The size of the codebook, as in `WeightedGMIL`.
    grades : sequence or None, default=None
        The grades from the lowest to the highest. None: numbers by size, texts by the alphabet, with a warning where
        no numbers in them tell the same order.
    scales : "auto" or sequence, default="auto"
        The scalings, as in `WeightedGMIL`.
    views : sequence, default=("range", "moments", "nearest")
        The embeddings of a bag, as in `WeightedGMIL`; with "moments", the mean rank of every feature is one, too.
    centers : {"random", "k-means", "ranked"}, default="random"
        The codebook, as in `WeightedGMIL`; "ranked" are centres that tell grades above the median from others.
    witness_model : bool, default=True
        Learn models of single instances, too: a value, and a weight in the bag (attention).
    sample_size : int or "auto", default="auto"
        With more dense instances than this, choices are made on a sample, as in `WeightedGMIL`.
    max_bags : int, default=1500
        With more bags than this, views are chosen on a sample of so many, as in `WeightedGMIL`.
    n_points : int, default=500
        See ``max_bags``.
    backend : {"auto", "numpy", "native", "torch", "torch:cpu", "torch:cuda"}, default="auto"
        The implementation of the kernels.
    random_state : int, RandomState instance or None, default=None
        Seed of the choice of centres and samples.

    Attributes
    ----------
    order_ : array of shape (n_classes,)
        The rank of every class of ``classes_``, from 0.
    slope_ : float
        What the sum of views and models is multiplied with.
    thresholds_ : array of shape (n_classes - 1,)
        Between grades: a grade above k is more likely than not where the score is above ``thresholds_[k]``.
    left_out_scores_ : array of shape (n_bags, 1)
        The sum of views and models for the training bags, each (or its group) left out.
    view_weights_ : list of dict
        ``scale``, ``kind``, ``kernel`` and the ``weights`` of every view, those without weight included.
    views_, spaces_ : list of dict
        The views that have a weight, and the scalings and centres that they use, as arrays.
    intercepts_ : array of shape (1,)
    instance_models_ : dict or None
        The models of single instances.
    familiar_distance_ : float
        99 % of the training bags are nearer than this to a centre of another bag.

    Notes
    -----
    ``predict`` returns the median grade: a higher and a lower one are both less likely than not. The most likely grade,
    ``classes_[predict_proba(X).argmax(axis=1)]``, is right more often, and further off where it is wrong.

    Examples
    --------
    >>> from gmil import WeightedGMILOrdinal, make_bags
    >>> bags, y = make_bags(160, target="ordinal", random_state=0, return_X_y=True)
    >>> model = WeightedGMILOrdinal(random_state=0).fit(bags[:120], y[:120])
    >>> model.predict_proba(bags[120:]).shape
    (40, 5)
    """

    grades: Any = parameter(default=None, rules=[list, tuple, np.ndarray, None])
    pos_label: Any = None

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "order_": Array("G+1", dtype="i", at_least=0, below="C"),
        "slope_": Number(above=0),
        "thresholds_": Array("G"),
    }

    _target: ClassVar[str] = "ordinal"
    _one_score: ClassVar[bool] = True  # however many grades there are

    @checks_parameters
    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:
        """Choose and fit the views.

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
        y : array of shape (n_bags,)
            One grade per bag.
        groups : array of shape (n_bags,), optional
            Bags of one group (a patient, a site) are left out together wherever something is chosen.
        """
        return self._fit_stacked(X, y, groups)

    def _targets(self, bags: Bags | LazyBags, y: Any) -> tuple[Booleans, Floats, Floats | None]:
        labels = self._check_labels(y, bags)
        self.order_ = self._order()
        ranks = self.order_[labels].astype(np.float64)
        high = ranks >= max(np.median(ranks), 1)  # both kinds are there, however the grades are spread
        return high[:, None], ((ranks - ranks.mean()) / ranks.std())[:, None], None

    def _set_classes(self, classes: NDArray[Any]) -> None:
        """Set the classes; of two grades that are given the higher one is positive, where no ``pos_label`` is."""
        given = [] if self.grades is None or self.pos_label is not None else list(self.grades)
        if len(classes) == 2 and all(label in given for label in classes.tolist()):
            self.classes_, self.pos_label_ = classes, max(classes.tolist(), key=given.index)
        else:
            super()._set_classes(classes)

    def _order(self) -> Integers:
        """Return the rank of every class among the classes."""
        if self.grades is None:
            _warn_of_the_alphabet(self.classes_.tolist())
            return np.arange(len(self.classes_))
        given, classes = list(self.grades), self.classes_.tolist()
        unknown = [label for label in classes if label not in given]
        if unknown or len(set(given)) < len(given):
            msg = f"must name every grade of y once, from the lowest to the highest, got {given}; y has {classes}."
            raise BagValidationError(msg, parameter="grades")
        present = [label for label in given if label in classes]
        return np.array([present.index(label) for label in classes])

    def _finish(self, learning: Learning, left_out: LeftOut) -> None:  # noqa: ARG002
        known = np.isfinite(self.left_out_scores_[:, 0])
        scores = self.left_out_scores_[known, 0]
        ranks = np.unique(learning.goals[:, 0], return_inverse=True)[1][known]
        self.slope_, self.thresholds_ = fit_cumulative(scores, ranks, len(self.classes_))

    def _odds(self, X: Any) -> Floats:
        """Return the sum of views and models of every bag, times the slope, (n_bags,)."""
        check_is_fitted(self)
        return self.slope_ * self._stacked(X)[:, 0]

    def _decide(self, X: Any) -> Floats:
        odds = self._odds(X)
        if len(self.classes_) == 2:
            return self._sign() * (odds - self.thresholds_[0])
        return self._of_grades(odds)

    def _of_grades(self, odds: Floats) -> Floats:
        """Return a decision about every one of several grades, the largest about the median grade, (n, n_classes).

        They are logarithms of shares: the decision about a grade in the middle, too, is largest for bags of that grade.
        """
        sums = odds[:, None] * self.order_ - np.concatenate([[0.0], np.cumsum(self.thresholds_)])[self.order_]
        return np.asarray(log_softmax(sums, axis=1))

    def _sign(self) -> float:
        """Return what makes decisions about the higher of two grades decisions about the positive one."""
        return 1.0 if self.classes_[self.order_.argmax()] == self.pos_label_ else -1.0

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of every grade for every bag, (n_bags, n_classes), in the order of ``classes_``.

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
        """
        return grade_probabilities(self._odds(X), self.thresholds_)[:, self.order_]

    def score_instances(self, X: Any) -> Floats:
        """Return how much every instance raises the grade of its bag: the decision less that without the instance.

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array

        Returns
        -------
        array of shape (n_instances,) or (n_instances, n_classes)
            Of more than two grades a score for each: what the instance does to the decision about that grade.
        """
        effects = self._instance_effects(X, "effect")[:, 0] * self.slope_
        if len(self.classes_) == 2:
            return self._sign() * effects
        bags = self._new_bags(X)
        odds = np.repeat(self._odds(bags), bags.sizes)
        return self._of_grades(odds) - self._of_grades(odds - effects)


def _warn_of_the_alphabet(grades: list[Any]) -> None:
    """Warn of more than two texts that only the alphabet orders: low, middle and high begin with high."""
    if len(grades) < 3 or not isinstance(grades[0], str):
        return
    numbers = [re.search(r"\d+", grade) for grade in grades]
    found = [int(number.group()) for number in numbers if number is not None]
    if len(found) == len(grades) and found == sorted(set(found)):
        return
    msg = f"Grades that are texts are ordered by the alphabet: {listed([repr(grade) for grade in grades], 12)}. Give "
    warnings.warn(f"{msg}their order with grades=[...], the lowest first (on the command line, --set).", stacklevel=6)
