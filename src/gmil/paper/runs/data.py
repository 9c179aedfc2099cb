"""The data sets of an experiment: by name, in files, made to order, or passed in."""

from __future__ import annotations

import inspect
import tempfile
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil import datasets
from gmil.datasets.fingerprint import data_fingerprint
from gmil.errors import DatasetError, MissingFileError, SpecificationError, count_of, listed
from gmil.paper.runs.files import read_file
from gmil.safety.guard import first_line
from gmil.slides.patch_labels import read_patch_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gmil.bags import Bags
    from gmil.paper.runs.specification import Spec

_NOT_FOR_FILES = ("folder", "progress", "return_X_y")
"""What a specification does not say of data that is made to order."""


_MOST_NAMED = 20
"""So many features are named of what was read."""


@dataclass(frozen=True)
class Dataset:
    """Bags, their labels and a name; where bags belong together, the group of each; labels of instances if known.

    ``recipe`` says how bags were generated.
    """

    name: str
    bags: Bags
    y: Any
    groups: Any = None
    instance_y: Any = None
    recipe: Mapping[str, Any] | None = None

    @cached_property
    def fingerprint(self) -> str:
        """A hash of instances, offsets, labels and groups; labels of instances change nothing that is learnt."""
        return data_fingerprint(self.bags, self.y, self.groups, recipe=self.recipe)


def summary_of(data: Dataset) -> str:
    """Return one line about what was read: a column that should not be among the features shows here."""
    bags, names = data.bags, data.bags.feature_names
    parts = [count_of(len(bags), "bag"), count_of(bags.n_instances, "instance"), count_of(bags.n_features, "feature")]
    parts[-1] += f" ({listed(list(names), most=_MOST_NAMED)})" if names is not None else ""
    parts += [] if data.groups is None else [count_of(len(np.unique(data.groups)), "group")]
    parts += [] if data.instance_y is None else ["labels of instances"]
    return f"{data.name} has {', '.join(parts)}"


def load_datasets(
    spec: Spec, given: Mapping[str, tuple[Any, ...]] | None = None
) -> tuple[dict[str, Dataset], list[str]]:
    """Return the data sets of an experiment that are present, and a note about each that is not.

    Optional ones may be missing, and in a quick run, which downloads nothing, all that are not bundled.
    """
    found: dict[str, Dataset] = {}
    notes: list[str] = []
    for name in (*spec.datasets, *spec.optional_datasets):
        try:
            found[name] = _load(name, spec, given or {})
        except (DatasetError, MissingFileError):
            bundled = name in datasets.dataset_names() and datasets.describe(name).kind == "bundled"
            is_extra = spec.is_quick and name not in spec.files
            if bundled or not (is_extra or name in spec.optional_datasets):
                raise
            where = f"[files.{name}] has its path" if name in spec.files else "`gmil data list` tells about it"
            notes.append(f"{name} is not here and is left out; {where}.")
    if not found:
        msg = f"None of the data sets of {spec.name} is here: {', '.join((*spec.datasets, *spec.optional_datasets))}."
        raise DatasetError(msg)
    return found, notes


def _load(name: str, spec: Spec, given: Mapping[str, tuple[Any, ...]]) -> Dataset:
    if name in given:
        bags, y, *further = given[name]
        return Dataset(name, bags, np.asarray(y), *further)
    if name in spec.files:
        return Dataset(name, *read_file(name, spec.files[name], allow_missing=spec.missing != "error"))
    if name in spec.generated:
        return _made(name, spec.generated[name])
    may_download = not spec.is_quick and name not in spec.optional_datasets
    found = datasets.load(name, download_if_missing=may_download)
    return Dataset(name, found.bags, found.y, found.groups, found.instance_y)


def check_generated(name: str, how: Mapping[str, Any]) -> None:
    """Refuse a maker that there is not, and parameters that it does not have."""
    makers: dict[str, Callable[..., Any]] = {"bags": datasets.make_bags, "slides": datasets.make_slides}
    maker = how.get("maker", "bags")
    if maker not in list(makers):
        msg = f'The maker of {name} must be "bags" or "slides", got {maker!r}.'
        raise SpecificationError(msg)
    known = [key for key in inspect.signature(makers[maker]).parameters if key not in _NOT_FOR_FILES]
    for key in how:
        if key not in ("maker", *known):
            msg = f"[generated.{name}] has no key {key!r}; the keys are maker, {listed(known, most=30)}."
            raise SpecificationError(msg)


def _made(name: str, how: Mapping[str, Any]) -> Dataset:
    try:
        return _generated(name, **how)
    except (TypeError, ValueError) as error:  # a value of another kind, or out of range
        msg = f"[generated.{name}] cannot be made: {first_line(error)}. Correct its parameters."
        raise SpecificationError(msg) from error


def _generated(name: str, maker: str = "bags", **how: Any) -> Dataset:
    """Return bags made to order, by `gmil.make_bags`, or by `gmil.make_slides` with patients as groups."""
    how = {"random_state": 0, **how}  # without a seed, every process would have bags of its own
    made = (_slides if maker == "slides" else _bags)(name, how)
    return replace(made, recipe={"maker": maker, **how})


def _bags(name: str, how: dict[str, Any]) -> Dataset:
    found = datasets.make_bags(**how)
    return Dataset(name, found.bags, found.y)


def _slides(name: str, how: dict[str, Any]) -> Dataset:
    with tempfile.TemporaryDirectory() as folder:
        made = datasets.make_slides(Path(folder) / "slides", **how)
        read = datasets.read(made.folder, labels=made.labels, bag=made.bag, label=made.label, group=made.group)
        labels = read_patch_labels(read.bags, made.patch_labels)
    return Dataset(name, read.bags, np.asarray(read.y).astype(np.int64), read.groups, labels.astype(np.int64))
