"""Tests of compiled kernels run on every instruction set that this processor has."""

from __future__ import annotations

import pytest


@pytest.fixture(params=("baseline", "avx2", "avx512"), autouse=True, scope="module")
def simd_level(request):
    """Run every test of the module that imports this on every instruction set."""
    native = pytest.importorskip("gmil.engine.native.backend", exc_type=ImportError)
    if request.param not in native.simd_levels():
        pytest.skip(f"this processor or build has no {request.param}")
    before = native.simd_level()
    native.set_simd_level(request.param)
    yield request.param
    native.set_simd_level(before)
