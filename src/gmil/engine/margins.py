"""The specification of the soft-margin machine on kernel values; the other kernels are in `gmil.engine.reference`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from gmil.engine.arrays import Booleans, Floats

TOLERANCE = 1e-3
"""How far, at most, two rows may be from agreeing on the intercept."""


class Margins(NamedTuple):
    """A soft-margin machine, f(x) = sum_i dual_i k(x_i, x) + intercept, and what helps to train one like it."""

    dual: Floats  # (n_rows,), signed
    intercept: float
    products: Floats  # (n_rows,), sum_i dual_i k(x_i, x) of every row, whether it took part or not
    costs: Floats  # (n_rows,), what it was trained with


def solve_svm(kernel: Floats, positive: Booleans, costs: Floats, start: Margins | None = None) -> Margins:  # noqa: ARG001
    """Train the soft-margin machine on kernel values.

    Parameters
    ----------
    kernel : (n_rows, n_rows)
        Finite and symmetric.
    positive : (n_rows,)
    costs : (n_rows,)
        What a unit of slack of each row costs; rows that cost nothing take no part.
    start : Margins
        A machine on the same kernel values, with other labels or costs, to begin with. It saves time and changes
        nothing but which of the solutions within the tolerance is found.
    """
    from sklearn import config_context
    from sklearn.svm import SVC  # slow to load, and compiled kernels do without it

    # To look for values that are not finite in a large matrix, for every machine, can take longer than to train.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        machine = SVC(C=1.0, kernel="precomputed", tol=TOLERANCE).fit(kernel, positive, sample_weight=costs)
    taking_part = np.flatnonzero(costs) if _numbers_rows_with_weight() else np.arange(len(kernel))
    dual = np.zeros(len(kernel))
    dual[taking_part[machine.support_]] = machine.dual_coef_[0]
    return Margins(dual, float(machine.intercept_[0]), products_of(kernel, dual), costs)


def products_of(kernel: Floats, dual: Floats) -> Floats:
    """Return the kernel values, which are symmetric, times coefficients, (n_rows,)."""
    support = np.flatnonzero(dual)
    if 2 * len(support) < len(kernel):
        return np.asarray(dual[support] @ kernel[support])
    return np.asarray(kernel @ dual)


@cache
def _numbers_rows_with_weight() -> bool:
    """Return whether scikit-learn numbers support vectors among the rows with a weight, as 1.9 does, or among all."""
    from sklearn.svm import SVC

    machine = SVC(kernel="precomputed").fit(np.eye(3), [0, 0, 1], sample_weight=[0.0, 1.0, 1.0])
    return bool(machine.support_.max() == 1)
