"""Features of frames, whoever computed them: one file, or a folder with a file per video."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags import Bags, tables
from gmil.bags.bag_files import list_bag_files, read_arrays
from gmil.bags.parquet_files import read_parquet, read_schema
from gmil.bags.roles import Named, roles_of
from gmil.datasets import read
from gmil.errors import BagValidationError, FormatError, GmilError
from gmil.safety.guard import expect, refuse_pipe
from gmil.video.snippets.reading import SNIPPET_FRAMES, is_of_snippets, read_snippets

if TYPE_CHECKING:
    import os

    from gmil.engine.arrays import Floats

_MATRIX_NAMES = ("features", "X")
_COUNTED = ("frame", "time")
_INFO = ("video", *_COUNTED)


def read_features(
    path: str | os.PathLike[str],
    *,
    rate: float | None = None,
    crops: str = "mean",
    snippet_frames: int | None = None,
) -> Bags:
    """Read frames as instances and videos as bags.

    Parameters
    ----------
    path : path
        A file that `gmil.read` reads, with the video of every frame in the column ``bag``; or a folder with one
        ``.npy``, ``.npz`` or ``.parquet`` file per video, named like the video, a row per frame. NPZ files hold the
        matrix as ``features`` (or it is their only matrix) and may hold ``frame`` and ``time``; so may columns.
        Or features of snippets as they are kept for anomaly detection: a folder with folders in it, ``.h5`` files, an
        HDF5 file with a data set per video, a list of files (``.list``, ``.txt``), arrays with crops.
    rate : float, optional
        Rows per second, for files that hold no times.
    crops : {"mean", "first", "all"}
        What is made of several crops of a snippet: their mean, the first, or an instance of each.
    snippet_frames : int, optional
        The frames between the starts of rows, for ``frame`` where files do not hold it. By default 16 for features of
        snippets as they are kept for anomaly detection, and 1 for others.

    Returns
    -------
    Bags
        ``instance_info`` has ``video``, ``frame`` and ``time`` (seconds; missing where nothing tells them).
    """
    in_range = rate is None or 0 < rate < np.inf
    expect(in_range, f"rate must be a number of rows per second above 0, got {rate}.")
    path = Path(path)
    if is_of_snippets(path):
        step = SNIPPET_FRAMES if snippet_frames is None else snippet_frames
        return _with_info(read_snippets(path, rate=rate, crops=crops, snippet_frames=step), rate)
    step = 1 if snippet_frames is None else snippet_frames
    return _folder(path, rate, step) if path.is_dir() else _with_info(_one_file(path), rate, step)


def read_video(path: str | os.PathLike[str], name: str | None = None) -> Bags:
    """Read the frames of one video as one bag.

    Parameters
    ----------
    path : path
        A ``.npy``, ``.npz`` or ``.parquet`` file as in `read_features`.
    name : str, optional
        The name of the video; that of the file by default.
    """
    return _video(Path(path), name or Path(path).stem)


def _video(path: Path, name: str, step: int = 1) -> Bags:
    part = _one_video(path)
    features = part.pop("features")
    bags = Bags(features, np.array([0, len(features)]), np.array([name]), None, part or None)
    return _with_info(bags, None, step)


def _one_file(path: Path) -> Bags:
    """Return the bags of a file; columns that are called frame and time are no features."""
    bags, _ = read(path, info=_known_info(path))
    named = [] if bags.feature_names is None else [name for name in _COUNTED if name in bags.feature_names]
    return read(path, info=named)[0] if named else bags


def _known_info(path: Path) -> list[str]:
    """Return which of frame and time a Parquet file has as columns; beside a list of features they would be lost."""
    if path.suffix != ".parquet" or not path.exists():
        return []
    try:
        names = read_schema(path).names
    except (GmilError, OSError):
        return []  # reading it says what is wrong
    return [name for name in _COUNTED if name in names]


def _folder(folder: Path, rate: float | None, step: int) -> Bags:
    files = list_bag_files(folder)
    parts = [_video(file, file.stem, step) for file in files]
    try:
        bags = Bags.from_list([part.instances for part in parts], bag_ids=[file.stem for file in files])
    except BagValidationError as error:
        msg = f"{folder}: {error} The bags are its files in the order of their names, {files[0].name} is bag 0."
        raise BagValidationError(msg) from error
    infos = [part.instance_info for part in parts if part.instance_info is not None]
    info = {name: np.concatenate([tables.values(table.column(name)) for table in infos]) for name in _INFO}
    return _with_info(Bags(bags.instances, bags.offsets, bags.bag_ids, None, info), rate)


def _one_video(path: Path) -> dict[str, Any]:
    """Return the features of a file and, where it has them, frame and time."""
    if path.suffix == ".parquet":
        table = read_parquet(path)
        extra = [name for name in _COUNTED if name in table.column_names]
        roles = roles_of(table.schema, Named(info=extra), needs_bag=False, keeps_labels=False)
        matrix = tables.feature_matrix(table, roles.features)
        return {"features": matrix, **{name: tables.values(table.column(name)) for name in extra}}
    if path.suffix == ".npz":
        arrays = read_arrays(path)
        extra = [name for name in _COUNTED if name in arrays]
        return {"features": _matrix(arrays, path), **{name: arrays[name] for name in extra}}
    return {"features": _matrix({"features": _load_npy(path)}, path)}


def _load_npy(path: Path) -> Any:
    refuse_pipe(path)
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)  # which believes no header that the file cannot hold
    except (ValueError, OSError, EOFError) as error:
        msg = f"{path} cannot be read as a NumPy array: {error}. Save a plain array of numbers."
        raise FormatError(msg) from error


def _matrix(arrays: dict[str, Any], path: Path) -> Floats:
    named = [arrays[name] for name in _MATRIX_NAMES if name in arrays]
    found = named[:1] or [array for array in arrays.values() if array.ndim == 2]
    if len(found) != 1 or found[0].ndim != 2 or found[0].dtype.kind not in "fiu" or not len(found[0]):
        shapes = {name: array.shape for name, array in arrays.items()}
        msg = f"{path} must hold one matrix of numbers with a row per frame, named features; got {shapes}."
        raise FormatError(msg)
    return np.asarray(found[0], dtype=np.float32)


def _with_info(bags: Bags, rate: float | None, step: int = 1) -> Bags:
    """Return bags whose ``instance_info`` has video, frame (``step`` apart) and time, and whatever it had."""
    ids = bags.bag_ids if bags.bag_ids is not None else np.arange(len(bags))
    ids = np.array([str(name) for name in ids])
    numbers = np.arange(bags.n_instances) - np.repeat(bags.offsets[:-1], bags.sizes)
    info: dict[str, Any] = {"video": np.repeat(ids, bags.sizes), "frame": numbers * step}
    info["time"] = np.full(bags.n_instances, np.nan) if rate is None else numbers / rate
    given = bags.instance_info
    columns = {} if given is None else {name: tables.values(given.column(name)) for name in given.column_names}
    for name, column in columns.items():
        known = column.dtype.kind in "iuf" and not np.isnan(column.astype(np.float64)).all()
        if name != "time" or known:
            info[name] = column
    return Bags(bags.instances, bags.offsets, ids, bags.feature_names, info)


def times_are_known(bags: Bags) -> bool:
    """Tell whether every frame has its time.

    Parameters
    ----------
    bags : Bags
        From `read_features`.
    """
    info = bags.instance_info
    return info is not None and not np.isnan(tables.values(info.column("time")).astype(np.float64)).any()


def times_of(bags: Bags) -> Floats:
    """Return the seconds of every frame; in a video of which a time is not known, the numbers of its frames.

    Parameters
    ----------
    bags : Bags
        From `read_features`.
    """
    info = bags.instance_info
    if info is None:
        return np.arange(bags.n_instances, dtype=np.float64) - np.repeat(bags.offsets[:-1], bags.sizes)
    times = tables.values(info.column("time")).astype(np.float64)
    frames = tables.values(info.column("frame")).astype(np.float64)
    unknown = np.logical_or.reduceat(np.isnan(times), bags.offsets[:-1])
    return np.where(np.repeat(unknown, bags.sizes), frames, times)
