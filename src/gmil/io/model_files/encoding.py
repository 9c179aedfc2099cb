"""Models and plain values as JSON and tensors."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from gmil.errors import ModelFileError, listed
from gmil.io.model_files.damage import DamageError
from gmil.io.model_files.fitted import check_model, fitted_values
from gmil.io.model_files.registry import is_registered, registered_classes
from gmil.io.model_files.skops_archives import to_archive

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tensors = dict[str, NDArray[Any]]


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
