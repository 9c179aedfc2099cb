"""Bags out to Weka's multi-instance ARFF."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from gmil.io.formats.arff_syntax import quoted
from gmil.io.formats.contents import info_columns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from gmil.io.formats.contents import Contents


def write(path: Path, contents: Contents) -> None:
    """Write a bag a line; every number has the digits that make it read back as it was."""
    contents.refuse_equal_names()
    info = info_columns(contents.bags, ".arff")
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in _header(contents, info))
        labels = [""] * len(contents.bags)
        if contents.y is not None:
            labels = [f",{_value(label)}" for label in contents.y.tolist()]
        for i, name in enumerate(contents.ids.tolist()):
            inside = quoted("\n".join(_instances(contents, info, i)), always=True)
            file.write(f"{_value(name)},{inside}{labels[i]}\n")


def _header(contents: Contents, info: dict[str, NDArray[Any]]) -> Iterator[str]:
    yield "@relation gmil"
    yield f"@attribute bag {_nominal(contents.ids)}"
    yield "@attribute instances relational"
    for name, column in info.items():
        kind = "string" if column.dtype.kind == "U" else "numeric"
        yield f"  @attribute {quoted(name)} {kind}"
    for name in contents.feature_names:
        yield f"  @attribute {quoted(name)} numeric"
    yield "@end instances"
    if contents.y is not None:
        is_float = contents.y.dtype.kind == "f"
        yield f"@attribute label {'numeric' if is_float else _nominal(contents.y)}"
    yield "@data"


def _nominal(values: NDArray[Any]) -> str:
    return "{" + ",".join(_value(value) for value in np.unique(values).tolist()) + "}"


def _value(value: Any) -> str:
    if isinstance(value, float):
        return "?" if math.isnan(value) else repr(value)
    return quoted(str(value)) if isinstance(value, str) else str(int(value))


def _instances(contents: Contents, info: dict[str, NDArray[Any]], bag: int) -> Iterator[str]:
    bags = contents.bags
    start, stop = int(bags.offsets[bag]), int(bags.offsets[bag + 1])
    columns = [column[start:stop].tolist() for column in info.values()]
    about = list(zip(*columns, strict=True)) or [()] * (stop - start)
    matrix = bags.instances[start:stop]
    if not sp.issparse(matrix):
        for cells, row in zip(about, matrix.tolist(), strict=True):
            yield ",".join([*map(_value, cells), *map(_value, row)])
        return
    for i, cells in enumerate(about):
        stored = slice(matrix.indptr[i], matrix.indptr[i + 1])
        pairs = [f"{place} {_value(cell)}" for place, cell in enumerate(cells)]
        places = matrix.indices[stored] + len(cells)
        values = matrix.data[stored].tolist()
        pairs += [f"{place} {_value(value)}" for place, value in zip(places, values, strict=True)]
        yield "{" + ", ".join(pairs) + "}"
