"""Matlab ``.mat``: a matrix of instances, the bag of every instance, labels per instance or per bag.

The names of the variables differ from file to file; those of Andrews et al. (``features``, ``bag_ids``,
``labels``) and other usual ones are known. A cell array with one matrix a bag is read too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from gmil.errors import BagValidationError, FormatError
from gmil.io.formats.arrays import Layout
from gmil.io.formats.contents import info_columns
from gmil.io.formats.mat_variables import Other, variables_in
from gmil.safety.guard import parsing, refuse_impossible_size

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from gmil.bags.roles import Named, Rows
    from gmil.engine.arrays import Instances
    from gmil.io.formats.contents import Contents

KIND = "Matlab .mat"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,30}")


def read(path: Path, named: Named) -> Rows:
    """Read a .mat file; what is named are variables."""
    variables = read_variables(path)
    with parsing(path, KIND):
        name = _LAYOUT.matrix(variables, named)
        value = variables[name]
        if not isinstance(value, np.ndarray) or value.dtype != object:
            return _LAYOUT.rows(variables, named, _matrix(value, name), (name,))
        matrix, ids, labels = _from_cells(value)
        return _LAYOUT.rows(variables, named, matrix, (name,), ids, labels)


def read_variables(path: Path) -> dict[str, Any]:
    """Read all variables of a .mat file; its bytes are read by Python alone, so that damaged ones do no harm."""
    with parsing(path, KIND):
        raw = path.read_bytes()
        if raw.startswith((b"MATLAB 7.3", b"\x89HDF")):
            msg = f"{path} is a Matlab 7.3 file (HDF5), which is not read. Save it in Matlab with -v7."
            raise FormatError(msg)
        bound = _Bound(path, len(raw))
        try:
            return variables_in(raw, bound)
        except FormatError as error:
            if str(path) in str(error):
                raise
            msg = f"{path} cannot be read as Matlab .mat: {error}. Write or download the file again."
            raise FormatError(msg) from error


class _Bound:
    """Refuses variables that together take more memory than the file can be true about."""

    def __init__(self, path: Path, stored: int) -> None:
        self.path, self.stored, self.taken = path, stored, 0

    def __call__(self, what: str, n_bytes: int) -> None:
        self.taken += n_bytes
        refuse_impossible_size(self.path, what, self.taken, self.stored)


def _matrix(value: Any, name: str) -> Instances:
    if sp.issparse(value):
        return sp.csr_array(value)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
        kind = value.kind if isinstance(value, Other) else value.dtype
        msg = f"The variable {name!r} must be a matrix of numbers, got {kind}."
        raise BagValidationError(msg, parameter="features", fix="Name another with {features}")
    return np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("="))


def _from_cells(cells: NDArray[Any]) -> tuple[Instances, NDArray[Any], NDArray[Any] | None]:
    """Take a cell array apart: a matrix a bag and, where there are two columns, a label a bag."""
    n_bags = max(cells.shape)
    pairs = cells.reshape(n_bags, -1) if cells.size % n_bags == 0 else cells
    matrices = [_matrix(bag, f"cell {i + 1}") for i, bag in enumerate(pairs[:, 0])]
    ids = np.repeat(np.arange(n_bags), [matrix.shape[0] for matrix in matrices])
    labels = np.array([np.ravel(c)[0] for c in pairs[:, 1]]) if pairs.shape[1] > 1 else None
    return np.concatenate(matrices), ids, labels


def vector(value: Any, name: str) -> NDArray[Any]:
    """Return a Matlab vector, full or sparse, of numbers or of texts, as a 1-D array."""
    if isinstance(value, Other):
        msg = f"The variable {name!r} must be a vector of numbers or texts, got {value.kind}."
        raise BagValidationError(msg)
    if sp.issparse(value):
        if min(value.shape) != 1:
            msg = f"The variable {name!r} must be a vector, got shape {value.shape}."
            raise BagValidationError(msg)
        value = value.toarray()
    array = np.asarray(value)
    if array.dtype.kind == "O":
        return np.array([_text(cell) for cell in array.ravel()])
    if array.dtype.kind == "U":  # a char matrix: texts padded with blanks
        return np.array([text.rstrip(" ") for text in array.ravel()])
    if array.ndim > 1 and array.size != max(array.shape):
        msg = f"The variable {name!r} must be a vector, got shape {array.shape}."
        raise BagValidationError(msg)
    return array.ravel()


def _text(cell: Any) -> Any:
    parts = np.ravel(cell)
    return parts[0] if len(parts) else ""


def _is_column(value: Any, n_rows: int) -> bool:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biufUO":
        return False
    is_text = value.dtype.kind != "O" or all(np.asarray(c).dtype.kind == "U" for c in value.flat)
    return is_text and value.size == n_rows == max(value.shape, default=0)


_LAYOUT = Layout(
    "variable",
    matrix_names=("features", "x", "data", "instances", "bags"),
    bag_names=("bag_ids", "bag_id", "bag", "bags", "bagid", "bagids", "bag_index", "milbag", "ident"),
    label_names=("labels", "label", "y", "class", "target", "targets", "bag_labels", "baglab"),
    reserved=frozenset({"features", "bag_ids", "labels", "bag_names", "feature_names"}),
    vector=vector,
    is_column=_is_column,
    labels_of_rows=True,
)


def write(path: Path, contents: Contents) -> None:
    """Write ``features``, ``bag_ids`` (1, 2, ...) and ``labels`` (one per instance), and names."""
    import scipy.io

    bags = contents.bags
    variables: dict[str, Any] = {"bag_ids": (bags.segment_ids + 1).astype(np.float64)}
    if sp.issparse(bags.instances):
        variables["features"] = sp.csc_array(bags.instances, dtype=np.float64)  # Matlab knows no other
    else:
        variables["features"] = contents.dense()
    if contents.y is not None:
        variables["labels"] = _matlab(np.repeat(contents.y, bags.sizes))
    if bags.bag_ids is not None:
        variables["bag_names"] = _matlab(contents.ids)
    if bags.feature_names is not None:
        variables["feature_names"] = _matlab(np.array(bags.feature_names, dtype=np.str_))
    for name, column in info_columns(bags, ".mat").items():
        if name in _LAYOUT.reserved or not _NAME.fullmatch(name):
            msg = f"The instance_info column {name!r} cannot be the name of a Matlab variable. Rename it."
            raise BagValidationError(msg)
        variables[name] = _matlab(column)
    scipy.io.savemat(path, variables, appendmat=False, do_compression=True, oned_as="column")


def _matlab(values: NDArray[Any]) -> NDArray[Any]:
    """Return texts as a cell array: rows of a char matrix would be padded with blanks."""
    return values.astype(object) if values.dtype.kind == "U" else values
