"""The weighted support vector machine on a matrix of kernel values, of which rows are chosen without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.engine import resolve
from gmil.engine.margins import products_of

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.engine.margins import Margins


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
    goes_on : bool
        Whether every machine begins from the one before, unless it is told another. That takes a fraction of the time.
        Where rows are equally good, what was trained before has a say in which solution is found.
    """

    def __init__(self, matrix: Floats, rows: Integers | None = None, *, goes_on: bool = False) -> None:
        self.matrix = matrix
        self.rows = np.arange(len(matrix)) if rows is None else rows
        self.goes_on = goes_on
        self._last: Margins | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def products(self, dual: Floats) -> Floats:
        """Return the kernel values between all rows of the matrix and the rows, times coefficients, (n_all,)."""
        return products_of(self.matrix, self._placed(dual))

    def solve(self, positive: Booleans, costs: Floats, backend: Backend, start: Margins | None = None) -> Margins:
        """Train the machine on the rows, from one that was; both are of all rows of the matrix.

        See `gmil.engine.margins.solve_svm`.
        """
        start = self._last if start is None else start
        found = backend.solve_svm(self.matrix, self._placed(positive), self._placed(costs), start)
        if self.goes_on:
            self._last = found
        return found

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
        return Gram(matrix, goes_on=self.goes_on)

    def _placed(self, values: Any) -> Any:
        """Return one value for every row of the matrix, zero outside the rows."""
        placed = np.zeros(len(self.matrix), dtype=values.dtype)
        placed[self.rows] = values
        return placed


def solve_svm(kernel: Floats, positive: Booleans, costs: Floats) -> tuple[Floats, float]:
    """Return the dual coefficients, signed, and the intercept of a machine; see `gmil.engine.margins.solve_svm`."""
    found = resolve("auto", 1).solve_svm(kernel, positive, costs)
    return found.dual, found.intercept
