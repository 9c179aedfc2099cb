"""The contents of bags as a hash: what a file of them looks like has no part in it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gmil.bags import Bags

_DIGITS = 4
"""Of the mean size of generated features: far above what rounding on another machine changes."""


def data_fingerprint(bags: Bags, y: Any, groups: Any = None, *, recipe: Mapping[str, Any] | None = None) -> str:
    """Return a hash of instances, offsets, labels and groups; names and ids have no part in results.

    Parameters
    ----------
    bags : Bags
    y : array-like
    groups : array-like, optional
    recipe : mapping, optional
        How bags were generated. The last bits of generated features differ from machine to machine, as those of matrix
        products do. The recipe, and the mean size of the features, then stand for them.
    """
    digest = hashlib.sha256()
    instances = bags.instances
    parts = [instances.data, instances.indices, instances.indptr] if sp.issparse(instances) else [instances]
    if recipe is not None:
        size = round(float(np.mean(np.abs(parts[0]), dtype=np.float64)), _DIGITS)
        digest.update(json.dumps([recipe, size], sort_keys=True).encode())
        parts = []
    for array in (*parts, bags.offsets):
        array = np.ascontiguousarray(array)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    digest.update(json.dumps(np.asarray(y).tolist(), default=str).encode())
    if groups is not None:
        numbers = np.unique(np.asarray(groups), return_inverse=True)[1]
        digest.update(f"groups{numbers.tolist()}".encode())
    return digest.hexdigest()
