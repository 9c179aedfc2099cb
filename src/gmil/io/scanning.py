"""`scan`: the lazy reader."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags import tables
from gmil.bags.bag_files import list_bag_files
from gmil.bags.parquet_files import read_schema
from gmil.bags.roles import BAG_NAMES, LABEL_NAMES, Named, choose, require, roles_of
from gmil.errors import BagValidationError, FormatError, LabelError, MissingFileError, count_of, listed
from gmil.io.formats import delimited
from gmil.io.formats.rows import is_missing, labels_from_text, tidy_labels
from gmil.io.slide_folders import Request, is_read_as_slides, read_slides
from gmil.safety.guard import opening
from gmil.scale import LazyBags
from gmil.scale.folder import FolderSource
from gmil.scale.parquet import scan_parquet

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from numpy.typing import NDArray

LABELS_FILE = "labels.csv"


def scan(
    path: str | os.PathLike[str],
    *,
    bag: str | None = None,
    label: str | None = None,
    features: str | Sequence[str] | None = None,
    info: Sequence[str] = (),
    drop: str | Sequence[str] = (),
    labels: Any = None,
    group: str | None = None,
    layout: str | None = None,
    mpp: float | None = None,
    patch_size: float | None = None,
    splits: Any = None,
) -> Any:
    """Open bags that need not fit into memory, as `LazyBags`: sizes and labels are read, features are not.

    Parameters
    ----------
    path : path
        A Parquet file or a folder of Parquet files with a bag column, the rows of a bag next to each other; or a
        folder with one ``.npy``, ``.npz`` or Parquet file a bag; or a folder of slides with embeddings of patches in
        HDF5 or PyTorch files, as TRIDENT, CLAM, STAMP, slideflow, nnMIL, torchmil and MIL_BASELINE write them.
    bag, label : str, optional
        Columns, as in `gmil.read`.
    features : str or sequence of str, optional
        As in `gmil.read`.
    info : sequence of str
        As in `gmil.read`; these columns are read by `LazyBags.load` and `LazyBags.instance_info`.
    drop : str or sequence of str
        As in `gmil.read`.
    labels : path, optional
        For a folder with one file a bag: a CSV file with the columns ``bag`` (the name of the file without its suffix)
        and ``label``. By default ``labels.csv`` in the folder, where there is one. Of a folder of slides: a table with
        one row a slide, or two tables that share a column, one of patients and one of slides. The column ``bag`` names
        slides, or patients: all slides of a patient are one bag then.
    group : str, optional
        Of a folder of slides: a column of ``labels``, such as the patient or the site of every slide.
    layout : {"trident", "clam", "stamp", "slideflow", "nnmil", "torchmil", "mil_baseline"}, optional
        Which tool wrote a folder of slides; by default that is recognised.
    mpp : float, optional
        Micrometres per pixel at level 0 of all slides, where coordinates are in micrometres.
    patch_size : float, optional
        The side of a patch in pixels of level 0, where files do not tell it.
    splits : path, optional
        A file of splits, or a folder of such files: of CLAM, STAMP, torchmil or MIL_BASELINE; or the column of
        ``labels`` that says which slide is in which split.

    Returns
    -------
    bags : LazyBags
        Bags in the order of their rows, or of the names of their files.
    y : array of shape (n_bags,), or None
        With ``group`` or ``splits`` a Bunch is returned in place of both: ``bags``, ``y``, ``groups`` (n_bags,),
        ``folds``, a list of training and test positions, and ``layout``.

    See Also
    --------
    read : The same into memory.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import gmil
    >>> bags, y = gmil.make_bags(10, random_state=0, return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gmil.write(Path(folder) / "bags.parquet", bags, y)
    ...     lazy, y = gmil.scan(Path(folder) / "bags.parquet")
    ...     model = gmil.GMIL(8, random_state=0).fit(lazy, y)
    >>> lazy.shape == bags.shape
    True
    """
    request = Request(labels, bag, label, group, layout, mpp, patch_size, splits)
    return scan_named(Path(path), Named(bag, label, features, info, drop), request)


def scan_named(path: Path, named: Named, request: Request | None = None) -> Any:
    """Do what `scan` does, with the columns that a user has named."""
    request = request or Request(bag=named.bag, label=named.label)
    if is_read_as_slides(path, request):
        return read_slides(path, request, in_memory=False)
    if path.is_dir():
        files = list_bag_files(path)
        if _are_one_bag_each(files, named):
            return _scan_folder(path, files, named, next(iter(request.tables), None))
        _refuse_mixture(path, files)
        return _scan_parquet(files, named)
    with opening(path):
        path.stat()
    if path.suffix.lower() != ".parquet":
        msg = f"{path} cannot be read in blocks: only Parquet files and folders can."
        raise FormatError(msg, parameter="path", fix="Convert it, or {in_memory}")
    return _scan_parquet([path], named)


def _are_one_bag_each(files: list[Path], named: Named) -> bool:
    """Tell a folder of bags from a table in several files, whose rows say which bag they belong to."""
    if files[0].suffix != ".parquet":
        return True
    return named.bag is None and choose(read_schema(files[0]).names, None, BAG_NAMES, "bag") is None


def _refuse_mixture(folder: Path, files: list[Path]) -> None:
    others = [file.name for file in files if file.suffix != ".parquet"]
    if others:
        msg = f"{folder} holds Parquet files with a bag column, and {listed(others)}. Keep one kind in a folder."
        raise FormatError(msg)


def _scan_parquet(files: list[Path], named: Named) -> tuple[LazyBags, NDArray[Any] | None]:
    schema = read_schema(files[0])
    roles = roles_of(schema, named)
    found = scan_parquet(files, roles)
    names = tables.feature_names(schema, roles.features)
    bags = LazyBags(found.source, found.offsets, found.ids, None if names is None else tuple(names))
    return bags, None if found.labels is None else _tidy_labels(found.labels, bags)


def _tidy_labels(labels: NDArray[Any], bags: LazyBags) -> NDArray[Any]:
    missing = is_missing(labels)
    if missing.any():
        bag = bags.bag_ids[int(missing.argmax())].item()  # type: ignore[index]
        all_of_them = count_of(missing.sum(), "bag has", "bags have")
        msg = f"The label of bag {bag!r} is missing ({all_of_them} none). Fill it in or drop the bag."
        error = LabelError(msg)
        error.bags = bags
        raise error
    return tidy_labels(labels)


def _scan_folder(
    folder: Path, files: list[Path], named: Named, labels: str | os.PathLike[str] | None
) -> tuple[LazyBags, NDArray[Any] | None]:
    source = FolderSource.of(files, named)
    ids = np.array([file.stem for file in files])
    bags = LazyBags(source, source.edges, ids, source.wanted.feature_names)
    table = folder / LABELS_FILE if labels is None else Path(labels)
    if labels is None and not table.exists():
        return bags, None
    return bags, read_labels(table, ids, named)


def read_labels(path: Path, ids: NDArray[Any], named: Named) -> NDArray[Any]:
    """Return the label of every bag from a CSV file; lines about other bags are left alone."""
    if not path.exists():
        msg = f"{path}, the labels, does not exist. Name a CSV file with the columns bag and label."
        raise MissingFileError(msg)
    names = delimited.column_names(path)
    label = require(choose(names, named.label, LABEL_NAMES, "label", taken={_bag_column(names, named)}), names, "label")
    found = read_bag_columns(path, ids, [label], named)[label]
    missing = [str(name) for name, mark in zip(ids, found, strict=True) if not mark]
    if missing:
        msg = f"{path} has no label for bag {listed(missing)}. Every file of the folder needs a line."
        raise BagValidationError(msg)
    return labels_from_text(found)


def read_bag_columns(path: Path, ids: Any, wanted: Sequence[str], named: Named) -> dict[str, NDArray[Any]]:
    """Return columns of a CSV file with a line per bag, as texts for every bag; None where a bag has no line."""
    if not path.exists():
        msg = f"The column {wanted[0]!r} must be in {path}, which does not exist."
        raise BagValidationError(msg, parameter="info", fix=f"Write {path.name} with the columns bag and {wanted[0]}.")
    names = delimited.column_names(path)
    for name in wanted:
        choose(names, name, (), "info")
    bag = _bag_column(names, named)
    table = delimited.read_text(path, delimited.delimiter_of(path), texts=[bag, *wanted])
    lines = {name: number for number, name in enumerate(table.column(bag).to_pylist())}
    places = [lines.get(str(name)) for name in ids]
    texts = {name: table.column(name).to_pylist() for name in wanted}
    return {
        name: np.array([None if place is None else column[place] for place in places], dtype=object)
        for name, column in texts.items()
    }


def _bag_column(names: Sequence[str], named: Named) -> str:
    return require(choose(names, named.bag, (*BAG_NAMES, "id", "name", "file"), "bag"), names, "bag")
