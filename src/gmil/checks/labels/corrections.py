"""Corrected labels, read back from the table that `LabelIssues.to_csv` wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags.finite import name_of_bag
from gmil.errors import BagValidationError, FormatError, listed

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray


def apply_corrections(bags: Any, y: Any, path: str | os.PathLike[str]) -> NDArray[Any]:
    r"""Return labels with the corrections of a table: the column ``corrected`` where it is not empty.

    Parameters
    ----------
    bags : Bags
        Their ids, or their numbers where they have none, are in the column ``bag``.
    y : array of shape (n_bags,)
        The labels until now.
    path : path
        What `LabelIssues.to_csv` wrote, with some cells of ``corrected`` filled in.

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
    table = _read(path)
    labels = np.asarray(y).tolist()
    ids = range(len(labels)) if getattr(bags, "bag_ids", None) is None else bags.bag_ids.tolist()
    places = {str(name): place for place, name in enumerate(ids)}
    unknown = [name for name in table if name not in places]
    if unknown:
        msg = f"{path} names bags that are not here: {listed(unknown)}."
        raise BagValidationError(msg)
    kinds = {str(label): label for label in labels}
    for name, text in table.items():
        same = [label for label in kinds if label == text] or [k for k in kinds if _plain(k) == _plain(text)]
        if len(same) != 1:
            known = listed([repr(kind) for kind in kinds])
            bag = name_of_bag(bags, places[name])
            msg = f"{path} corrects {bag} to {text!r}, which is no class; the classes are {known}."
            raise BagValidationError(msg)
        labels[places[name]] = kinds[same[0]]
    return np.array(labels, dtype=np.asarray(y).dtype)


def _plain(text: str) -> str:
    """Return a label as it may be written in several ways: 1 as 1.0, True as true or TRUE."""
    try:
        return str(float(text))
    except ValueError:
        return text.casefold()


def _read(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the corrections of a table by the name of the bag."""
    import pyarrow as pa
    import pyarrow.csv

    as_text = pyarrow.csv.ConvertOptions(column_types={"bag": pa.string(), "corrected": pa.string()})
    try:
        table = pyarrow.csv.read_csv(path, convert_options=as_text)
    except pa.ArrowInvalid as error:
        msg = f"{path} cannot be read as a CSV file: {error}."
        raise FormatError(msg) from error
    if not {"bag", "corrected"} <= set(table.column_names):
        msg = f"{path} must have the columns bag and corrected, but it has {listed(table.column_names)}."
        raise FormatError(msg)
    bags, corrected = (table.column(name).to_pylist() for name in ("bag", "corrected"))
    return {bag: text.strip() for bag, text in zip(bags, corrected, strict=True) if text and text.strip()}
