"""NPZ: ``X`` (or a CSR matrix in parts), ``bag_index``, ``y``, and optional names and info.

| array | shape | what it is |
|---|---|---|
| ``X`` | (n_instances, n_features) | the instances |
| ``X_data``, ``X_indices``, ``X_indptr``, ``X_shape`` | | the same as a sparse matrix in CSR form |
| ``bag_index`` | (n_instances,) | the number of the bag of every instance, from 0 |
| ``y`` | (n_bags,) | labels; optional |
| ``bag_names`` | (n_bags,) | becomes ``bag_ids``; optional |
| ``feature_names`` | (n_features,) | optional |
| any other | (n_instances,) | becomes a column of ``instance_info`` |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from gmil.bags.bag_files import read_arrays
from gmil.errors import BagValidationError
from gmil.io.formats.arrays import Layout
from gmil.io.formats.contents import info_columns
from gmil.safety.guard import parsing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from gmil.bags.roles import Named, Rows
    from gmil.io.formats.contents import Contents

KIND = "NPZ"
_PARTS = ("X_data", "X_indices", "X_indptr", "X_shape")
_LAYOUT = Layout(
    "array",
    matrix_names=("X", "features", "instances", "data"),
    bag_names=("bag_index", "bag", "bags", "bag_id", "bag_ids", "ids"),
    label_names=("y", "label", "labels", "target"),
    reserved=frozenset({*_PARTS, "X", "bag_index", "y", "bag_names", "feature_names"}),
    vector=lambda array, _: array,
    is_column=lambda array, n_rows: array.shape == (n_rows,),
    labels_of_rows=False,
)


def read(path: Path, named: Named) -> Rows:
    """Read an NPZ file; what is named are arrays."""
    arrays = read_arrays(path)
    with parsing(path, KIND):
        return rows_of_arrays(arrays, named)


def rows_of_arrays(arrays: Mapping[str, NDArray[Any]], named: Named) -> Rows:
    """Turn the arrays of the layout above into rows."""
    if named.features is None and all(part in arrays for part in _PARTS):
        rows = _LAYOUT.rows(arrays, named, _sparse(*(arrays[part] for part in _PARTS)), _PARTS)
    else:
        name = _LAYOUT.matrix(arrays, named)
        rows = _LAYOUT.rows(arrays, named, arrays[name], (name,))
    return rows._replace(is_numbered=True)


def _sparse(data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: NDArray[Any]) -> sp.csr_array:
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        msg = f"X_shape must be two whole numbers, got {shape.dtype} of shape {shape.shape}."
        raise BagValidationError(msg)
    matrix = sp.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
    matrix.check_format(full_check=True)  # an index out of range would be read from foreign memory
    return matrix


def write(path: Path, contents: Contents) -> None:
    """Write the layout above, compressed."""
    bags = contents.bags
    arrays: dict[str, Any] = {"bag_index": bags.segment_ids.astype(np.int32)}
    if sp.issparse(bags.instances):
        matrix = bags.instances
        data = contents.converted(matrix.data, contents.dtype)
        parts = (data, matrix.indices, matrix.indptr, np.array(matrix.shape, dtype=np.int64))
        arrays |= dict(zip(_PARTS, parts, strict=True))
    else:
        arrays["X"] = contents.dense()
    if contents.y is not None:
        arrays["y"] = contents.y
    if bags.bag_ids is not None:
        arrays["bag_names"] = contents.ids
    if bags.feature_names is not None:
        arrays["feature_names"] = np.array(bags.feature_names, dtype=np.str_)
    info: dict[str, Any] = info_columns(bags, ".npz")
    clash = next((name for name in info if name in _LAYOUT.reserved), None)
    if clash is not None:
        msg = f"The instance_info column {clash!r} has the name of another array. Rename it."
        raise BagValidationError(msg)
    np.savez_compressed(path, **arrays, **info)
