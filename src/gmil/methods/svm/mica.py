"""MICA: a sparse plane, found by linear programs, that has a point of every positive bag on its positive side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gmil.base import register
from gmil.io.model_files.schema import Count, Kind, Number
from gmil.methods.kernels.bag_kernels import InstanceKernel, kernel_width
from gmil.methods.shared.columns import as_double
from gmil.methods.shared.tuning import KERNELS, WIDTHS, all_of_bags, given_first
from gmil.methods.svm.kernel_machine import KernelMachine
from gmil.methods.svm.kernels import kernel_columns
from gmil.methods.svm.mica_training import slack_costs, train_mica
from gmil.methods.svm.problems import FeatureProblem
from gmil.parameters import ABOVE_ZERO, AT_LEAST_ONE, NOT_NEGATIVE, parameter, parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.base import Training
    from gmil.engine import Backend
    from gmil.engine.arrays import Instances, Integers
    from gmil.methods.shared.tuning import Round, Tuning
    from gmil.methods.svm.kernels import Arrangement, Plane

NUS = (100.0, 10.0, 1.0, 1000.0)
"""What ``tune=True`` chooses nu from; of equally accurate settings the first wins."""

_FEW_BAGS = 150
"""Below this, inner folds are drawn twice: one draw is noisy."""


@dataclass(frozen=True)
class MICASetting:
    """What slack costs, the space that the plane lies in, and how slack is weighted."""

    nu: float
    kernel: str
    balance: bool
    gamma: float


@register(method="mica")
@parameters
class MICA(KernelMachine):
    """MICA: a sparse linear or kernel classifier by successive linear programming (Mangasarian & Wild).

    One point in the convex hull of every positive bag, its mean at first, and all instances of negative bags are
    separated by the plane whose weights have the least 1-norm, with slack: a linear program. For the plane found, the
    best points of the bags and the best threshold follow, and so on in turns. A bag is positive where an instance of it
    is on the positive side.

    Parameters
    ----------
    nu : float, default=100.0
        What the mean slack of positive bags costs, next to the 1-norm of the weights.
    kernel : {"linear", "rbf"}, default="linear"
        "rbf": the plane lies in the space of kernel values exp(-gamma d^2) between an instance and a basis of training
        instances, a reduced kernel.
    gamma : float or "median", default="median"
        "median" is one over the median squared distance between training instances.
    max_iter : int, default=30
        Linear programs solved for the plane at most.
    balance : bool, default=True
        The mean slack of negative instances costs nu as well, so that both classes weigh alike; False: slack of a
        negative instance costs what that of a positive bag does, nu over the number of positive bags.
    n_basis : int, default=200
        Training instances drawn as the basis of the RBF kernel, all where there are fewer.
    tol : float, default=1e-4
        Training ends where the objective falls by less than this share.
    scale : {None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "global"}, default="standard"
        Scaling of the features, fitted on the training instances, as in `gmil.GMIL`; the 1-norm needs features of one
        scale.
    tune : bool, default=False
        Choose by accuracy on five folds of the training bags, drawn twice where there are fewer than 150: first both
        kernels, each with and without ``balance`` (those given win ties), with nu = 100 and ``gamma``; then nu from 1,
        10, 100, 1000; then, for the RBF kernel, gamma from 0.3, 1, 3 times ``gamma``. Of more than 2000 instances, 2000
        stand for all in the choice: large bags are thinned, and what is left of a negative one costs what all of it
        would.
    random_state : int, RandomState instance or None, default=None
        Seed of the basis, of the instances that the median width is estimated on, and of the folds.

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
    kernel_ : str
    balance_ : bool
        The values in use.
    objectives_ : array of shape (n_iter,)
        The 1-norm of the weights plus the cost of all slacks, after every program; it never rises.
    stop_reason_ : {"converged", "iterations"}
        Why training ended: the objective or the points of the bags stayed, or ``max_iter`` was reached.
    n_iter_ : int
        Linear programs solved for the plane.

    Notes
    -----
    A program has two constraints per feature and a variable per instance. Of more than 3000 negative instances those
    far beyond the margin are left out of it, and those far on its wrong side added up, until all are where they were
    taken to be: the solution is that of all instances. Equally good planes may differ in their weights.

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

    nu: float = parameter(default=100.0, rules=[ABOVE_ZERO], kw_only=False)
    kernel: str = "linear"
    balance: bool = parameter(default=True, rules=["boolean"])
    n_basis: int = parameter(default=200, rules=[AT_LEAST_ONE])
    max_iter: int = 30
    tol: float = parameter(default=1e-4, rules=[NOT_NEGATIVE])
    scale: str | None = "standard"

    _kept_parameters = ("kernel", "balance")

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "nu_": Number(above=0),
        "n_weights_": Count(),
    }

    def _fit_machine(self, instances: Instances, offsets: Integers, training: Training, tuning: Tuning) -> None:
        instances = as_double(instances)
        spaces = _Spaces(self, instances, training)
        problem = FeatureProblem(self._find_plane, spaces.features, tuning.sample(offsets), training)
        untuned = MICASetting(self.nu, self.kernel, self.balance, spaces.gamma)
        setting = tuning.choose_in_rounds(self._rounds(spaces.gamma), untuned, problem.decide)
        self._keep_setting(setting)
        plane = problem._replace(sample=all_of_bags(offsets)).train(setting)
        self.n_weights_ = int(np.count_nonzero(plane.weights))
        if self.kernel_ == "linear":
            self._keep_weights(plane.weights)
        else:
            self._keep_support(plane.weights, instances[spaces.basis])
        self._keep_course(plane)

    def _keep_setting(self, setting: MICASetting) -> None:
        self.nu_, self.kernel_, self.balance_ = setting.nu, setting.kernel, setting.balance
        self.gamma_ = 1.0 if setting.kernel == "linear" else setting.gamma

    def _rounds(self, gamma: float) -> Sequence[Round[MICASetting]]:
        weighted = [
            MICASetting(NUS[0], kernel, balance, gamma)
            for kernel in given_first(self.kernel, KERNELS)
            for balance in (self.balance, not self.balance)
        ]
        return [
            lambda _: weighted,
            lambda best: [replace(best, nu=nu) for nu in NUS],
            lambda best: [replace(best, gamma=gamma * width) for width in WIDTHS] if best.kernel == "rbf" else [],
        ]

    def _tuning_repeats(self, n_bags: int) -> int:
        return 2 if n_bags < _FEW_BAGS else 1

    def _find_plane(
        self, features: Instances, arrangement: Arrangement, setting: MICASetting, backend: Backend
    ) -> Plane:
        costs = slack_costs(setting.nu, arrangement.bag_weights, arrangement.negative_counts, setting.balance)
        return train_mica(features[arrangement.rows], arrangement.offsets, costs, self.max_iter, self.tol, backend)


class _Spaces:
    """The features of training instances under each kernel; those of the last one are kept."""

    def __init__(self, method: MICA, instances: Instances, training: Training) -> None:
        self.instances, self.backend, generator = instances, training.backend, training.generator
        self.last: tuple[InstanceKernel | None, Instances] = None, instances
        self.gamma = 1.0
        if method.kernel == "rbf" or method.tune:
            n_instances = instances.shape[0]
            self.basis = np.sort(generator.choice(n_instances, min(method.n_basis, n_instances), replace=False))
            weights = np.repeat(training.weights, training.bags.sizes)
            self.gamma = kernel_width(method.gamma, instances, self.backend, generator, weights)

    def features(self, setting: MICASetting) -> Instances:
        """Return the features of all instances."""
        if setting.kernel == "linear":
            return self.instances
        kernel = InstanceKernel("rbf", setting.gamma)
        if self.last[0] != kernel:
            self.last = kernel, kernel_columns(self.instances, self.instances[self.basis], kernel, self.backend)
        return self.last[1]
