"""Tables of labels and splits: every entry a text, so that ids keep their zeros and dots."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gmil.bags.tables import refuse_equal_names
from gmil.errors import BagValidationError, FormatError, MissingFileError, count_of, listed
from gmil.safety.guard import parsing
from gmil.slides.sheets import read_sheet

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

MISSING = frozenset({"", "nan", "NaN", "NA", "N/A", "None", "null"})
"""How tables write that something is not known."""
_OTHER_SHEETS = (".xls", ".ods")


class Table(NamedTuple):
    """Rows of texts by the names of their columns."""

    path: Path
    columns: dict[str, list[str]]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def column(self, name: str, role: str) -> list[str]:
        """Return a column that a user has named."""
        if name not in self.columns:
            msg = f"The {role} column {name!r} is not in {self.path}; its columns are {listed(self.names, most=12)}."
            raise BagValidationError(msg, parameter=role, fix=f"Name another with {{{role}}}")
        return self.columns[name]


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read a CSV or TSV file, or the first sheet of an .xlsx file, as texts; cells of spaces are empty."""
    path = Path(path)
    if not path.exists():
        msg = f"{path}, the table of slides, does not exist. Check the name."
        raise MissingFileError(msg)
    if path.suffix.lower() in _OTHER_SHEETS:
        msg = f"{path} is a spreadsheet that is not read. Save it as .xlsx or CSV."
        raise FormatError(msg)
    rows = read_sheet(path) if path.suffix.lower() == ".xlsx" else _read_text(path)
    if len(rows) < 2:
        msg = f"{path} has no rows below the names of its columns. Write one row a slide."
        raise FormatError(msg)
    refuse_equal_names(rows[0])
    wrong = next((number for number, row in enumerate(rows) if len(row) != len(rows[0])), None)
    if wrong is not None:
        cells, columns = count_of(len(rows[wrong]), "cell"), count_of(len(rows[0]), "column")
        msg = f"{path}, row {wrong}: {cells}, but {columns}. Correct the row."
        raise FormatError(msg)
    return _long_form(Table(path, {name: [row[i].strip() for row in rows[1:]] for i, name in enumerate(rows[0])}))


def _read_text(path: Path) -> list[list[str]]:
    with parsing(path, "CSV"), path.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        file.seek(0)
        delimiter = "\t" if path.suffix.lower() == ".tsv" else next((sign for sign in ",;\t" if sign in first), ",")
        return [row for row in csv.reader(file, delimiter=delimiter) if any(cell.strip() for cell in row)]


def _long_form(table: Table) -> Table:
    """Return MIL_BASELINE's table of three pairs of columns as one with a row a slide: its path, label and split.

    A path without a label, if both columns were closed up, would shift all labels below it: it is refused.
    """
    if "train_slide_path" not in table.columns:
        return table
    rows: list[tuple[str, str, str]] = []
    for split in ("train", "val", "test"):
        paths = table.columns.get(f"{split}_slide_path", [])
        for row, (path, label) in enumerate(zip(paths, table.columns.get(f"{split}_label", paths), strict=True)):
            if (path in MISSING) != (label in MISSING):
                msg = f"{table.path}, row {row + 1}: {split}_slide_path is {path!r}, but {split}_label is {label!r}."
                raise FormatError(msg, parameter="labels", fix="Fill in both, or neither.")
            rows += [] if path in MISSING else [(path, label, split)]
    return Table(
        table.path, {name: [row[i] for row in rows] for i, name in enumerate(("slide_path", "label", "split"))}
    )


def read_tables(paths: Sequence[str | os.PathLike[str]]) -> Table:
    """Read one table, or a table of patients and one of slides, joined by the column that both have."""
    found = [read_table(path) for path in paths]
    if len(found) == 1:
        return found[0]
    if len(found) > 2:
        msg = f"Labels are one table, or one of patients and one of slides, got {len(found)}."
        raise BagValidationError(msg, parameter="labels")
    return _joined(*found)


def _joined(patients: Table, slides: Table) -> Table:
    shared = [name for name in patients.names if name in slides.names]
    if len(shared) != 1:
        msg = (
            f"{patients.path} and {slides.path} must share one column, that of the patient; they share "
            f"{listed(shared) or 'none'}. Rename columns."
        )
        raise BagValidationError(msg)
    key = shared[0]
    if len(set(slides.columns[key])) == len(slides) > len(set(patients.columns[key])):
        patients, slides = slides, patients
    place = _places(patients, key)
    rows = [place.get(patient) for patient in slides.columns[key]]
    of_patients = {
        name: ["" if row is None else column[row] for row in rows]
        for name, column in patients.columns.items()
        if name != key
    }
    return Table(slides.path, {**slides.columns, **of_patients})


def _places(table: Table, key: str) -> dict[str, int]:
    values = table.columns[key]
    twice = sorted({value for value in values if values.count(value) > 1}) if len(set(values)) < len(values) else []
    if twice:
        msg = f"{table.path} has several rows for {key} {listed(twice)}. Write one row a patient."
        raise BagValidationError(msg)
    return {value: row for row, value in enumerate(values)}
