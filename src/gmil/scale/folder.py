"""A folder with one file a bag."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags.bag_files import Wanted, bag_file_header, checked_columns, read_bag_file
from gmil.bags.parquet_files import read_schema
from gmil.bags.tables import float_type
from gmil.scale.parquet import missing_part, other_width, scan_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gmil.bags.roles import Named
    from gmil.engine.arrays import Floats, Integers


@dataclass(frozen=True)
class FolderSource:
    """Files of one bag each; every file is a part, so that parts are bags."""

    files: tuple[str, ...]
    edges: Integers
    n_features: int
    dtype: np.dtype[Any]
    wanted: Wanted

    @classmethod
    def of(cls, files: Sequence[Path], named: Named) -> FolderSource:
        """Look at the beginning of every file."""
        wanted = Wanted.of(files, named)
        headers = [bag_file_header(path, wanted) for path in files]
        widths = np.array([width for _, width, _ in headers])
        if (widths != widths[0]).any():
            wrong = int((widths != widths[0]).argmax())
            raise other_width(files[wrong], int(widths[wrong]), files[0], int(widths[0]))
        edges = np.concatenate([[0], np.cumsum([size for size, _, _ in headers])]).astype(np.int64)
        dtype = float_type(np.result_type(*(dtype for *_, dtype in headers)))
        return cls(tuple(map(str, files)), edges, int(widths[0]), dtype, wanted)

    def read(self, part: int, rows: int) -> Iterator[Floats]:
        """See `gmil.scale.passes.Source.read`."""
        path = Path(self.files[part])
        if not path.exists():
            raise missing_part(path)
        if path.suffix == ".parquet":
            columns = checked_columns(path, read_schema(path), self.wanted)
            pieces: Any = scan_file(path, columns, rows)
        else:
            X = read_bag_file(path, self.wanted)
            pieces = (X[start : start + rows] for start in range(0, len(X), rows))
        for piece in pieces:
            yield np.ascontiguousarray(piece, dtype=self.dtype)

    def place(self, part: int) -> str:
        """See `gmil.scale.passes.Source.place`."""
        return self.files[part]
