"""Instances as plain arrays, in parts where a model keeps and saves them."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp


def to_parts(X: Any) -> Any:
    """Return dense instances as they are, and sparse ones as a dict of arrays."""
    if not sp.issparse(X):
        return X
    return {"data": X.data, "indices": X.indices, "indptr": X.indptr, "n_features": X.shape[1]}


def from_parts(parts: Any) -> Any:
    """Return the instances that `to_parts` took apart."""
    if not isinstance(parts, dict):
        return parts
    arrays = (parts["data"], parts["indices"], parts["indptr"])
    return sp.csr_array(arrays, shape=(len(parts["indptr"]) - 1, parts["n_features"]))
