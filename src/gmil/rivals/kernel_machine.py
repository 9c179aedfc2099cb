"""What the rivals share that learn one function of instances, f, and call a bag positive where its maximum is."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from gmil.classifiers.settings import make_generator
from gmil.engine import resolve
from gmil.rivals.bag_kernels import InstanceKernel, median_gamma
from gmil.rivals.inner_folds import choose
from gmil.rivals.scaled import BinaryClassifier
from gmil.rivals.sparse_parts import from_parts, to_parts
from gmil.rivals.svm_kernels import Arrangement, Machine, arrange, as_double, expansion, pair_values, rows_of
from gmil.rivals.tuning import KernelSetting, check_groups, kernel_settings, tuning_folds
from gmil.scaling import SCALINGS

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers


class InstanceFunction(BinaryClassifier):
    """A fitted f(x) = sum_j dual_coef_j k(x, support_instances_j) + intercept_; a bag takes the largest f."""

    kernel: str
    n_jobs: int | None
    gamma_: float
    support_instances_: Any
    dual_coef_: Floats
    intercept_: float

    def decision_function(self, X: Any) -> Floats:
        """Return the largest score of the instances of every bag, (n_bags,).

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        """
        bags, instances = self._new_scaled(X)
        return resolve("auto", self.n_jobs).bag_max(self._instance_values(instances), bags.offsets)

    def score_instances(self, X: Any) -> Floats:
        """Return how positive every instance is, (n_instances,): f, above zero on the positive side.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        """
        return self._instance_values(self._new_scaled(X)[1])

    def _instance_values(self, instances: Instances) -> Floats:
        kernel = InstanceKernel(self.kernel, self.gamma_)
        backend = resolve("auto", self.n_jobs)
        return (
            expansion(instances, from_parts(self.support_instances_), self.dual_coef_, kernel, backend)
            + self.intercept_
        )

    def _keep_support(self, dual: Floats, instances: Instances) -> None:
        """Keep what f needs of the training instances; for a linear kernel that is one row, its weights."""
        if self.kernel == "linear":
            self.support_instances_ = np.asarray(instances.T @ dual)[None, :]
            self.dual_coef_ = np.ones(1)
        else:
            rows = np.flatnonzero(dual) if dual.any() else np.zeros(1, dtype=np.int64)
            self.support_instances_, self.dual_coef_ = to_parts(instances[rows]), dual[rows]


class KernelMachine(InstanceFunction):
    """A method that trains support vector machines on slices of one Gram matrix, until something settles."""

    C: float
    gamma: float | str
    max_iter: int
    tune: bool
    random_state: Any
    _tuning_rounds: ClassVar[int] = 2

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "kernel": [StrOptions({"rbf", "linear"})],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"median"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "scale": [StrOptions(set(SCALINGS)), None],
        "tune": ["boolean"],
        "pos_label": [Real, str, "boolean", None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Learn from bags and their labels.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            The training bags; a 2-D array is read as bags of one instance each.
        y : array of shape (n_bags,)
            One label per bag.
        groups : array of shape (n_bags,), optional
            Bags of one group (a patient, a site) stay in one inner fold of ``tune``.
        """
        bags, positive = self._check_two_classes(X, y)
        group_numbers = check_groups(groups, len(bags))
        generator = make_generator(self.random_state)
        instances = self._fit_scaled(bags)
        folds = tuning_folds(positive, group_numbers, generator, self._tuning_rounds) if self.tune else []
        self._fit_machine(instances, bags.offsets, positive, folds, generator)
        return self

    def _fit_machine(
        self,
        instances: Instances,
        offsets: Integers,
        positive: Booleans,
        folds: list[Booleans],
        generator: np.random.Generator,
    ) -> None:
        backend, instances = resolve("auto", self.n_jobs), as_double(instances)
        gamma = median_gamma(instances, backend, generator) if isinstance(self.gamma, str) else self.gamma
        base = pair_values(instances, self.kernel, backend)
        problem = _Problem(self, base, offsets, positive, backend, one_setting=not folds)
        setting = KernelSetting(gamma, self.C)
        if folds:
            setting, _ = choose(self._settings(gamma), positive.astype(np.int64), folds, problem.decide)
        self.gamma_, self.C_ = setting
        arrangement, machine = problem.train(setting, np.ones(len(positive), dtype=bool))
        self._keep_support(machine.dual, instances[arrangement.rows])
        self._keep_course(machine)

    def _keep_course(self, machine: Machine) -> None:
        self.intercept_, self.objectives_ = machine.intercept, machine.objectives
        self.stop_reason_, self.n_iter_ = machine.stop_reason, len(machine.objectives)

    def _settings(self, gamma: float) -> list[KernelSetting]:
        return kernel_settings(gamma, self.kernel)

    @abstractmethod
    def _train(self, gram: Floats, offsets: Integers, C: float, backend: Backend) -> Machine:
        """Train on a Gram matrix of rows arranged as `Arrangement` says, with its offsets."""


class _Problem:
    """Training bags as one matrix of pairs, from which every setting and every inner fold takes its slice."""

    def __init__(
        self,
        method: KernelMachine,
        base: Floats,
        offsets: Integers,
        positive: Booleans,
        backend: Backend,
        *,
        one_setting: bool = False,
    ) -> None:
        self.method, self.base, self.offsets, self.positive, self.backend = method, base, offsets, positive, backend
        self.gram_gamma: float | None = None
        # With one setting only, the Gram matrix may be written over what it is made of: both are large.
        self.gram = base if one_setting or method.kernel == "linear" else np.empty_like(base)

    def train(self, setting: KernelSetting, chosen: Booleans) -> tuple[Arrangement, Machine]:
        """Train on the chosen bags."""
        arrangement = arrange(self.offsets, self.positive, chosen)
        gram = self._gram(setting.gamma)[np.ix_(arrangement.rows, arrangement.rows)]
        return arrangement, self.method._train(gram, arrangement.offsets, setting.C, self.backend)

    def decide(self, setting: KernelSetting, test: Booleans) -> Floats:
        """Train on the bags outside ``test`` and return the decisions of those inside."""
        arrangement, machine = self.train(setting, ~test)
        used = np.flatnonzero(machine.dual)
        rows = rows_of(self.offsets, np.flatnonzero(test))
        values = self._gram(setting.gamma)[np.ix_(rows, arrangement.rows[used])] @ machine.dual[used]
        cuts = np.concatenate([[0], np.cumsum(np.diff(self.offsets)[test])])
        return self.backend.bag_max(values + machine.intercept, cuts)

    def _gram(self, gamma: float) -> Floats:
        """Return the Gram matrix; the last one is kept, for settings with one gamma follow each other."""
        if self.method.kernel == "linear":
            return self.base
        if self.gram_gamma != gamma:
            InstanceKernel("rbf", gamma).of(self.base, self.gram)
            self.gram_gamma = gamma
        return self.gram
