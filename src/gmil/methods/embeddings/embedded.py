"""What the rivals share that turn a bag into a vector and learn a linear classifier of vectors."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.svm import LinearSVC

from gmil.io.model_files.schema import Array, Kind, Number, OrMissing
from gmil.methods.shared.inner_folds import choose
from gmil.methods.shared.tunable import TunableClassifier

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats
    from gmil.methods.shared.tunable import Training
    from gmil.methods.shared.tuning import KernelSetting

_MAX_ITER = 100_000


class EmbeddedClassifier(TunableClassifier):
    """A linear support vector machine on one vector per bag."""

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "coef_": Array("v", "P"),
        "intercept_": Array("P"),
        "C_": OrMissing(Number(above=0)),
    }

    C_: float
    coef_: Floats
    intercept_: Floats

    def _decide(self, X: Any) -> Floats:
        return self._decisions(self._vectors(self._check_new(X)), self.coef_, self.intercept_)

    @abstractmethod
    def _vectors(self, bags: Bags) -> Floats:
        """Return the vectors of new bags, (n_bags, n_columns)."""

    def _machine(self, price: float, seed: int) -> Any:
        return LinearSVC(C=price, max_iter=_MAX_ITER, random_state=seed)

    def _fit_linear(
        self,
        training: Training,
        embed: Callable[[float, Booleans], Floats],
        gamma: float = 1.0,
        factors: Sequence[float] = (1.0,),
    ) -> tuple[float, Any]:
        """Choose a width and a price and learn the weights; return the width and the machine.

        ``embed(width, known)`` returns the vectors of all training bags, without columns that come from other bags
        than those ``known``: no new bag has a column of its own.
        """
        labels, seed = training.labels, int(training.generator.integers(2**31 - 1))
        folds = self._inner_folds(training)
        settings = self._settings(gamma, factors, folds)

        def decide(setting: KernelSetting, test: Booleans) -> Floats:
            vectors = embed(setting.gamma, ~test)
            machine = self._machine(setting.C, seed).fit(vectors[~test], labels[~test])
            return np.asarray(machine.decision_function(vectors[test]))

        best = choose(settings, labels, folds, decide)[0] if folds else settings[0]
        width, self.C_ = best.gamma, best.C
        machine = self._machine(self.C_, seed).fit(embed(width, np.ones(len(labels), dtype=bool)), labels)
        self.coef_, self.intercept_ = machine.coef_.T.copy(), np.asarray(machine.intercept_)
        return width, machine
