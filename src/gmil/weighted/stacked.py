"""What all estimators by stacked views share: parameters, the order of a fit, and answers about new bags."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from gmil.base import BagEstimator
from gmil.compat import Interval
from gmil.engine import is_torch, one_blas_thread, resolve
from gmil.errors import BagValidationError
from gmil.parameters import AT_LEAST_ONE, parameter, parameters
from gmil.sampling import make_generator
from gmil.scale import LazyBags
from gmil.validation import check_bags, check_lazy_bags
from gmil.weighted.centers import CENTERS, choose_centers
from gmil.weighted.familiar import distances_to_centers
from gmil.weighted.fitting import FittedViews, Fitting, Learning, fit_views, sample_of_bags
from gmil.weighted.instances import instance_scores
from gmil.weighted.streaming import MOST_BAGS, Plan, as_lazy, decide_lazily, fit_lazily, most_instances
from gmil.weighted.views import KINDS, SCALES, SPARSE_SCALES, InSpaces

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats
    from gmil.weighted.witness_fitting import InstanceModels


class FittedStack(BagEstimator, ABC):
    """Answers about new bags; a class defines ``_fitted``."""

    n_jobs: int | None
    backend: str
    sparse_: bool
    familiar_distance_: float

    @abstractmethod
    def _fitted(self) -> FittedViews:
        """Return everything that decides about a bag."""

    def _stacked(self, X: Any) -> Floats:
        """Return the sum of all views and models about new bags, (n_bags, n_problems)."""
        backend = resolve(self.backend, self.n_jobs)
        if isinstance(X, LazyBags):
            return decide_lazily(self._fitted(), self._check_lazy_new(X), backend)
        bags = self._check_new(X)
        if is_torch(backend.name) and not sp.issparse(bags.instances):
            return decide_lazily(self._fitted(), as_lazy(bags, backend), backend)
        return self._fitted().decide(bags, backend)

    def _scores_of_instances(self, X: Any, kind: str) -> Floats:
        """Return scores of the instances of new bags, (n_instances, n_problems)."""
        score = partial(instance_scores, self._fitted(), kind=kind, backend=resolve(self.backend, self.n_jobs))
        if isinstance(X, LazyBags):
            return self._check_lazy_new(X).by_blocks(score, per_instance=True)
        return score(self._check_new(X))

    def unfamiliar(self, X: Any) -> Booleans:
        """Tell which bags are farther from all centres than 99 % of the training bags were.

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
        """
        return np.asarray(self._nearest(X) > self.familiar_distance_)

    def _nearest(self, X: Any) -> Floats:
        """Return how far the nearest instance of every bag is from the nearest centre."""
        check_is_fitted(self)
        backend = resolve(self.backend, self.n_jobs)
        of_bags = partial(distances_to_centers, self._fitted().spaces[0], backend=backend)
        lazy = isinstance(X, LazyBags)
        nearest = self._check_lazy_new(X).by_blocks(of_bags) if lazy else of_bags(self._check_new(X))
        return np.asarray(nearest.min(axis=1))

    def _check_new(self, X: Any) -> Bags:
        """Return new bags, sparse or dense as the training bags were: the views depend on it."""
        bags = super()._check_new(X)
        if bool(sp.issparse(bags.instances)) == self.sparse_:
            return bags
        converted = sp.csr_array(bags.instances) if self.sparse_ else bags.instances.toarray()
        return bags.with_instances(converted, bags.feature_names)


@parameters
class StackedViews(FittedStack):
    """An estimator that adds up what kernel ridge regressions on several embeddings of a bag predict.

    A class defines ``_learning``, ``_instance_models``, ``_keep`` and ``_fitted``.
    """

    n_centers: int | str = parameter(default="auto", rules=[AT_LEAST_ONE, ("auto",)], kw_only=False)
    scales: Any = parameter(default="auto", rules=[("auto",), list, tuple])
    views: Any = parameter(default=KINDS, rules=[list, tuple])
    centers: str = parameter(default="random", rules=[CENTERS])
    witness_model: bool = parameter(default=True, rules=["boolean"])
    sample_size: int | str = parameter(default="auto", rules=[AT_LEAST_ONE, ("auto",)])
    max_bags: int = parameter(default=1500, rules=[Interval(Integral, 10, None, closed="left")])
    n_points: int = parameter(default=500, rules=[AT_LEAST_ONE])
    n_jobs: int | None = None
    backend: str = "auto"
    random_state: Any = None

    _reads_blocks: ClassVar[bool] = True
    _folds_in_threads: ClassVar[bool] = True  # most of a fit is many small decompositions

    def _fit_stacked(self, X: Any, y: Any, groups: Any) -> Self:
        """Choose and fit the views, on all instances or on a sample of many."""
        if isinstance(X, LazyBags):
            lazy = check_lazy_bags(X, estimator=self, reset=True)
            self._observe(lazy)
            return self._fit_lazily(lazy, y, groups, most_instances(self.sample_size, lazy, in_memory=False))
        bags = check_bags(X, estimator=self, reset=True)
        self._observe(bags)
        sparse = bool(sp.issparse(bags.instances))
        most = most_instances(self.sample_size, bags, in_memory=True)
        if not sparse and (bags.n_instances > most or len(bags) > MOST_BAGS or is_torch(self.backend)):
            return self._fit_lazily(as_lazy(bags, resolve(self.backend, self.n_jobs)), y, groups, most)
        learning, generator = self._learning(bags, y, groups), make_generator(self.random_state)
        scales, models = self._check_scales(sparse=sparse), self._instance_models()
        own: dict[str, Any] = {"backend": learning.backend, "generator": generator}
        with one_blas_thread():  # products are small: threads of BLAS would spin between them
            spaces = choose_centers(bags, scales, self.n_centers, self.centers, learning.positive, **own)
            taken = InSpaces(spaces, bags, learning.backend)
            found = fit_views(taken, tuple(self.views), learning, max_bags=self.max_bags, generator=generator)
            if models is not None:
                found = found.with_witnesses(taken, learning, models, generator)
        return self._keep(found, learning, sparse=sparse)

    def _fit_lazily(self, bags: LazyBags, y: Any, groups: Any, most: float) -> Self:
        learning, generator = self._learning(bags, y, groups), make_generator(self.random_state)
        rows = sample_of_bags(learning.positive, MOST_BAGS, generator)
        some = bags if rows is None else bags[rows]
        found = fit_lazily(Plan(self, np.ones(len(some), dtype=bool), learning.some(rows), generator, most), some)
        return self._keep(found if rows is None else found.among(rows, len(bags)), learning, sparse=False)

    def _observe(self, bags: Bags | LazyBags) -> None:
        """Keep what is to be known of training bags beside what is learnt from them."""

    @abstractmethod
    def _learning(self, bags: Bags | LazyBags, y: Any, groups: Any) -> Learning:
        """Return what is to be learnt from checked bags, and set what is known of it."""

    @abstractmethod
    def _instance_models(self) -> InstanceModels | None:
        """Return what learns models of single instances; None where there are none."""

    @abstractmethod
    def _keep(self, found: Fitting, learning: Learning, *, sparse: bool) -> Self:
        """Set what a fitted model has."""

    def _check_scales(self, *, sparse: bool, automatic: tuple[str, ...] = SCALES) -> tuple[str | None, ...]:
        """Return the scalings to use; scalings and views that do not exist are refused."""
        known_scales = SPARSE_SCALES if sparse else (*SCALES, None)
        scales = (SPARSE_SCALES if sparse else automatic) if isinstance(self.scales, str) else tuple(self.scales)
        for name, given, known in (("scales", scales, known_scales), ("views", tuple(self.views), KINDS)):
            wrong = [item for item in given if item not in known]
            if wrong or not given:
                kind = " for sparse bags" if sparse and name == "scales" else ""
                msg = f"{name}{kind} must be some of {list(known)}, got {list(given)}."
                raise BagValidationError(msg)
        return scales
