"""The package installs without a compiler, and then runs on NumPy; compilers that know other vectors agree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / "setup.py").exists(), reason="the sources are not here"),
]


def build(folder, **environment):
    """Build the extension from a copy of the sources; return what was built."""
    pytest.importorskip("setuptools", minversion="77")
    pytest.importorskip("Cython")
    shutil.copytree(ROOT / "src" / "gmil" / "engine" / "native", folder / "src" / "gmil" / "engine" / "native")
    for name in ("setup.py", "pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for name in ("README.md", "src/gmil/__init__.py", "src/gmil/engine/__init__.py"):  # packages, where Cython looks
        (folder / name).touch()
    for built in folder.rglob("*.so"):
        built.unlink()
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=folder, env={**os.environ, **environment}, check=True, capture_output=True, text=True)
    return [path.name for path in folder.glob("src/gmil/engine/native/_kernels*.so")]


def test_a_broken_compiler_leaves_the_extension_out(tmp_path):
    assert build(tmp_path, CC="/bin/false", CXX="/bin/false") == []


@pytest.mark.skipif(shutil.which("clang++") is None, reason="clang is not installed")
def test_the_other_compiler_builds_it_too(tmp_path):
    assert len(build(tmp_path, CC="clang", CXX="clang++")) == 1


RESULTS = """
import hashlib, importlib.util, sys
import numpy as np

spec = importlib.util.spec_from_file_location("_kernels", sys.argv[1])
kernels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kernels)
digest = hashlib.sha256()
draws = np.random.default_rng(0)
for level in ("baseline", "avx2"):
    if level not in kernels.simd_levels():
        continue
    kernels.set_simd_level(level)
    for dtype in (np.float32, np.float64):
        X = draws.normal(size=(731, 37)).astype(dtype)
        starts, labels, out = X[:11].copy(), np.empty(731, np.int32), np.empty((731, 11), dtype)
        offsets = np.arange(0, 732, 43)
        kernels.sq_distances(X, starts, out, 2)
        digest.update(out)
        kernels.l1_distances(X, starts, out, 2)
        digest.update(out)
        digest.update(repr(kernels.lloyd(X, starts, 50, labels, 2)).encode() + labels.tobytes() + starts.tobytes())
        X[5, 3] = np.nan
        for how in kernels.REDUCTIONS:
            bags = np.empty((17, 37), dtype)
            kernels.bag_reduce(X, offsets, how, bags, 2)
            digest.update(bags)
        gram = np.empty((300, 300))
        kernels.gram_matrix(X[100:400].copy(), gram, 2)
        digest.update(gram)
    points, weights, sums = draws.normal(size=(731, 5)), draws.normal(size=731), np.empty((3, 17, 17))
    for same in (False, True):
        bags = points, weights, offsets
        kernels.rbf_sums(*bags, *bags, np.array([0.1, 0.03, 0.3]), same, sums, 2)
        digest.update(sums)
print(digest.hexdigest())
"""


@pytest.mark.timeout(1800)
@pytest.mark.skipif(sys.platform == "win32", reason="flags of GCC and Clang")
@pytest.mark.parametrize("flag", ["-DGMIL_AVX2_INTRINSICS", "-DGMIL_PLAIN_VECTORS"])
def test_the_vectors_of_another_compiler_give_the_same_numbers(tmp_path, flag):
    """What MSVC compiles can be compiled here too: intrinsics in place of vector extensions, or lane by lane."""
    found = []
    for name, flags in (("own", ""), ("other", flag)):
        folder = tmp_path / name
        folder.mkdir()
        [built] = build(folder, CFLAGS=flags, CXXFLAGS=flags)
        command = [sys.executable, "-c", RESULTS, str(folder / "src" / "gmil" / "engine" / "native" / built)]
        found.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert found[0] == found[1]
