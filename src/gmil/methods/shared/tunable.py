"""What the rivals share that may choose a width and a price on the training bags."""

from __future__ import annotations

from abc import abstractmethod
from itertools import product
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from gmil.compat import StrOptions, checks_parameters
from gmil.engine import BACKENDS, resolve
from gmil.methods.shared.constraints import ABOVE_ZERO
from gmil.methods.shared.inner_folds import inner_folds
from gmil.methods.shared.multiclass import MulticlassClassifier
from gmil.methods.shared.tuning import N_FOLDS, KernelSetting, check_groups
from gmil.sampling import make_generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Integers

_C_FACTORS = (0.1, 1.0, 10.0)


class Training(NamedTuple):
    """What a classifier learns from, and with: bags, their classes and groups as numbers, kernels, chance."""

    bags: Bags
    labels: Integers
    groups: Integers | None
    backend: Backend
    generator: np.random.Generator


class TunableClassifier(MulticlassClassifier):
    """A classifier of two or more classes with a price ``C`` and a parameter ``tune``."""

    C: float
    tune: bool
    n_jobs: int | None
    backend: str
    random_state: Any

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MulticlassClassifier._parameter_constraints,
        "C": [ABOVE_ZERO],
        "tune": ["boolean"],
        "n_jobs": [Integral, None],
        "backend": [StrOptions(set(BACKENDS))],
        "random_state": ["random_state"],
    }

    @checks_parameters
    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:
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
        bags, labels = self._check_classes(X, y)
        numbers = check_groups(groups, len(bags))
        self._learn(
            Training(bags, labels, numbers, resolve(self.backend, self.n_jobs), make_generator(self.random_state))
        )
        return self

    @abstractmethod
    def _learn(self, training: Training) -> None:
        """Set what a fitted model has."""

    def _inner_folds(self, training: Training) -> list[Booleans]:
        """Return which bags each inner fold tests; none where nothing is to be chosen, or there are too few bags."""
        return inner_folds(training.labels, N_FOLDS, training.generator, training.groups) if self.tune else []

    def _settings(self, gamma: float, factors: Sequence[float], folds: list[Booleans]) -> list[KernelSetting]:
        """Return what may be chosen: multiples of the width and of the price, or without folds the two themselves."""
        if not folds:
            return [KernelSetting(gamma, self.C)]
        pairs = product([gamma * factor for factor in factors], [self.C * factor for factor in _C_FACTORS])
        return [KernelSetting(*pair) for pair in pairs]

    def _decisions(self, rows: Floats, weights: Floats, intercepts: Floats) -> Floats:
        """Return linear decisions, (n_rows,) for two classes, else (n_rows, n_classes)."""
        decisions = rows @ weights + intercepts
        return decisions if len(self.classes_) > 2 else decisions[:, 0]
