"""Labels of patches from a table, joined by slide and place: rows of two runs need not be in one order."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.errors import BagValidationError, listed
from gmil.slides.names import resolved
from gmil.slides.tables import read_table

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from gmil.bags import Bags
    from gmil.scale import LazyBags
    from gmil.slides.tables import Table

_PLACE = ("slide", "x", "y")


def read_patch_labels(
    bags: Bags | LazyBags, path: str | os.PathLike[str], *, label: str | None = None
) -> NDArray[np.float64]:
    """Return the label of every patch, (n_instances,), from a table with the columns slide, x, y and a label.

    A patch is found by the name of its slide and by its top-left corner, to the nearest pixel. Two patches at one place
    are refused, on either end; so is a patch that the table does not have.

    Parameters
    ----------
    bags : Bags or LazyBags
        What `gmil.read` or `gmil.scan` made of a folder of slides.
    path : path
        A CSV file.
    label : str, optional
        The column with the label, a number; where there is one column more than slide, x and y, it is that.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import gmil
    >>> from gmil.slides.patch_labels import read_patch_labels
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = gmil.make_slides(Path(folder) / "slides", n_slides=4, n_patches=100, n_features=8)
    ...     bags, y = gmil.read(made.folder)
    ...     tumour = read_patch_labels(bags, made.patch_labels)
    >>> int(tumour.sum()) == 2 * int(y.sum())
    True
    """
    table = read_table(path)
    marks = table.column(_label_column(table) if label is None else label, "label")
    slides, xs, ys = (table.column(name, "label") for name in _PLACE)
    known = set(_slides(bags).tolist())
    names = {text: resolved(text, known) for text in set(slides)}
    rows = zip((names[text] for text in slides), _whole(xs), _whole(ys), strict=True)
    found: dict[tuple[Any, int, int], float] = {}
    for key, mark in zip(rows, marks, strict=True):
        if key in found:
            raise _twice(str(path), key)
        if key[0] is not None:
            found[key] = float(mark)
    keys = _keys(bags)
    if len(set(keys)) < len(keys):
        first = next(key for key, count in Counter(keys).items() if count > 1)
        where = "the slides"
        raise _twice(where, first)
    absent = [f"{slide} at {x}, {y}" for slide, x, y in keys if (slide, x, y) not in found]
    if absent:
        msg = f"{path} has no label for {len(absent)} of {len(keys)} patches: {listed(absent, most=3)}."
        raise BagValidationError(msg)
    return np.array([found[key] for key in keys])


def _label_column(table: Table) -> str:
    further = [name for name in table.names if name not in _PLACE]
    if len(further) != 1:
        msg = (
            f"{table.path} must have the columns slide, x and y and one more, the label of the patch; its columns are "
            f"{listed(table.names, most=12)}."
        )
        raise BagValidationError(msg, parameter="label", fix="Leave out the others.")
    return further[0]


def _slides(bags: Bags | LazyBags) -> NDArray[Any]:
    """Return the slide of every patch."""
    info = bags.instance_info
    if info is None or "x" not in info.column_names:
        msg = "The bags have no coordinates of patches, so that no labels can be joined to them."
        raise BagValidationError(msg)
    if "slide" in info.column_names:
        return np.asarray(info.column("slide"))
    return np.asarray(bags.bag_ids)[bags.segment_ids]


def _keys(bags: Bags | LazyBags) -> list[tuple[Any, int, int]]:
    info: Any = bags.instance_info
    places = (np.rint(info.column(name).to_numpy()).astype(np.int64).tolist() for name in ("x", "y"))
    return list(zip(_slides(bags).tolist(), *places, strict=True))


def _whole(texts: list[str]) -> list[int]:
    return np.rint(np.array(texts, dtype=np.float64)).astype(np.int64).tolist()


def _twice(where: str, key: tuple[Any, int, int]) -> BagValidationError:
    msg = f"Two patches of slide {key[0]!r} lie at {key[1]}, {key[2]} in {where}, so that labels cannot be joined."
    return BagValidationError(msg)
