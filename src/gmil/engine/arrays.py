"""The array types that kernels accept."""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.floating[Any]]
Integers: TypeAlias = NDArray[np.integer[Any]]
Booleans: TypeAlias = NDArray[np.bool_]
Instances: TypeAlias = Any
"""A matrix with one instance a row: a C-contiguous array or a ``scipy.sparse.csr_array`` (which has no types)."""


@functools.cache  # names of types are slow, and small bags ask for them thousands of times
def is_of_kernels(dtype: Any) -> bool:
    """Tell whether numbers of a type, of NumPy or PyTorch, are what kernels take: single or double precision."""
    return str(dtype).removeprefix("torch.") in ("float32", "float64")
