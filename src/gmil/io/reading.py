"""`read` and `write`: one reader and one writer for every format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags import Bags, tables
from gmil.bags.parquet_files import read_schema
from gmil.bags.roles import Named
from gmil.errors import BagValidationError, FileAccessError, FormatError, GmilError, LabelError, MissingFileError
from gmil.io.formats import arff, arff_writing, c45, delimited, mat, npz, parquet
from gmil.io.formats.contents import Contents
from gmil.io.formats.rows import rows_to_bags, table_rows
from gmil.io.scanning import LABELS_FILE, read_bag_columns, scan_named
from gmil.io.slide_folders import Request, is_read_as_slides, read_slides, refuse_slide_arguments
from gmil.safety.atomic import replacing
from gmil.safety.guard import first_line, opening, parsing
from gmil.slides.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from numpy.typing import ArrayLike, DTypeLike, NDArray

_READERS: dict[str, ModuleType] = {
    ".parquet": parquet,
    ".csv": delimited,
    ".tsv": delimited,
    ".npz": npz,
    ".data": c45,
    ".arff": arff,
    ".mat": mat,
}
_WRITERS: dict[str, ModuleType] = _READERS | {".arff": arff_writing}
_WIDE = (".csv", ".tsv", ".arff")
"""Formats in which a column of information is like any other."""


def read(
    source: Any,
    *,
    bag: str | None = None,
    label: str | None = None,
    features: str | Sequence[str] | None = None,
    info: Sequence[str] = (),
    drop: str | Sequence[str] = (),
    decimal: str = ".",
    labels: Any = None,
    group: str | None = None,
    layout: str | None = None,
    mpp: float | None = None,
    patch_size: float | None = None,
    splits: Any = None,
) -> Any:
    """Read bags and labels from a file, a folder or a data frame.

    The suffix of a file tells what it is: Parquet, CSV or TSV, NPZ, UCI C4.5 ``.data``, Weka ``.arff`` or
    Matlab ``.mat``. A folder is read as `scan` describes. A table has one instance a row; rows of a bag need not be
    next to each other. Nothing that is read can run code.

    Parameters
    ----------
    source : path, or pandas, polars or pyarrow table, or dict of columns
    bag : str, optional
        The column (array, variable, attribute) with the bag of every instance. By default ``bag``, or the
        only one called ``bag_id``, ``bag_name`` or the like.
    label : str, optional
        The column with the label. By default ``label``, or the only one called ``y``, ``class`` or
        ``target``; a ``y`` beside an ``x`` is a coordinate.
    features : str or sequence of str, optional
        The feature columns, or one list column; a pattern such as ``desc_*`` stands for several columns. By default
        the list column ``features``, else every number column that plays no other role.
    info : sequence of str
        Number columns that are no features, to be carried along in ``bags.instance_info``; columns that
        cannot be features (texts, dates) are carried along anyway. Of a folder with one file a bag, columns of its
        ``labels.csv``.
    drop : str or sequence of str
        Columns that are none of these; patterns too.
    decimal : {".", ","}
        The decimal sign of numbers in a CSV or TSV file: a comma in many spreadsheets of Europe. It is never guessed,
        as 1,234 may be a thousand.
    labels, group, layout, mpp, patch_size, splits
        Of a folder, and of a folder of slides (HDF5, PyTorch): as in `scan`.

    Returns
    -------
    bags : Bags
        Bags in the order of their first appearance.
    y : array of shape (n_bags,), or None
        Strings stay strings, whole numbers become integers; None where there is no label column. With ``group`` or
        ``splits`` a Bunch is returned, as by `scan`.

    See Also
    --------
    write : The way back.
    scan : The same without reading features into memory.

    Examples
    --------
    >>> from gmil.datasets import read
    >>> bags, y = read({"bag": ["a", "b", "a"], "label": [1, 0, 1], "width": [0.5, 1.0, 2.0]})
    >>> bags.bag_ids, y
    (array(['a', 'b'], dtype='<U1'), array([1, 0]))
    >>> bags[0]
    array([[0.5],
           [2. ]])
    """
    if decimal not in (".", ","):
        msg = f"must be '.' or ',', got {decimal!r}."
        raise BagValidationError(msg, parameter="decimal")
    request = Request(labels, bag, label, group, layout, mpp, patch_size, splits)
    return read_named(source, Named(bag, label, features, info, drop, decimal=decimal), request)


def read_named(source: Any, named: Named, request: Request | None = None) -> Any:
    """Do what `read` does, with the columns that a user has named."""
    request = request or Request(bag=named.bag, label=named.label)
    if not isinstance(source, (str, os.PathLike)):
        refuse_slide_arguments(request, source)
        return rows_to_bags(table_rows(_table(source), named))
    path = Path(source)
    if is_read_as_slides(path, request):
        return read_slides(path, request, in_memory=True)
    if path.is_dir():
        return _read_folder(path, named, request.labels)
    reader = _for_suffix(path, _READERS, "read")
    _refuse_empty(path)
    try:
        rows = reader.read(path, named)
        with parsing(path, reader.KIND):
            return rows_to_bags(rows)
    except (BagValidationError, FormatError) as error:
        if str(path) not in str(error):
            error.args = (f"{path}: {error.args[0]}",)
        raise


def _read_folder(path: Path, named: Named, labels: Any) -> tuple[Bags, NDArray[Any] | None]:
    request = Request(labels)
    try:
        lazy, y = scan_named(path, named, request)
    except LabelError as error:
        error.bags = error.bags.load()
        raise
    return _with_info(lazy.load(), Path(next(iter(request.tables), path / LABELS_FILE)), named), y


def column_names(path: Path, labels: Sequence[str] = ()) -> list[str] | None:
    """Return the columns of a table: those of CSV, TSV and Parquet files, and of the labels of a folder; else None.

    ``labels`` are the tables of labels of a folder, where they do not lie in it.
    """
    if path.is_dir() and labels:
        return [name for table in labels if Path(table).exists() for name in read_table(table).names]
    if path.is_dir():
        table = path / LABELS_FILE
        own = [name for file in sorted(path.glob("*.parquet"))[:1] for name in read_schema(file).names]
        return own + (delimited.column_names(table) if table.exists() else [])
    if path.suffix.lower() == ".parquet":
        return list(read_schema(path).names)
    return delimited.column_names(path) if _READERS.get(path.suffix.lower()) is delimited else None


def _with_info(bags: Bags, table: Path, named: Named) -> Bags:
    """Return bags with the columns of a table of labels that were asked for, as information about instances."""
    asked = named.all_of("info")
    if not asked or bags.instance_info is not None:
        return bags
    columns = read_bag_columns(table, bags.bag_ids, asked, named)
    info = {name: np.repeat(column, bags.sizes) for name, column in columns.items()}
    return Bags(bags.instances, bags.offsets, bags.bag_ids, bags.feature_names, info)


def write(
    path: str | os.PathLike[str],
    bags: Any,
    y: ArrayLike | None = None,
    *,
    dtype: DTypeLike | None = None,
) -> None:
    """Write bags and labels to a file that `read` reads back.

    The suffix sets the format. The file is written beside its target and renamed, so that a failure
    leaves nothing behind. NPZ, ``.mat``, CSV and ARFF keep every value exactly; text formats are read back
    as float64, ids and labels that can be numbers as numbers. Parquet keeps float32 unless ``dtype``
    names another type.

    Parameters
    ----------
    path : path
        Ends with .parquet, .csv, .tsv, .npz, .data, .arff or .mat.
    bags : Bags, or anything that estimators accept as bags
    y : array-like of shape (n_bags,), optional
        Labels: strings or numbers.
    dtype : {"float32", "float64"}, optional
        The type of the features in the file. By default float32 in Parquet and that of the bags elsewhere.

    See Also
    --------
    read : The way back.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gmil.datasets import make_bags, read, write
    >>> bags, y = make_bags(10, random_state=0, return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder) / "bags.npz", bags, y)
    ...     again, y_again = read(Path(folder) / "bags.npz")
    >>> bool((again.instances == bags.instances).all() and (y_again == y).all())
    True
    """
    path = Path(path)
    _refuse_unwritable(path)
    writer = _for_suffix(path, _WRITERS, "written")
    contents = Contents.checked(bags, y, dtype)
    try:
        with replacing(path) as temporary:
            writer.write(temporary, contents)
    except GmilError:
        raise
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror or first_line(error)}. Choose another place."
        raise FileAccessError(msg) from error
    except Exception as error:  # whatever else a library finds wrong with the values
        msg = f"{path} cannot be written: {first_line(error)}. Choose another format."
        raise FormatError(msg) from error
    if path.suffix.lower() in _WIDE:
        contents.warn_of_numbers(path.suffix)
    if path.suffix.lower() == ".parquet":
        contents.warn_of_rounding(dtype or np.float32)


def _refuse_unwritable(path: Path) -> None:
    if path.is_dir():
        msg = f"{path} is a folder; write needs the name of a file, such as {path / 'bags.npz'}."
        raise FileAccessError(msg)
    if not path.parent.is_dir():
        msg = f"{path} cannot be written: the folder {path.parent} does not exist. Make it first."
        raise MissingFileError(msg)


def _table(frame: Any) -> Any:
    try:
        return tables.to_arrow(frame)
    except BagValidationError:
        raise
    except ValueError as error:  # Arrow refuses columns of mixed things
        msg = f"The table cannot be read: {first_line(error)}. Give every column one type."
        raise BagValidationError(msg) from error


def _for_suffix(path: Path, known: dict[str, ModuleType], verb: str) -> ModuleType:
    suffix = path.suffix.lower()
    if suffix not in known:
        msg = (
            f"{path} cannot be {verb}: the suffix {suffix!r} is not known; known are "
            f"{', '.join(known)}. Rename or convert the file."
        )
        raise FormatError(msg)
    return known[suffix]


def _refuse_empty(path: Path) -> None:
    with opening(path), path.open("rb") as file:
        is_empty = not file.read(1)
    if is_empty:
        msg = f"{path} is empty; at least one bag is needed. Write or download it again."
        raise FormatError(msg)
