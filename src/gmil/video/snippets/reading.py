"""Folders, lists and HDF5 files of features of snippets as bags: a video is a bag, a snippet an instance."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags import Bags
from gmil.errors import BagValidationError, GmilError, MissingFileError, VideoError
from gmil.slides.hdf5 import SUFFIXES as HDF5
from gmil.video.snippets.arrays import CROPS, crop_axis, read_array, read_keys, snippets_of, stacked
from gmil.video.snippets.names import SUFFIXES, by_video, files_in, is_list, listed_files

if TYPE_CHECKING:
    from pathlib import Path

SNIPPET_FRAMES = 16
"""Frames of a snippet: what I3D, C3D and X3D of this field describe at once."""


def is_of_snippets(path: Path) -> bool:
    """Tell whether features are kept as this field does: lists, HDF5 files, folders of folders, and crops."""
    if not path.is_dir():
        return is_list(path) or path.suffix.lower() in HDF5
    files = files_in(path)
    if any(file.parent != path or file.suffix.lower() in HDF5 for file in files):
        return True
    first = next((file for file in files if file.suffix.lower() in (".npy", ".npz")), None)
    with contextlib.suppress(GmilError):  # reading all of them says what is wrong
        has_crops = any(len(own) > 1 for own in by_video(files).values())
        return has_crops or (first is not None and read_array(first).ndim == 3)
    return False


def read_snippets(
    path: Path, *, rate: float | None = None, crops: str = "mean", snippet_frames: int = SNIPPET_FRAMES
) -> Bags:
    """Read features of snippets; ``instance_info`` has the video and the first frame of every snippet.

    Parameters
    ----------
    path : path
        A folder, in folders of its own too; a list of files (``.list``, ``.txt``); or an HDF5 file with a data set for
        every video. Arrays are (snippets, features), or have crops: (snippets, crops, features), (crops, snippets,
        features), or files that end in ``__0`` to ``__9``.
    rate : float, optional
        Snippets per second; without it times are not known.
    crops : {"mean", "first", "all"}
        What is made of several crops.
    snippet_frames : int
        Frames between the starts of snippets.
    """
    if crops not in CROPS:
        msg = f"must be one of {list(CROPS)}, got {crops!r}."
        raise VideoError(msg, parameter="crops")
    arrays = _arrays(path)
    axis = crop_axis({name: array.shape for name, array in arrays.items()})
    parts = {name: snippets_of(name, array, axis, crops) for name, array in arrays.items()}
    try:
        bags = Bags.from_list([rows for rows, _ in parts.values()], bag_ids=list(parts))
    except BagValidationError as error:
        msg = f"{path}: {error} The videos are in the order of their names, {next(iter(parts))} is bag 0."
        raise BagValidationError(msg) from error
    numbers = [np.arange(len(rows)) // of_one * snippet_frames for rows, of_one in parts.values()]
    info = {"video": np.repeat(list(parts), bags.sizes), "frame": np.concatenate(numbers)}
    if rate is not None:
        info["time"] = info["frame"] / (snippet_frames * rate)
    return Bags(bags.instances, bags.offsets, bags.bag_ids, None, info)


def _arrays(path: Path) -> dict[str, Any]:
    """Return the array of every video."""
    if not path.is_dir() and path.suffix.lower() in HDF5:
        return read_keys(path)
    files = listed_files(path) if is_list(path) else files_in(path)
    if not files:
        msg = f"{path} holds no {', '.join(SUFFIXES)} files; every video must be a file of its own."
        raise MissingFileError(msg)
    return {name: stacked(name, [read_array(file) for file in own]) for name, own in by_video(files).items()}
