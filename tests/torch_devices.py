"""The backends of PyTorch that tests run on: the one that needs a GPU is skipped where there is none."""

from __future__ import annotations

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
