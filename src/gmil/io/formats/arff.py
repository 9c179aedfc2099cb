"""Weka's multi-instance ARFF: a bag a line, its instances inside a relational attribute.

An ARFF file without a relational attribute is read as a table with one instance a line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags.parts import refuse_missing_ids
from gmil.bags.roles import BAG_NAMES, LABEL_NAMES, Rows, choose
from gmil.errors import BagValidationError, FormatError, count_of
from gmil.io.formats.arff_rows import ArffRows, row_cells
from gmil.io.formats.arff_syntax import Attribute, read_header
from gmil.io.formats.rows import ids_from_text, labels_from_text, table_rows, tidy_labels
from gmil.safety.guard import expect, parsing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gmil.bags.roles import Named

    Lines = Iterator[tuple[int, str]]

KIND = "ARFF"


def read(path: Path, named: Named) -> Rows:
    """Read an ARFF file; what is named are attributes."""
    with parsing(path, KIND), path.open(encoding="utf-8", newline=None) as file:
        lines = _lines(file)
        try:
            attributes = read_header(lines)
            if any(attribute.kind == "relational" for attribute in attributes):
                return _read_bags(attributes, lines, named)
            table = _read_table(attributes, lines)
        except FormatError as error:
            msg = f"{path} cannot be read as ARFF: {error}. Correct it, or export the file again."
            raise FormatError(msg) from None
    return table_rows(table, named, from_text=True)


def _lines(file: Iterator[str]) -> Lines:
    for number, line in enumerate(file, start=1):
        text = line.strip()
        if text and not text.startswith("%"):
            yield number, text


def _read_table(attributes: Sequence[Attribute], lines: Lines) -> Any:
    rows = ArffRows(attributes)
    for number, line in lines:
        rows.add(line, f"line {number}")
    return rows.table()


def _read_bags(attributes: Sequence[Attribute], lines: Lines, named: Named) -> Rows:
    at, bag_at, label_at, is_guess = _roles(attributes, named)
    rows = ArffRows(attributes[at].inner)
    sizes: list[int] = []
    outer: list[list[str | None]] = []  # what is said about each bag
    for number, line in lines:
        cells = row_cells(line, attributes, f"line {number}")
        instances = (cells[at] or "").split("\n")
        before = len(rows)
        for i, instance in enumerate(instances):
            if instance.strip():
                rows.add(instance.strip(), f"line {number}, instance {i}")
        expect(len(rows) != before, f"line {number}: bag {len(outer)} has 0 instances; every bag needs at least 1")
        sizes.append(len(rows) - before)
        outer.append(cells)
    expect(outer, "it has no bags below @data")
    matrix, names, carried = rows.parts(named)
    ids = None if bag_at is None else _texts(outer, bag_at)
    if is_guess and ids is not None and len(set(ids.tolist())) < len(ids):
        ids = None  # what repeats is no id, but a patient or the like
    labels = None if label_at is None else _labels(outer, label_at, attributes[label_at])
    return Rows(
        matrix,
        np.repeat(np.arange(len(sizes)), sizes),
        None if labels is None else np.repeat(labels, sizes),
        names,
        carried,
        bag_names=None if ids is None else np.repeat(ids_from_text(ids), sizes),
    )


def _roles(attributes: Sequence[Attribute], named: Named) -> tuple[int, int | None, int | None, bool]:
    """Return where the instances, the bag id and the label are, and whether the id is one by its place alone.

    Weka puts the id before the instances and the class behind them, under any names.
    """
    names = [attribute.name for attribute in attributes]
    relational = [i for i, attribute in enumerate(attributes) if attribute.kind == "relational"]
    n = len(relational)
    expect(n == 1, f"it has {n} relational attributes, but a bag has one set of instances")
    at = relational[0]
    inside = names[at]
    label_name = choose(names, named.label, LABEL_NAMES, "label", taken={inside}, noun="attribute")
    if label_name is None and at < len(names) - 1:
        label_name = names[-1]
    taken = {inside, label_name or ""}
    bag_name = choose(names, named.bag, BAG_NAMES, "bag", taken=taken, noun="attribute")
    is_guess = bag_name is None and at > 0 and names[0] != label_name
    if is_guess:
        bag_name = names[0]
    return (
        at,
        None if bag_name is None else names.index(bag_name),
        None if label_name is None else names.index(label_name),
        is_guess,
    )


def _texts(outer: Sequence[Sequence[str | None]], at: int) -> NDArray[Any]:
    texts = np.array([cells[at] for cells in outer], dtype=object)
    refuse_missing_ids(texts)
    return np.array(texts.tolist(), dtype=np.str_)


def _labels(outer: Sequence[Sequence[str | None]], at: int, attribute: Attribute) -> NDArray[Any]:
    texts = [cells[at] for cells in outer]
    if None in texts:
        msg = (
            f"The label of bag {texts.index(None)} is missing "
            f"({count_of(texts.count(None), 'bag has', 'bags have')} none). "
            f"Fill it in, or leave the attribute {attribute.name!r} out."
        )
        raise BagValidationError(msg)
    labels = labels_from_text(np.array(texts, dtype=object))
    return tidy_labels(labels)
