"""The specification of differences of columns and ranks in them; other kernels are in `gmil.engine.reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.distance import cdist

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats


def l1_distances(X: Floats, Y: Floats) -> Floats:
    """Return sums of absolute differences between the rows of two matrices, (n_rows_of_X, n_rows_of_Y)."""
    return np.asarray(cdist(X, Y, "cityblock"), dtype=X.dtype)


def column_ranks(X: Floats, knots: Floats) -> Floats:
    """Return the share of the knots of its column that lie below every value; knots that equal it count half.

    Parameters
    ----------
    X : (n_rows, n_features)
    knots : (n_features, n_knots)
        Ascending in every row.
    """
    ranks = np.empty(X.shape, dtype=X.dtype)
    for feature, column in enumerate(knots):
        values = X[:, feature]
        below = np.searchsorted(column, values, side="left") + np.searchsorted(column, values, side="right")
        ranks[:, feature] = below / (2 * len(column))
    return ranks
