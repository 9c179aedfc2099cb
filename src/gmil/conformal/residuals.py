"""Intervals of numbers, from residuals of bags that no model had seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.conformal.p_values import check_coverage

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def residual_quantile(residuals: ArrayLike, coverage: float = 0.9) -> float:
    """Return the distance from a prediction within which the truth lies with this probability.

    It is the k-th smallest residual, k = ceil((n + 1) * coverage): a new residual is equally likely to take any of the
    n + 1 places among them. Infinite where there are fewer residuals than that.

    Parameters
    ----------
    residuals : array of shape (n,)
        Absolute differences between targets and predictions of models that had not seen them. NaN are left out.
    coverage : float, default=0.9

    Examples
    --------
    >>> residual_quantile([0.1, 0.4, 0.2, 0.3], coverage=0.8)
    0.4
    >>> residual_quantile([0.1, 0.4, 0.2, 0.3], coverage=0.9)
    inf
    """
    check_coverage(coverage)
    values: Any = np.asarray(residuals, dtype=np.float64)
    values = np.sort(values[~np.isnan(values)])
    place = int(np.ceil((len(values) + 1) * coverage - 1e-9))
    return float(values[place - 1]) if place <= len(values) else float("inf")
