"""Models and plain values from JSON and tensors; everything that a file says is checked before it is believed."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from gmil.errors import ModelFileError
from gmil.io.model_files.damage import DamageError
from gmil.io.model_files.fitted import check_model, declared
from gmil.io.model_files.registry import class_named
from gmil.io.model_files.schema import Rows
from gmil.io.model_files.skops_archives import from_archive

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from numpy.typing import NDArray

_DEEPEST = 50
_PADDING = 16
"""An array of strings is padded to the longest; it may take so many times the memory of its text."""


class Decoder:
    """What puts a file together again.

    Parameters
    ----------
    tensors : dict of arrays
        Each belongs to one value: a file that refers to one a thousand times would fill the memory.
    """

    def __init__(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        self._tensors = dict(tensors)
        self._depth = 0
        self._readers: dict[frozenset[str], Callable[[Any], Any]] = {
            frozenset({"float"}): lambda entry: float.fromhex(entry["float"]),
            frozenset({"tensor", "shape", "order"}): self._array,
            frozenset({"strings", "object"}): _strings,
            frozenset({"objects", "shape"}): self._objects,
            frozenset({"sparse"}): self._sparse,
            frozenset({"list"}): lambda entry: [self.value(item) for item in entry["list"]],
            frozenset({"tuple"}): lambda entry: tuple(self.value(item) for item in entry["tuple"]),
            frozenset({"dict"}): lambda entry: {key: self.value(item) for key, item in entry["dict"].items()},
            frozenset({"pairs"}): self._pairs,
            frozenset({"model"}): lambda entry: self.model(entry["model"]),
            frozenset({"skops"}): lambda entry: from_archive(self._take(entry["skops"])),
        }

    def finish(self) -> None:
        """Refuse tensors that nothing referred to."""
        if self._tensors:
            msg = f"nothing refers to the tensor {min(self._tensors)!r}"
            raise DamageError(msg)

    def value(self, entry: Any) -> Any:
        """Return a value from its JSON."""
        if entry is None or isinstance(entry, (bool, int, str)):
            return entry
        reader = self._readers.get(frozenset(entry)) if isinstance(entry, dict) else None
        if reader is None:
            msg = f"it holds a value that is none, {str(entry)[:60]}"
            raise DamageError(msg)
        self._depth += 1
        if self._depth > _DEEPEST:
            msg = f"values lie more than {_DEEPEST} deep in each other"
            raise DamageError(msg)
        found = reader(entry)
        self._depth -= 1
        return found

    def model(self, entry: Mapping[str, Any]) -> Any:
        """Return a model, complete and checked."""
        name, parameters, fitted = entry["class"], entry["params"], entry["fitted"]
        cls = class_named(name)
        if cls is None:
            msg = f"The file holds a {name!r}, which this gmil does not know. Install a newer gmil."
            raise ModelFileError(msg)
        _refuse_unknown(name, "parameter", parameters, cls._get_param_names())
        _refuse_unknown(name, "attribute", fitted, declared(cls))
        model: Any = cls(**{key: self.value(value) for key, value in parameters.items()})
        for key, value in fitted.items():
            setattr(model, key, self.value(value))
        model._complete()
        check_model(model)
        return model

    def _take(self, name: str) -> NDArray[Any]:
        if name not in self._tensors:
            msg = f"the tensor {name!r} is missing, or two values refer to it"
            raise DamageError(msg)
        return self._tensors.pop(name)

    def _array(self, entry: dict[str, Any]) -> NDArray[Any]:
        if entry["order"] not in ("C", "F"):
            msg = f"the order of an array is {entry['order']!r}"
            raise DamageError(msg)
        array = self._take(entry["tensor"])
        if list(array.shape) != entry["shape"] and array.size > 1:  # a single number is saved with one axis
            msg = f"the tensor {entry['tensor']!r} is {array.shape}, but its shape should be {entry['shape']}"
            raise DamageError(msg)
        # The same layout in memory, so that sums round as they did before.
        return np.asarray(array.reshape(entry["shape"]), order=entry["order"])

    def _objects(self, entry: dict[str, Any]) -> NDArray[Any]:
        items = np.empty(len(entry["objects"]), dtype=object)
        items[:] = [self.value(item) for item in entry["objects"]]
        return items.reshape(entry["shape"])

    def _sparse(self, entry: dict[str, Any]) -> Any:
        parts = {name: self.value(part) for name, part in entry["sparse"].items()}
        parts["n_features"] = parts.pop("n_columns")
        Rows("n", "d").check(parts, "a sparse array", {})
        shape = (len(parts["indptr"]) - 1, parts["n_features"])
        return sp.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=shape)

    def _pairs(self, entry: dict[str, Any]) -> dict[Any, Any]:
        found = {self.value(key): self.value(item) for key, item in entry["pairs"]}
        if not all(isinstance(key, (str, numbers.Real)) for key in found):
            msg = "a dict has keys that are neither numbers nor strings"
            raise DamageError(msg)
        return found


def _refuse_unknown(name: str, what: str, given: Mapping[str, Any], known: Collection[str]) -> None:
    unknown = [key for key in given if key not in known]
    if unknown:
        msg = f"The file gives {name} the {what} {unknown[0]!r}, which this gmil does not know."
        raise ModelFileError(msg)


def _strings(entry: dict[str, Any]) -> NDArray[Any]:
    array = np.array(entry["strings"], dtype=object)
    texts = array.ravel().tolist()
    if not all(isinstance(text, str) for text in texts):
        msg = "an array of strings holds something else"
        raise DamageError(msg)
    longest = max(map(len, texts), default=0)
    wasteful = len(texts) * longest > _PADDING * sum(map(len, texts)) + (1 << 16)
    return array if entry["object"] or wasteful else array.astype(str)
