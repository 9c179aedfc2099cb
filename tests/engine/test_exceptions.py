"""An exception of C++ becomes one of Python, whichever compiler and C++ library the kernels were built with."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("gmil.engine.native._kernels")

LITTLE_MEMORY = """
import resource
from pathlib import Path

import numpy as np
from gmil.engine.native import _kernels

n = 500_000
X = np.random.default_rng(0).random((n, 1))
labels = np.empty(n, np.int32)

def cluster():
    return _kernels.lloyd(X, X[:50].copy(), 3, labels, 1)

before, ceiling = resource.getrlimit(resource.RLIMIT_AS)
expected = cluster()
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used, ceiling))
try:
    cluster()
except MemoryError:
    resource.setrlimit(resource.RLIMIT_AS, (before, ceiling))
    print("refused", cluster() == expected)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as Linux does it")
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer maps more memory than the limit")
def test_too_little_memory_is_a_memory_error_and_the_next_call_works():
    command = [sys.executable, "-c", LITTLE_MEMORY]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.stdout == "refused True\n", found.stderr
