"""Eigenvalues and vectors of symmetric matrices, without holding up other threads.

`scipy.linalg.eigh` keeps Python's global lock while LAPACK works, so that many small decompositions cannot share the
cores; `numpy.linalg.eigh` does not, but comes with a slower library. Here SciPy's LAPACK is called without the lock.
"""

from __future__ import annotations

import ctypes
import re
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
from scipy.linalg import cython_lapack

from gmil.errors import GmilError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gmil.engine.arrays import Floats

_ROUTINES = {np.dtype(np.float32): "ssyevd", np.dtype(np.float64): "dsyevd"}
_SIGNATURE = re.compile(
    rb"void \(char \*, char \*, int \*, \w+ \*, int \*, \w+ \*, \w+ \*, int \*, int \*, int \*, int \*\)"
)
"""What these routines take, as SciPy describes it; a SciPy that says anything else is not called in this way."""


class EigenvalueError(GmilError, ArithmeticError):
    """A decomposition that did not converge."""


def eigh(matrix: Floats) -> tuple[Floats, Floats]:
    """Return ascending eigenvalues and, in columns, eigenvectors of a symmetric matrix, in its own precision.

    >>> values, vectors = eigh(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> values
    array([1., 3.])
    """
    routine = _routine(_ROUTINES[matrix.dtype])
    n = len(matrix)
    if routine is None or n == 0:
        found: tuple[Floats, Floats] = scipy.linalg.eigh(matrix, driver="evd", check_finite=False)
        return found
    vectors = np.array(matrix, order="C")
    values = np.empty(n, dtype=matrix.dtype)
    # What the routine asks for at least, and room for blocks of 64 columns.
    work = np.empty(max(1 + 6 * n + 2 * n * n, 66 * n), dtype=matrix.dtype)
    places = np.empty(3 + 5 * n, dtype=np.intc)
    sizes = np.array([n, n, len(work), len(places), 0], dtype=np.intc)  # n, lda, lwork, liwork, info
    at = [sizes.ctypes.data + i * sizes.itemsize for i in range(len(sizes))]
    routine(b"V", b"L", at[0], _of(vectors), at[1], _of(values), _of(work), at[2], _of(places), at[3], at[4])
    if sizes[-1] != 0:
        msg = f"The eigenvalues of a {n} x {n} matrix were not found (LAPACK's info is {sizes[-1]}). Is it finite?"
        raise EigenvalueError(msg)
    return values, vectors.T  # LAPACK counts by columns


def _of(array: Any) -> int:
    return int(array.ctypes.data)


@cache
def _routine(name: str) -> Callable[..., None] | None:
    """Return a routine of SciPy's LAPACK as a function that ctypes calls without the lock, or None."""
    capsule = getattr(cython_lapack, "__pyx_capi__", {}).get(name)
    if capsule is None:
        return None
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    signature = name_of(capsule)
    if _SIGNATURE.fullmatch(signature) is None:
        return None
    pointers = [ctypes.c_void_p] * 9
    return ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, *pointers)(pointer_of(capsule, signature))
