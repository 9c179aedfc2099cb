"""What the values of ids and labels become."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags.tables import texts_of_bytes
from gmil.errors import BagValidationError

if TYPE_CHECKING:
    from numpy.typing import NDArray


_FLAGS = {"true": 1, "True": 1, "TRUE": 1, "false": 0, "False": 0, "FALSE": 0}


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
        return texts_of_bytes(labels)
    msg = f"Labels must be strings or numbers, got {labels.dtype} data."
    raise BagValidationError(msg, parameter="label", fix="Name another with {label}")


def labels_from_text(texts: NDArray[Any]) -> NDArray[Any]:
    """Return labels read from a text file as numbers where every one is a number, or every one true or false."""
    flags = [_FLAGS.get(text) for text in texts]
    if None not in flags:
        return np.array(flags, dtype=np.int64)
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
