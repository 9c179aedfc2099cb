"""Which backend runs, with how many threads, and what is said where it cannot."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import gmil.engine.native
from gmil.engine import (
    available_backends,
    backends,
    describe_native,
    describe_torch,
    one_blas_thread,
    resolve,
    threads,
    why_not,
)
from gmil.errors import BackendUnavailableError


@pytest.fixture
def without_kernels(monkeypatch):
    """Make the compiled module impossible to import."""
    for name in ("_kernels", "backend"):
        monkeypatch.delitem(sys.modules, f"gmil.engine.native.{name}", raising=False)
        monkeypatch.delattr(gmil.engine.native, name, raising=False)
    monkeypatch.setitem(sys.modules, "gmil.engine.native._kernels", None)
    for cached in (backends.why_not, backends._log_fallback):
        cached.cache_clear()
    yield
    for cached in (backends.why_not, backends._log_fallback):
        cached.cache_clear()


needs_native = pytest.mark.skipif(why_not("native") is not None, reason="the kernels are not compiled here")


@needs_native
def test_auto_is_native_where_it_runs():
    assert resolve("auto").name == "native"
    assert available_backends()[:2] == ["numpy", "native"]
    description = describe_native()
    assert description["compiled"]
    assert description["simd"] == description["simd_levels"][-1] or "GMIL_SIMD" in os.environ
    assert description["threads"] >= 1


@needs_native
def test_threads_reach_the_backend():
    assert resolve("native", n_jobs=3).n_threads == 3
    assert resolve("native", n_jobs=3) == resolve("native", n_jobs=3)
    assert resolve("numpy", n_jobs=3).n_threads == 1


def test_auto_falls_back_and_says_why(without_kernels, caplog):
    with caplog.at_level("INFO"):
        assert resolve("auto").name == "numpy"
        resolve("auto")
    assert len(caplog.records) == 1
    assert "_kernels" in caplog.text
    assert "native" not in available_backends()
    assert "_kernels" in why_not("native")
    assert not describe_native()["compiled"]
    assert describe_native()["reason"] == why_not("native")


def test_native_by_name_never_falls_back(without_kernels):
    with pytest.raises(BackendUnavailableError, match=r"backend='native' .* \['numpy'.*\]. Install a C\+\+17 compiler"):
        resolve("native")


@pytest.fixture
def without_torch(monkeypatch):
    """Make PyTorch impossible to import."""
    monkeypatch.setitem(sys.modules, "torch", None)
    backends.why_not.cache_clear()
    yield
    backends.why_not.cache_clear()


@pytest.mark.parametrize("name", ["torch", "torch:cpu", "torch:cuda"])
def test_torch_by_name_says_what_to_install(without_torch, name):
    wanted = rf"backend='{name}' cannot run here: PyTorch cannot be loaded .* pip install 'gmil\[torch\]'"
    with pytest.raises(BackendUnavailableError, match=wanted):
        resolve(name)
    assert "torch" not in available_backends()
    assert not describe_torch()["installed"]


def test_torch_without_a_gpu_says_so():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'gmil[torch]'")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(BackendUnavailableError, match="PyTorch sees no GPU"):
        resolve("torch:cuda")
    assert resolve("torch").device.type == "cpu"
    assert describe_torch() == {"installed": True, "version": torch.__version__, "device": "cpu", "gpus": []}


def test_auto_neither_takes_nor_imports_torch():
    code = (
        "import sys, gmil\n"
        "gmil.cross_validate(gmil.GMIL(), *gmil.make_bags(20, return_X_y=True, random_state=0), cv=2)\n"
        "print(gmil.engine.resolve().name, 'torch' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.split()[0] in ("numpy", "native")
    assert run.stdout.split()[1] == "False"


def test_unknown_names_are_refused():
    with pytest.raises(BackendUnavailableError, match="backend='cupy' cannot run here: gmil has no backend"):
        resolve("cupy")


@needs_native
@pytest.mark.parametrize(("level", "expected"), [("baseline", "native baseline"), ("avx9", "numpy")])
def test_instructions_can_be_chosen_from_outside(level, expected):
    code = (
        "from gmil.engine import describe_native, resolve\n"
        "print(resolve().name, describe_native().get('simd', ''))\n"
        "print(describe_native().get('reason'))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "GMIL_SIMD": level},
        check=True,
        capture_output=True,
        text=True,
    )
    assert run.stdout.startswith(expected)
    assert ("GMIL_SIMD='avx9'" in run.stdout) == (expected == "numpy")


class TestThreads:
    def test_numbers(self, monkeypatch):
        monkeypatch.setattr(threads, "usable_cores", lambda: 8)
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        assert [threads.n_threads(n) for n in (None, 1, 5, -1, -2, -20)] == [8, 1, 5, 8, 7, 1]

    @pytest.mark.parametrize(("value", "expected"), [("3", 3), ("3,2", 3), ("50", 8), ("", 8), ("many", 8), ("0", 1)])
    def test_environment(self, monkeypatch, value, expected):
        monkeypatch.setattr(threads, "usable_cores", lambda: 8)
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert threads.n_threads() == expected
        assert threads.n_threads(6) == 6

    def test_none_at_all_is_refused(self):
        with pytest.raises(ValueError, match="n_jobs=0"):
            threads.n_threads(0)

    @pytest.mark.parametrize("first_out", [0, 1])
    def test_who_overlaps_leaves_blas_as_it_was(self, first_out):
        def limits():
            return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

        threads._blas.cache_clear()  # other tests may have loaded another library since
        with threadpool_limits(2, user_api="blas"):
            before = limits()
            contexts = [one_blas_thread(), one_blas_thread()]
            for context in contexts:
                context.__enter__()
            contexts[first_out].__exit__(None, None, None)
            assert set(limits()) == {1}
            contexts[1 - first_out].__exit__(None, None, None)
            assert limits() == before
