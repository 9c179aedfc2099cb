"""Data sets by name: bundled, fetched once, or found in the data folder."""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from gmil.bags import Bags
from gmil.bags.bag_files import read_arrays
from gmil.bags.roles import Named
from gmil.datasets import download
from gmil.datasets.copies import groups_of_copies
from gmil.datasets.download import DATA_HOME
from gmil.datasets.fingerprint import data_fingerprint
from gmil.datasets.registry import describe
from gmil.errors import DatasetError
from gmil.io.formats import mat, npz
from gmil.io.formats.rows import rows_to_bags

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from gmil.datasets.cards import DatasetInfo


_FURTHER = ("official_split", "repo_split", "frame_skip", "split", "split_test")
"""What a set has besides bags and labels: divisions, and what else is known of its bags."""


def load(
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load a data set by its name.

    Parameters
    ----------
    name : str
        One of `dataset_names`.
    data_home : path, optional
        The folder with data that is not bundled. By default the environment variable ``GMIL_DATA_HOME``,
        else the user's cache folder.
    download_if_missing : bool
        Whether to download data that has an address and is not in the folder.
    return_X_y : bool
        Return ``(bags, y)`` instead of a Bunch.

    Returns
    -------
    Bunch or (Bags, array)
        ``bags``; ``y``, 1 for positive and 0 for negative bags, or their values; ``groups``, which bags are copies of
        each other and belong into one fold, None where none are known to be; ``instance_y``, labels of instances, None
        where they are not known at all and -1 where a single one is not; ``DESCR``; ``name``.

    Examples
    --------
    >>> from gmil.datasets import load
    >>> load("musk1").bags
    Bags(n_bags=92, n_instances=476, n_features=166, float64)
    """
    info = describe(name)
    if info.kind == "bundled":
        with resources.as_file(resources.files("gmil.datasets") / "bundled" / info.filename) as path:
            found = _from_npz(info, path)
    else:
        found = _from_folder(info, download.data_home(data_home), download_if_missing)
    return (found.bags, found.y) if return_X_y else found


def load_musk1(*, return_X_y: bool = False) -> Any:
    """Load Musk, version 1: 92 molecules (47 musks), 476 conformations, 166 features; bundled.

    Parameters
    ----------
    return_X_y : bool
        Return ``(bags, y)`` instead of a Bunch as `load` describes it.

    Examples
    --------
    >>> from gmil.datasets import load_musk1
    >>> bags, y = load_musk1(return_X_y=True)
    >>> len(bags), int(y.sum())
    (92, 47)
    """
    return load("musk1", return_X_y=return_X_y)


def load_musk2(*, return_X_y: bool = False) -> Any:
    """Load Musk, version 2: 102 molecules (39 musks), 6598 conformations, 166 features; bundled.

    Parameters
    ----------
    return_X_y : bool
        Return ``(bags, y)`` instead of a Bunch as `load` describes it.

    Examples
    --------
    >>> from gmil.datasets import load_musk2
    >>> bags, y = load_musk2(return_X_y=True)
    >>> len(bags), int(y.sum())
    (102, 39)
    """
    return load("musk2", return_X_y=return_X_y)


def _corel_fetcher(name: str, n_instances: int) -> Callable[..., Any]:
    """Return the function that fetches one of the three sets of Corel images."""

    def fetch(
        *,
        data_home: str | os.PathLike[str] | None = None,
        download_if_missing: bool = True,
        return_X_y: bool = False,
    ) -> Any:
        return load(name, data_home=data_home, download_if_missing=download_if_missing, return_X_y=return_X_y)

    fetch.__name__ = fetch.__qualname__ = f"fetch_{name}"
    fetch.__doc__ = f"""Fetch {name.capitalize()}: 200 Corel images, {n_instances} segments, 230 features.

    100 of the images show one. They are downloaded once.

    Parameters
    ----------
    data_home : path, optional
        The folder to search; by default ``GMIL_DATA_HOME``, else the user's cache folder.
    download_if_missing : bool
        Whether to download it where it is not there.
    return_X_y : bool
        Return ``(bags, y)`` instead of a Bunch.
    """
    return fetch


fetch_elephant = _corel_fetcher("elephant", 1391)
fetch_fox = _corel_fetcher("fox", 1320)
fetch_tiger = _corel_fetcher("tiger", 1220)


def fetch_trec9(*, data_home: str | os.PathLike[str] | None = None, return_X_y: bool = False) -> Any:
    """Load TREC9, 400 documents with sparse features, from the data folder; it has no address.

    Parameters
    ----------
    data_home : path, optional
        The folder to search; by default ``GMIL_DATA_HOME``, else the user's cache folder.
    return_X_y : bool
        Return ``(bags, y)`` instead of a Bunch.
    """
    return load("trec9", data_home=data_home, return_X_y=return_X_y)


def fetch_ucf_crime(*, data_home: str | os.PathLike[str] | None = None, return_X_y: bool = False) -> Any:
    """Load UCF-Crime, 830 surveillance videos, from the data folder; it has no address.

    The Bunch also has ``events``, what every video shows, and ``official_split``, ``repo_split`` and
    ``frame_skip``, one entry per video.

    Parameters
    ----------
    data_home : path, optional
        The folder to search; by default ``GMIL_DATA_HOME``, else the user's cache folder.
    return_X_y : bool
        Return ``(bags, y)`` instead of a Bunch.
    """
    return load("ucf-crime", data_home=data_home, return_X_y=return_X_y)


def _from_folder(info: DatasetInfo, folder: Path, download_if_missing: bool) -> Bunch:
    ours = folder / info.filename
    ours = ours if ours.exists() else folder / ours.name  # the data folder may have no folders
    if info.task == "videos":
        msg = (
            f"{info.name} is a folder of videos, {ours}, and has no bags before features are made of it. Read it with "
            f"gmil video index {ours}, or see its card: gmil data show {info.name}."
        )
        raise DatasetError(msg)
    if ours.is_file():
        return _from_npz(info, ours)
    if info.kind == "local" or info.original is None:
        msg = (
            f"The data set {info.name} has no address to download it from, and {ours} does not exist. Put "
            f"the file {info.filename} into {folder}, or set {DATA_HOME} to the folder that holds it."
        )
        raise DatasetError(msg)
    original = folder / info.original
    if not original.is_file():
        if not download_if_missing:
            msg = (
                f"The data set {info.name} is not in {folder}, and download_if_missing is False. Put "
                f"{info.filename} or {info.original} there, or set {DATA_HOME} to the folder that holds it."
            )
            raise DatasetError(msg)
        download.download(str(info.url), original, str(info.sha256))
    download.refuse_damaged(original, str(info.sha256))  # it may have changed since it was downloaded
    return _from_andrews(info, original)


def _from_npz(info: DatasetInfo, path: Path) -> Bunch:
    arrays = read_arrays(path)
    bags, y = rows_to_bags(npz.rows_of_arrays(arrays, Named()))
    found = _bunch(info, bags, y)
    _refuse_other_counts(info, found)
    _refuse_other_values(info, found)
    if "y_instance" in arrays:
        found.instance_y = arrays["y_instance"].astype(np.int64)
        _refuse_contradictions(info, found)
    found.update({name: arrays[name] for name in _FURTHER if name in arrays})
    if info.has_copies:
        found.groups = arrays["dup_group"] if "dup_group" in arrays else groups_of_copies(found.bags)
    if info.name == "ucf-crime":  # the name of a video begins with what it shows
        found.events = np.array([re.sub(r"[^A-Za-z].*", "", name) for name in arrays["bag_names"]])
    return found


def _from_andrews(info: DatasetInfo, path: Path) -> Bunch:
    """Read the original .mat: a bag is positive if any of its instances is labelled so."""
    variables = mat.read_variables(path)
    try:
        labels = mat.vector(variables["labels"], "labels")
        ids = mat.vector(variables["bag_ids"], "bag_ids")
        features = variables["features"]
    except KeyError as error:
        msg = f"{path} is not the data set {info.name}: it has no variable {error}. Remove it."
        raise DatasetError(msg) from error
    bags = Bags.from_ids(features.toarray() if sp.issparse(features) else features, ids)
    positive = np.unique(ids[labels > 0])
    found = _bunch(info, bags, np.isin(bags.bag_ids, positive))  # type: ignore[arg-type]
    _refuse_other_counts(info, found)
    return found


def _bunch(info: DatasetInfo, bags: Bags, y: NDArray[Any] | None) -> Bunch:
    instances = bags.instances
    if bags.dtype != np.float64 and info.kind != "local":  # files of one data set have several types
        instances = instances.astype(np.float64)
    whole = Bags(instances, bags.offsets, _numbered(bags.bag_ids), bags.feature_names)
    labels = None if y is None else np.asarray(y).astype(np.float64 if info.task == "values" else np.int64)
    return Bunch(bags=whole, y=labels, groups=None, instance_y=None, DESCR=str(info), name=info.name)


def _numbered(ids: NDArray[Any] | None) -> NDArray[Any] | None:
    """Return ids that are numbers as integers: files of one data set keep them as texts or floats."""
    if ids is None:
        return None
    try:
        return ids.astype(np.int64)
    except ValueError:
        return ids


def _refuse_other_counts(info: DatasetInfo, found: Bunch) -> None:
    bags, y = found.bags, found.y
    n_positive = None if y is None or info.task == "values" else int(y.sum())
    counts = (len(bags), n_positive, bags.n_instances, bags.n_features)
    wanted = (info.n_bags, info.n_positive, info.n_instances, info.n_features)
    if counts != wanted:
        msg = (
            f"The file found for {info.name} holds other data: bags, positive bags, instances and features "
            f"number {counts}, not {wanted}. Replace it."
        )
        raise DatasetError(msg)


def _refuse_other_values(info: DatasetInfo, found: Bunch) -> None:
    if info.contents is not None and data_fingerprint(found.bags, found.y) != info.contents:
        msg = (
            f"The file found for {info.name} holds other values than gmil knows: it is damaged, or was made otherwise. "
            "Replace it, or read it by its path with gmil.read."
        )
        raise DatasetError(msg)


def _refuse_contradictions(info: DatasetInfo, found: Bunch) -> None:
    """Refuse labels of bags that those of their instances contradict: a copy whose labels were sorted is found so."""
    positive = np.unique(found.bags.segment_ids[found.instance_y == 1])
    wrong = positive[found.y[positive] == 0]
    if len(wrong):
        msg = (
            f"The labels of {info.name} contradict each other: bag {wrong[0]} is negative, but has a positive instance "
            f"({len(wrong)} bags of this kind). Replace the file."
        )
        raise DatasetError(msg)
