"""The array types that kernels accept."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.floating[Any]]
Integers: TypeAlias = NDArray[np.integer[Any]]
Booleans: TypeAlias = NDArray[np.bool_]
Instances: TypeAlias = Any
"""A matrix with one instance a row: a C-contiguous array or a ``scipy.sparse.csr_array`` (which has no types)."""
