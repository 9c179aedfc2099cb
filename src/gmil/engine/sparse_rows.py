"""The specification of kernels for rows most of whose numbers are zero; the others are in `gmil.engine.reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats


def sparse_sq_distances(rows: Any, matrix: Floats, terms: Floats, per_row: Floats) -> Floats:
    """Return squared distances between sparse rows and centres that were prepared, (n_rows, n_centers).

    They are ``scale * (x.m + inner) + length + outer``, none below zero.

    Parameters
    ----------
    rows : csr_array of shape (n_rows, n_features)
    matrix : array of shape (n_features, n_centers)
        The columns m.
    terms : array of shape (2, n_centers)
        ``inner`` and ``outer``.
    per_row : array of shape (n_rows, 2)
        ``scale`` and ``length``.
    """
    found: Floats = rows @ matrix
    found += terms[0]
    found *= per_row[:, :1]
    found += per_row[:, 1:]
    found += terms[1]
    return np.maximum(found, 0, out=found)
