"""What the machines share that learn one function of instances, f: a bag is positive where its largest f is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gmil.base import grouped_fit
from gmil.engine import resolve
from gmil.io.model_files.schema import Array, Choice, Count, Kind, Number, OrMissing, Rows
from gmil.methods.kernels.bag_kernels import InstanceKernel, kernel_width
from gmil.methods.shared.scaled import ScaledClassifier
from gmil.methods.shared.sparse_parts import from_parts, to_parts
from gmil.methods.shared.tuning import MachineSetting, Tuning, all_of_bags, priced_settings
from gmil.methods.svm.gram import Gram
from gmil.methods.svm.kernels import Arrangement, Machine, arrange, as_double, chosen_rows, expansion, pair_values
from gmil.parameters import parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.base import Training
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers
    from gmil.methods.shared.tuning import Round, Sample


@parameters
class KernelMachine(ScaledClassifier):
    """A fitted f(x) = sum_j dual_coef_j k(x, support_instances_j) + intercept_; a bag takes the largest f.

    Support vector machines are trained on parts of one Gram matrix, until something settles.
    """

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

    def _fit_machine(self, instances: Instances, offsets: Integers, training: Training, tuning: Tuning) -> None:
        instances = as_double(instances)
        weights = np.repeat(training.weights, np.diff(offsets))
        gamma = kernel_width(self.gamma, instances, training.backend, training.generator, weights)
        sample = tuning.sample(offsets)
        problem = _Problem(self, instances, sample, training, one_setting=not tuning.folds)
        setting = tuning.choose_in_rounds(self._rounds(gamma), self._untuned(gamma), problem.decide)
        if sample.rows is not None:
            problem = _Problem(self, instances, all_of_bags(offsets), training, one_setting=True)
        self._keep_setting(setting)
        arrangement, machine = problem.train(setting)
        self._keep_support(machine.dual, instances[arrangement.rows])
        self._keep_course(machine.intercept, machine.objectives, machine.stop_reason)

    def _untuned(self, gamma: float) -> Any:
        return MachineSetting(gamma, self.C, self.kernel)

    def _rounds(self, gamma: float) -> Sequence[Round[Any]]:  # noqa: ARG002
        """Return what ``tune`` compares, as `Tuning.choose_in_rounds` takes it."""
        return [priced_settings]

    def _train(self, gram: Gram, arrangement: Arrangement, setting: Any, backend: Backend) -> Machine:
        """Train on rows that are arranged; a class defines this, or a ``_learn`` of its own as `gmil.MICA` does."""
        msg = f"{type(self).__name__} defines neither _train nor _learn."
        raise NotImplementedError(msg)

    def _keep_setting(self, setting: Any) -> None:
        self.kernel_, self.gamma_, self.C_ = setting.kernel, setting.gamma, setting.C

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

    def _keep_course(self, intercept: float, objectives: Floats, stop_reason: str) -> None:
        self.intercept_, self.objectives_ = intercept, objectives
        self.stop_reason_, self.n_iter_ = stop_reason, len(objectives)

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


class _Problem:
    """Training bags as one matrix of kernel values, of which every setting and every inner fold takes its part."""

    def __init__(
        self, method: KernelMachine, instances: Instances, sample: Sample, training: Training, *, one_setting: bool
    ) -> None:
        self.method, self.sample, self.training = method, sample, training
        self.instances, self.one_setting = sample.of(instances), one_setting
        self.pairs: dict[str, Floats] = {}
        self.last: InstanceKernel | None = None
        self.values: Floats = np.empty((0, 0))

    def train(self, setting: MachineSetting, chosen: Booleans | None = None) -> tuple[Arrangement, Machine]:
        """Train on the chosen bags, or on all."""
        sample, training = self.sample, self.training
        arrangement = arrange(sample.offsets, training.positive, chosen, sample.counts, training.weights)
        gram = Gram(self._kernel(setting), arrangement.rows)
        return arrangement, self.method._train(gram, arrangement, setting, self.training.backend)

    def decide(self, setting: MachineSetting, test: Booleans) -> Floats:
        """Train on the bags outside ``test`` and return the decisions of those inside."""
        arrangement, machine = self.train(setting, ~test)
        rows, cuts = chosen_rows(self.sample.offsets, test)
        values = Gram(self._kernel(setting), arrangement.rows).everywhere(machine.dual)[rows]
        return self.training.backend.bag_max(values + machine.intercept, cuts)

    def _kernel(self, setting: MachineSetting) -> Floats:
        """Return the kernel values; the last ones are kept, for settings with one kernel follow each other."""
        kernel = InstanceKernel(setting.kernel, 1.0 if setting.kernel == "linear" else setting.gamma)
        if kernel != self.last:
            pairs = self._pairs(setting.kernel)
            # With one setting only, the kernel may be written over what it is made of: both are large.
            target = pairs if self.one_setting else np.empty_like(pairs)
            self.values = pairs if kernel.name == "linear" else kernel.of(pairs, target)
            self.last = kernel
        return self.values

    def _pairs(self, kernel: str) -> Floats:
        if kernel not in self.pairs:
            self.pairs[kernel] = pair_values(self.instances, kernel, self.training.backend)
        return self.pairs[kernel]
