"""Parquet files with one instance a row, the rows of a bag next to each other."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil import tables
from gmil.bag_files import RESERVED
from gmil.errors import BagValidationError, FormatError, MissingFileError
from gmil.scale.passes import float_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats, Integers

_BYTES_OF_A_PART = 1 << 24


class RowGroups(NamedTuple):
    """Row groups of one file that are read together."""

    file: str
    first: int
    last: int


@dataclass(frozen=True)
class ParquetSource:
    """Rows of one Parquet file or of several; a part is one row group, or a few small ones."""

    groups: tuple[RowGroups, ...]
    edges: Integers
    features: str | tuple[str, ...]
    n_features: int
    dtype: np.dtype[Any]

    def read(self, part: int, rows: int) -> Iterator[Floats]:
        """See `gmil.scale.passes.Source.read`."""
        group = self.groups[part]
        for found in scan_file(Path(group.file), self.features, rows, range(group.first, group.last)):
            yield np.ascontiguousarray(found, dtype=self.dtype)

    def place(self, part: int) -> str:
        """See `gmil.scale.passes.Source.place`."""
        return self.groups[part].file


def scan_file(
    path: Path, features: str | Sequence[str] | None, rows: int, groups: range | None = None
) -> Iterator[Floats]:
    """Yield the features of a file, or of some of its row groups, in pieces of at most so many rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        stamp = path.stat()
    except FileNotFoundError as error:
        raise missing_part(path) from error
    columns = [features] if isinstance(features, str) else features if features is None else list(features)
    with tables.reading_parquet(path):
        file = pq.ParquetFile(path, metadata=_footer(str(path), stamp.st_mtime_ns, stamp.st_size))
        if groups is not None and groups.stop > file.num_row_groups:
            msg = f"{path} has {file.num_row_groups} row groups, fewer than were found before. Scan it again."
            raise FormatError(msg)
        chosen = range(file.num_row_groups) if groups is None else groups
        for batch in file.iter_batches(rows, row_groups=chosen, columns=columns, use_threads=False):
            yield tables.feature_matrix(pa.Table.from_batches([batch]), features, RESERVED)[0]


def missing_part(path: Path) -> MissingFileError:
    """Return the error about a file that was there when it was scanned."""
    return MissingFileError(f"{path} does not exist any more; a part of the data is missing. Restore it or scan again.")


def other_width(path: Path, width: int, other: Path, width_of_other: int) -> BagValidationError:
    """Return the error about two files with different numbers of features."""
    msg = f"{path} has {width} features, but {other} has {width_of_other}. All bags must share the same features."
    return BagValidationError(msg)


@functools.lru_cache(maxsize=256)
def _footer(path: str, _changed: int, _size: int) -> Any:
    """Return the metadata of a file as it is now; reading them for every part would cost as much as the part."""
    import pyarrow.parquet as pq

    return pq.read_metadata(path)


class Scanned(NamedTuple):
    """What Parquet files hold, features aside."""

    source: ParquetSource
    offsets: Integers
    ids: NDArray[Any]
    labels: NDArray[Any] | None


def schema_of(path: Path) -> pa.Schema:
    """Return the columns of a file."""
    import pyarrow.parquet as pq

    with tables.reading_parquet(path):
        return pq.read_schema(path)


def scan_parquet(
    files: Sequence[Path], bag: str, label: str | None, features: str | Sequence[str], reserved: set[str]
) -> Scanned:
    """Read the bags and labels of files, and nothing else."""
    import pyarrow.parquet as pq

    groups: list[RowGroups] = []
    sizes: list[int] = []
    runs = _Runs()
    chosen = features if isinstance(features, str) else tuple(features)
    for path in files:
        with tables.reading_parquet(path):
            file = pq.ParquetFile(path)
            for first, last, n_rows in _grouped(file.metadata):
                groups.append(RowGroups(str(path), first, last))
                sizes.append(n_rows)
                read = file.read_row_groups(range(first, last), columns=[bag, *([label] if label else [])])
                runs.add(read.column(bag), read.column(label) if label else None, path)
    headers = {path: tables.parquet_header(path, features, reserved)[1:] for path in files}
    width, dtype = next(iter(headers.values()))
    wrong = [path for path, header in headers.items() if header[0] != width]
    if wrong:
        raise other_width(wrong[0], headers[wrong[0]][0], files[0], width)
    dtype = np.result_type(*(header[1] for header in headers.values()))
    edges = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    source = ParquetSource(tuple(groups), edges, chosen, width, float_type(dtype))
    return Scanned(source, *runs.bags())


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
        self._sizes: list[int] = []

    def add(self, ids: pa.ChunkedArray, labels: pa.ChunkedArray | None, path: Path) -> None:
        """Take the columns of further rows."""
        ends, names = _run_ends(ids)
        if any(name is None for name in names):
            msg = f"{path} has rows without a bag id. Drop or fill them."
            raise BagValidationError(msg)
        marks: list[Any] = [None] * len(names)
        if labels is not None:
            label_ends, found = _run_ends(labels)
            inside = np.setdiff1d(label_ends, ends)
            if len(inside):
                bag = names[int(np.searchsorted(ends, inside[0]))]
                msg = f"The label of bag {bag!r} varies in {path}. A label belongs to the whole bag."
                raise BagValidationError(msg)
            marks = [found[i] for i in np.searchsorted(label_ends, ends)]
        for name, mark, size in zip(names, marks, np.diff(ends, prepend=0).tolist(), strict=True):
            self._add_run(name, mark, size, path)

    def _add_run(self, name: Any, label: Any, size: int, path: Path) -> None:
        if self._ids and self._ids[-1] == name:
            if self._labels[-1] != label:
                msg = f"The label of bag {name!r} varies in {path}. A label belongs to the whole bag."
                raise BagValidationError(msg)
            self._sizes[-1] += size
            return
        self._ids.append(name)
        self._labels.append(label)
        self._sizes.append(size)

    def bags(self) -> tuple[Integers, NDArray[Any], NDArray[Any] | None]:
        """Return offsets, ids and labels of all bags."""
        if len(set(self._ids)) < len(self._ids):
            seen: set[Any] = set()
            twice = next(name for name in self._ids if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            msg = (
                f"The rows of bag {twice!r} are not next to each other, so that it cannot be read in blocks. "
                "Sort the rows by bag, or read all into memory with gmil.read."
            )
            raise BagValidationError(msg)
        offsets = np.concatenate([[0], np.cumsum(self._sizes)]).astype(np.int64)
        return offsets, np.array(self._ids), self._labels_of_bags()

    def _labels_of_bags(self) -> NDArray[Any] | None:
        missing = [name for name, label in zip(self._ids, self._labels, strict=True) if label is None]
        if len(missing) == len(self._ids):
            return None
        if missing:
            msg = f"The label of bag {missing[0]!r} is missing ({len(missing)} bags have none). Fill it in."
            raise BagValidationError(msg)
        return np.array(self._labels)


def _run_ends(column: pa.ChunkedArray) -> tuple[Integers, list[Any]]:
    """Return where runs of equal values end, and the values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0)
    encoded = pc.run_end_encode(array, run_end_type=pa.int64())
    return encoded.run_ends.to_numpy(), encoded.values.to_pylist()
