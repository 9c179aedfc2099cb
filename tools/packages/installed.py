"""Check the gmil that is installed: where it lies, that the compiled kernels run, a cross-validation, and tests.

Usage: python tools/packages/installed.py [options and paths of pytest]. It needs nothing but gmil and its tests.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import gmil


def call(*command: str) -> str:
    """Run a module of this Python; return what it prints."""
    return subprocess.run([sys.executable, "-m", *command], check=True, stdout=subprocess.PIPE, text=True).stdout


def main(*arguments: str) -> int:
    """Check everything; return the exit code of the tests."""
    package = Path(gmil.__file__).parent
    if package.parent.name != "site-packages":
        sys.exit(f"gmil must be the installed one, but it comes from {package}.")
    backend = json.loads(call("gmil", "doctor", "--json"))["backend"]
    if backend != "native":
        sys.exit(f"The compiled kernels must run, but the backend is {backend!r}.")
    print(f"gmil {gmil.__version__} in {package}, backend {backend}\n{call('gmil', 'cv', 'musk1')}", flush=True)
    command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "--rootdir", ".", *arguments]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
