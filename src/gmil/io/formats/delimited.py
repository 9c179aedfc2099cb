"""CSV and TSV: a line with names, then one instance a line, every feature in a column of its own."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np

from gmil.bags import tables
from gmil.bags.roles import choose_roles
from gmil.errors import FormatError
from gmil.io.formats.rows import table_rows
from gmil.safety.guard import expect, parsing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from gmil.bags.roles import Named, Rows
    from gmil.io.formats.contents import Contents

KIND = "CSV"
_WITHOUT = "leave the column out with {drop}"
_EMPTY = ("", "#N/A", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null")
"""What stands for no value in a column of numbers, as Arrow reads it."""
_BLOCK = 1 << 24  # one line must fit into a block, and a line may hold many features


def read(path: Path, named: Named) -> Rows:
    """Read a CSV or TSV file."""
    names = column_names(path)
    bag, label = choose_roles(names, named)
    texts = [name for name in (bag, label) if name is not None]
    table = read_text(path, delimiter_of(path), texts=texts, decimal=named.decimal)
    others = {bag, label, *named.all_of("info"), *named.dropped(names)}
    table = numbers_only(path, table, others, named, first_line=2)
    return table_rows(table, named._replace(bag=bag, label=label), from_text=True)


def column_names(path: Path) -> list[str]:
    """Return the names in the first line of a CSV or TSV file."""
    with parsing(path, "CSV"), path.open(encoding="utf-8-sig", newline="") as file:
        names = next(csv.reader(file, delimiter=delimiter_of(path)))
    _refuse_headless(path, names)
    return names


def write(path: Path, contents: Contents) -> None:
    """Write a wide table; every number has the digits that make it read back as it was."""
    import pyarrow.csv as pacsv

    instances = contents.dense().astype(np.float64, copy=False)
    contents.refuse_confusing_names()
    names, info = contents.feature_names, contents.bags.instance_info
    table = tables.to_table(contents.columns(), instances, names, info)
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    pacsv.write_csv(table, path, pacsv.WriteOptions(delimiter=delimiter))


def read_text(
    path: Path,
    delimiter: str,
    *,
    texts: Sequence[str],
    names: Sequence[str] | None = None,
    decimal: str = ".",
) -> pa.Table:
    """Read a table; the columns ``texts`` stay as they are written, others become what they look like."""
    import pyarrow as pa
    import pyarrow.csv as pacsv

    with parsing(path, "CSV"):
        table = pacsv.read_csv(
            path,
            read_options=pacsv.ReadOptions(block_size=_BLOCK, column_names=names),
            parse_options=pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(column_types=dict.fromkeys(texts, pa.string()), decimal_point=decimal),
        )
    expect(table.num_rows, f"{path} has a line of names but no instances below it; at least one is needed.")
    return table


def numbers_only(
    path: Path,
    table: pa.Table,
    others: set[str | None],
    named: Named,
    *,
    first_line: int,
) -> pa.Table:
    """Return the table with empty columns as numbers; a column of numbers with a slip in it is refused.

    Without that, one mistyped cell would turn a whole feature into text and so into no feature.
    """
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        if field.name in others or not named.wants(field.name):
            continue
        if pa.types.is_null(field.type):
            empty = table.column(i).cast(pa.float64())
            table = table.set_column(i, field.name, empty)
        elif pa.types.is_string(field.type):
            _refuse_slips(
                path, field.name, table.column(i).to_pylist(), named.names(field.name), first_line, named.decimal
            )
    return table


def _refuse_slips(path: Path, name: str, texts: list[str], must_be: bool, first_line: int, decimal: str) -> None:
    """Refuse a column of numbers with a slip in it; one without a number is text, however many cells are empty."""
    slips = [row for row, text in enumerate(texts) if not _is_number(text, decimal)]
    if not slips:
        return
    row, filled = slips[0], sum(text not in _EMPTY for text in texts)
    holds = f"{path}, line {row + first_line}: the column {name!r} holds {texts[row]!r}"
    correct = f"Correct the cell, or {_WITHOUT}"
    other, sign = (",", "comma") if decimal == "." else (".", "point")
    if all(_is_number(texts[slip], other) for slip in slips):
        msg = f"{holds}, a number with a decimal {sign}."
        if len(slips) <= sum(decimal in text for text in texts):  # most are written as they should be
            raise FormatError(msg, parameter="features", fix=correct)
        fix = "Read the file with {decimal}" if other == "," else "Write all numbers with one decimal sign."
        raise FormatError(msg, parameter="decimal", fix=fix)
    if must_be or len(slips) < filled / 2:
        msg = f"{holds} where a number should be ({len(slips)} of {filled} cells do)."
        raise FormatError(msg, parameter="features", fix=correct)


def _is_number(text: str, decimal: str = ".") -> bool:
    if text in _EMPTY:
        return True
    if decimal == ",":
        text = "" if "." in text else text.replace(",", ".")
    try:
        float(text)
    except ValueError:
        return False
    return True


def delimiter_of(path: Path) -> str:
    """Return what separates columns: the suffix says it, or the first line does."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    with parsing(path, "CSV"), path.open(encoding="utf-8-sig") as file:
        return delimiter_in(file.readline())


def delimiter_in(header: str) -> str:
    """Return what separates the names in a first line."""
    return next((sign for sign in ",;\t" if sign in header), ",")


def _refuse_headless(path: Path, names: Sequence[str]) -> None:
    if names and all(name and _is_number(name) for name in names):
        msg = (
            f"{path} begins with numbers, {names[0]}, ..., where the names of its columns should be. "
            "Add a first line such as bag,label,f0,f1."
        )
        raise FormatError(msg)
