"""The backends of PyTorch that tests run on: the one that needs a GPU is skipped where there is none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gmil.engine import why_not

TORCH_BACKENDS = [
    "torch:cpu",
    pytest.param(
        "torch:cuda",
        marks=[
            pytest.mark.gpu,
            pytest.mark.skipif(why_not("torch:cuda") is not None, reason="PyTorch sees no GPU on this machine"),
        ],
    ),
]


def figures_of_benchmark(name, sizes, folder):
    """Run a benchmark of a GPU on the processor, at a small size; return the figures that it writes."""
    script = Path(__file__).parents[1] / "benchmarks" / name
    command = [sys.executable, str(script), *sizes.split(), "--backend", "torch:cpu", "--out", str(folder / "found")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads((folder / "found.json").read_text())
