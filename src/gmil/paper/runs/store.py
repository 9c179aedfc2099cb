"""The store: one Parquet file per finished job, one row per fold. Files appear whole or not at all.

Nothing is ever changed in place, so any number of processes may work on one store: they can only do the same job
twice, never spoil or count it twice.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmil.errors import GmilError
from gmil.safety.atomic import replacing
from gmil.safety.temporaries import remove_leftovers

if TYPE_CHECKING:
    import os

    import pyarrow as pa


class DamagedPartError(GmilError, ValueError):
    """A file of the store that is not what a finished job writes."""


_OF_PROCESSES = "cpu_seconds gpu_seconds peak_bytes"
"""What is known of a job that had a process to itself; stores of earlier versions have no such columns."""


def row_schema() -> pa.Schema:
    """Return the columns of the store: one row is one fold."""
    import pyarrow as pa

    text, number, lists = pa.string(), pa.float64(), pa.list_
    kinds = [
        (text, "job spec dataset method label column params"),
        (pa.int32(), "folds repeat fold"),
        (pa.int64(), "seed"),
        (text, "status reason"),
        (lists(pa.int64()), "bags"),
        (lists(text), "labels predictions"),
        (lists(number), "decisions instance_scores"),
        (lists(text), "classes"),
        (text, "positive_label"),
        (number, "accuracy fit_seconds predict_seconds tune_seconds"),
        (text, "chosen warnings versions machine finished_at"),
        (number, _OF_PROCESSES),
    ]
    return pa.schema([(name, kind) for kind, names in kinds for name in names.split()])


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    """Return rows as a table with the columns of the store."""
    import pyarrow as pa

    return pa.Table.from_pylist(rows, schema=row_schema())


class Store:
    """The rows of finished jobs in ``<output>/rows``.

    Parameters
    ----------
    output : path
        Made where it does not exist.
    """

    def __init__(self, output: str | os.PathLike[str]) -> None:
        self.folder = Path(output) / "rows"
        self.folder.mkdir(parents=True, exist_ok=True)

    def path(self, job: str) -> Path:
        """Return the file of a job."""
        return self.folder / f"{job}.parquet"

    def clean(self) -> int:
        """Remove half-written files that killed runs left; return how many."""
        return remove_leftovers(self.folder)

    def read(self, job: str, n_folds: int, n_repeats: int = 1) -> pa.Table | None:
        """Return the rows of a job, None where it is not finished.

        Raises
        ------
        DamagedPartError
            The file cannot be read, or it does not hold each fold of this job once.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.path(job)
        if not path.exists():
            return None
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                table = file.read()
        except FileNotFoundError:
            return None
        except (pa.ArrowException, OSError, ValueError) as error:
            msg = f"{path.name} cannot be read"
            raise DamagedPartError(msg) from error
        for name in _OF_PROCESSES.split():
            if name not in table.column_names:
                table = table.append_column(name, pa.nulls(table.num_rows, pa.float64()))
        if not table.schema.equals(row_schema()):
            msg = f"{path.name} has other columns"
            raise DamagedPartError(msg)
        folds = set(zip(table["repeat"].to_pylist(), table["fold"].to_pylist(), strict=True))
        is_whole = len(folds) == table.num_rows == n_folds * n_repeats and {f for _, f in folds} == set(range(n_folds))
        if set(table["job"].to_pylist()) != {job} or not is_whole:
            msg = f"{path.name} does not hold each fold of its job once"
            raise DamagedPartError(msg)
        return table

    def write(self, job: str, table: pa.Table) -> None:
        """Write the rows of a finished job in one step."""
        import pyarrow.parquet as pq

        with replacing(self.path(job)) as temporary:
            pq.write_table(table, temporary, write_page_checksum=True)

    def remove(self, job: str) -> None:
        """Remove the rows of a job, where there are such."""
        self.path(job).unlink(missing_ok=True)


def is_failed(table: pa.Table) -> bool:
    """Tell whether the rows of a job are those of a failure."""
    return "failed" in table["status"].to_pylist()
