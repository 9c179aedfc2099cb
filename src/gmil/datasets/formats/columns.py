"""Which column is the bag, which the label, and what their values become."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.errors import BagValidationError, listed

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

BAG_NAMES = ("bag", "bag_id", "bag_ids", "bagid", "bag_name", "bag_index", "molecule_name")
LABEL_NAMES = ("label", "labels", "bag_label", "y", "class", "target")


def choose(
    names: Sequence[str],
    given: str | None,
    known: Sequence[str],
    role: str,
    *,
    taken: Collection[str] = (),
    noun: str = "column",
) -> str | None:
    """Return the name that plays a role: the one given, else the only one that is known to play it.

    ``known[0]`` goes before all others; two others are ambiguous. ``taken`` names play another role.
    """
    if given is not None:
        if given not in names:
            raise BagValidationError(_unknown(names, given, role, noun))
        return given
    free = [name for name in names if name not in taken]
    if known[0] in free:
        return known[0]
    found = [name for name in free if name.casefold() in known]
    if noun == "column":
        found = [name for name in found if not _is_coordinate(name, names)]
    if len(found) > 1:
        msg = (
            f"The {role} {noun} is ambiguous: {' and '.join(map(repr, found))} could each be it. "
            f"Name it with {role}=..."
        )
        raise BagValidationError(msg)
    return found[0] if found else None


def require(chosen: str | None, names: Sequence[str], role: str, noun: str = "column") -> str:
    """Return a name that was found; one that was not is an error that lists the names there are."""
    if chosen is None:
        msg = f"No {role} {noun} was found; {_those_there(names, noun)}. Name it with {role}=..."
        raise BagValidationError(msg)
    return chosen


def _unknown(names: Sequence[str], given: str, role: str, noun: str) -> str:
    return f"The {role} {noun} {given!r} is not there; {_those_there(names, noun)}. Name another with {role}=..."


def _those_there(names: Sequence[str], noun: str) -> str:
    return f"the {noun}s are {listed([repr(name) for name in names], most=12)}"


def _is_coordinate(name: str, names: Sequence[str]) -> bool:
    """Tell the y beside an x from the y that is a label."""
    return name.casefold() == "y" and any(other.casefold() == "x" for other in names)


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where a label is missing: None, NaN, or an empty text."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "O":
        return np.array([v is None or v == "" or v != v for v in values], dtype=bool)
    if values.dtype.kind == "U":
        return np.asarray(values == "")
    return np.zeros(len(values), dtype=bool)


def tidy_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels as strings, as integers where all are whole, else as floats."""
    if labels.dtype.kind == "O":
        labels = np.array(labels.tolist())
    if labels.dtype.kind in "biu":
        return labels.astype(np.int64)
    if labels.dtype.kind == "f":
        whole = np.isfinite(labels).all() and np.all(labels == np.rint(labels))
        return labels.astype(np.int64) if whole else labels.astype(np.float64)
    if labels.dtype.kind in "US":
        return labels.astype(np.str_)
    msg = f"Labels must be strings or numbers, got {labels.dtype} data. Name another with label=..."
    raise BagValidationError(msg)


def labels_from_text(texts: NDArray[Any]) -> NDArray[Any]:
    """Return labels read from a text file as numbers where every one is a number."""
    try:
        numbers = np.array([_number(text) for text in texts], dtype=np.float64)
    except ValueError:
        return np.array(texts.tolist(), dtype=np.str_)
    if not np.isfinite(numbers).all():  # a class may well be called "nan" or "inf"
        return np.array(texts.tolist(), dtype=np.str_)
    return tidy_labels(numbers)


def ids_from_text(texts: NDArray[Any]) -> NDArray[Any]:
    """Return ids read from a text file as integers where every one is written as such: not 007."""
    try:
        numbers = [int(text) for text in texts]
        if all(str(n) == text for n, text in zip(numbers, texts, strict=True)):
            return np.array(numbers, dtype=np.int64)
    except (ValueError, TypeError, OverflowError):
        pass
    return texts


def _number(text: str) -> float:
    if "_" in text:  # Python reads 1_0 as 10
        msg = f"{text!r} is no number"
        raise ValueError(msg)
    return float(text)
