"""Training bags as a matrix, of which every setting and every inner fold takes its part."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import assert_all_finite

from gmil.methods.kernels.bag_kernels import InstanceKernel
from gmil.methods.svm.gram import Gram
from gmil.methods.svm.kernels import Arrangement, Machine, Plane, arrange, chosen_rows, pair_values

if TYPE_CHECKING:
    from gmil.base import Training
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances
    from gmil.methods.shared.tuning import MachineSetting, Sample

TrainOnGram = Callable[[Gram, Arrangement, Any, "Backend"], Machine]
TrainOnFeatures = Callable[["Instances", Arrangement, Any, "Backend"], Plane]
"""They take what the training rows are, how they are arranged, and a setting."""


def arranged(sample: Sample, training: Training, chosen: Booleans | None = None) -> Arrangement:
    """Arrange the sample of the chosen bags, or of all."""
    return arrange(sample.offsets, training.positive, chosen, sample.counts, training.weights)


class GramProblem:
    """The kernel values of all pairs of instances."""

    def __init__(
        self, train: TrainOnGram, instances: Instances, sample: Sample, training: Training, *, one_setting: bool
    ) -> None:
        self.train_on, self.sample, self.training = train, sample, training
        self.instances, self.one_setting = sample.of(instances), one_setting
        self.pairs: dict[str, Floats] = {}
        self.last: InstanceKernel | None = None
        self.values: Floats = np.empty((0, 0))

    def train(self, setting: MachineSetting, chosen: Booleans | None = None) -> tuple[Arrangement, Machine]:
        """Train on the chosen bags, to compare settings, or on all, to keep the machine."""
        arrangement = arranged(self.sample, self.training, chosen)
        gram = Gram(self._kernel(setting), arrangement.rows, goes_on=chosen is not None)
        return arrangement, self.train_on(gram, arrangement, setting, self.training.backend)

    def decide(self, setting: MachineSetting, test: Booleans) -> Floats:
        """Train on the bags outside ``test`` and return the decisions of those inside."""
        arrangement, machine = self.train(setting, ~test)
        rows, cuts = chosen_rows(self.sample.offsets, test)
        values = Gram(self._kernel(setting), arrangement.rows).products(machine.dual)[rows]
        return self.training.backend.bag_max(values + machine.intercept, cuts)

    def _kernel(self, setting: MachineSetting) -> Floats:
        """Return the kernel values; the last ones are kept, for settings with one kernel follow each other."""
        kernel = InstanceKernel(setting.kernel, 1.0 if setting.kernel == "linear" else setting.gamma)
        if kernel != self.last:
            pairs = self._pairs(setting.kernel)
            # With one setting only, the kernel may be written over what it is made of: both are large.
            target = pairs if self.one_setting else np.empty_like(pairs)
            self.values = pairs if kernel.name == "linear" else kernel.of(pairs, target)
            assert_all_finite(self.values, input_name="the kernel values")
            self.last = kernel
        return self.values

    def _pairs(self, kernel: str) -> Floats:
        if kernel not in self.pairs:
            self.pairs[kernel] = pair_values(self.instances, kernel, self.training.backend)
        return self.pairs[kernel]


class FeatureProblem(NamedTuple):
    """Features of all instances, in which f is linear; a setting may have features of its own."""

    train_on: TrainOnFeatures
    features: Callable[[Any], Instances]
    sample: Sample
    training: Training

    def train(self, setting: Any, chosen: Booleans | None = None) -> Plane:
        """Train on the chosen bags, or on all."""
        arrangement = arranged(self.sample, self.training, chosen)
        return self.train_on(self.sample.of(self.features(setting)), arrangement, setting, self.training.backend)

    def decide(self, setting: Any, test: Booleans) -> Floats:
        """Train on the bags outside ``test`` and return the decisions of those inside."""
        plane = self.train(setting, ~test)
        rows, cuts = chosen_rows(self.sample.offsets, test)
        values = np.asarray(self.sample.of(self.features(setting))[rows] @ plane.weights)
        return self.training.backend.bag_max(values + plane.intercept, cuts)
