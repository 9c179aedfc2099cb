"""The weighted support vector machine on a matrix of kernel values, of which rows are chosen without a copy."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import config_context
from sklearn.svm import SVC

if TYPE_CHECKING:
    from gmil.engine.arrays import Booleans, Floats, Integers


class Gram:
    """Kernel values between some rows of a matrix of all pairs.

    Training on folds and on some instances of bags asks for many parts of one large matrix. To copy a part takes longer
    than to train on it, so none is copied: rows outside take no part because they cost nothing.

    Parameters
    ----------
    matrix : (n_all, n_all)
        Finite; the caller has checked that.
    rows : (n_rows,)
        Positions in the matrix; None takes all.
    """

    def __init__(self, matrix: Floats, rows: Integers | None = None) -> None:
        self.matrix = matrix
        self.rows = np.arange(len(matrix)) if rows is None else rows

    def __len__(self) -> int:
        return len(self.rows)

    def products(self, dual: Floats) -> Floats:
        """Return the kernel values between the rows times coefficients of the rows, (n_rows,)."""
        return self.everywhere(dual)[self.rows]

    def everywhere(self, dual: Floats) -> Floats:
        """Return the products at every row of the matrix, (n_all,)."""
        support = np.flatnonzero(dual)
        if 2 * len(support) < len(self.matrix):
            return np.asarray(dual[support] @ self.matrix[self.rows[support]])
        return np.asarray(self.matrix @ self._placed(dual))

    def solve(self, positive: Booleans, costs: Floats) -> tuple[Floats, float]:
        """Return dual coefficients and intercept of the machine on the rows; `solve_svm` says of what."""
        # To look for values that are not finite in a large matrix, for every machine, can take longer than to train.
        with config_context(assume_finite=True, skip_parameter_validation=True):
            dual, intercept = solve_svm(self.matrix, self._placed(positive), self._placed(costs))
        return dual[self.rows], intercept

    def with_mixtures(self, mixtures: Any) -> Gram:
        """Return the rows followed by mixtures of them, whose weights are a sparse matrix, (n_mixtures, n_rows)."""
        n_rows = len(self)
        matrix = np.empty((n_rows + mixtures.shape[0],) * 2)
        for target, row in zip(matrix, self.rows, strict=False):
            np.take(self.matrix[row], self.rows, out=target[:n_rows])
        matrix[:n_rows, n_rows:] = 0
        # Of whole rows, which lie in one piece; of a part of them SciPy would take a copy first.
        mixed = (mixtures @ matrix[:n_rows])[:, :n_rows]
        matrix[n_rows:, :n_rows], matrix[:n_rows, n_rows:] = mixed, mixed.T
        matrix[n_rows:, n_rows:] = mixtures @ mixed.T
        return Gram(matrix)

    def _placed(self, values: Any) -> Any:
        """Return one value for every row of the matrix, zero outside the rows."""
        placed = np.zeros(len(self.matrix), dtype=values.dtype)
        placed[self.rows] = values
        return placed


def solve_svm(kernel: Floats, positive: Booleans, costs: Floats) -> tuple[Floats, float]:
    """Return the dual coefficients, signed, and the intercept of the soft-margin machine on kernel values.

    Parameters
    ----------
    kernel : (n_rows, n_rows)
    positive : (n_rows,)
    costs : (n_rows,)
        What a unit of slack of each row costs; rows that cost nothing take no part.
    """
    machine = SVC(C=1.0, kernel="precomputed").fit(kernel, positive, sample_weight=costs)
    taking_part = np.flatnonzero(costs) if _numbers_rows_with_weight() else np.arange(len(kernel))
    dual = np.zeros(len(kernel))
    dual[taking_part[machine.support_]] = machine.dual_coef_[0]
    return dual, float(machine.intercept_[0])


@cache
def _numbers_rows_with_weight() -> bool:
    """Return whether scikit-learn numbers support vectors among the rows with a weight, as 1.9 does, or among all."""
    machine = SVC(kernel="precomputed").fit(np.eye(3), [0, 0, 1], sample_weight=[0.0, 1.0, 1.0])
    return bool(machine.support_.max() == 1)
