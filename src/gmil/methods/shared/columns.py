"""Instances as a method works on them: in double precision, some columns, dense."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from gmil.transform.scaling import rounding_of
from gmil.transform.space import dense

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats, Instances, Integers


_SPARSE_UP_TO = 1 / 8
"""The share of filled entries above which products with a vector are faster with dense rows."""


def as_double(X: Instances) -> Instances:
    """Return instances in double precision, which the solvers need; sparse ones stay sparse."""
    return X.astype(np.float64, copy=False)


def dense_columns(X: Instances, columns: Integers) -> Floats:
    """Return some columns as a dense array in double precision."""
    return np.asarray(dense(X[:, columns]), dtype=np.float64)


def working_columns(X: Instances, columns: Integers) -> Instances:
    """Return some columns in double precision; sparse where few of their entries are filled, or else dense."""
    if not sp.issparse(X):
        return dense_columns(X, columns)
    picked = sp.csr_array(X[:, columns], dtype=np.float64)
    return picked if picked.nnz <= _SPARSE_UP_TO * picked.shape[0] * picked.shape[1] else picked.toarray()


def varying_columns(X: Instances) -> Integers:
    """Return the columns that differ by more than rounding; all of them where none does."""
    low, high = X.min(axis=0), X.max(axis=0)
    if sp.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    varying = np.flatnonzero(high - low > rounding_of(low, high))
    return varying if len(varying) else np.arange(X.shape[1])
