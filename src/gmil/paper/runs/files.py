"""Data sets of a specification that lie in files: which keys say so, and how they are read."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil import datasets
from gmil.bags.bag_columns import groups_of
from gmil.bags.finite import refuse_non_finite
from gmil.bags.roles import carried_as
from gmil.errors import MISSING, ColumnWarning, GmilError, MissingFileError, SpecificationError, did_you_mean, listed
from gmil.io.slide_folders import Request, is_read_as_slides, read_cohort
from gmil.model_selection.instance_labels import check_instance_labels
from gmil.slides.patch_labels import read_patch_labels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gmil.bags import Bags

_LISTS = ("features", "exclude", "labels")
_COLUMNS = ("bag", "label", "group", "instances")
_KEYS = ("path", *_COLUMNS, *_LISTS, "decimal", "layout", "positive")
"""Called as the options of the commands that read data."""
_KEY_OF = {**{key: key for key in _KEYS}, "drop": "exclude", "decimal": 'decimal = ","'}
"""What a parameter of `gmil.read` is called in a specification."""
_FILL = 'Fill them with missing = "median" above the first table, or leave out such instances with missing = "drop".'


def check_file(name: str, how: Mapping[str, Any]) -> None:
    """Refuse a table without a path, keys that there are not, values of another kind, and columns named twice."""
    for key, value in how.items():
        if key not in _KEYS:
            msg = f"[files.{name}] has no key {key!r}; the keys are {', '.join(_KEYS)}.{did_you_mean(key, _KEYS)}"
            raise SpecificationError(msg)
        texts = _texts(value) if key in _LISTS else [value]
        if key != "positive" and not all(isinstance(text, str) and text for text in texts):
            kind = "a text or a list of texts" if key in _LISTS else "a text"
            msg = f"[files.{name}]: {key} must be {kind}, got {value!r}."
            raise SpecificationError(msg)
    if "path" not in how:
        msg = f"[files.{name}]: the key 'path' is missing: the file or the folder with the bags."
        raise SpecificationError(msg)
    _refuse_twice(name, how)


def _refuse_twice(name: str, how: Mapping[str, Any]) -> None:
    """Refuse a column that is two things: a feature that gives the labels of instances away, say."""
    found: dict[str, str] = {}
    for key in (*_COLUMNS, "features"):
        for column in _texts(how[key]) if key in how else ():
            if column in found:
                both = f"{found[column]} and as {key}"
                msg = f"[files.{name}]: the column {column!r} is named as {both}. It can be only one of them."
                raise SpecificationError(msg)
            found[column] = key


def _texts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def read_file(name: str, how: Mapping[str, Any], *, allow_missing: bool = True) -> tuple[Bags, NDArray[Any], Any, Any]:
    """Return bags and labels, groups and labels of instances (None where none are named).

    Labels that are two numbers become 0 and 1, and any labels where the positive one is named. Paths are relative to
    the folder of the specification.
    """
    path = _located(how, how["path"])
    if not path.exists():
        msg = f"[files.{name}]: there is no {path}. Correct the path: it begins at the folder of the specification."
        raise MissingFileError(msg)
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            carried_as(group=how.get("group"), instances=how.get("instances")),
        ):
            bags, labels, groups, instances = _contents(path, how)
            refuse_non_finite(bags, allow_nan=allow_missing)
        y = _as_classes(labels, path, how.get("positive"))
        instance_y = None if instances is None else _instance_labels(instances, bags, y)
    except MissingFileError as error:  # a table of labels, say: whoever can do without it goes on
        msg = f"[files.{name}] cannot be read: {error.args[0]}"
        raise MissingFileError(msg) from error
    except GmilError as error:
        told = f"{error.args[0]} {_FILL}" if error.parameter == MISSING else error.told(_KEY_OF)
        msg = f"[files.{name}] cannot be read: {told}"
        raise SpecificationError(msg) from error
    for warning in caught:
        said = warning.message
        told = said.told(_KEY_OF) if isinstance(said, ColumnWarning) else str(said)
        warnings.warn(ColumnWarning(f"[files.{name}]: {told}"), stacklevel=2)
    return bags, y, groups, instance_y


def _located(how: Mapping[str, Any], text: str) -> Path:
    return Path(how.get("folder", ""), os.path.expanduser(text))  # noqa: PTH111  Path raises for users that there are not


def _contents(path: Path, how: Mapping[str, Any]) -> tuple[Bags, Any, Any, Any]:
    bag, label, group, layout, instances = (how.get(key) for key in ("bag", "label", "group", "layout", "instances"))
    labels = [_located(how, text) for text in _texts(how["labels"])] if "labels" in how else None
    if labels is not None and not path.is_dir():
        msg = f"labels is for a folder, but {path} is a file, which has the labels in a column. Leave it out."
        raise SpecificationError(msg)
    if path.is_dir() and is_read_as_slides(path, Request(layout=layout)):
        stray = next((key for key in ("features", "exclude", "decimal") if key in how), None)
        if stray is not None:
            msg = f"{stray} is for tables, but {path} is a folder of slides. Leave it out."
            raise SpecificationError(msg)
        found = read_cohort(path, Request(labels, bag, label, group, layout), in_memory=True)
        patches = None if instances is None else read_patch_labels(found.bags, _located(how, instances))
        return found.bags, found.y, found.groups, patches
    bags, y = datasets.read(
        path,
        bag=bag,
        label=label,
        features=how.get("features"),
        info=[name for name in (group, instances) if name is not None],
        drop=how.get("exclude", ()),
        decimal=how.get("decimal", "."),
        labels=labels,
        layout=layout,
    )
    of_instances = None if instances is None else bags.instance_info.column(instances).to_numpy(zero_copy_only=False)
    return bags, y, groups_of(bags, group), of_instances


def _as_classes(y: NDArray[Any] | None, path: Path, positive: Any) -> NDArray[Any]:
    if y is None:
        msg = f"{path} has no labels. Name their column with label, or the table of a folder with labels."
        raise SpecificationError(msg)
    labels = np.unique(y)
    if len(labels) == 1:
        msg = f"all {len(y)} bags of {path} have the label {labels.tolist()[0]!r}, but methods learn from two classes."
        raise SpecificationError(msg)
    if positive is None:
        return (y == labels[1]).astype(np.int64) if len(labels) == 2 and y.dtype.kind in "biuf" else y
    chosen = [label for label in labels.tolist() if _is_same(label, positive)]
    if not chosen:
        got = listed([str(label) for label in labels.tolist()])
        msg = f"positive must be one of the labels, {got}, got {positive!r}."
        raise SpecificationError(msg)
    return (y == chosen[0]).astype(np.int64)


def _is_same(label: Any, named: Any) -> bool:
    """Tell whether a label is the one that a specification names: numbers by value, all else as texts."""
    numbers = all(isinstance(value, (int, float)) for value in (label, named))
    return bool(label == named) if numbers else str(label) == str(named)


def _instance_labels(instances: Any, bags: Bags, y: NDArray[Any]) -> NDArray[Any]:
    if set(y.tolist()) != {0, 1}:
        got = listed([repr(label) for label in np.unique(y).tolist()])
        msg = (
            f"labels of instances need bags that are positive or not, but their labels are {got}. Name the positive "
            "label, as in positive = ..."
        )
        raise SpecificationError(msg)
    labels: NDArray[Any] = check_instance_labels(instances, bags, y)[:, 0]
    return labels
