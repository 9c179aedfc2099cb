"""C4.5 ``.data`` as the UCI Musk files have it: molecule, conformation, features, and a class with a dot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags.roles import Named
from gmil.errors import BagValidationError, FormatError
from gmil.io.formats.contents import info_columns
from gmil.io.formats.delimited import numbers_only, read_text
from gmil.io.formats.rows import table_rows
from gmil.safety.guard import parsing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from gmil.bags import Bags
    from gmil.bags.roles import Rows
    from gmil.io.formats.contents import Contents

KIND = "C4.5 data"
BAG, INSTANCE, LABEL = "molecule_name", "conformation_name", "class"


def read(path: Path, named: Named) -> Rows:
    """Read a .data file; its columns are called molecule_name, conformation_name, f1, f2, ..., class."""
    names = _column_names(path)
    table = read_text(path, ",", texts=(BAG, INSTANCE, LABEL), names=names)
    table = numbers_only(path, table, {BAG, INSTANCE, LABEL}, Named(features=names[2:-1]), first_line=1)
    named = named._replace(bag=named.bag or BAG, label=named.label or LABEL)
    return table_rows(_without_dots(table), named, from_text=True)


def _column_names(path: Path) -> list[str]:
    with parsing(path, KIND), path.open(encoding="utf-8") as file:
        n_columns = len(file.readline().split(","))
    if n_columns < 4:
        msg = (
            f"{path} cannot be read as C4.5 data: its first line has {n_columns} columns, but the "
            "molecule, the conformation, at least one feature and the class are needed."
        )
        raise FormatError(msg)
    return [BAG, INSTANCE, *(f"f{i}" for i in range(1, n_columns - 2)), LABEL]


def _without_dots(table: pa.Table) -> pa.Table:
    import pyarrow as pa

    labels = [label.strip().removesuffix(".") for label in table.column(LABEL).to_pylist()]
    at = table.column_names.index(LABEL)
    return table.set_column(at, LABEL, pa.array(labels, pa.string()))


def write(path: Path, contents: Contents) -> None:
    """Write a .data file; conformations without a name are numbered within their bag."""
    if contents.y is None:
        msg = "A .data file needs a class for every bag, but y is None. Pass y, or write .npz."
        raise BagValidationError(msg)
    bags, instances = contents.bags, contents.dense()
    ids = [_plain(name) for name in contents.ids]
    labels = [_plain(label) for label in contents.y]
    conformations = _conformations(bags, ids)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row, bag in enumerate(bags.segment_ids):
            numbers = ",".join(_digits(value) for value in instances[row].tolist())
            file.write(f"{ids[bag]},{conformations[row]},{numbers},{labels[bag]}.\n")


def _conformations(bags: Bags, ids: Sequence[str]) -> list[str]:
    info = info_columns(bags, ".data")
    names = info.pop(INSTANCE, None)
    if info:
        msg = (
            f"A .data file has no room for the instance_info column {next(iter(info))!r}, only for "
            f"{INSTANCE!r}. Rename it, leave it out, or write .parquet."
        )
        raise BagValidationError(msg)
    if names is not None:
        return [_plain(name) for name in names]
    places = np.arange(bags.n_instances) - np.repeat(bags.offsets[:-1], bags.sizes)
    return [f"{ids[b]}+{i + 1}" for b, i in zip(bags.segment_ids, places, strict=True)]


def _plain(value: Any) -> str:
    text = str(value)
    if not text or text != text.strip() or any(sign in text for sign in ',"\n\r'):
        msg = f"{text!r} cannot be written to a .data file, which knows no quotes. Rename it."
        raise BagValidationError(msg)
    return text


def _digits(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
