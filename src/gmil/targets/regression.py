"""WeightedGMILRegressor: values of bags by stacked views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from gmil.base import register
from gmil.compat import checks_parameters
from gmil.conformal import residual_quantile
from gmil.errors import BagValidationError
from gmil.io.model_files.schema import Array, Either, Flag, Kind
from gmil.parameters import parameters
from gmil.target_checks import check_values
from gmil.targets.explanation import ValueExplanation, explain_value
from gmil.targets.stacked import TargetViews
from gmil.witnesses.explanation import one_bag

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats
    from gmil.scale import LazyBags
    from gmil.weighted.fitting import Learning
    from gmil.weighted.weighing import LeftOut


@register(method="weighted-gmil-regressor")
@parameters
class WeightedGMILRegressor(RegressorMixin, TargetViews):
    """Regression on bags by stacked kernel ridge regression: `WeightedGMIL` for values.

    A bag is described by several embeddings, as in `WeightedGMIL`; on each a kernel ridge regression predicts the value
    and leaves out every bag in closed form. The views are added up with weights, none negative, that predict best what
    was left out. Models of single instances, which learn a value and the weight that an instance has in its bag, join
    them so far as they predict bags that were left out: they find the few instances that carry the value. Nothing has
    to be chosen by hand.

    Parameters
    ----------
    n_centers : int or "auto", default="auto"
        The size of the codebook, as in `WeightedGMIL`.
    scales : "auto" or sequence, default="auto"
        The scalings, as in `WeightedGMIL`.
    views : sequence, default=("range", "moments", "nearest")
        The embeddings of a bag, as in `WeightedGMIL`; with "moments" there are more: of means, and of features that
        count as much as they tell.
    centers : {"random", "k-means", "ranked"}, default="random"
        The codebook, as in `WeightedGMIL`; "ranked" are centres that tell values above the median from those below.
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
    left_out_predictions_ : array of the shape of y
        Predictions of the training bags, each (or its group) left out by every view, and in a third of the bags by the
        models of instances, with weights that were found on other bags. NaN for bags outside the sample where
        ``max_bags`` is exceeded.
    left_out_errors_ : array of the shape of y
        Values of the training bags less these predictions.
    view_weights_ : list of dict
        ``scale``, ``kind``, ``kernel`` and the ``weights`` of every view, (n_targets,), those without weight included.
    views_, spaces_ : list of dict
        The views that have a weight, and the scalings and centres that they use, as arrays.
    intercepts_ : array of shape (n_targets,)
        The standardised prediction without any view.
    instance_models_ : dict or None
        The models of single instances.
    left_out_scores_ : array of shape (n_bags, n_targets)
        The predictions of bags that were left out, standardised, with the weights of all bags.
    target_means_, target_scales_ : arrays of shape (n_targets,)
        Mean and deviation of the values, by which they are standardised.
    familiar_distance_ : float
        99 % of the training bags are nearer than this to a centre of another bag.
    n_features_in_ : int

    Examples
    --------
    >>> from gmil import WeightedGMILRegressor, make_bags
    >>> bags, y = make_bags(160, target="regression", random_state=0, return_X_y=True)
    >>> model = WeightedGMILRegressor(random_state=0).fit(bags[:120], y[:120])
    >>> model.score(bags[120:], y[120:]) > 0.5
    True
    >>> model.predict_interval(bags[120:], coverage=0.9).shape
    (40, 2)
    """

    _measured: ClassVar[bool] = True

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "target_means_": Array("P"),
        "target_scales_": Array("P", above=0),
        "left_out_predictions_": Either(Array("B", nan=True), Array("B", "P", nan=True)),
        "left_out_errors_": Either(Array("B", nan=True), Array("B", "P", nan=True)),
        "one_target_": Flag(),
    }

    @checks_parameters
    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:
        """Choose and fit the views.

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
        y : array of shape (n_bags,) or (n_bags, n_targets)
            A value per bag, or several.
        groups : array of shape (n_bags,), optional
            Bags of one group (a patient, a site) are left out together wherever something is chosen.
        """
        return self._fit_stacked(X, y, groups)

    def _targets(self, bags: Bags | LazyBags, y: Any) -> tuple[Booleans, Floats, Floats | None]:
        values = check_values(y, bags, self)
        self.one_target_ = values.ndim == 1
        table = values.reshape(len(values), -1)
        self.target_means_, self.target_scales_ = table.mean(axis=0), table.std(axis=0)
        return table > np.median(table, axis=0), (table - self.target_means_) / self.target_scales_, None

    def _finish(self, learning: Learning, left_out: LeftOut) -> None:
        self.left_out_predictions_ = self._in_units(left_out.cross_fitted)
        self.left_out_errors_ = self._in_units(learning.goals) - self.left_out_predictions_

    def _in_units(self, scores: Floats) -> Floats:
        """Return standardised values, (n_bags, n_targets), as the values of y."""
        values = scores * self.target_scales_ + self.target_means_
        return values[:, 0] if self.one_target_ else values

    def predict(self, X: Any) -> Floats:
        """Return the value of every bag, (n_bags,) or (n_bags, n_targets).

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
        """
        check_is_fitted(self)
        return self._in_units(self._stacked(X))

    def predict_interval(self, X: Any, *, coverage: float = 0.9) -> Floats:
        """Return an interval for every bag that holds its value with about this probability.

        Its width is that of the errors on training bags that were left out (conformal prediction): it is the same for
        all bags, and no assumption is made about the kind of the errors, but that new bags are like the training bags.

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
        coverage : float, default=0.9
            Above 0 and below 1.

        Returns
        -------
        array of shape (n_bags, 2) or (n_bags, n_targets, 2)
            The lower and the upper limit.
        """
        check_is_fitted(self)
        width = np.apply_along_axis(residual_quantile, 0, np.abs(self.left_out_errors_), coverage)
        values = self.predict(X)
        return np.stack([values - width, values + width], axis=-1)

    def score_instances(self, X: Any, kind: str = "effect") -> Floats:
        """Return how much every instance raises the value of its bag.

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
        kind : {"effect", "alone"}
            "effect": the prediction for the bag minus that for the bag without the instance (for nothing where it is
            the only one). "alone": the prediction for a bag of this instance.

        Returns
        -------
        array of shape (n_instances,) or (n_instances, n_targets)
        """
        scores = self._instance_effects(X, kind)
        if kind == "alone":
            return self._in_units(scores)
        effects = scores * self.target_scales_
        return effects[:, 0] if self.one_target_ else effects

    def explain(self, bag: Any, *, target: int = 0, share: float = 0.9) -> ValueExplanation:
        """Return which instances raise and which lower the value of one bag.

        Parameters
        ----------
        bag : 2-D array, or Bags with one bag
        target : int, default=0
            Which of several targets.
        share : float, default=0.9
            The part of all that raises the value, or lowers it, that the instances named have at least.
        """
        check_is_fitted(self)
        if not 0 <= target < len(self.target_means_):
            msg = f"must be from 0 to {len(self.target_means_) - 1}, got {target!r}."
            raise BagValidationError(msg, parameter="target")
        bags = one_bag(self, bag)
        value, effects = (found.reshape(len(found), -1) for found in (self.predict(bags), self.score_instances(bags)))
        typical = float(self.target_means_[target])
        return explain_value(bags, float(value[0, target]), typical, effects[:, target], share)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
