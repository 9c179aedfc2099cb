"""WeightedGMILSurvival: times to an event by stacked views."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gmil.base import register
from gmil.compat import checks_parameters
from gmil.io.model_files.schema import Array, Kind, Number
from gmil.model_selection.survival import concordance
from gmil.parameters import parameters
from gmil.target_checks import Outcomes, check_outcomes
from gmil.targets.explanation import ValueExplanation, explain_value
from gmil.targets.hazards import cumulative_hazard, hazard_at, martingale_residuals, risk_slope
from gmil.targets.stacked import TargetViews
from gmil.witnesses.explanation import one_bag

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats
    from gmil.scale import LazyBags
    from gmil.weighted.fitting import Learning
    from gmil.weighted.weighing import LeftOut


class HazardMixin(ABC):
    """Survival curves and concordance of what predicts risks, with a cumulative baseline hazard."""

    unique_times_: Floats
    baseline_hazard_: Floats

    @abstractmethod
    def predict(self, X: Any) -> Floats:
        """Return the risk of every bag, (n_bags,)."""

    def predict_cumulative_hazard_function(self, X: Any, times: Any = None) -> Floats:
        """Return the cumulative hazard of every bag, (n_bags, n_times).

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
        times : array of shape (n_times,), optional
            By default ``unique_times_``, the times of training events.
        """
        risk = self.predict(X)
        wanted = self.unique_times_ if times is None else np.asarray(times, dtype=np.float64)
        return np.exp(risk)[:, None] * hazard_at(self.unique_times_, self.baseline_hazard_, wanted)

    def predict_survival_function(self, X: Any, times: Any = None) -> Floats:
        """Return the probability that nothing happens to a bag up to each time, (n_bags, n_times).

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
        times : array of shape (n_times,), optional
            By default ``unique_times_``, the times of training events.
        """
        return np.exp(-self.predict_cumulative_hazard_function(X, times))

    def score(self, X: Any, y: Any) -> float:
        """Return Harrell's concordance index of the predicted risks.

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
        y : structured array, data frame, or array of shape (n_bags, 2)
        """
        return concordance(y, self.predict(X))

    def _keep_hazard(self, outcomes: Outcomes, risk: Floats) -> None:
        self.unique_times_, self.baseline_hazard_ = cumulative_hazard(outcomes, risk)


FITTED_HAZARD: dict[str, Kind] = {
    "unique_times_": Array("t", at_least=0),
    "baseline_hazard_": Array("t", at_least=0),
}


@register(method="weighted-gmil-survival")
@parameters
class WeightedGMILSurvival(HazardMixin, TargetViews):
    """Survival analysis on bags: stacked views predict a risk, with proportional hazards.

    Views of a bag, as in `WeightedGMIL`, predict by kernel ridge regression how many more events there were than
    expected (martingale residuals), and leave out every bag in closed form. Models of single instances, which learn a
    risk and the weight that an instance has in its bag under the partial likelihood of Cox, join them so far as they
    predict bags that were left out. A slope that makes the score a log-hazard ratio, and the baseline hazard, are
    fitted to bags that were left out, too.

    Parameters
    ----------
    n_centers : int or "auto", default="auto"
        The size of the codebook, as in `WeightedGMIL`.
    scales : "auto" or sequence, default="auto"
        The scalings, as in `WeightedGMIL`.
    views : sequence, default=("range", "moments", "nearest")
        The embeddings of a bag, as in `WeightedGMIL`; with "moments", the mean rank of every feature is one, too.
    centers : {"random", "k-means", "ranked"}, default="random"
        The codebook, as in `WeightedGMIL`; "ranked" are centres that tell bags with an event from others.
    witness_model : bool, default=True
        Learn models of single instances, too: a risk, and a weight in the bag (attention).
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
    unique_times_ : array of shape (n_times,)
        The times of training events.
    baseline_hazard_ : array of shape (n_times,)
        The cumulative baseline hazard from each of these times on.
    left_out_risks_ : array of shape (n_bags,)
        Risks of the training bags, each (or its group) left out by every view. NaN for bags outside the sample where
        ``max_bags`` is exceeded.
    slope_ : float
        What the sum of views and models is multiplied with.
    view_weights_ : list of dict
        ``scale``, ``kind``, ``kernel`` and the ``weights`` of every view, those without weight included.
    views_, spaces_ : list of dict
        The views that have a weight, and the scalings and centres that they use, as arrays.
    intercepts_ : array of shape (1,)
    instance_models_ : dict or None
        The models of single instances.
    left_out_scores_ : array of shape (n_bags, 1)
    familiar_distance_ : float
        99 % of the training bags are nearer than this to a centre of another bag.
    n_features_in_ : int

    Examples
    --------
    >>> from gmil import WeightedGMILSurvival, make_bags
    >>> bags, y = make_bags(160, target="survival", random_state=0, return_X_y=True)
    >>> model = WeightedGMILSurvival(random_state=0).fit(bags[:120], y[:120])
    >>> model.score(bags[120:], y[120:]) > 0.6
    True
    >>> model.predict_survival_function(bags[120:], times=[0.5, 1.0]).shape
    (40, 2)
    """

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        **FITTED_HAZARD,
        "slope_": Number(at_least=0),
        "left_out_risks_": Array("B", nan=True),
    }

    _target: ClassVar[str] = "survival"

    @checks_parameters
    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:
        """Choose and fit the views.

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
        y : structured array, data frame, or array of shape (n_bags, 2)
            Whether the event was seen, and when, or until when it was not: a structured array of a truth value and a
            number, as scikit-survival keeps it, or two columns in this order.
        groups : array of shape (n_bags,), optional
            Bags of one group (a patient, a site) are left out together wherever something is chosen.
        """
        return self._fit_stacked(X, y, groups)

    def _targets(self, bags: Bags | LazyBags, y: Any) -> tuple[Booleans, Floats, Floats | None]:
        outcomes = check_outcomes(y, bags, type(self).__name__)
        residuals = martingale_residuals(outcomes)
        scaled = (residuals - residuals.mean()) / (residuals.std() or 1.0)
        return outcomes.event[:, None], scaled[:, None], outcomes.table

    def _finish(self, learning: Learning, left_out: LeftOut) -> None:  # noqa: ARG002
        known = np.isfinite(self.left_out_scores_[:, 0])
        table: Any = learning.outcomes
        outcomes = Outcomes(table[known, 0] > 0, table[known, 1])
        self.slope_ = risk_slope(outcomes, self.left_out_scores_[known, 0])
        self.left_out_risks_ = self.slope_ * self.left_out_scores_[:, 0]
        self._keep_hazard(outcomes, self.left_out_risks_[known])

    def predict(self, X: Any) -> Floats:
        """Return the risk of every bag, a log-hazard ratio: larger means earlier, (n_bags,).

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
        """
        check_is_fitted(self)
        return self.slope_ * self._stacked(X)[:, 0]

    def score_instances(self, X: Any, kind: str = "effect") -> Floats:
        """Return how much every instance raises the risk of its bag, (n_instances,).

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
        kind : {"effect", "alone"}
            "effect": the risk of the bag minus that of the bag without the instance. "alone": the risk of a bag of
            this instance.
        """
        effects = self._instance_effects(X, kind)[:, 0]
        return self.slope_ * effects

    def explain(self, bag: Any, *, share: float = 0.9) -> ValueExplanation:
        """Return which instances raise and which lower the risk of one bag.

        Parameters
        ----------
        bag : 2-D array, or Bags with one bag
        share : float, default=0.9
            The part of all that raises the risk, or lowers it, that the instances named have at least.
        """
        check_is_fitted(self)
        bags = one_bag(self, bag)
        typical = float(np.nanmean(self.left_out_risks_))
        return explain_value(bags, float(self.predict(bags)[0]), typical, self.score_instances(bags), share)
