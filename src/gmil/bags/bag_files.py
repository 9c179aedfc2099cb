"""One file, one bag: how people keep slides and videos. NumPy's ``.npy`` and ``.npz``, and Parquet."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.bags import parquet_files, tables
from gmil.bags.roles import Named, named_features, roles_of
from gmil.errors import BagValidationError, FormatError, MissingFileError, listed
from gmil.safety.guard import parsing, refuse_impossible_size

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats

SUFFIXES = (".npy", ".npz", ".parquet")
_MATRIX_NAMES = ("X", "features", "instances", "data")


class Wanted(NamedTuple):
    """What is read of the files of a folder: an array of NPZ files, columns of Parquet files."""

    array: str | None
    columns: str | tuple[str, ...] | None

    @classmethod
    def of(cls, files: Sequence[Path], named: Named) -> Wanted:
        """Choose what to read; columns are those of the first Parquet file, so that others may order them otherwise."""
        array = named.features if isinstance(named.features, str) else None
        first = next((file for file in files if file.suffix == ".parquet"), None)
        if first is None:
            if named.drop:
                msg = f"{files[0].name} is a matrix without names of columns, so that none can be left out by its name."
                raise BagValidationError(msg, parameter="drop", fix="Do without {drop}")
            return cls(array, None)
        schema = parquet_files.read_schema(first)
        of_bags = Named(features=named.features, drop=named.drop, known=named.known)  # others are in labels.csv
        return cls(array, roles_of(schema, of_bags, needs_bag=False, keeps_labels=False).features)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the features, where every one is a column."""
        return self.columns if isinstance(self.columns, tuple) else None


def list_bag_files(folder: str | os.PathLike[str]) -> list[Path]:
    """Return the files of a folder that hold a bag each, by name; none, a lost one, or two of one name, are refused."""
    folder = Path(folder)
    if not folder.is_dir():
        msg = f"{folder} is no folder. Name a folder with one {', '.join(SUFFIXES)} file a bag."
        raise MissingFileError(msg)
    files = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and not path.name.startswith("."))
    if not files:
        msg = f"{folder} holds no {', '.join(SUFFIXES)} files; every bag must be a file of its own."
        raise MissingFileError(msg)
    lost = next((path for path in files if not path.exists()), None)
    if lost is not None:
        msg = f"{lost} is a link to a file that does not exist. Restore that file, or remove the link."
        raise MissingFileError(msg)
    stems = [path.stem for path in files]
    twice = sorted({stem for stem in stems if stems.count(stem) > 1}) if len(set(stems)) < len(stems) else []
    if twice:
        msg = f"The folder {folder} holds several files for bag {listed(twice)}, which is their name. Rename them."
        raise BagValidationError(msg)
    return files


def read_bag_file(path: Path, wanted: Wanted | None = None) -> Floats:
    """Return the instances of one file, (n_instances, n_features); ``.npy`` files are mapped, not read."""
    wanted = wanted or Wanted.of([path], Named())
    if path.suffix == ".parquet":
        table = parquet_files.read_parquet(path)
        return _checked(path, tables.feature_matrix(table, checked_columns(path, table.schema, wanted)))
    if path.suffix == ".npz":
        return _checked(path, _only_matrix(path, read_arrays(path), wanted.array))
    with parsing(path, "NPY"):
        return _checked(path, np.load(path, mmap_mode="r", allow_pickle=False))


def checked_columns(path: Path, schema: Any, wanted: Wanted) -> str | tuple[str, ...]:
    """Return the feature columns of one of several Parquet files, if it has them."""
    try:
        return named_features(schema, wanted.columns or ())
    except BagValidationError as error:
        msg = f"{path}: {error}"
        raise BagValidationError(msg) from error


def _only_matrix(path: Path, arrays: dict[str, NDArray[Any]], name: str | None) -> Any:
    """Return the matrix of an NPZ file: the one named, the only one, or the one with a known name."""
    matrices = [key for key, array in arrays.items() if array.ndim == 2]
    if name is not None:
        matrices = [key for key in matrices if key == name]
    elif len(matrices) > 1:
        matrices = [key for key in matrices if key in _MATRIX_NAMES]
    if len(matrices) != 1:
        msg = f"{path} must hold one matrix, called X or alone; its arrays are {listed(sorted(arrays))}."
        raise FormatError(msg)
    return arrays[matrices[0]]


def _checked(path: Path, matrix: Any) -> Any:
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf" or len(matrix) == 0:
        msg = (
            f"{path} must hold one bag, a matrix of numbers with at least one instance, got {matrix.dtype} of shape "
            f"{matrix.shape}."
        )
        raise FormatError(msg)
    return matrix


def bag_file_header(path: Path, wanted: Wanted) -> tuple[int, int, np.dtype[Any]]:
    """Return instances, features and type of one file without reading its values."""
    if path.suffix == ".parquet":
        columns = checked_columns(path, parquet_files.read_schema(path), wanted)
        return parquet_files.parquet_header(path, columns)
    if path.suffix == ".npz":
        with parsing(path, "NPZ"), zipfile.ZipFile(path) as archive:
            headers = {member.filename[:-4]: _header(path, archive, member) for member in _members(archive)}
        empty = {name: np.broadcast_to(np.zeros((), dtype), shape) for name, (shape, dtype) in headers.items()}
        matrix = _checked(path, _only_matrix(path, empty, wanted.array))
    else:
        matrix = read_bag_file(path)
    return *matrix.shape, matrix.dtype


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read all arrays of an NPZ file; nothing is unpickled, and no more memory taken than is stored."""
    with parsing(path, "NPZ"), zipfile.ZipFile(path) as archive:
        headers = [_header(path, archive, member) for member in _members(archive)]
        total = sum(math.prod(shape) * dtype.itemsize for shape, dtype in headers)
        refuse_impossible_size(path, "all arrays together", total, path.stat().st_size)
        return {member.filename[:-4]: _read_member(archive, member) for member in _members(archive)}


def _members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    return [member for member in archive.infolist() if member.filename.endswith(".npy")]


def _header(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and type of an array as its header has them, if that is what is stored."""
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0
        if version != (1, 0):
            header = np.lib.format.read_array_header_2_0
        shape, _, dtype = header(file)
        stored = member.file_size - file.tell()
    if dtype.hasobject:
        msg = (
            f"{path} is refused: {member.filename} holds Python objects, which could run code when read. "
            "Save plain numbers or strings."
        )
        raise FormatError(msg)
    n_bytes = math.prod(shape) * dtype.itemsize
    if n_bytes != stored:
        msg = (
            f"{path} is damaged: {member.filename} should be {n_bytes} bytes for its shape {shape}, but "
            f"is {stored}. Write or download the file again."
        )
        raise FormatError(msg)
    refuse_impossible_size(path, member.filename, n_bytes, member.compress_size)
    return shape, dtype


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(member) as file:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        return array
