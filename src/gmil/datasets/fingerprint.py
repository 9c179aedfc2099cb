"""The contents of bags as a hash: what a file of them looks like has no part in it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from gmil.bags import Bags


def data_fingerprint(bags: Bags, y: Any, groups: Any = None) -> str:
    """Return a hash of instances, offsets, labels and groups; names and ids have no part in results."""
    digest = hashlib.sha256()
    instances = bags.instances
    parts = [instances.data, instances.indices, instances.indptr] if sp.issparse(instances) else [instances]
    for array in (*parts, bags.offsets):
        array = np.ascontiguousarray(array)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    digest.update(json.dumps(np.asarray(y).tolist(), default=str).encode())
    if groups is not None:
        numbers = np.unique(np.asarray(groups), return_inverse=True)[1]
        digest.update(f"groups{numbers.tolist()}".encode())
    return digest.hexdigest()
