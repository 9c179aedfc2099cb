"""Splits that tools write: lists of slides or patients, marks of slides, or a column; all become folds."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.errors import BagValidationError, FormatError, MissingFileError, SlideWarning, count_of, listed
from gmil.safety.guard import parsing
from gmil.slides.names import resolved
from gmil.slides.tables import MISSING, Table, read_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gmil.engine.arrays import Integers

SIDES = ("train", "val", "test")
_SYNONYMS = {
    "train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "dev": "val",
    "test": "test", "testing": "test",
}  # fmt: skip
_NAMES = ("bag_name", "slide_id", "slide", "slide_path", "bag", "filename")


class Named(NamedTuple):
    """One split: names of slides or patients to train on, to validate on and to test."""

    train: list[str]
    val: list[str]
    test: list[str]


class Fold(NamedTuple):
    """One split as positions of bags."""

    train: Integers
    val: Integers
    test: Integers


class Known(NamedTuple):
    """What names in a split may mean: every bag by its own name, by its slides, and by its patient."""

    bags: Sequence[str]
    slides: Sequence[Sequence[str]]
    groups: Sequence[str] | None

    def places(self, patients: bool) -> dict[str, list[int]]:
        """Return the positions of bags by name; of slides, or of patients, who may have several."""
        found: dict[str, list[int]] = {}
        for number, (bag, slides) in enumerate(zip(self.bags, self.slides, strict=True)):
            names = {bag, self.groups[number]} if patients and self.groups is not None else {bag, *slides}
            for name in names:
                found.setdefault(name, []).append(number)
        return found


def read_folds(source: Any, known: Known, table: Table | None) -> list[Fold]:
    """Return the folds of a file, of a folder of files, or of a column of the labels."""
    splits, by_patient = _named_splits(source, table)
    places = known.places(by_patient)
    folds = [_fold(split, places, source) for split in splits]
    for number, fold in enumerate(folds):
        _warn_about_patients(number, fold, known.groups)
    return folds


def _named_splits(source: Any, table: Table | None) -> tuple[list[Named], bool]:
    """Return splits, and whether they are of patients."""
    if table is not None and str(source) in table.columns:
        return _of_marks(_names_of(table), table.columns[str(source)]), False
    path = Path(source)
    if not path.exists():
        msg = f"{path} is neither a file nor a folder"
        msg += "." if table is None else f", nor a column of {table.path}."
        raise MissingFileError(msg, parameter="splits", fix="Name another with {splits}")
    if path.is_dir():
        return [split for file in _files_of_splits(path) for split in _of_table(read_table(file))], False
    if path.suffix == ".json":
        return _of_json(path), True
    return _of_table(read_table(path)), False


def _files_of_splits(folder: Path) -> list[Path]:
    """Return CLAM's or MIL_BASELINE's files of splits, in the order of their numbers."""
    found = [path for path in folder.glob("*.csv") if re.search(r"splits_\d+$|_\d+fold$", path.stem)]
    if not found:
        msg = f"{folder} holds no splits_0.csv, splits_1.csv ... of CLAM and no ..._1fold.csv of MIL_BASELINE."
        raise MissingFileError(msg)
    return sorted(found, key=lambda path: int(re.findall(r"\d+", path.stem)[-1]))


def _of_json(path: Path) -> list[Named]:
    """Read STAMP's splits, which are of patients."""
    with parsing(path, "JSON"):
        found = json.loads(path.read_text(encoding="utf-8"))
        return [
            Named([str(name) for name in split["train_patients"]], [], [str(name) for name in split["test_patients"]])
            for split in found["splits"]
        ]


def _of_table(table: Table) -> list[Named]:
    if set(SIDES) & set(table.columns):
        return [_of_lists(table)]
    if "split" in table.columns:
        return _of_marks(_names_of(table), table.columns["split"])
    msg = (
        f"{table.path} is no file of splits: it needs the columns train, val and test (CLAM), split (torchmil) or "
        f"train_slide_path (MIL_BASELINE); it has {listed(table.names, most=8)}."
    )
    raise FormatError(msg)


def _of_lists(table: Table) -> Named:
    """Read lists of slides side by side, of unequal lengths; or a mark for every slide, whose names come first."""
    columns = {side: table.columns.get(side, [""] * len(table)) for side in SIDES}
    marks = {text for column in columns.values() for text in column}
    if marks <= {"True", "False"}:
        names = table.columns[table.names[0]]
        chosen = {
            side: [name for name, mark in zip(names, column, strict=True) if mark == "True"]
            for side, column in columns.items()
        }
        return Named(**chosen)
    return Named(**{side: [text for text in column if text not in MISSING] for side, column in columns.items()})


def _names_of(table: Table) -> list[str]:
    name = next((name for known in _NAMES for name in table.names if name.casefold() == known), table.names[0])
    return table.columns[name]


def _of_marks(names: Sequence[str], marks: Sequence[str]) -> list[Named]:
    """Return one split of train, val and test; or one for each number of a fold, which is tested."""
    if all(mark.casefold() in _SYNONYMS for mark in marks if mark):
        sides: dict[str, list[str]] = {side: [] for side in SIDES}
        for name, mark in zip(names, marks, strict=True):
            if mark:
                sides[_SYNONYMS[mark.casefold()]].append(name)
        return [Named(**sides)]
    pairs = [(name, mark) for name, mark in zip(names, marks, strict=True) if mark]
    folds = sorted({mark for _, mark in pairs}, key=lambda text: (len(text), text))
    return [Named([n for n, m in pairs if m != fold], [], [n for n, m in pairs if m == fold]) for fold in folds]


def _fold(split: Named, places: dict[str, list[int]], source: Any) -> Fold:
    absent = [name for side in split for name in side if resolved(name, places) is None]
    if absent:
        msg = f"Left out: {count_of(len(absent), 'entry', 'entries')} of {source} without a bag: {listed(absent)}."
        warnings.warn(SlideWarning(msg), stacklevel=5)
    train, val, test = (_positions(side, places) for side in split)
    if not len(test) or not len(train):
        msg = f"{source} leaves no bags to {'train on' if len(test) else 'test'}: its names are those of other slides."
        raise BagValidationError(msg)
    for first, second, what in ((train, test, "trained on and tested"), (train, val, "trained on and validated")):
        both = np.intersect1d(first, second)
        if len(both):
            msg = f"{source} has {count_of(len(both), 'bag')} both {what}, such as bag {both[0]}. Correct it."
            raise BagValidationError(msg)
    return Fold(train, val, test)


def _positions(names: Iterable[str], places: dict[str, list[int]]) -> Integers:
    found = [place for name in names if (own := resolved(name, places)) is not None for place in places[own]]
    return np.unique(np.array(found, dtype=np.int64))


def _warn_about_patients(number: int, fold: Fold, groups: Sequence[str] | None) -> None:
    if groups is None:
        return
    of = np.asarray(groups)
    learnt = set(of[np.concatenate([fold.train, fold.val])].tolist())
    both = sorted(learnt & set(of[fold.test].tolist()))
    if both:
        msg = (
            f"In split {number}, {count_of(len(both), 'group is', 'groups are')} trained on and tested: {listed(both)}."
            " What is measured is too good: split by group."
        )
        warnings.warn(SlideWarning(msg), stacklevel=5)
