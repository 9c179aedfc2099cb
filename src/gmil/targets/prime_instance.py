"""Regression on the prime instance of every bag (Ray and Page 2001)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.linear_model import Ridge

from gmil.base import register
from gmil.io.model_files.schema import Array, Count, Kind
from gmil.parameters import AT_LEAST_ONE, NOT_NEGATIVE, parameter, parameters
from gmil.sampling import make_generator
from gmil.targets.references import ScaledRegressor, aggregated
from gmil.transform.space import dense, fit_scaling

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Floats, Integers


@register(method="prime-instance")
@parameters
class PrimeInstanceRegressor(ScaledRegressor):
    """Linear regression on one instance of every bag, the prime instance, which is found in turns with the model.

    Every bag gives the instance whose value by the model is nearest to its own; on these the model is fitted again,
    until no bag changes its mind. The best of several starts from random instances is kept. Nobody knows the prime
    instance of a new bag: its value is the mean or the median over its instances.

    Parameters
    ----------
    penalty : float, default=1.0
        That of ridge regression.
    aggregate : {"mean", "median"}, default="mean"
        How the values of its instances become that of a new bag.
    n_init : int, default=5
        Starts: the first from means of bags, the others from random instances.
    max_iter : int, default=50
        Turns at most.
    scale : {None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "global"}, default="standard"
        Scaling of the features, fitted on the training instances.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Attributes
    ----------
    coef_ : array of shape (n_features, n_targets)
    intercept_ : array of shape (n_targets,)
    n_iter_ : int
        Turns of the best start.
    n_features_in_ : int

    References
    ----------
    S. Ray and D. Page (2001), Multiple instance regression, ICML.

    Examples
    --------
    >>> from gmil import PrimeInstanceRegressor, make_bags
    >>> bags, y = make_bags(160, target="regression", witness_rate=1.0, random_state=0, return_X_y=True)
    >>> PrimeInstanceRegressor(random_state=0).fit(bags[:120], y[:120]).score(bags[120:], y[120:]) > 0.5
    True
    """

    penalty: float = parameter(default=1.0, rules=[NOT_NEGATIVE], kw_only=False)
    aggregate: str = parameter(default="mean", rules=[{"mean", "median"}])
    n_init: int = parameter(default=5, rules=[AT_LEAST_ONE])
    max_iter: int = 50
    random_state: Any = None

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "coef_": Array("d", "P"),
        "intercept_": Array("P"),
        "n_iter_": Count(1),
    }
    _kept_parameters = ("aggregate",)

    def _learn(self, bags: Bags, values: Floats) -> None:
        self.space_ = fit_scaling(bags.instances, self.scale)
        scaled, generator = dense(self.space_.apply(bags.instances)), make_generator(self.random_state)
        drawn = [(generator.random(len(bags)) * bags.sizes).astype(np.int64) for _ in range(self.n_init - 1)]
        starts = [aggregated(scaled, bags, "mean"), *(scaled[bags.offsets[:-1] + some] for some in drawn)]
        found = [self._alternate(scaled, bags, values, start) for start in starts]
        _, self.coef_, self.intercept_, self.n_iter_ = min(found, key=lambda fit: fit[0])

    def _alternate(self, scaled: Floats, bags: Bags, values: Floats, rows: Floats) -> tuple[float, Floats, Floats, int]:
        """Return the error on prime instances, coefficients, intercepts and the number of turns."""
        prime, wanted = np.full(len(bags), -1), np.repeat(values, bags.sizes, axis=0)
        for turn in range(1, self.max_iter + 1):  # noqa: B007  the number of the last one is kept
            model = Ridge(self.penalty).fit(rows, values)
            coefficients = model.coef_.reshape(values.shape[1], -1).T  # of one column scikit-learn returns a row
            errors = ((scaled @ coefficients + model.intercept_ - wanted) ** 2).sum(axis=1)
            before, prime = prime, _smallest(errors, bags.offsets)
            rows = scaled[prime]
            if (before == prime).all():
                break
        return float(errors[prime].mean()), coefficients.copy(), np.ravel(model.intercept_), turn

    def _values(self, bags: Bags) -> Floats:
        values = dense(self.space_.apply(bags.instances)) @ self.coef_ + self.intercept_
        return aggregated(values, bags, self.aggregate_)


def _smallest(values: Floats, offsets: Integers) -> Integers:
    """Return the row of the smallest value of every bag, the first of equals."""
    sizes = np.diff(offsets)
    order = np.lexsort((values, np.repeat(np.arange(len(sizes)), sizes)))
    return order[offsets[:-1]]
