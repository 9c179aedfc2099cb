"""Corrected labels, read back from the table that `LabelIssues.to_csv` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags.finite import name_of_bag
from gmil.errors import BagValidationError, FormatError, listed
from gmil.io.formats.delimited import delimiter_of, read_text

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

_COLUMNS = ("bag", "label", "corrected")


def apply_corrections(bags: Any, y: Any, path: str | os.PathLike[str]) -> NDArray[Any]:
    r"""Return labels with the corrections of a table: the column ``corrected`` where it is not empty.

    Parameters
    ----------
    bags : Bags
        Their ids, or their numbers where they have none, are in the column ``bag``.
    y : array of shape (n_bags,)
        The labels until now.
    path : path
        What `LabelIssues.to_csv` wrote, with some cells of ``corrected`` filled in. Spreadsheets may have changed how
        classes are written (1.0 to 1, True to TRUE) and what separates columns.

    Returns
    -------
    array of shape (n_bags,)

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import gmil
    >>> bags = gmil.Bags.from_list([[[0.0]], [[1.0]]], bag_ids=["a", "b"])
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "issues.csv"
    >>> _ = file.write_text("bag,label,corrected\na,no,yes\nb,yes,\n")
    >>> gmil.apply_corrections(bags, ["no", "yes"], file).tolist()
    ['yes', 'yes']
    """
    labels = np.asarray(y).tolist()
    ids = range(len(labels)) if getattr(bags, "bag_ids", None) is None else bags.bag_ids.tolist()
    places = {str(name): place for place, name in enumerate(ids)}
    table = _read(path)
    unknown = [row["bag"] for row in table if row["bag"] not in places]
    if unknown:
        msg = f"{path} names bags that are not here: {listed(unknown)}."
        raise BagValidationError(msg)
    kinds = {str(label): label for label in labels}
    found: dict[int, Any] = {}
    for row in table:
        place = places[row["bag"]]
        what = f"{path} corrects {name_of_bag(bags, place)}"
        meant = _meant(row["corrected"], kinds, what)
        if found.setdefault(place, meant) != meant:
            msg = f"{what} twice, to {found[place]!r} and to {meant!r}. Keep one row."
            raise BagValidationError(msg)
        if row["label"] and labels[place] != meant and not _alike(row["label"], str(labels[place])):
            msg = f"{what}, whose label was {row['label']!r}, but is {labels[place]!r} here: is it of other bags?"
            raise BagValidationError(msg)
    for place, label in found.items():
        labels[place] = label
    return np.array(labels, dtype=np.asarray(y).dtype)


def _meant(text: str, kinds: dict[str, Any], what: str) -> Any:
    """Return the class that a cell names: spreadsheets write 1.0 as 1, and True as TRUE."""
    alike = [text] if text in kinds else [name for name in kinds if _alike(text, name)]
    if len(alike) != 1:
        known = listed([repr(kind) for kind in kinds])
        msg = f"{what} to {text!r}, which is no class; the classes are {known}."
        raise BagValidationError(msg)
    return kinds[alike[0]]


def _alike(one: str, other: str) -> bool:
    """Tell whether two cells are the same class, whatever their case and however a number is written."""
    try:
        return float(one) == float(other)
    except ValueError:
        return one.casefold() == other.casefold()


def _read(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Return the rows with a correction: bag, corrected, and the label until then, or an empty one."""
    table = read_text(Path(path), delimiter_of(Path(path)), texts=_COLUMNS)
    if not {"bag", "corrected"} <= set(table.column_names):
        msg = f"{path} must have the columns bag and corrected, but it has {listed(table.column_names)}."
        raise FormatError(msg)
    rows = [{name: (row.get(name) or "").strip() for name in _COLUMNS} for row in table.to_pylist()]
    return [row for row in rows if row["corrected"]]
