"""Arrays of features, with crops: (n, d), (n, crops, d) or (crops, n, d). Nothing is unpickled, sizes are checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags.bag_files import read_arrays
from gmil.errors import FormatError, listed
from gmil.safety.guard import parsing, refuse_impossible_size, refuse_pipe
from gmil.slides.hdf5 import SUFFIXES as HDF5
from gmil.slides.hdf5 import array_of, opened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gmil.engine.arrays import Floats

CROPS = ("mean", "first", "all")
"""What is made of several crops of a picture: their mean, the first (the centre), or an instance of each."""
_CROP_COUNTS = (1, 5, 10)
_NAMES = ("features", "feature", "X", "feats", "arr_0")


def read_array(path: Path) -> Any:
    """Return the array of a file, of two or three axes; ``.npy`` files are mapped."""
    if path.suffix.lower() in HDF5:
        with opened(path) as file:
            name = _chosen(path, list(file.keys()))
            return array_of(path, file, name)[...]
    if path.suffix.lower() == ".npz":
        arrays = {name: array for name, array in read_arrays(path).items() if array.ndim in (2, 3)}
        return arrays[_chosen(path, list(arrays))]
    refuse_pipe(path)
    with parsing(path, "NPY"):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    refuse_impossible_size(path, "its array", array.nbytes, path.stat().st_size)
    return array


def read_keys(path: Path) -> dict[str, Any]:
    """Return the arrays of an HDF5 file with a data set for every video, by name."""
    with opened(path) as file:
        return {name: array_of(path, file, name)[...] for name in file}


def _chosen(path: Path, names: list[str]) -> str:
    known = [name for name in _NAMES if name in names] or (names if len(names) == 1 else [])
    if not known:
        msg = f"{path} must hold one array, called features or alone; its arrays are {listed(sorted(names))}."
        raise FormatError(msg)
    return known[0]


def crop_axis(shapes: Mapping[str, tuple[int, ...]]) -> int | None:
    """Return which axis counts crops, over all videos that have three; None where none has.

    One of the two is as long in every video, and 1, 5 or 10; where both are, it is the second, as RTFM has it.
    """
    deep = {name: shape for name, shape in shapes.items() if len(shape) == 3}
    if not deep:
        return None
    for axis in (1, 0):
        lengths = {shape[axis] for shape in deep.values()}
        if len(lengths) == 1 and lengths <= set(_CROP_COUNTS):
            return axis
    name, shape = next(iter(deep.items()))
    msg = (
        f"The features of {name} are of shape {shape}: of three axes one must be the crops, 1, 5 or 10 in every video. "
        "Save (snippets, crops, features)."
    )
    raise FormatError(msg)


def snippets_of(name: str, array: Any, axis: int | None, crops: str) -> tuple[Floats, int]:
    """Return the instances of a video, (n, n_features), and how many of them are one snippet."""
    if array.dtype.kind not in "fiu" or array.ndim not in (2, 3) or 0 in array.shape:
        msg = f"The features of {name} must be numbers of shape (snippets, features), got {array.dtype} {array.shape}."
        raise FormatError(msg)
    if array.ndim == 2:
        return np.asarray(array, dtype=np.float32), 1
    apart = np.moveaxis(np.asarray(array, dtype=np.float32), axis or 0, 1)  # (snippets, crops, features)
    if crops == "mean":
        return apart.mean(axis=1), 1
    if crops == "first":
        return np.ascontiguousarray(apart[:, 0]), 1
    return apart.reshape(-1, apart.shape[2]), apart.shape[1]


def stacked(name: str, arrays: Sequence[Any]) -> Any:
    """Return the crops of a video that lie in files of their own as one array, (snippets, crops, features)."""
    if len(arrays) == 1:
        return arrays[0]
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1 or arrays[0].ndim != 2:
        msg = f"The crops of {name} must be of one shape, (snippets, features), got {sorted(shapes)}."
        raise FormatError(msg)
    return np.stack([np.asarray(array, dtype=np.float32) for array in arrays], axis=1)
