"""What the machines share that learn one function of instances, f: a bag is positive where its largest f is."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gmil.base import grouped_fit
from gmil.engine import resolve
from gmil.io.model_files.schema import Array, Choice, Count, Kind, Number, OrMissing, Rows
from gmil.methods.kernels.bag_kernels import InstanceKernel, kernel_width
from gmil.methods.shared.columns import as_double
from gmil.methods.shared.scaled import ScaledClassifier
from gmil.methods.shared.sparse_parts import from_parts, to_parts
from gmil.methods.shared.tuning import Tuning, all_of_bags
from gmil.methods.svm.kernels import expansion
from gmil.methods.svm.problems import GramProblem
from gmil.parameters import parameters

if TYPE_CHECKING:
    from gmil.base import Training
    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.methods.svm.kernels import Machine, Plane


@parameters
class KernelMachine(ScaledClassifier):
    """A fitted f(x) = sum_j dual_coef_j k(x, support_instances_j) + intercept_; a bag takes the largest f."""

    kernel: str = "rbf"
    gamma: float | str = "median"
    max_iter: int = 50
    tune: bool = False
    n_jobs: int | None = None
    random_state: Any = None

    _two_classes = True
    _kept_parameters: ClassVar[tuple[str, ...]] = ("kernel",)

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "support_instances_": Rows("S", "d"),
        "dual_coef_": Array("S"),
        "intercept_": Number(),
        "gamma_": Number(at_least=0),
        "objectives_": Array("I", infinite=True),
        "stop_reason_": Choice(),
        "n_iter_": Count(),
        "C_": OrMissing(Number(above=0)),
    }

    fit = grouped_fit

    def _learn(self, training: Training) -> None:
        tuning = Tuning.of(training, self.tune, self._tuning_repeats(len(training.bags)))
        self._fit_machine(self._fit_scaled(training.bags), training.bags.offsets, training, tuning)

    def _tuning_repeats(self, n_bags: int) -> int:  # noqa: ARG002
        """Return how often inner folds are drawn."""
        return 2

    @abstractmethod
    def _fit_machine(self, instances: Instances, offsets: Integers, training: Training, tuning: Tuning) -> None:
        """Choose a setting and learn f from scaled instances."""

    def _keep_setting(self, setting: Any) -> None:
        """Keep the values in use; a class adds its own."""
        self.kernel_, self.gamma_ = setting.kernel, setting.gamma

    def _keep_support(self, dual: Floats, instances: Instances) -> None:
        """Keep what f needs of the training instances; for a linear kernel that is one row, its weights."""
        if self.kernel_ == "linear":
            self._keep_weights(np.asarray(instances.T @ dual))
        else:
            rows = np.flatnonzero(dual) if dual.any() else np.zeros(1, dtype=np.int64)
            self.support_instances_, self.dual_coef_ = to_parts(instances[rows]), dual[rows]

    def _keep_weights(self, weights: Floats) -> None:
        """Keep the weights of the features, which are all that a linear f needs."""
        self.support_instances_, self.dual_coef_ = weights[None, :], np.ones(1)

    def _keep_course(self, found: Machine | Plane) -> None:
        self.intercept_, self.objectives_ = found.intercept, found.objectives
        self.stop_reason_, self.n_iter_ = found.stop_reason, len(found.objectives)

    def _decide(self, X: Any) -> Floats:
        """Return the largest score of the instances of every bag, (n_bags,)."""
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
        kernel, support = InstanceKernel(self.kernel_, self.gamma_), from_parts(self.support_instances_)
        values = expansion(instances, support, self.dual_coef_, kernel, resolve("auto", self.n_jobs))
        return values + self.intercept_


def fit_on_gram(machine: Any, instances: Instances, offsets: Integers, training: Training, tuning: Tuning) -> None:
    """Be the ``_fit_machine`` of a class whose settings and inner folds share one Gram matrix.

    The class has ``_train(gram, arrangement, setting, backend)``, and ``_untuned(gamma)`` and ``_rounds(gamma)``, which
    are what `Tuning.choose_in_rounds` takes.
    """
    instances = as_double(instances)
    weights = np.repeat(training.weights, np.diff(offsets))
    gamma = kernel_width(machine.gamma, instances, training.backend, training.generator, weights)
    sample = tuning.sample(offsets)
    problem = GramProblem(machine._train, instances, sample, training, one_setting=not tuning.folds)
    setting = tuning.choose_in_rounds(machine._rounds(gamma), machine._untuned(gamma), problem.decide)
    if sample.rows is not None:
        problem = GramProblem(machine._train, instances, all_of_bags(offsets), training, one_setting=True)
    machine._keep_setting(setting)
    arrangement, found = problem.train(setting)
    machine._keep_support(found.dual, instances[arrangement.rows])
    machine._keep_course(found)
