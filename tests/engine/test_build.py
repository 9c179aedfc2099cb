"""The package installs without a compiler, and then runs on NumPy."""

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
    (folder / "README.md").touch()
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
