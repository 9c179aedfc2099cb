"""MILES: a bag as its similarities to all training instances, and a linear classifier that keeps few of them."""

from __future__ import annotations

from itertools import product
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.svm import LinearSVC
from sklearn.utils._param_validation import Interval, StrOptions

from gmil.base import register
from gmil.classifiers.settings import make_generator
from gmil.engine import resolve
from gmil.engine.reference import dense_rows
from gmil.rivals.bag_kernels import median_gamma
from gmil.rivals.inner_folds import choose, inner_folds
from gmil.rivals.multiclass import MulticlassClassifier
from gmil.scaling import SCALINGS

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers

_BLOCK_ENTRIES = 1 << 22
"""How many distances between instances are held at once: 32 MiB in double precision."""

_TIE = 1e-9
"""How far apart, relative to themselves, two squared distances may be and still count as equal."""

_MEDIAN_FACTOR = 3.0
_GAMMA_FACTORS = (1 / 3, 1.0, 3.0)
_C_FACTORS = (0.1, 1.0, 10.0)
_N_FOLDS = 5


@register(method="miles")
class MILES(MulticlassClassifier):
    """Multiple instance learning by embedded instance selection (Chen, Bi & Wang).

    A bag becomes a vector: to every training instance the similarity exp(-gamma d^2) of the nearest instance of the
    bag. A linear support vector machine with a penalty on the sum of absolute weights keeps few of them.

    Parameters
    ----------
    gamma : float or "median", default="median"
        One over the squared width of the similarity. "median" is three over the median squared distance between two
        training instances.
    C : float, default=1.0
        The price of a training error; a low one keeps fewer instances.
    tune : bool, default=False
        Choose gamma and C by 5-fold cross-validation inside the training bags: gamma times 1/3, 1 or 3, C times
        1/10, 1 or 10. Where a class has a single bag, nothing is chosen.
    max_prototypes : int or None, default=10_000
        With more training instances than this, similarities are to a sample of them, drawn without replacement.
        None: always to all.
    scale : {None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "global"}, default="minmax"
        Scaling of the features, fitted on the training instances.
    max_iter : int, default=100_000
        Iterations of the linear classifier at most.
    pos_label : label or None, default=None
        The positive class of two; None is ``classes_[1]``.
    n_jobs : int or None, default=None
        Threads of the compiled kernels. None is every core of this process, or what ``OMP_NUM_THREADS`` allows;
        results do not depend on it.
    backend : {"auto", "numpy", "native"}, default="auto"
        The implementation of distances and of reductions over bags.
    random_state : int, RandomState instance or None, default=None
        Seed of samples, of inner folds and of the order in which the linear classifier visits its weights.

    Attributes
    ----------
    prototypes_ : array of shape (n_prototypes, n_features)
        The training instances with a weight, scaled.
    coef_ : array of shape (n_prototypes, 1) or (n_prototypes, n_classes)
        Their weights.
    intercept_ : array of shape (1,) or (n_classes,)
    gamma_ : float
        The width in use.
    C_ : float
        The price in use.
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    n_iter_ : int
        Iterations of the linear classifier.

    Notes
    -----
    Training costs O(N^2 d) for N instances (O(N max_prototypes d) for many), a new bag only the prototypes that were
    kept. More than two classes are each set against the others. The errors are squared, not a linear program.

    References
    ----------
    Chen, Y., Bi, J. and Wang, J. Z., "MILES: Multiple-Instance Learning via Embedded Instance Selection", IEEE
    Transactions on Pattern Analysis and Machine Intelligence 28(12), 2006.

    Examples
    --------
    >>> from gmil import MILES, make_bags
    >>> bags, y = make_bags(100, separation=8, random_state=0, return_X_y=True)
    >>> model = MILES(random_state=0).fit(bags[:80], y[:80])
    >>> model.score(bags[80:], y[80:]) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"median"})],
        "C": [Interval(Real, 0, None, closed="neither")],
        "tune": ["boolean"],
        "max_prototypes": [Interval(Integral, 1, None, closed="left"), None],
        "scale": [StrOptions(set(SCALINGS)), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "pos_label": [Real, str, "boolean", None],
        "n_jobs": [Integral, None],
        "backend": [StrOptions({"auto", "numpy", "native"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        gamma: float | str = "median",
        C: float = 1.0,
        *,
        tune: bool = False,
        max_prototypes: int | None = 10_000,
        scale: str | None = "minmax",
        max_iter: int = 100_000,
        pos_label: Any = None,
        n_jobs: int | None = None,
        backend: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.gamma = gamma
        self.C = C
        self.tune = tune
        self.max_prototypes = max_prototypes
        self.scale = scale
        self.max_iter = max_iter
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.backend = backend
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Choose prototypes and their weights from bags and their labels.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            The training bags; a 2-D array is read as bags of one instance each.
        y : array of shape (n_bags,)
            One label per bag.
        """
        bags, labels = self._check_classes(X, y)
        backend, generator = resolve(self.backend, self.n_jobs), make_generator(self.random_state)
        instances = self._fit_scaled(bags)
        rows = self._candidates(bags.n_instances, generator)
        squares = nearest_squares(instances, bags.offsets, rows, backend)
        gamma = self.gamma
        if isinstance(gamma, str):
            gamma = _MEDIAN_FACTOR * median_gamma(instances, backend, generator)
        seed = int(generator.integers(2**31 - 1))
        folds = inner_folds(labels, _N_FOLDS, generator) if self.tune else []
        self.gamma_, self.C_ = self._choose(squares, labels, bags.segment_ids[rows], gamma, folds, seed)
        machine = self._machine(self.C_, seed).fit(np.exp(-self.gamma_ * squares), labels)
        self._keep(machine, instances, rows)
        self.n_iter_ = int(np.max(machine.n_iter_))
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return how positive every bag is, (n_bags,), or how much of every class, (n_bags, n_classes).

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        """
        bags, instances = self._new_scaled(X)
        backend = resolve(self.backend, self.n_jobs)
        squares = backend.bag_min(backend.sq_distances(instances, self.prototypes_), bags.offsets)
        decisions = np.exp(-self.gamma_ * squares) @ self.coef_ + self.intercept_
        return decisions if len(self.classes_) > 2 else decisions[:, 0]

    def score_instances(self, X: Any) -> Floats:
        """Return what every instance contributes: the terms of the prototypes that it is nearest to in its bag.

        The scores of a bag and the intercept add up to its decision. Equally near instances share a term.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.

        Returns
        -------
        array of shape (n_instances,) or (n_instances, n_classes)
            Aligned with the instances of all bags, one bag after the other.
        """
        bags, instances = self._new_scaled(X)
        backend = resolve(self.backend, self.n_jobs)
        squares = backend.sq_distances(instances, self.prototypes_)
        shares = nearest_shares(squares, bags.offsets, backend)
        scores = (shares * np.exp(-self.gamma_ * squares)) @ self.coef_
        return scores if len(self.classes_) > 2 else scores[:, 0]

    def _candidates(self, n_instances: int, generator: np.random.Generator) -> Integers:
        if self.max_prototypes is None or n_instances <= self.max_prototypes:
            return np.arange(n_instances)
        return np.sort(generator.choice(n_instances, self.max_prototypes, replace=False))

    def _machine(self, price: float, seed: int) -> Any:
        return LinearSVC(penalty="l1", dual=False, C=price, max_iter=self.max_iter, random_state=seed)

    def _choose(
        self,
        squares: Floats,
        labels: Integers,
        bag_of: Integers,
        gamma: float,
        folds: list[Booleans],
        seed: int,
    ) -> tuple[float, float]:
        """Return the width and the price to use; ``bag_of`` is the training bag of every candidate."""
        if not folds:
            return gamma, self.C

        def decide(setting: tuple[float, float], test: Booleans) -> Floats:
            width, price = setting
            # The instances of bags in the test fold would be candidates that no new bag has.
            similar = np.exp(-width * squares[:, ~test[bag_of]])
            return np.asarray(
                self._machine(price, seed).fit(similar[~test], labels[~test]).decision_function(similar[test])
            )

        settings = product((gamma * f for f in _GAMMA_FACTORS), [self.C * f for f in _C_FACTORS])
        return choose(settings, labels, folds, decide)[0]

    def _keep(self, machine: Any, instances: Instances, rows: Integers) -> None:
        """Keep the candidates that have a weight; one without weight where none has, so that there is one."""
        kept = np.flatnonzero(machine.coef_.any(axis=0))
        kept = kept if len(kept) else np.array([0])
        self.prototypes_ = dense_rows(instances, rows[kept])
        self.coef_, self.intercept_ = machine.coef_[:, kept].T.copy(), np.asarray(machine.intercept_)


def nearest_squares(X: Instances, offsets: Integers, rows: Integers, backend: Backend) -> Floats:
    """Return the squared distance between every bag and the instances ``rows``, (n_bags, n_rows), in bounded memory."""
    squares = np.empty((len(offsets) - 1, len(rows)), dtype=X.dtype)
    width = max(1, _BLOCK_ENTRIES // max(X.shape))
    for start in range(0, len(rows), width):
        block = slice(start, start + width)
        squares[:, block] = backend.bag_min(backend.sq_distances(X, dense_rows(X, rows[block])), offsets)
    return squares


def nearest_shares(squares: Floats, offsets: Integers, backend: Backend) -> Floats:
    """Return shares, (n_instances, n_prototypes): one for the nearest instance of a bag, split among equals."""
    sizes = np.diff(offsets)
    smallest = np.repeat(backend.bag_min(squares, offsets), sizes, axis=0)
    nearest = (squares <= smallest * (1 + _TIE)).astype(np.float64)
    return nearest / np.repeat(backend.bag_mean(nearest, offsets) * sizes[:, None], sizes, axis=0)
