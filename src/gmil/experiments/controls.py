"""What every accuracy must beat: naming the majority class, and looking at nothing but the size of the bag.

They do not learn from instances and so cannot pass the checks of an estimator; tables show them, users do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.bags import Bags
    from gmil.engine.arrays import Floats


class MajorityClass(ClassifierMixin, BaseEstimator):
    """Names the most frequent class of the training bags; of equals the first."""

    classes_: NDArray[Any]

    def fit(self, X: Bags, y: Any) -> Self:  # noqa: ARG002
        """Count the classes."""
        self.classes_, counts = np.unique(y, return_counts=True)
        self.majority_ = int(counts.argmax())
        return self

    def decision_function(self, X: Bags) -> Floats:
        """Return the same decision for every bag."""
        if len(self.classes_) == 2:
            return np.full(len(X), 1.0 if self.majority_ else -1.0)
        return np.tile(np.arange(len(self.classes_)) == self.majority_, (len(X), 1)).astype(np.float64)

    def predict(self, X: Bags) -> NDArray[Any]:
        """Return the majority class for every bag."""
        return np.full(len(X), self.classes_[self.majority_])


class BagSize(ClassifierMixin, BaseEstimator):
    """Logistic regression on the logarithm of the number of instances, and on nothing else."""

    classes_: NDArray[Any]

    def fit(self, X: Bags, y: Any) -> Self:
        """Fit on the sizes of the training bags."""
        self.model_ = LogisticRegression().fit(_log_sizes(X), y)
        self.classes_ = self.model_.classes_
        return self

    def decision_function(self, X: Bags) -> Floats:
        """Return the decision of the regression."""
        return np.asarray(self.model_.decision_function(_log_sizes(X)))

    def predict(self, X: Bags) -> NDArray[Any]:
        """Return the class that the size speaks for."""
        return np.asarray(self.model_.predict(_log_sizes(X)))


def _log_sizes(bags: Bags) -> Floats:
    return np.log(bags.sizes)[:, None]


CONTROLS: dict[str, tuple[str, type[BaseEstimator]]] = {
    "majority": ("majority class", MajorityClass),
    "bag-size": ("bag size alone", BagSize),
}
"""Method name to printed label and class."""
