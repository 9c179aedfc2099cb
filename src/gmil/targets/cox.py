"""The reference for times: proportional hazards on statistics of bags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.optimize import minimize
from sklearn.utils.validation import check_is_fitted

from gmil.base import BagEstimator, register
from gmil.compat import checks_parameters
from gmil.io.model_files.schema import Array, Fitted, Kind, Number
from gmil.model_selection.folds import inner_folds
from gmil.parameters import ABOVE_ZERO, parameter, parameters
from gmil.sampling import make_generator
from gmil.target_checks import check_outcomes
from gmil.targets.losses import Cox
from gmil.targets.survival import FITTED_HAZARD, HazardMixin
from gmil.transform.scaling import safe_units
from gmil.transform.vectors import BagSummaries
from gmil.validation import check_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine.arrays import Floats, Integers
    from gmil.target_checks import Outcomes

_PENALTIES = np.logspace(-2, 3, 11)
_FOLDS = 5


@register(method="bag-cox")
@parameters
class BagCox(HazardMixin, BagEstimator):
    """Proportional hazards (Cox) on statistics of the features of a bag, by default their means.

    The coefficients have a ridge penalty, which is chosen by the partial likelihood of bags that were left out.

    Parameters
    ----------
    statistics : tuple of {"min", "mean", "max", "sd"}, default=("mean",)
        What to take of every feature.
    penalty : float or "auto", default="auto"
        The weight of half the sum of squared coefficients of standardised statistics; "auto" is chosen among eleven.
    random_state : int, RandomState instance or None, default=None
        Seed of the inner folds.

    Attributes
    ----------
    transformer_ : BagSummaries
        What makes the statistics.
    coef_ : array of shape (n_columns,)
        Log-hazard ratios of a unit of each statistic.
    mean_ : array of shape (n_columns,)
        Means of the statistics, where the risk is zero.
    penalty_ : float
    unique_times_ : array of shape (n_times,)
        The times of training events.
    baseline_hazard_ : array of shape (n_times,)
        The cumulative baseline hazard from each of these times on.
    n_features_in_ : int

    Examples
    --------
    >>> from gmil import BagCox, make_bags
    >>> bags, y = make_bags(160, target="survival", witness_rate=1.0, random_state=0, return_X_y=True)
    >>> BagCox(random_state=0).fit(bags[:120], y[:120]).score(bags[120:], y[120:]) > 0.65
    True
    """

    statistics: Sequence[str] = parameter(default=("mean",), rules=[list, tuple], kw_only=False)
    penalty: float | str = parameter(default="auto", rules=[ABOVE_ZERO, ("auto",)])
    random_state: Any = None

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "transformer_": Fitted("transform", n_features="d"),
        "coef_": Array("c"),
        "mean_": Array("c"),
        "penalty_": Number(above=0),
        **FITTED_HAZARD,
    }
    _target: ClassVar[str] = "survival"

    @checks_parameters
    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:
        """Learn from bags and their times.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            The training bags; a 2-D array is read as bags of one instance each.
        y : structured array, data frame, or array of shape (n_bags, 2)
            Whether the event was seen, and when, or until when it was not.
        groups : array of shape (n_bags,), optional
            Bags of one group stay together in the inner folds.
        """
        bags = self._check_bags(X)
        outcomes = check_outcomes(y, bags, type(self).__name__)
        numbers = check_groups(groups, len(bags))
        self.transformer_ = BagSummaries(tuple(self.statistics)).fit(bags)
        vectors = np.asarray(self.transformer_.transform(bags), dtype=np.float64)
        ends = vectors.min(axis=0), vectors.max(axis=0)
        self.mean_, spread = safe_units(vectors.mean(axis=0), vectors.std(axis=0), *ends)
        scaled = (vectors - self.mean_) / spread
        self.penalty_ = self._penalty(scaled, outcomes, numbers)
        self.coef_ = fit_cox(scaled, outcomes, self.penalty_) / spread
        self._keep_hazard(outcomes, (vectors - self.mean_) @ self.coef_)
        return self

    def _penalty(self, scaled: Floats, outcomes: Outcomes, groups: Integers | None) -> float:
        """Return the penalty with the least loss of bags that were left out."""
        if not isinstance(self.penalty, str):
            return float(self.penalty)
        labels = outcomes.event.astype(np.int64)
        labels = labels if 0 < labels.sum() < len(labels) else np.zeros_like(labels)
        tests = inner_folds(labels, _FOLDS, make_generator(self.random_state), groups)
        losses = [sum(_left_out_loss(scaled, outcomes, test, penalty) for test in tests) for penalty in _PENALTIES]
        return float(_PENALTIES[int(np.argmin(losses))])

    def predict(self, X: Any) -> Floats:
        """Return the risk of every bag, a log-hazard ratio: larger means earlier, (n_bags,).

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
        """
        check_is_fitted(self)
        return (self.transformer_.transform(self._check_new(X)) - self.mean_) @ self.coef_


def fit_cox(vectors: Floats, outcomes: Outcomes, penalty: float) -> Floats:
    """Return log-hazard ratios of vectors, (n_columns,), by the penalised partial likelihood."""
    loss = Cox(outcomes.table, np.ones(len(vectors)))

    def total(coefficients: Floats) -> tuple[float, Floats]:
        value, pull = loss(vectors @ coefficients)
        return value + penalty * float(coefficients @ coefficients) / 2, vectors.T @ pull + penalty * coefficients

    found: Any = minimize(total, np.zeros(vectors.shape[1]), jac=True, method="L-BFGS-B", options={"ftol": 1e-12})
    return np.asarray(found.x)


def _left_out_loss(vectors: Floats, outcomes: Outcomes, test: Any, penalty: float) -> float:
    """Return what bags that were left out add to the loss of all bags (Verweij and van Houwelingen)."""
    training = type(outcomes)(outcomes.event[~test], outcomes.time[~test])
    if not training.event.any():
        return 0.0
    coefficients = fit_cox(vectors[~test], training, penalty)
    risk, ones = vectors @ coefficients, np.ones(len(vectors))
    return Cox(outcomes.table, ones)(risk)[0] - Cox(training.table, ones[~test])(risk[~test])[0]
