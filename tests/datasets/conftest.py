"""Fixtures of the data set tests."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from gmil import Bags

NEEDED = (
    "elephant.npz",
    "fox.npz",
    "musk1.npz",
    "musk2.npz",
    "tiger.npz",
    "trec9_tst1.npz",
    "ucfcrime_x3d_830_pca64.npz",
    "more/web1.npz",
    "regression/CHEMBL262_Ki.npz",
)


@pytest.fixture
def shared_data() -> Path:
    """Return the folder with the data that is not bundled, or skip."""
    home = os.environ.get("GMIL_DATA_HOME")
    if not home:
        pytest.skip("set GMIL_DATA_HOME to the folder with the data files to run this test")
    missing = [name for name in NEEDED if not (Path(home) / name).is_file()]
    if missing:
        pytest.skip(f"GMIL_DATA_HOME lacks {', '.join(missing)}")
    return Path(home)


@pytest.fixture
def small() -> tuple[Bags, np.ndarray]:
    """Return three bags with ids, feature names and text labels."""
    bags = Bags(
        np.array([[0.1, -2.0], [1 / 3, 4.0], [1e-300, 5e20], [7.0, 0.0]]),
        np.array([0, 2, 3, 4]),
        bag_ids=np.array(["first", "it's", "a, b"]),
        feature_names=("width", "the height"),
    )
    return bags, np.array(["yes", "no", "yes"])
