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

from gmil.bags import Bags
from gmil.bags.bag_files import read_arrays
from gmil.bags.roles import choose, require
from gmil.errors import BagValidationError
from gmil.io.formats.contents import info_columns
from gmil.io.formats.rows import one_per_row, refuse_other_length, rows_to_bags
from gmil.safety.guard import parsing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gmil.engine.arrays import Instances
    from gmil.io.formats.contents import Contents

    Arrays = Mapping[str, NDArray[Any]]

_PARTS = ("X_data", "X_indices", "X_indptr", "X_shape")
_MATRIX_NAMES = ("X", "features", "instances", "data")
_BAG_NAMES = ("bag_index", "bag", "bags", "bag_id", "bag_ids", "ids")
_LABEL_NAMES = ("y", "label", "labels", "target")
_RESERVED = {*_PARTS, "X", "bag_index", "y", "bag_names", "feature_names"}


def read(
    path: Path,
    *,
    bag: str | None,
    label: str | None,
    features: str | Sequence[str] | None,
    info: Sequence[str],
) -> tuple[Bags, NDArray[Any] | None]:
    """Read an NPZ file; ``bag``, ``label`` and ``features`` are names of arrays."""
    arrays = read_arrays(path)
    with parsing(path, "NPZ"):
        return arrays_to_bags(arrays, bag=bag, label=label, features=features, info=info)


def arrays_to_bags(
    arrays: Arrays,
    *,
    bag: str | None = None,
    label: str | None = None,
    features: str | Sequence[str] | None = None,
    info: Sequence[str] = (),
) -> tuple[Bags, NDArray[Any] | None]:
    """Turn the arrays of the layout above into bags and labels."""
    names = list(arrays)
    matrix, used = _matrix(arrays, features)
    bag = require(choose(names, bag, _BAG_NAMES, "bag", noun="array"), names, "bag", "array")
    label = choose(names, label, _LABEL_NAMES, "label", taken={bag}, noun="array")
    ids = arrays[bag]
    refuse_other_length(len(ids), matrix.shape[0], "bag ids")  # before anything is made of what may be far too long
    labels = None if label is None else one_per_row(arrays[label], ids, label)
    bag_names = arrays.get("bag_names")
    named = None if bag_names is None else one_per_row(bag_names, ids, "bag_names")
    bags, y = rows_to_bags(
        matrix,
        ids,
        labels,
        bag_names=named,
        feature_names=arrays.get("feature_names"),
        info=_info(arrays, {*_RESERVED, *used, bag, label}, info, len(ids)),
    )
    if named is None and np.array_equal(bags.bag_ids, np.arange(len(bags))):  # type: ignore[arg-type]
        bags = Bags(bags.instances, bags.offsets, None, bags.feature_names, bags.instance_info)
    return bags, y


def _matrix(arrays: Arrays, features: str | Sequence[str] | None) -> tuple[Instances, set[str]]:
    if features is not None and not isinstance(features, str):
        msg = f"features must be the name of one array in this format, got {list(features)!r}."
        raise BagValidationError(msg)
    if features is None and all(part in arrays for part in _PARTS):
        data, indices, indptr, shape = (arrays[part] for part in _PARTS)
        if shape.shape != (2,) or shape.dtype.kind not in "iu":
            msg = f"X_shape must be two whole numbers, got {shape.dtype} of shape {shape.shape}."
            raise BagValidationError(msg)
        matrix = sp.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
        matrix.check_format(full_check=True)  # an index out of range would be read from foreign memory
        return matrix, set(_PARTS)
    names = list(arrays)
    chosen = choose(names, features, _MATRIX_NAMES, "features", noun="array")
    chosen = require(chosen, names, "features", "array")
    return arrays[chosen], {chosen}


def _info(arrays: Arrays, used: set[str | None], wanted: Sequence[str], n_rows: int) -> Any:
    unknown = [name for name in wanted if name not in arrays]
    if unknown:
        choose(list(arrays), unknown[0], (unknown[0],), "info", noun="array")
    columns = {name: array for name, array in arrays.items() if name not in used and array.shape == (n_rows,)}
    if not columns:
        return None
    import pyarrow as pa

    return pa.table({name: pa.array(column.tolist()) for name, column in columns.items()})


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
    clash = next((name for name in info if name in _RESERVED), None)
    if clash is not None:
        msg = f"The instance_info column {clash!r} has the name of another array. Rename it."
        raise BagValidationError(msg)
    np.savez_compressed(path, **arrays, **info)
