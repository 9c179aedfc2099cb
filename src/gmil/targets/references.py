"""What regression on bags is measured against: statistics of bags, and one instance at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gmil.base import BagEstimator, register
from gmil.compat import HasMethods, checks_parameters
from gmil.io.model_files.schema import Fitted, Flag, Kind
from gmil.parameters import parameter, parameters
from gmil.target_checks import check_values
from gmil.transform.scaling import SCALINGS
from gmil.transform.space import SpaceMixin, fit_scaling
from gmil.transform.vectors import BagSummaries
from gmil.witnesses.effects import effects, left_out, score_by_effect

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sklearn.base import BaseEstimator

    from gmil.bags import Bags
    from gmil.engine.arrays import Floats

PENALTIES = np.logspace(-3, 4, 15)
"""Of ridge regressions on vectors of bags, to choose from."""


class ReferenceRegressor(RegressorMixin, BagEstimator, ABC):
    """A regressor of bags; a class defines ``_learn`` and ``_values``."""

    _fitted_attributes: ClassVar[dict[str, Kind]] = {"one_target_": Flag()}

    one_target_: bool

    @checks_parameters
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from bags and their values.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            The training bags; a 2-D array is read as bags of one instance each.
        y : array of shape (n_bags,) or (n_bags, n_targets)
            A value per bag, or several.
        """
        bags = self._check_bags(X)
        values = check_values(y, bags, self)
        self.one_target_ = values.ndim == 1
        self._keep_parameters()
        self._learn(bags, values.reshape(len(values), -1))
        return self

    @abstractmethod
    def _learn(self, bags: Bags, values: Floats) -> None:
        """Set what a fitted model has, from values of shape (n_bags, n_targets)."""

    @abstractmethod
    def _values(self, bags: Bags) -> Floats:
        """Return predictions, (n_bags, n_targets)."""

    def predict(self, X: Any) -> Floats:
        """Return the value of every bag, (n_bags,) or (n_bags, n_targets).

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        """
        return self._shaped(self._values(self._check_new(X)))

    def _shaped(self, values: Floats) -> Floats:
        return values[:, 0] if self.one_target_ else values

    score_instances = score_by_effect
    _effects, _decide = effects, predict

    def _decide_without(self, bags: Bags) -> Iterator[tuple[Any, Floats]]:
        return ((rows, self.predict(some)) for rows, some in left_out(bags))

    def _decision_of_nothing(self) -> Any:
        return 0.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@register(method="bag-regressor")
@parameters
class BagRegressor(ReferenceRegressor):
    """Any regressor on statistics of the features of a bag: minimum, mean, maximum, deviation.

    It knows nothing of single instances, and where it is level with methods that do, the data do not need them.

    Parameters
    ----------
    estimator : regressor or None, default=None
        What learns from the statistics. None is ridge regression on statistics of mean 0 and deviation 1, its penalty
        chosen by leaving out single bags.
    statistics : tuple of {"min", "mean", "max", "sd"}, default=("min", "mean", "max", "sd")
        What to take of every feature.

    Attributes
    ----------
    transformer_ : BagSummaries
        What makes the statistics.
    estimator_ : regressor
    n_features_in_ : int

    Examples
    --------
    >>> from gmil import BagRegressor, make_bags
    >>> bags, y = make_bags(160, target="regression", witness_rate=1.0, random_state=0, return_X_y=True)
    >>> BagRegressor().fit(bags[:120], y[:120]).score(bags[120:], y[120:]) > 0.8
    True
    """

    estimator: BaseEstimator | None = parameter(
        default=None, rules=[HasMethods(["fit", "predict"]), None], kw_only=False
    )
    statistics: Sequence[str] = parameter(default=("min", "mean", "max", "sd"), rules=[list, tuple])

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "transformer_": Fitted("transform", n_features="d"),
        "estimator_": Fitted("predict"),
    }
    _takes_estimators = True

    def _learn(self, bags: Bags, values: Floats) -> None:
        self.transformer_ = BagSummaries(tuple(self.statistics)).fit(bags)
        model = make_pipeline(StandardScaler(), RidgeCV(PENALTIES)) if self.estimator is None else self.estimator
        self.estimator_ = clone(model).fit(self.transformer_.transform(bags), self._shaped(values))

    def _values(self, bags: Bags) -> Floats:
        return np.asarray(self.estimator_.predict(self.transformer_.transform(bags))).reshape(len(bags), -1)


@parameters
class ScaledRegressor(SpaceMixin, ReferenceRegressor):
    """A regressor that sees instances scaled."""

    scale: str | None = parameter(default="standard", rules=[SCALINGS, None])


@register(method="single-instance-regressor")
@parameters
class SingleInstanceRegressor(ScaledRegressor):
    """Single-instance regression: instances inherit the value of their bag; a bag takes the mean or median of theirs.

    Parameters
    ----------
    estimator : regressor or None, default=None
        What learns from the instances. None is ridge regression.
    aggregate : {"mean", "median"}, default="mean"
        How the values of its instances become that of a bag.
    scale : {None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "global"}, default="standard"
        Scaling of the features, fitted on the training instances.

    Attributes
    ----------
    estimator_ : regressor
        The fitted regressor of instances.
    n_features_in_ : int

    Notes
    -----
    ``score_instances`` are the values of instances.

    References
    ----------
    S. Ray and D. Page (2001), Multiple instance regression, ICML.

    Examples
    --------
    >>> from gmil import SingleInstanceRegressor, make_bags
    >>> bags, y = make_bags(160, target="regression", witness_rate=1.0, random_state=0, return_X_y=True)
    >>> SingleInstanceRegressor().fit(bags[:120], y[:120]).score(bags[120:], y[120:]) > 0.8
    True
    """

    estimator: BaseEstimator | None = parameter(
        default=None, rules=[HasMethods(["fit", "predict"]), None], kw_only=False
    )
    aggregate: str = parameter(default="mean", rules=[{"mean", "median"}])

    _fitted_attributes: ClassVar[dict[str, Kind]] = {"estimator_": Fitted("predict", n_features="d")}
    _kept_parameters = ("aggregate",)
    _takes_estimators = True

    def _learn(self, bags: Bags, values: Floats) -> None:
        self.space_ = fit_scaling(bags.instances, self.scale)
        model = Ridge() if self.estimator is None else clone(self.estimator)
        owned = self._shaped(np.repeat(values, bags.sizes, axis=0))
        self.estimator_ = model.fit(self.space_.apply(bags.instances), owned)

    def _values(self, bags: Bags) -> Floats:
        return aggregated(self._of_instances(bags), bags, self.aggregate_)

    def _of_instances(self, bags: Bags) -> Floats:
        found = self.estimator_.predict(self.space_.apply(bags.instances))
        return np.asarray(found, dtype=np.float64).reshape(bags.n_instances, -1)

    def score_instances(self, X: Any) -> Floats:
        """Return the value of every instance, (n_instances,) or (n_instances, n_targets).

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
        """
        return self._shaped(self._of_instances(self._check_new(X)))


def aggregated(values: Floats, bags: Bags, aggregate: str) -> Floats:
    """Return the mean or the median of values of instances, (n_instances, n_targets), over every bag."""
    if aggregate == "mean":
        return np.asarray(np.add.reduceat(values, bags.offsets[:-1]) / bags.sizes[:, None])
    return np.stack([np.median(part, axis=0) for part in np.split(values, bags.offsets[1:-1])])
