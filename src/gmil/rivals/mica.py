"""MICA: a sparse plane, found by linear programs, that has a point of every positive bag on its positive side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from gmil.base import register
from gmil.engine.reference import dense_rows
from gmil.rivals.bag_kernels import InstanceKernel, kernel_width
from gmil.rivals.constraints import ABOVE_ZERO, AT_LEAST_ONE, KERNEL_WIDTH, NOT_NEGATIVE
from gmil.rivals.kernel_machine import InstanceFunction
from gmil.rivals.mica_training import Plane, train_mica
from gmil.rivals.svm_kernels import arrange, as_double, chosen_rows, kernel_columns

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers
    from gmil.rivals.svm_kernels import Arrangement
    from gmil.rivals.tuned import Training

NUS = (1.0, 10.0, 100.0, 1000.0)
"""What ``tune=True`` chooses nu from."""


@register(method="mica")
class MICA(InstanceFunction):
    """MICA: a plane with few weights and a convex combination of every positive bag on one side (Mangasarian and Wild).

    One point in the convex hull of every positive bag, its mean at first, and all instances of negative bags are
    separated by the plane whose weights have the least 1-norm, with slack: a linear program. For the plane found, the
    best points of the bags and the best threshold follow, and so on in turns. A bag is positive where an instance of it
    is on the positive side.

    Parameters
    ----------
    nu : float, default=100.0
        What the mean slack of a class costs, next to the 1-norm of the weights.
    kernel : {"linear", "rbf"}, default="linear"
        "rbf": the plane lies in the space of kernel values exp(-gamma d^2) between an instance and a basis of training
        instances, a reduced kernel.
    gamma : float or "median", default="median"
        "median" is one over the median squared distance between training instances.
    n_basis : int, default=200
        Training instances drawn as the basis of the RBF kernel, all where there are fewer.
    max_iter : int, default=30
        Linear programs solved for the plane at most.
    tol : float, default=1e-4
        Training ends where the objective falls by less than this share.
    scale : {None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "global"}, default="standard"
        Scaling of the features, fitted on the training instances, as in `gmil.GMIL`; the 1-norm needs features of one
        scale.
    tune : bool, default=False
        Choose nu from 1, 10, 100, 1000 by accuracy on five folds of the training bags. Of more than 2000 instances,
        2000 speak for all in the choice: large bags are thinned.
    pos_label : label or None, default=None
        The positive class; None is ``classes_[1]``.
    n_jobs : int or None, default=None
        Threads of the compiled kernels, as in `gmil.GMIL`.
    random_state : int, RandomState instance or None, default=None
        Seed of the basis, of the instances that speak for the median, and of the folds.

    Attributes
    ----------
    support_instances_ : array of shape (n_support, n_features)
        For the linear kernel one row, the weights; else the basis instances that have a weight, scaled (sparse ones as
        a dict of arrays).
    dual_coef_ : array of shape (n_support,)
        f(x) is the sum of these times the kernel between x and a support instance, plus ``intercept_``.
    intercept_ : float
    n_weights_ : int
        Weights that are not zero.
    gamma_, nu_ : float
        The values in use.
    objectives_ : array of shape (n_iter,)
        The 1-norm of the weights plus nu times the mean slacks, after every program; it never rises.
    stop_reason_ : {"converged", "iterations"}
        Why training ended: the objective or the points of the bags stayed, or ``max_iter`` was reached.
    n_iter_ : int
        Linear programs solved for the plane.
    classes_ : array of shape (2,)
    n_features_in_ : int

    Notes
    -----
    A program has two constraints per feature and a variable per instance; negative instances join it only once they are
    violated, so that thousands of them are no burden. Equally good planes may differ in their weights.

    References
    ----------
    Mangasarian, O. L. and Wild, E. W., "Multiple Instance Classification via Successive Linear Programming", Journal of
    Optimization Theory and Applications 137, 2008.

    Examples
    --------
    >>> from gmil import MICA, make_bags
    >>> bags, y = make_bags(60, separation=8, random_state=0, return_X_y=True)
    >>> model = MICA().fit(bags[:40], y[:40])
    >>> model.score(bags[40:], y[40:])
    1.0
    """

    _tuning_rounds: ClassVar[int] = 1
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **InstanceFunction._parameter_constraints,
        "nu": [ABOVE_ZERO],
        "kernel": [StrOptions({"linear", "rbf"})],
        "gamma": KERNEL_WIDTH,
        "n_basis": [AT_LEAST_ONE],
        "max_iter": [AT_LEAST_ONE],
        "tol": [NOT_NEGATIVE],
    }

    def __init__(
        self,
        nu: float = 100.0,
        *,
        kernel: str = "linear",
        gamma: float | str = "median",
        n_basis: int = 200,
        max_iter: int = 30,
        tol: float = 1e-4,
        scale: str | None = "standard",
        tune: bool = False,
        pos_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.gamma = gamma
        self.n_basis = n_basis
        self.max_iter = max_iter
        self.tol = tol
        self.scale = scale
        self.tune = tune
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit_tuned(self, training: Training, backend: Backend) -> None:
        offsets, positive = training.bags.offsets, training.positive
        instances = as_double(self._fit_scaled(training.bags))
        features, basis = self._features(instances, backend, training.generator)
        few, cuts = training.few(features, offsets)

        def decide(nu: float, test: Booleans) -> Floats:
            plane = self._train(few, arrange(cuts, positive, ~test), nu, backend)
            rows, test_cuts = chosen_rows(cuts, test)
            return backend.bag_max(np.asarray(few[rows] @ plane.weights) - plane.threshold, test_cuts)

        self.nu_ = training.choose(NUS, self.nu, decide)
        self._keep_plane(self._train(features, arrange(offsets, positive), self.nu_, backend), basis, instances)

    def _train(self, features: Instances, arrangement: Arrangement, nu: float, backend: Backend) -> Plane:
        return train_mica(features[arrangement.rows], arrangement.offsets, nu, self.max_iter, self.tol, backend)

    def _features(
        self, instances: Instances, backend: Backend, generator: np.random.Generator
    ) -> tuple[Instances, Integers]:
        """Return the features that the plane lies in, and the instances of the basis."""
        if self.kernel == "linear":
            self.gamma_ = 1.0
            return instances, np.empty(0, dtype=np.int64)
        n_instances = instances.shape[0]
        basis = np.sort(generator.choice(n_instances, min(self.n_basis, n_instances), replace=False))
        self.gamma_ = kernel_width(self.gamma, instances, backend, generator)
        kernel = InstanceKernel("rbf", self.gamma_)
        return kernel_columns(instances, dense_rows(instances, basis), kernel, backend), basis

    def _keep_plane(self, plane: Plane, basis: Integers, instances: Instances) -> None:
        self.n_weights_ = int(np.count_nonzero(plane.weights))
        if self.kernel == "linear":
            self._keep_weights(plane.weights)
        else:
            self._keep_support(plane.weights, instances[basis])
        self._keep_course(-plane.threshold, plane.objectives, plane.stop_reason)
