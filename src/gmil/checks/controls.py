"""What every accuracy must beat: the majority class, the size of the bag alone, and features that are noise.

They do not learn from instances and so cannot pass the checks of an estimator; tables show them, users do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer, SplineTransformer
from sklearn.tree import DecisionTreeClassifier

from gmil.bags import Bags
from gmil.weighted import WeightedGMIL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats

_KNOTS = 4
"""Of the spline on sizes, at their quantiles: enough to rise and fall, too few to follow single bags."""
_DEPTH, _LEAF = 3, 5
"""Of the tree on sizes: at most eight leaves, each of some bags."""
_MOST_NOISE = 200
"""So many features of noise at most."""


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


def log_sizes(bags: Bags) -> Floats:
    """Return the logarithms of the numbers of instances as one column."""
    return np.log(bags.sizes)[:, None]


def spline_of(sizes: Floats) -> TransformerMixin:
    """Return the spline on sizes, with knots at their quantiles; sizes that are all the same stay what they are."""
    knots = np.unique(np.quantile(sizes, np.linspace(0, 1, _KNOTS)))
    if len(knots) == 1:
        return FunctionTransformer().fit(sizes)
    return SplineTransformer(degree=2, knots=knots[:, None], extrapolation="constant").fit(sizes)


def size_regression() -> LogisticRegression:
    """Return what learns from the spline."""
    return LogisticRegression(max_iter=1000)


class BagSize(ClassifierMixin, BaseEstimator):
    """Logistic regression on a spline of the logarithm of the number of instances, and on nothing else.

    The spline may rise and fall: on Musk1 the bags of middle size are of another class than small and large ones.
    """

    classes_: NDArray[Any]

    def fit(self, X: Bags, y: Any) -> Self:
        """Fit on the sizes of the training bags."""
        self.spline_ = spline_of(log_sizes(X))
        self.model_ = size_regression().fit(self.spline_.transform(log_sizes(X)), y)
        self.classes_ = self.model_.classes_
        return self

    def decision_function(self, X: Bags) -> Floats:
        """Return the decision of the regression."""
        return np.asarray(self.model_.decision_function(self.spline_.transform(log_sizes(X))))

    def predict(self, X: Bags) -> NDArray[Any]:
        """Return the class that the regression gives a bag of that size."""
        return np.asarray(self.model_.predict(self.spline_.transform(log_sizes(X))))


class BagSizeTree(ClassifierMixin, BaseEstimator):
    """A small decision tree on the number of instances, and on nothing else: it finds what no smooth curve follows.

    Parameters
    ----------
    random_state : int, default=0
    """

    classes_: NDArray[Any]

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: Bags, y: Any) -> Self:
        """Grow the tree on the sizes of the training bags."""
        tree = DecisionTreeClassifier(max_depth=_DEPTH, min_samples_leaf=_LEAF, random_state=self.random_state)
        self.model_ = tree.fit(log_sizes(X), y)
        self.classes_ = self.model_.classes_
        return self

    def decision_function(self, X: Bags) -> Floats:
        """Return the share of the second class in the leaf of a bag, or of every class."""
        shares = self.model_.predict_proba(log_sizes(X))
        return np.asarray(shares[:, 1] - 0.5 if len(self.classes_) == 2 else shares)

    def predict(self, X: Bags) -> NDArray[Any]:
        """Return the class of most bags in the leaf."""
        return np.asarray(self.model_.predict(log_sizes(X)))


class ShuffledLabels(ClassifierMixin, BaseEstimator):
    """`WeightedGMIL` that was trained on shuffled labels: what is above chance in it is a fault of the protocol.

    Parameters
    ----------
    random_state : int, default=0
        The seed of the order and of the method.
    """

    classes_: NDArray[Any]

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: Bags, y: Any, *, groups: Any = None) -> Self:
        """Fit on the training bags, whose labels have changed places."""
        shuffled = np.random.default_rng(self.random_state).permutation(np.asarray(y))
        self.model_ = WeightedGMIL(random_state=self.random_state, n_jobs=1).fit(X, shuffled, groups=groups)
        self.classes_ = self.model_.classes_
        return self

    def decision_function(self, X: Bags) -> Floats:
        """Return the decisions of the method."""
        return self.model_.decision_function(X)

    def predict(self, X: Bags) -> NDArray[Any]:
        """Return the class of every bag."""
        return self.model_.predict(X)


class NoiseFeatures(ClassifierMixin, BaseEstimator):
    """`WeightedGMIL` on bags of the same sizes whose features are Gaussian noise.

    What it gets right it knows from the sizes alone, as the smallest and the largest of many numbers lie further out
    than those of few: a method that looks at instances must be better.

    Parameters
    ----------
    random_state : int, default=0
        The seed of noise and method.
    """

    classes_: NDArray[Any]

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: Bags, y: Any, *, groups: Any = None) -> Self:
        """Fit on noise in place of the instances of the training bags."""
        self.classes_, numbers = np.unique(y, return_inverse=True)
        model = WeightedGMIL(random_state=self.random_state, n_jobs=1)
        self.model_ = model.fit(noise_like(X, self.random_state, part=0), numbers, groups=groups)
        return self

    def decision_function(self, X: Bags) -> Floats:
        """Return decisions on noise that training has not seen."""
        return self.model_.decision_function(noise_like(X, self.random_state, part=1))

    def predict(self, X: Bags) -> NDArray[Any]:
        """Return the class of every bag."""
        return self.classes_[self.model_.predict(noise_like(X, self.random_state, part=1))]


def noise_like(bags: Bags, seed: int, part: int = 0) -> Bags:
    """Return bags of the same sizes with Gaussian features; of sparse bags not all features, they would fill memory."""
    shape = (bags.n_instances, min(bags.n_features, _MOST_NOISE))
    return Bags(np.random.default_rng((seed, part)).normal(size=shape), bags.offsets)


CONTROLS: dict[str, tuple[str, type[BaseEstimator]]] = {
    "majority": ("majority class", MajorityClass),
    "bag-size": ("bag size alone", BagSize),
    "noise": ("noise features", NoiseFeatures),
}
"""Method name to printed label and class."""

BENCHMARK_CONTROLS: dict[str, tuple[str, type[BaseEstimator]]] = {
    **CONTROLS,
    "bag-size-tree": ("bag size alone, by a tree", BagSizeTree),
    "shuffled-labels": ("shuffled labels", ShuffledLabels),
}
"""Those of `gmil benchmark`, which measures many sets and can afford more."""
