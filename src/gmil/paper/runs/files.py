"""Data sets of a specification that lie in files: which keys say so, and how they are read."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil import datasets
from gmil.bags.bag_columns import groups_of
from gmil.errors import GmilError, MissingFileError, SpecificationError, listed
from gmil.io.slide_folders import Request, is_read_as_slides, read_cohort
from gmil.model_selection.instance_labels import check_instance_labels
from gmil.slides.patch_labels import read_patch_labels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gmil.bags import Bags

_LISTS = ("features", "exclude", "labels")
_KEYS = ("path", "bag", "label", *_LISTS, "decimal", "layout", "group", "instances", "positive")
"""Called as the options of the commands that read data."""
_KEY_OF = {"drop": "exclude", **{key: key for key in _KEYS}}
"""What a parameter of `gmil.read` is called in a specification."""


def check_file(name: str, how: Mapping[str, Any]) -> None:
    """Refuse a table without a path, keys that there are not, and values of another kind."""
    for key, value in how.items():
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            msg = f"[files.{name}] has no key {key!r}; the keys are {', '.join(_KEYS)}.{hint}"
            raise SpecificationError(msg)
        texts = value if key in _LISTS and isinstance(value, (list, tuple)) else [value]
        if key != "positive" and not all(isinstance(text, str) for text in texts):
            kind = "a text or a list of texts" if key in _LISTS else "a text"
            msg = f"[files.{name}]: {key} must be {kind}, got {value!r}."
            raise SpecificationError(msg)
    if "path" not in how:
        msg = f"[files.{name}]: the key 'path' is missing: the file or the folder with the bags."
        raise SpecificationError(msg)


def seen_from(folder: Path, how: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table whose paths are relative to a folder, that of its specification.

    Labels of instances are a column, or of slides a file.
    """

    def at(text: Any) -> Any:
        return str(folder / Path(text).expanduser())

    found = dict(how)
    for key in {"path", "labels", "instances"} & how.keys():
        given = how[key]
        if key != "instances" or Path(at(given)).exists():
            found[key] = [at(text) for text in given] if isinstance(given, (list, tuple)) else at(given)
    return found


def read_file(name: str, how: Mapping[str, Any]) -> tuple[Bags, NDArray[Any], Any, Any]:
    """Return bags and labels, groups and labels of instances (None where none are named).

    Labels that are two numbers become 0 and 1, and any labels where the positive one is named.
    """
    path = Path(how["path"])
    if not path.exists():
        msg = f"[files.{name}]: there is no {path}. Correct the path: it begins at the folder of the specification."
        raise MissingFileError(msg)
    try:
        bags, y, groups, instances = _contents(path, how)
        instance_y = None if y is None or instances is None else check_instance_labels(instances, bags, y)[:, 0]
    except GmilError as error:
        msg = f"[files.{name}] cannot be read: {error.told(_KEY_OF)}"
        raise SpecificationError(msg) from error
    if y is None:
        fix = "Name their column with label, or the table of a folder with labels."
        msg = f"[files.{name}]: {path} has no labels. {fix}"
        raise SpecificationError(msg)
    return bags, _as_classes(name, y, how.get("positive")), groups, instance_y


def _contents(path: Path, how: Mapping[str, Any]) -> tuple[Bags, Any, Any, Any]:
    bag, label, labels, group, layout, column = (
        how.get(key) for key in ("bag", "label", "labels", "group", "layout", "instances")
    )
    if path.is_dir() and is_read_as_slides(path, Request(layout=layout)):
        found = read_cohort(path, Request(labels, bag, label, group, layout), in_memory=True)
        patches = None if column is None else read_patch_labels(found.bags, column)
        return found.bags, found.y, found.groups, patches
    bags, y = datasets.read(
        path,
        bag=bag,
        label=label,
        features=how.get("features"),
        info=[name for name in (group, column) if name is not None],
        drop=how.get("exclude", ()),
        decimal=how.get("decimal", "."),
        labels=labels,
        layout=layout,
    )
    instances = None if column is None else bags.instance_info.column(column).to_numpy()
    return bags, y, groups_of(bags, group), instances


def _as_classes(name: str, y: NDArray[Any], positive: Any) -> NDArray[Any]:
    labels = np.unique(y)
    if positive is None:
        return (y == labels[1]).astype(np.int64) if len(labels) == 2 and y.dtype.kind in "biuf" else y
    chosen = [label for label in labels.tolist() if label == positive or str(label) == str(positive)]
    if not chosen:
        got = listed([str(label) for label in labels.tolist()])
        msg = f"[files.{name}]: positive must be one of the labels, {got}, got {positive!r}."
        raise SpecificationError(msg)
    return (y == chosen[0]).astype(np.int64)
