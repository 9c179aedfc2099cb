"""Slides joined to a table: which row is whose, which slides make a bag, and what is missing on either end."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from gmil.bags.roles import LABEL_NAMES, choose
from gmil.errors import BagValidationError, LabelError, SlideWarning, count_of, listed
from gmil.slides.names import near_miss, resolved
from gmil.slides.tables import MISSING, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

_SLIDE_NAMES = (
    "slide_id", "slide", "slide_name", "filename", "slide_path", "bag_name", "bag", "bag_id", "image_id", "image",
    "wsi", "wsi_id", "file", "name", "id",
)  # fmt: skip


class Asked(NamedTuple):
    """The columns that a user has named."""

    bag: str | None = None
    label: str | None = None
    group: str | None = None
    event: str | None = None


class Joined(NamedTuple):
    """Bags of slides, in the order of their rows."""

    names: list[str]
    slides: list[list[str]]
    labels: list[str] | None
    groups: list[str] | None
    by_patient: bool
    events: list[str] | None = None

    def bag_of_slide(self) -> dict[str, int]:
        """Return the position of the bag of every slide."""
        return {slide: number for number, slides in enumerate(self.slides) for slide in slides}


def unjoined(slides: Sequence[str]) -> Joined:
    """Return every slide as a bag without a label."""
    return Joined(list(slides), [[slide] for slide in slides], None, None, by_patient=False)


def joined(table: Table, slides: Sequence[str], asked: Asked) -> Joined:
    """Join slides to the rows of a table; those without the other are told about and left out."""
    known = set(slides)
    column = _slide_column(table, known, asked.bag)
    rows = _rows_of_slides(table, column, known)
    bag = asked.bag if asked.bag is not None and asked.bag != column else None
    label = choose(table.names, asked.label, LABEL_NAMES, "label", taken={column, bag or ""})
    usable = _told(table, column, slides, rows, label)
    names = {slide: slide if bag is None else table.column(bag, "bag")[rows[slide]] for slide in usable}
    _refuse_nameless(table, bag, names)
    bags: dict[str, list[str]] = {}
    for slide in usable:
        bags.setdefault(names[slide], []).append(slide)
    of_bag = {
        role: None if name is None else _one_a_bag(table, name, role, bags, rows)
        for role, name in (("label", label), ("group", asked.group), ("event", asked.event))
    }
    parts = of_bag["label"], of_bag["group"], bag is not None, of_bag["event"]
    return Joined(list(bags), list(bags.values()), *parts)


def _slide_column(table: Table, known: set[str], bag: str | None) -> str:
    """Return the column that names files: the one for bags, or that of slides where bags are patients."""
    named = [bag] if bag is not None and table.column(bag, "bag") else []
    others = [name for name in table.names if name.casefold() in _SLIDE_NAMES and name != bag]
    others.sort(key=lambda name: _SLIDE_NAMES.index(name.casefold()))
    counts = {name: sum(resolved(text, known) is not None for text in table.columns[name]) for name in named + others}
    best = max(counts, key=lambda name: counts[name], default=None)
    if best is None:
        msg = f"No column of {table.path} names slides; its columns are {listed(table.names, most=12)}."
        raise BagValidationError(msg, parameter="bag", fix="Name it with {bag}")
    if counts[best] == 0:
        raise _no_match(table, named[0] if named else best, known)
    return best


def _no_match(table: Table, column: str, known: set[str]) -> BagValidationError:
    texts = table.columns[column]
    hints = [hint for text in texts[:50] if (hint := near_miss(text, known)) is not None][:1]
    msg = (
        f"No entry of the column {column!r} of {table.path} is the name of a slide: {listed(texts, most=3)} against "
        f"{listed(sorted(known), most=3)}." + "".join(f" {hint}." for hint in hints)
    )
    return BagValidationError(msg, parameter="bag", fix="Correct the names, or name another column with {bag}")


def _rows_of_slides(table: Table, column: str, known: set[str]) -> dict[str, int]:
    """Return the row of every slide that has one; two rows for a slide are refused."""
    found: dict[str, int] = {}
    twice: list[str] = []
    for row, text in enumerate(table.columns[column]):
        slide = resolved(text, known)
        if slide is not None and found.setdefault(slide, row) != row:
            twice.append(slide)
    if twice:
        msg = f"{table.path} has several rows for slide {listed(sorted(set(twice)))}. Keep one row a slide."
        raise BagValidationError(msg)
    return found


def _told(table: Table, column: str, slides: Sequence[str], rows: dict[str, int], label: str | None) -> list[str]:
    """Return the slides that have a row and a label, in their order; warn about all others, on either end."""
    without_row = [slide for slide in slides if slide not in rows]
    labels = [] if label is None else table.columns[label]
    empty = [slide for slide in slides if slide in rows and labels and labels[rows[slide]] in MISSING]
    texts = table.columns[column]
    used = set(rows.values())
    without_file = [text for row, text in enumerate(texts) if row not in used and text]
    parts = []
    if without_row:
        parts.append(f"{len(without_row)} of {len(slides)} slides have no row in {table.path}: {listed(without_row)}")
    if empty:
        parts.append(f"{count_of(len(empty), 'slide has', 'slides have')} no {label}: {listed(empty)}")
    if without_file:
        parts.append(f"{len(without_file)} of {len(texts)} rows of {table.path} have no slide: {listed(without_file)}")
        parts += [hint for text in without_file[:20] if (hint := near_miss(text, set(without_row)))][:1]
    if parts:
        warnings.warn(SlideWarning(f"Left out: {'; '.join(parts)}."), stacklevel=6)
    left = [slide for slide in slides if slide in rows and slide not in set(empty)]
    if not left:
        msg = f"No slide has a label in the column {label!r} of {table.path}."
        raise LabelError(msg, parameter="label", fix="Name another column with {label}")
    return left


def _refuse_nameless(table: Table, bag: str | None, names: dict[str, str]) -> None:
    nameless = [slide for slide, name in names.items() if name in MISSING]
    if nameless:
        msg = f"{table.path} has no {bag} for slide {listed(nameless)}. Fill it in."
        raise BagValidationError(msg, parameter="bag", fix="Or make bags of slides, with another {bag}")


def _one_a_bag(table: Table, name: str, role: str, bags: dict[str, list[str]], rows: dict[str, int]) -> list[str]:
    """Return the entry of every bag, on which all its slides must agree."""
    column = table.column(name, role)
    found = []
    for bag, slides in bags.items():
        counts = Counter(column[rows[slide]] for slide in slides)
        if len(counts) > 1:
            values = " and ".join(repr(value) for value in sorted(counts)[:2])
            msg = f"The {role} {name!r} of {bag!r} varies between its slides: {values}. It belongs to the whole bag."
            raise BagValidationError(msg, parameter=role, fix="Correct it, or make every slide a bag.")
        found.append(next(iter(counts)))
    absent = [bag for bag, value in zip(bags, found, strict=True) if value in MISSING]
    if absent:
        all_of_them = count_of(len(absent), "bag has", "bags have")
        msg = f"The {role} {name!r} of {listed(absent)} is missing ({all_of_them} none). Fill it in."
        raise BagValidationError(msg)
    return found
