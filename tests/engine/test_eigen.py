"""Eigenvalues against NumPy's, in both precisions, and in threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmil.engine import eigen
from gmil.engine.eigen import EigenvalueError, eigh


def symmetric(n, seed, dtype):
    values = np.random.default_rng(seed).normal(size=(n, n)).astype(dtype)
    return values + values.T


@given(n=st.integers(0, 40), seed=st.integers(0, 1000), dtype=st.sampled_from([np.float32, np.float64]))
def test_values_are_those_of_numpy_and_vectors_rebuild_the_matrix(n, seed, dtype):
    matrix = symmetric(n, seed, dtype)
    before = matrix.copy()
    values, vectors = eigh(matrix)
    assert values.dtype == vectors.dtype == dtype
    assert (matrix == before).all()
    near = {"atol": 1e-4 if dtype == np.float32 else 1e-12}
    np.testing.assert_allclose(values, np.linalg.eigvalsh(before.astype(np.float64)), **near)
    np.testing.assert_allclose((vectors * values) @ vectors.T, before, **near)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(n), **near)


def test_a_matrix_in_columns_is_read_alike():
    matrix = symmetric(9, 0, np.float64)
    np.testing.assert_array_equal(eigh(np.asfortranarray(matrix))[0], eigh(matrix)[0])


def test_threads_do_not_disturb_each_other():
    matrices = [symmetric(60, seed, np.float32) for seed in range(20)]
    alone = [eigh(matrix) for matrix in matrices]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(eigh, matrices))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])


def test_without_scipys_routines_the_result_is_the_same(monkeypatch):
    matrix = symmetric(30, 1, np.float64)
    values, vectors = eigh(matrix)
    monkeypatch.setattr(eigen, "_routine", lambda _: None)
    plain_values, plain_vectors = eigh(matrix)
    np.testing.assert_allclose(values, plain_values, atol=1e-12)
    np.testing.assert_allclose(np.abs(vectors.T @ plain_vectors), np.eye(30), atol=1e-9)


def test_another_signature_is_not_called(monkeypatch):
    monkeypatch.setattr(eigen, "_SIGNATURE", eigen.re.compile(rb"void \(long \*\)"))
    eigen._routine.cache_clear()
    try:
        assert eigen._routine("dsyevd") is None
    finally:
        eigen._routine.cache_clear()


def test_scipy_has_the_routines():
    assert eigen._routine("ssyevd") is not None
    assert eigen._routine("dsyevd") is not None


def test_a_matrix_without_eigenvalues_is_refused():
    with pytest.raises(EigenvalueError, match="3 x 3 matrix were not found"):
        eigh(np.full((3, 3), np.nan))
