"""Models and plain values as JSON and tensors, and back; what a file says is checked before it is believed."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from gmil.errors import ModelFileError, listed
from gmil.io.model_files.damage import DamageError, expect
from gmil.io.model_files.fitted import check_model, declared, fitted_values
from gmil.io.model_files.registry import class_named, is_registered, registered_classes
from gmil.io.model_files.schema import Rows
from gmil.io.model_files.skops_archives import from_archive, to_archive

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from numpy.typing import NDArray

    Tensors = dict[str, NDArray[Any]]

_DEEPEST = 50
_PADDING = 16
"""An array of strings is padded to the longest; it may take so many times the memory of its text."""


def encode_model(model: BaseEstimator, prefix: str, tensors: Tensors) -> dict[str, Any]:
    """Return the JSON of a model of a registered class; its arrays go into ``tensors``, under ``prefix``."""
    name = type(model).__name__
    if not is_registered(model):
        known = sorted(registered_classes())
        msg = f"{name} cannot be saved: it is not one of gmil's estimators, {listed(known, most=40)}."
        raise ModelFileError(msg)
    parameters = {
        key: encode(value, f"{prefix}param.{key}", f"the parameter {key!r} of {name}", tensors)
        for key, value in model.get_params(deep=False).items()
    }
    try:  # what could not be loaded is not written
        check_model(model)
    except DamageError as error:
        msg = f"{name} cannot be saved: {error}."
        raise ModelFileError(msg) from error
    fitted = {
        key: encode(value, f"{prefix}fitted.{key}", f"the attribute {key!r} of {name}", tensors)
        for key, value in fitted_values(model).items()
    }
    return {"class": name, "params": parameters, "fitted": fitted}


def encode(value: Any, key: str, what: str, tensors: Tensors) -> Any:
    """Return the JSON of a value; arrays go into ``tensors`` under ``key``."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return {"float": float(value).hex()}  # exact, and infinity is not JSON
    if isinstance(value, np.ndarray):
        return _encode_array(value, key, what, tensors)
    if isinstance(value, sp.csr_array):
        parts = {"data": value.data, "indices": value.indices, "indptr": value.indptr, "n_columns": value.shape[1]}
        return {"sparse": {name: encode(part, f"{key}.{name}", what, tensors) for name, part in parts.items()}}
    if isinstance(value, (list, tuple)):
        items = [encode(item, f"{key}.{i}", what, tensors) for i, item in enumerate(value)]
        return {"list" if isinstance(value, list) else "tuple": items}
    if isinstance(value, dict):
        return _encode_dict(value, key, what, tensors)
    if isinstance(value, BaseEstimator):
        if is_registered(value):
            return {"model": encode_model(value, f"{key}/", tensors)}
        return {"skops": _store(np.frombuffer(to_archive(value, what), dtype=np.uint8), key, tensors)}
    return _refuse(value, what)


def _encode_dict(value: dict[Any, Any], key: str, what: str, tensors: Tensors) -> Any:
    if all(isinstance(name, str) for name in value):
        return {"dict": {name: encode(item, f"{key}.{name}", what, tensors) for name, item in value.items()}}
    if all(isinstance(name, (str, numbers.Real)) for name in value):
        pairs = [(encode(k, key, what, tensors), encode(v, f"{key}.{k}", what, tensors)) for k, v in value.items()]
        return {"pairs": pairs}  # JSON would make texts of numbers
    return _refuse(value, what)


def _refuse(value: Any, what: str) -> None:
    msg = f"{what} cannot be saved: {type(value).__name__} is not data. Use numbers, strings or arrays."
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        msg = f"{what} cannot be saved: a {type(value).__name__} is not data. Use an integer seed."
    raise ModelFileError(msg)


def _encode_array(array: NDArray[Any], key: str, what: str, tensors: Tensors) -> Any:
    if array.dtype.kind in "biuf" and array.dtype.itemsize <= 8:
        # safetensors writes the memory as it lies: only a C-contiguous copy in native order is safe.
        plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
        by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
        return {"tensor": _store(plain, key, tensors), "shape": list(array.shape), "order": "CF"[by_columns]}
    if array.dtype.kind in "UO" and all(isinstance(item, str) for item in array.ravel()):
        return {"strings": array.tolist(), "object": array.dtype.kind == "O"}
    if array.dtype.kind == "O":
        items = [encode(item, f"{key}.{i}", what, tensors) for i, item in enumerate(array.ravel())]
        return {"objects": items, "shape": list(array.shape)}
    msg = f"{what} cannot be saved: arrays of {array.dtype} are not supported. Use numbers or strings."
    raise ModelFileError(msg)


def _store(array: NDArray[Any], key: str, tensors: Tensors) -> str:
    """Keep an array under ``key``, or under a longer name where that is taken; return the name."""
    while key in tensors:
        key += "'"
    tensors[key] = array
    return key


# -------------------------------------------------------------------------------- back again


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
        expect(not self._tensors, f"nothing refers to the tensor {min(self._tensors, default=None)!r}")

    def value(self, entry: Any) -> Any:
        """Return a value from its JSON."""
        if entry is None or isinstance(entry, (bool, int, str)):
            return entry
        reader = self._readers.get(frozenset(entry)) if isinstance(entry, dict) else None
        if reader is None:
            msg = f"it holds a value that is none, {str(entry)[:60]}"
            raise DamageError(msg)
        self._depth += 1
        expect(self._depth <= _DEEPEST, f"values lie more than {_DEEPEST} deep in each other")
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
        expect(name in self._tensors, f"the tensor {name!r} is missing, or two values refer to it")
        return self._tensors.pop(name)

    def _array(self, entry: dict[str, Any]) -> NDArray[Any]:
        expect(entry["order"] in ("C", "F"), f"the order of an array is {entry['order']!r}")
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
        are_plain = all(isinstance(key, (str, numbers.Real)) for key in found)
        expect(are_plain, "a dict has keys that are neither numbers nor strings")
        return found


def _refuse_unknown(name: str, what: str, given: Mapping[str, Any], known: Collection[str]) -> None:
    unknown = [key for key in given if key not in known]
    if unknown:
        msg = f"The file gives {name} the {what} {unknown[0]!r}, which this gmil does not know."
        raise ModelFileError(msg)


def _strings(entry: dict[str, Any]) -> NDArray[Any]:
    array = np.array(entry["strings"], dtype=object)
    texts = array.ravel().tolist()
    expect(all(isinstance(text, str) for text in texts), "an array of strings holds something else")
    longest = max(map(len, texts), default=0)
    wasteful = len(texts) * longest > _PADDING * sum(map(len, texts)) + (1 << 16)
    return array if entry["object"] or wasteful else array.astype(str)
