"""Parquet files with one instance a row, the rows of a bag next to each other."""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.bags import tables
from gmil.bags.parquet_files import open_parquet, parquet_header, read_columns, read_schema, reading_parquet
from gmil.bags.parts import group_rows
from gmil.bags.roles import Roles, named_features
from gmil.errors import BagValidationError, FormatError, MissingFileError, count_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from gmil.engine.arrays import Booleans, Floats, Integers

_BYTES_OF_A_PART = 1 << 24


class RowGroups(NamedTuple):
    """Row groups of one file that are read together, and what their bags looked like when they were scanned."""

    file: str
    first: int
    last: int
    digest: bytes


@dataclass(frozen=True)
class ParquetSource:
    """Rows of one Parquet file or of several; a part is one row group, or a few small ones."""

    groups: tuple[RowGroups, ...]
    edges: Integers
    roles: Roles
    n_features: int
    dtype: np.dtype[Any]

    def read(self, part: int, rows: int) -> Iterator[Floats]:
        """See `gmil.scale.passes.Source.read`."""
        group = self.groups[part]
        file, path = self._opened(group), Path(group.file)
        for found in _read_features(file, path, self.roles.features, rows, range(group.first, group.last)):
            yield np.ascontiguousarray(found, dtype=self.dtype)

    @property
    def has_info(self) -> bool:
        """Whether there are columns about instances."""
        return bool(self.roles.info)

    def read_info(self, part: int) -> pa.Table:
        """Return the columns about the instances of a part."""
        group = self.groups[part]
        rows = range(group.first, group.last)
        return read_columns(group.file, self.roles.info, rows, self._opened(group).metadata)

    def take_info(self, rows: Integers) -> pa.Table:
        """Return the columns about some instances, rows of the source in any order."""
        import pyarrow as pa

        ordered, back = np.unique(rows, return_inverse=True)
        cuts = np.searchsorted(ordered, self.edges)
        parts = [
            self.read_info(int(i)).take(ordered[cuts[i] : cuts[i + 1]] - self.edges[i])
            for i in np.flatnonzero(np.diff(cuts))
        ]
        with reading_parquet(self.place(0)):
            return pa.concat_tables(parts, promote_options="permissive").take(back)

    def _opened(self, group: RowGroups) -> Any:
        """Return a file that is still the one that was scanned."""
        path = Path(group.file)
        file = _open_again(path)
        if group.last > file.num_row_groups or _digest(path, file.metadata, self.roles, group) != group.digest:
            msg = f"{path} is not the file that was scanned: its bags or its columns are others. Scan it again."
            raise FormatError(msg)
        return file

    def place(self, part: int) -> str:
        """See `gmil.scale.passes.Source.place`."""
        return self.groups[part].file


def scan_file(path: Path, features: str | Sequence[str], rows: int) -> Iterator[Floats]:
    """Yield the features of a file that is one bag, in pieces of at most so many rows."""
    file = _open_again(path)
    return _read_features(file, path, features, rows, range(file.num_row_groups))


def _open_again(path: Path) -> Any:
    try:
        stamp = path.stat()
    except FileNotFoundError as error:
        raise missing_part(path) from error
    return open_parquet(path, _footer(str(path), stamp.st_mtime_ns, stamp.st_size))


def _read_features(file: Any, path: Path, features: str | Sequence[str], rows: int, groups: range) -> Iterator[Floats]:
    import pyarrow as pa

    columns = [features] if isinstance(features, str) else list(features)
    with reading_parquet(path):
        for batch in file.iter_batches(rows, row_groups=groups, columns=columns, use_threads=False):
            yield tables.feature_matrix(pa.Table.from_batches([batch]), features)


def _digest(path: Path, metadata: Any, roles: Roles, groups: RowGroups) -> bytes:
    """Return a digest of the footer and of the stored bags of row groups: of what offsets were computed from.

    A file of the same length and the same footer may still part its rows into other bags.
    """
    digest = hashlib.blake2b(digest_size=16)
    with reading_parquet(path), path.open("rb") as file:
        for group in range(groups.first, groups.last):
            start, size = _place_of_bags(metadata.row_group(group), roles.bag)
            file.seek(start)
            digest.update(file.read(size))
        file.seek(-min(path.stat().st_size, metadata.serialized_size + 8), 2)
        digest.update(file.read())
    return digest.digest()


def _place_of_bags(group: Any, bag: str | None) -> tuple[int, int]:
    """Return where in its file a row group keeps the bag column, and in how many bytes."""
    chunks = (group.column(i) for i in range(group.num_columns))
    chunk = next((chunk for chunk in chunks if chunk.path_in_schema == bag), None)
    if chunk is None:
        msg = f"The bag column {bag!r} must hold one number or text a row."
        raise BagValidationError(msg, parameter="bag", fix="Name another with {bag}")
    starts = [at for at in (chunk.dictionary_page_offset, chunk.data_page_offset) if at]
    return max(0, min(starts, default=0)), max(0, chunk.total_compressed_size)


def missing_part(path: Path) -> MissingFileError:
    """Return the error about a file that was there when it was scanned."""
    return MissingFileError(f"{path} does not exist any more; a part of the data is missing. Restore it or scan again.")


def other_width(path: Path, width: int, other: Path, width_of_other: int) -> BagValidationError:
    """Return the error about two files with different numbers of features."""
    has = count_of(width, "feature")
    msg = f"{path} has {has}, but {other} has {width_of_other}. All bags must share the same features."
    return BagValidationError(msg)


@functools.lru_cache(maxsize=256)
def _footer(path: str, _changed: int, _size: int) -> Any:
    """Return the metadata of a file as it is now; reading them for every part would cost as much as the part."""
    return open_parquet(path).metadata


class Scanned(NamedTuple):
    """What Parquet files hold, features aside."""

    source: ParquetSource
    offsets: Integers
    ids: NDArray[Any]
    labels: NDArray[Any] | None


def scan_parquet(files: Sequence[Path], roles: Roles) -> Scanned:
    """Read the bags and labels of files, and nothing else."""
    groups: list[RowGroups] = []
    sizes: list[int] = []
    runs = _Runs()
    width, dtype = _common_header(files, roles)
    ids_and_labels = [name for name in (roles.bag, roles.label) if name is not None]
    for path in files:
        file = open_parquet(path)
        for first, last, n_rows in _grouped(file.metadata):
            read = read_columns(path, ids_and_labels, range(first, last), file.metadata)
            runs.add(read.column(roles.bag), read.column(roles.label) if roles.label else None, path)
            group = RowGroups(str(path), first, last, b"")
            groups.append(group._replace(digest=_digest(path, file.metadata, roles, group)))
            sizes.append(n_rows)
    edges = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    source = ParquetSource(tuple(groups), edges, roles, width, tables.float_type(dtype))
    return Scanned(source, *runs.bags())


def _refuse_other_columns(path: Path, roles: Roles) -> None:
    """Refuse a file of several that lacks a column of the first, or has something else than numbers there."""
    schema = read_schema(path)
    wanted = [roles.bag, roles.label, *roles.feature_columns, *roles.info]
    missing = [name for name in wanted if name is not None and name not in schema.names]
    if missing:
        msg = f"{path} has no column {missing[0]!r}, which the first file has. All files need the same columns."
        raise BagValidationError(msg)
    named_features(schema, roles.features)


def _common_header(files: Sequence[Path], roles: Roles) -> tuple[int, np.dtype[Any]]:
    for path in files:
        _refuse_other_columns(path, roles)
    headers = {path: parquet_header(path, roles.features)[1:] for path in files}
    width = headers[files[0]][0]
    wrong = [path for path, header in headers.items() if header[0] != width]
    if wrong:
        raise other_width(wrong[0], headers[wrong[0]][0], files[0], width)
    return width, np.result_type(*(header[1] for header in headers.values()))


def _grouped(metadata: Any) -> Iterator[tuple[int, int, int]]:
    """Yield runs of row groups of about a part's size: the first, the one behind the last, and their rows."""
    first, n_rows, n_bytes = 0, 0, 0
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        if n_rows and n_bytes + group.total_byte_size > _BYTES_OF_A_PART:
            yield first, i, n_rows
            first, n_rows, n_bytes = i, 0, 0
        n_rows += group.num_rows
        n_bytes += group.total_byte_size
    if n_rows:
        yield first, metadata.num_row_groups, n_rows


class _Runs:
    """Bags as runs of equal ids, over row groups and files."""

    def __init__(self) -> None:
        self._ids: list[Any] = []
        self._labels: list[Any] = []
        self._sizes: list[Integers] = []

    def add(self, ids: pa.ChunkedArray, labels: pa.ChunkedArray | None, path: Path) -> None:
        """Take the columns of further rows."""
        ends, names = _run_ends(ids, path)
        plain = tables.id_values(names)
        if tables.missing_entries(plain).any() or (plain.dtype.kind == "O" and (plain == "").any()):
            msg = f"{path} has rows without a bag id. Drop or fill them."
            raise BagValidationError(msg)
        if labels is not None:
            label_ends, found = _run_ends(labels, path)
            inside = np.setdiff1d(label_ends, ends)
            if len(inside):
                raise _varies(names[int(np.searchsorted(ends, inside[0]))].as_py(), path)
            self._labels.append(found.take(np.searchsorted(label_ends, ends)))
        self._ids.append(names)
        self._sizes.append(np.diff(ends, prepend=0))

    def bags(self) -> tuple[Integers, NDArray[Any], NDArray[Any] | None]:
        """Return offsets, ids and labels of all bags."""
        ids = tables.id_values(_joined(self._ids, "bag"))
        is_first = np.append(True, ids[1:] != ids[:-1]).astype(bool)
        _, _, unique = group_rows(ids[is_first])
        if len(unique) < is_first.sum():
            raise _scattered(ids[is_first])
        starts = np.concatenate([[0], np.cumsum(np.concatenate(self._sizes))]).astype(np.int64)
        offsets = np.append(starts[:-1][is_first], starts[-1])
        return offsets, unique, self._labels_of_bags(unique, is_first) if self._labels else None

    def _labels_of_bags(self, ids: NDArray[Any], is_first: Booleans) -> NDArray[Any]:
        labels = tables.values(_joined(self._labels, "label"))
        bag_of = np.cumsum(is_first) - 1
        first = labels[is_first][bag_of]
        differs = (labels != first) & ~(tables.missing_entries(labels) & tables.missing_entries(first))
        if differs.any():
            raise _varies(ids[bag_of[differs][0]].item(), None)
        return labels[is_first]


def _scattered(ids: NDArray[Any]) -> BagValidationError:
    twice = next(name for name, count in Counter(ids.tolist()).items() if count > 1)
    msg = f"The rows of bag {twice!r} are not next to each other, so that it cannot be read in blocks."
    return BagValidationError(msg, parameter="path", fix="Sort the rows by bag, or {in_memory}")


def _varies(bag: Any, path: Path | None) -> BagValidationError:
    where = "" if path is None else f" in {path}"
    return BagValidationError(f"The label of bag {bag!r} varies{where}. A label belongs to the whole bag.")


def _joined(parts: list[Any], role: str) -> pa.ChunkedArray:
    import pyarrow as pa

    kinds = [part.type for part in parts]
    wrong = next((kind for kind in kinds if kind != kinds[0]), None)
    if wrong is not None:
        msg = f"The {role} column holds {kinds[0]} in one file and {wrong} in another. Write all files with one type."
        raise BagValidationError(msg)
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks], type=kinds[0])


def _run_ends(column: pa.ChunkedArray, path: Path) -> tuple[Integers, pa.ChunkedArray]:
    """Return where runs of equal values end, and the values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0)
    with reading_parquet(path):
        encoded = pc.run_end_encode(array, run_end_type=pa.int64())
    return encoded.run_ends.to_numpy(), pa.chunked_array([encoded.values])
