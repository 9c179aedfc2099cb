"""What the rivals share whose settings ``tune=True`` chooses on the training bags: one way to fit and to choose."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np

from gmil.compat import checks_parameters
from gmil.engine import resolve
from gmil.methods.shared.inner_folds import choose
from gmil.methods.shared.scaled import BinaryClassifier
from gmil.methods.shared.tuning import MOST_INSTANCES, Sample, all_of_bags, check_groups, sample_bags, tuning_folds
from gmil.sampling import make_generator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Integers

Setting = TypeVar("Setting")


class Training(NamedTuple):
    """What a method learns from."""

    bags: Bags
    positive: Booleans  # (n_bags,)
    folds: list[Booleans]  # which bags each inner fold tests; none where nothing is to be chosen
    generator: np.random.Generator

    def sample(self, offsets: Integers, most: int | None = None) -> Sample:
        """Return the instances to compare settings on: all, or about ``most`` that stand for all."""
        if not self.folds:
            return all_of_bags(offsets)
        return sample_bags(offsets, MOST_INSTANCES if most is None else most, self.generator)

    def choose(
        self, settings: Iterable[Setting], untuned: Setting, decide: Callable[[Setting, Booleans], Floats]
    ) -> Setting:
        """Return the setting with the best accuracy on the inner folds; without folds the untuned one.

        ``decide(setting, test)`` trains on the bags outside ``test`` and returns the decisions of those inside.
        """
        return self.choose_in_rounds([lambda _: settings], untuned, decide)

    def choose_in_rounds(
        self,
        rounds: Sequence[Callable[[Setting], Iterable[Setting]]],
        untuned: Setting,
        decide: Callable[[Setting, Booleans], Floats],
        *,
        classes_alike: bool = False,
    ) -> Setting:
        """Return the best setting where each round takes the best so far and returns settings to compare with it.

        A few values of each parameter in turn are fewer settings than all combinations. That takes less time, and on a
        hundred bags the best of many settings is the luckiest one. ``classes_alike`` asks for the mean of the
        accuracies of both classes.
        """
        if not self.folds:
            return untuned
        shares = np.where(self.positive, self.positive.mean(), 1 - self.positive.mean())
        weights = 1 / shares if classes_alike else None
        best: tuple[Setting, float] | None = None
        for settings_after in rounds:
            settings = settings_after(untuned if best is None else best[0])
            best = choose(settings, self.positive.astype(np.int64), self.folds, decide, best, weights)
        return untuned if best is None else best[0]


class TunedClassifier(BinaryClassifier):
    """A classifier of two classes with parameters ``scale``, ``tune``, ``n_jobs`` and ``random_state``."""

    tune: bool
    n_jobs: int | None
    random_state: Any

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BinaryClassifier._parameter_constraints,
        "tune": ["boolean"],
        "n_jobs": [Integral, None],
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
        bags, positive = self._check_two_classes(X, y)
        group_numbers = check_groups(groups, len(bags))
        generator = make_generator(self.random_state)
        rounds = self._tuning_rounds(len(bags))
        folds = tuning_folds(positive, group_numbers, generator, rounds) if self.tune else []
        self._fit_tuned(Training(bags, positive, folds, generator), resolve("auto", self.n_jobs))
        return self

    def _tuning_rounds(self, n_bags: int) -> int:  # noqa: ARG002
        """Return how often the inner folds are drawn."""
        return 2

    @abstractmethod
    def _fit_tuned(self, training: Training, backend: Backend) -> None:
        """Choose settings where there are folds, and fit."""
