"""The parts of `Bags`, each brought into its one form or refused with one clear sentence."""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from gmil.bags import tables
from gmil.errors import BagValidationError, count_of, listed

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import ArrayLike, NDArray

    from gmil.engine.arrays import Integers

_INSTANCES_AT_ONCE = 1 << 16


def bag_matrix(bag: ArrayLike, position: int) -> Any:
    """Return one bag as a matrix; anything that is none is refused."""
    try:
        matrix: Any = bag if sp.issparse(bag) else np.asarray(tables.unmasked(bag))
    except ValueError:
        msg = f"Bag {position} has instances of different lengths. All instances must share the same features."
        raise BagValidationError(msg) from None
    if matrix.ndim != 2:
        if matrix.ndim == 1 and matrix.size == 0:
            msg = f"Bag {position} has 0 instances; every bag needs at least 1. Leave it out."
        else:
            msg = f"Bag {position} must be 2-D (instances x features), got shape {matrix.shape}."
        raise BagValidationError(msg)
    return matrix


def refuse_other_widths(matrices: list[Any]) -> None:
    """Refuse bags of another number of features than the first has."""
    for i, matrix in enumerate(matrices):
        if matrix.shape[1] != matrices[0].shape[1]:
            msg = (
                f"Bag {i} has {count_of(matrix.shape[1], 'feature')}, but bag 0 has {matrices[0].shape[1]}. "
                "All bags must share the same features."
            )
            raise BagValidationError(msg)


def instance_matrix(X: Any, name: str) -> Any:
    """Return X as a C-contiguous float matrix, or a CSR array with float data, sorted and without duplicates."""
    array: Any = X if sp.issparse(X) else np.asarray(tables.unmasked(X))
    if array.ndim != 2:
        msg = f"{name} must be 2-D (instances x features), got shape {array.shape}."
        raise BagValidationError(msg)
    if array.dtype.kind == "c":
        msg = f"Complex data not supported: {name} must hold real numbers, got {array.dtype}."
        raise BagValidationError(msg)
    if array.dtype.kind not in "biuf":
        msg = f"{name} must hold numbers, got {array.dtype} data. Convert it to float first."
        raise BagValidationError(msg)
    dtype = tables.float_type(array.dtype)
    if not sp.issparse(array):
        return np.ascontiguousarray(array, dtype=dtype)
    matrix = sp.csr_array(array).astype(dtype, copy=False)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # the caller's own matrix stays as it is
        matrix.sum_duplicates()
    return matrix


def checked_offsets(offsets: Any, n_instances: int) -> Integers:
    """Return offsets that cut all instances into bags without a gap, none of them empty."""
    array = np.asarray(offsets)
    if array.ndim != 1 or len(array) < 1 or (array.size and array.dtype.kind not in "iu"):
        msg = f"offsets must be a 1-D array of n_bags + 1 integers, got {array.dtype} of shape {array.shape}."
        raise BagValidationError(msg)
    array = array.astype(np.int64)
    if array[0] != 0 or array[-1] != n_instances:
        msg = (
            f"offsets must begin with 0 and end with the number of instances, {n_instances}; "
            f"got {array[0]} and {array[-1]}."
        )
        raise BagValidationError(msg)
    sizes = np.diff(array)
    if (sizes < 0).any():
        msg = f"offsets must never fall, but entry {int((sizes < 0).argmax()) + 1} does."
        raise BagValidationError(msg)
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        which = listed([str(i) for i in empty])
        msg = f"Bag {which} of X has 0 instances; every bag needs at least 1. Leave out bags without instances."
        raise BagValidationError(msg)
    return array


def checked_ids(bag_ids: Any, n_bags: int) -> NDArray[Any]:
    """Return one id per bag, no two the same."""
    ids = np.asarray(tables.unmasked(bag_ids))
    if ids.shape != (n_bags,):
        msg = f"bag_ids must have one entry per bag, {n_bags}; got shape {ids.shape}."
        raise BagValidationError(msg)
    missing = tables.missing_entries(ids)
    if missing.any():
        msg = f"Bag {int(missing.argmax())} has no id in bag_ids. Fill it in, or leave bag_ids out."
        raise BagValidationError(msg)
    refuse_equal_ids(ids)
    return ids


def refuse_equal_ids(ids: NDArray[Any]) -> None:
    """Refuse two bags of one id."""
    try:
        name, count = Counter(ids.tolist()).most_common(1)[0] if len(ids) else (None, 1)
    except TypeError:
        msg = f"bag_ids must be texts or numbers, got {type(ids.tolist()[0]).__name__}. Turn them into texts."
        raise BagValidationError(msg) from None
    if count > 1:
        msg = (
            f"bag_ids must all differ, but {count} bags are called {name!r}. Rename them, or group the rows of one bag "
            "with Bags.from_ids."
        )
        raise BagValidationError(msg)


def checked_names(names: Any, n_features: int) -> tuple[str, ...]:
    """Return one name per feature."""
    names = names if hasattr(names, "__len__") else tuple(names)
    if len(names) != n_features:
        msg = f"feature_names must have one name per feature, {n_features}; got {len(names)}."
        raise BagValidationError(msg)
    return tuple(str(name) for name in names)


def checked_info(info: Any, n_instances: int) -> pa.Table:
    """Return the table with one row per instance."""
    table = tables.to_arrow(info)
    if table.num_rows != n_instances:
        msg = f"instance_info must have one row per instance, {n_instances}; got {table.num_rows}."
        raise BagValidationError(msg)
    return table


def split_by_bag(values: NDArray[Any], offsets: Integers) -> list[NDArray[Any]]:
    """Return the entries of every bag; their number must be that of the instances."""
    if values.ndim == 0 or len(values) != offsets[-1]:
        msg = f"values must have one entry for each of the {offsets[-1]} instances, got shape {values.shape}."
        raise BagValidationError(msg)
    return np.split(values, offsets[1:-1])


def read_only(array: Any) -> Any:
    """Return a view that cannot be written to; the caller's own array stays as it is."""
    if sp.issparse(array):
        parts = (read_only(array.data), read_only(array.indices), read_only(array.indptr))
        return sp.csr_array(parts, shape=array.shape)
    view = array.view()
    view.flags.writeable = False
    return view


def chosen_bag(key: Any, n_bags: int) -> int | slice | Integers:
    """Return what an index of bags means: one bag, a slice, or the positions of several."""
    if isinstance(key, tuple):
        key = _without_ellipsis(key)
    if isinstance(key, slice):
        return key
    if np.ndim(key) == 0 and not isinstance(key, (bool, np.bool_)):
        return _position(operator.index(key), n_bags)
    return _positions(np.asarray(key), n_bags)


def _without_ellipsis(key: tuple[Any, ...]) -> Any:
    if len(key) == 2 and key[1] is Ellipsis:
        return key[0]
    msg = f"Bags are indexed by bag alone, got the index {key!r}. Index bags.instances to choose features."
    raise IndexError(msg)


def _position(key: int, n_bags: int) -> int:
    if not -n_bags <= key < n_bags:
        msg = f"Bag {key} is out of range: there are {n_bags} bags."
        raise IndexError(msg)
    return key % n_bags


def _positions(key: NDArray[Any], n_bags: int) -> Integers:
    if key.dtype == bool:
        if key.shape != (n_bags,):
            msg = f"A mask of bags must have {n_bags} entries, got shape {key.shape}."
            raise IndexError(msg)
        return np.flatnonzero(key)
    if key.shape == (0,):
        return np.empty(0, dtype=np.int64)
    if key.ndim != 1 or key.dtype.kind not in "iu":
        msg = f"Bags are indexed by integers, slices or masks, got {key.dtype} of shape {key.shape}."
        raise IndexError(msg)
    return np.arange(n_bags)[key]


def rows_of_bags(offsets: Integers, positions: Integers) -> tuple[Integers, Integers]:
    """Return the rows of chosen bags, one bag after the other, and the offsets of these bags among them."""
    sizes = np.diff(offsets)[positions]
    new = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    # Row r of the result lies as far behind the start of its old bag as behind that of its new one.
    return np.arange(new[-1]) + np.repeat(offsets[positions] - new[:-1], sizes), new


def group_rows(ids: NDArray[Any]) -> tuple[Integers | None, Integers, NDArray[Any]]:
    """Group rows by id, bags in the order of their first appearance and rows in their order.

    Returns the order of rows (None where they are grouped already), the offsets of the bags and their ids.
    """
    if ids.ndim != 1:
        msg = f"Bag ids must be one per instance in a 1-D array, got shape {ids.shape}."
        raise BagValidationError(msg)
    refuse_missing_ids(ids)
    texts = _coded(ids)
    if texts is not None:
        codes, names = texts
        order, offsets, positions = group_rows(codes)
        return order, offsets, names[positions]
    try:
        unique, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    except TypeError:
        msg = "Bag ids must all be of one kind, strings or numbers, got a mixture. Turn them into strings."
        raise BagValidationError(msg) from None
    by_appearance = np.argsort(first, kind="stable")
    rank = np.empty(len(unique), dtype=np.int64)
    rank[by_appearance] = np.arange(len(unique))
    position = rank[inverse]  # (n_rows,), the bag of every row
    offsets = np.concatenate([[0], np.cumsum(np.bincount(position, minlength=len(unique)))]).astype(np.int64)
    order = None if np.all(np.diff(position) >= 0) else np.argsort(position, kind="stable")
    return order, offsets, unique[by_appearance]


def _coded(ids: NDArray[Any]) -> tuple[Integers, NDArray[Any]] | None:
    """Return texts as numbers and the text of each; sorting texts would take most of the time. None for others."""
    if ids.dtype.kind not in "USO":
        return None
    texts = (tables.texts_of_bytes(ids) if ids.dtype.kind == "S" else ids).tolist()
    if not all(isinstance(text, str) for text in texts):
        return None
    seen: dict[str, int] = {}
    codes = np.array([seen.setdefault(text, len(seen)) for text in texts], dtype=np.int64)
    if "" in seen:
        msg = f"Row {texts.index('')} has no bag id: its text is empty. Drop or fill it."
        raise BagValidationError(msg)
    return codes, np.array(list(seen), dtype=np.str_)


def refuse_missing_ids(ids: NDArray[Any]) -> None:
    """Refuse rows that belong to no bag."""
    missing = tables.missing_entries(ids)
    if missing.any():
        others = count_of(missing.sum(), "row has", "rows have")
        msg = f"Row {int(missing.argmax())} has no bag id ({others} none). Drop or fill them."
        raise BagValidationError(msg)


def moved_rows(rows: Integers, offsets: Integers, starts: Integers) -> Integers:
    """Return where rows are when every bag is moved: from ``offsets`` to ``starts``."""
    bag = np.searchsorted(offsets, rows, side="right") - 1
    return np.asarray(rows + (starts - offsets[:-1])[bag])


def stacked(matrices: list[Any]) -> Any:
    """Return matrices one below the other; one sparse matrix among them makes the result sparse."""
    if any(sp.issparse(matrix) for matrix in matrices):
        return sp.vstack([sp.csr_array(matrix) for matrix in matrices], format="csr")
    return np.concatenate(matrices)


def blocks_of_bags(offsets: Integers, instances_at_once: int | None = None) -> list[slice]:
    """Cut all bags into runs of about as many instances as fit well into memory at once."""
    n_bags, n_instances = len(offsets) - 1, int(offsets[-1])
    length = instances_at_once or _INSTANCES_AT_ONCE
    cuts = np.searchsorted(offsets, np.arange(length, n_instances, length))
    edges = np.unique(np.concatenate([[0], cuts, [n_bags]]))
    return [slice(start, stop) for start, stop in itertools.pairwise(edges.tolist())]


# -------------------------------------------------------------------------------- several parts as one


def joined_parts(parts: list[Any]) -> dict[str, Any]:
    """Return what makes one `Bags` of several; what not every part has is left out."""
    if not parts:
        msg = "There are no bags to join; pass at least one part."
        raise BagValidationError(msg)
    for i, part in enumerate(parts):
        _refuse_other_features(part, i, parts[0])
    sizes = np.concatenate([part.sizes for part in parts])
    return {
        "instances": stacked([part.instances for part in parts]),
        "offsets": np.concatenate([[0], np.cumsum(sizes)]),
        "bag_ids": _joined_ids(parts),
        "feature_names": next((part.feature_names for part in parts if part.feature_names is not None), None),
        "instance_info": _joined_info(parts),
    }


def _refuse_other_features(part: Any, number: int, first: Any) -> None:
    if part.n_features != first.n_features:
        msg = (
            f"Part {number} has {count_of(part.n_features, 'feature')}, but part 0 has {first.n_features}. "
            "All parts must have the same features."
        )
        raise BagValidationError(msg)
    if part.feature_names is None or first.feature_names is None:
        return
    for j, (own, expected) in enumerate(zip(part.feature_names, first.feature_names, strict=True)):
        if own != expected:
            msg = (
                f"Feature {j} of part {number} is {own!r}, but that of part 0 is {expected!r}. "
                "Bring the features into the same order."
            )
            raise BagValidationError(msg)


def _joined_ids(parts: list[Any]) -> Any:
    ids = [part.bag_ids for part in parts if part.bag_ids is not None]
    return np.concatenate(ids) if len(ids) == len(parts) else None


def _joined_info(parts: list[Any]) -> pa.Table | None:
    """Return the info of all parts, where their columns are the same."""
    infos = [part.instance_info for part in parts if part.instance_info is not None]
    if len(infos) < len(parts):
        return None
    import pyarrow as pa

    try:
        return pa.concat_tables(infos, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        msg = f"The columns of instance_info do not fit together: {error} Rename or convert them."
        raise BagValidationError(msg) from error
