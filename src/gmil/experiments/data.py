"""The data sets of an experiment: by name, made to order, or passed in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil import datasets
from gmil.errors import DatasetError
from gmil.experiments.fingerprints import data_fingerprint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gmil.bags import Bags
    from gmil.experiments.specification import Spec


@dataclass(frozen=True)
class Dataset:
    """Bags, their labels and a name."""

    name: str
    bags: Bags
    y: Any

    @cached_property
    def fingerprint(self) -> str:
        """A hash of instances, offsets and labels."""
        return data_fingerprint(self.bags, self.y)


def load_datasets(
    spec: Spec, given: Mapping[str, tuple[Any, Any]] | None = None
) -> tuple[dict[str, Dataset], list[str]]:
    """Return the data sets of an experiment that are present, and a note about each that is not.

    Optional ones may be missing, and in a quick run, which downloads nothing, all that are not bundled.
    """
    found: dict[str, Dataset] = {}
    notes: list[str] = []
    for name in (*spec.datasets, *spec.optional_datasets):
        try:
            found[name] = _load(name, spec, given or {})
        except DatasetError:
            bundled = name in datasets.dataset_names() and datasets.describe(name).kind == "bundled"
            if bundled or not (spec.is_quick or name in spec.optional_datasets):
                raise
            notes.append(f"{name} is not here and is left out; `gmil data list` tells about it.")
    if not found:
        msg = f"None of the data sets of {spec.name} is here: {', '.join(spec.datasets)}."
        raise DatasetError(msg)
    return found, notes


def _load(name: str, spec: Spec, given: Mapping[str, tuple[Any, Any]]) -> Dataset:
    if name in given:
        bags, y = given[name]
        return Dataset(name, bags, np.asarray(y))
    if name in spec.generated:
        bags, y = datasets.make_bags(**spec.generated[name], return_X_y=True)
        return Dataset(name, bags, y)
    may_download = not spec.is_quick and name not in spec.optional_datasets
    bags, y = datasets.load(name, download_if_missing=may_download, return_X_y=True)
    return Dataset(name, bags, y)
