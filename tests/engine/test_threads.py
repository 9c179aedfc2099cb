"""What is around the kernels: helper threads, forks, the end of the process, Ctrl-C and quotas of containers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gmil.engine import resolve, threads
from gmil.engine.backends import why_not

needs_kernels = pytest.mark.skipif(why_not("native") is not None, reason="the kernels are not compiled")
needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="signals are sent by POSIX")

START = """
import os, signal, sys, threading, time
import numpy as np
from gmil.engine import resolve

backend = resolve("native", 3)
X = np.random.default_rng(0).normal(size=(40_000, 64)).astype(np.float32)
expected = backend.lloyd(X, X[:50], 5).labels
"""


def run_python(code, *arguments, timeout=120):
    """Run code in a process of its own; return what it printed. A crash or a hang is an error."""
    command = [sys.executable, "-c", START + code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_kernels
class TestHelpers:
    def test_results_are_the_same_after_helpers_were_joined(self):
        X = np.random.default_rng(0).normal(size=(20_000, 32))
        alone, several = resolve("native", 1), resolve("native", 4)
        expected = alone.assign(X, X[:40])
        from gmil.engine.native import _kernels

        for _ in range(3):
            assert_array_equal(several.assign(X, X[:40])[0], expected[0])
            _kernels.join_helpers()

    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are counted in /proc")
    def test_no_thread_is_left_once_they_are_joined(self):
        code = """
from gmil.engine.native import _kernels
_kernels.join_helpers()
before = len(os.listdir("/proc/self/task"))
for _ in range(20):
    backend.assign(X, X[:50])
_kernels.join_helpers()
print(len(os.listdir("/proc/self/task")) - before)
"""
        assert int(run_python(code)) == 0

    @needs_signals
    def test_a_child_works_on_after_a_fork(self):
        code = """
for _ in range(3):
    child = os.fork()
    if child == 0:
        os._exit(0 if (backend.lloyd(X, X[:50], 5).labels == expected).all() else 7)
    assert os.waitpid(child, 0)[1] == 0
    assert (backend.lloyd(X, X[:50], 5).labels == expected).all()
"""
        run_python(code)

    @needs_signals
    def test_a_fork_while_another_thread_is_in_a_kernel(self):
        code = """
threading.Thread(target=backend.lloyd, args=(X, X[:400], 60)).start()
for _ in range(5):
    child = os.fork()
    if child == 0:
        os._exit(0 if (backend.lloyd(X, X[:50], 5).labels == expected).all() else 7)
    assert os.waitpid(child, 0)[1] == 0
"""
        run_python(code)

    def test_the_process_ends_while_a_daemon_is_in_a_kernel(self):
        code = """
threading.Thread(target=backend.lloyd, args=(X, X[:2000], 100_000), daemon=True).start()
time.sleep(0.3)
print("end")
"""
        assert run_python(code) == "end\n"


@needs_kernels
@needs_signals
class TestInterrupts:
    @pytest.mark.parametrize("n_threads", [pytest.param("1", marks=pytest.mark.slow), "3"])
    @pytest.mark.parametrize("kernel", ["lloyd(X, X[:4000], 10**6)", "l1_distances(X, X[:20_000])", "seed(X, 9000, U)"])
    def test_an_interrupt_stops_a_kernel_soon(self, kernel, n_threads):
        code = f"""
backend = resolve("native", int(sys.argv[1]))
U = np.random.default_rng(1).random((9000, 5))
threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
start = time.monotonic()
try:
    backend.{kernel}
except KeyboardInterrupt:
    print(time.monotonic() - start)
assert (backend.lloyd(X, X[:50], 5).labels == expected).all()
"""
        assert 0.3 < float(run_python(code, n_threads)) < 3  # a second, and as much again for a busy machine

    def test_a_handler_that_does_not_raise_lets_the_kernel_go_on(self):
        seen = []
        before = signal.signal(signal.SIGALRM, lambda *_: seen.append(time.monotonic()))
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.15, 0.15)
            X = np.random.default_rng(0).normal(size=(20_000, 32))
            expected = None
            start = time.monotonic()
            while time.monotonic() < start + 0.8:
                labels = resolve("native", 2).lloyd(X, X[:200], 20).labels
                expected = labels if expected is None else expected
                assert_array_equal(labels, expected)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert seen


class TestCores:
    def test_the_quota_of_a_container_bounds_the_threads(self, monkeypatch):
        monkeypatch.setattr(joblib, "cpu_count", lambda: 1)
        threads.cores_by_quota.cache_clear()
        try:
            assert threads.usable_cores() == threads.n_threads(-1) == 1
        finally:
            threads.cores_by_quota.cache_clear()

    @pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system has no affinity")
    def test_the_affinity_is_asked_every_time(self, monkeypatch):
        monkeypatch.setattr(threads, "cores_by_quota", lambda: 64)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
        assert threads.usable_cores() == 3
