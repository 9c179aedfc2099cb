"""Models as files that cannot run code.

A model is one safetensors file: arrays as tensors, everything else (parameters, classes, names) as one JSON
document under the metadata key ``gmil``. A scikit-learn model inside ours is kept as a skops archive in a byte
tensor, and read with skops' own list of trusted types. Nothing is unpickled.
"""

from __future__ import annotations

import contextlib
import io
import json
import numbers
import re
import zipfile
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from gmil.errors import GmilError, ModelFileError, listed
from gmil.files import replacing
from gmil.guard import physical_memory

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

FORMAT_VERSION = 1

_classes: dict[str, type[BaseEstimator]] = {}
_late_modules: list[str] = []
# A NumPy type is data; skops leaves it to us to say so, and SimpleImputer holds one.
_TRUSTED = ["numpy.dtype"]
_DAMAGE = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError, MemoryError)
_FITTED_NAME = re.compile(r"[a-z][a-z0-9_]*_")

EstimatorClass = TypeVar("EstimatorClass", bound=type[BaseEstimator])


def register_class(cls: EstimatorClass) -> EstimatorClass:
    """Let a class be saved and loaded under its name; loading looks names up and imports nothing that a file names."""
    _classes[cls.__name__] = cls
    return cls


def register_late(module: str) -> None:
    """Let a module of gmil, which registers classes, be imported when the classes are looked up for the first time."""
    _late_modules.append(module)


def import_late_modules() -> None:
    """Import the modules that `register_late` put off."""
    for module in _late_modules:
        import_module(module)


def registered_classes() -> dict[str, type[BaseEstimator]]:
    """Return every class that can be saved, by name."""
    import_late_modules()
    return dict(_classes)


# -------------------------------------------------------------------------------- writing


def save(model: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to ``path``; an existing file is replaced in one step."""
    tensors: dict[str, NDArray[Any]] = {}
    _write({"model": _encode_model(model, "", tensors)}, tensors, path)


def save_parts(parts: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write several things as one file: numbers, strings, arrays, models, and lists and dicts of them.

    ``parts["kind"]`` says what they are together; `load_parts` asks for it.
    """
    tensors: dict[str, NDArray[Any]] = {}
    encoded = {name: _encode(value, name, f"the part {name!r}", tensors) for name, value in parts.items()}
    _write({"parts": encoded}, tensors, path)


def _write(content: dict[str, Any], tensors: dict[str, NDArray[Any]], path: str | os.PathLike[str]) -> None:
    from safetensors.numpy import save as to_bytes

    document = {"version": FORMAT_VERSION, "gmil": _gmil_version(), **content}
    data = to_bytes(tensors, metadata={"gmil": json.dumps(document)})
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def _gmil_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("gmil")
    except PackageNotFoundError:  # running from a source tree that was never installed
        return "unknown"


def _encode_model(model: BaseEstimator, prefix: str, tensors: dict[str, NDArray[Any]]) -> dict[str, Any]:
    name = type(model).__name__
    if _classes.get(name) is not type(model):
        known = sorted(registered_classes())
        msg = f"{name} cannot be saved: it is not one of gmil's estimators, {listed(known, most=40)}."
        raise ModelFileError(msg)
    parameters = {
        key: _encode(value, f"{prefix}param.{key}", f"the parameter {key!r} of {name}", tensors)
        for key, value in model.get_params(deep=False).items()
    }
    fitted = {
        key: _encode(value, f"{prefix}fitted.{key}", f"the attribute {key!r} of {name}", tensors)
        for key, value in sorted(vars(model).items())
        if _FITTED_NAME.fullmatch(key)
    }
    return {"class": name, "params": parameters, "fitted": fitted}


def _encode(value: Any, key: str, what: str, tensors: dict[str, NDArray[Any]]) -> Any:
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
    if isinstance(value, (list, tuple)):
        items = [_encode(item, f"{key}.{i}", what, tensors) for i, item in enumerate(value)]
        return {"list" if isinstance(value, list) else "tuple": items}
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {"dict": {name: _encode(item, f"{key}.{name}", what, tensors) for name, item in value.items()}}
    if isinstance(value, dict) and all(isinstance(name, (str, numbers.Real)) for name in value):
        pairs = [(_encode(k, key, what, tensors), _encode(v, f"{key}.{k}", what, tensors)) for k, v in value.items()]
        return {"pairs": pairs}  # JSON would make texts of numbers
    if isinstance(value, BaseEstimator):
        if type(value) in _classes.values():
            return {"model": _encode_model(value, f"{key}/", tensors)}
        archive = np.frombuffer(_skops_bytes(value, what), dtype=np.uint8)
        return {"skops": _store(archive, key, tensors)}
    msg = f"{what} cannot be saved: {type(value).__name__} is not data. Use numbers, strings or arrays."
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        msg = f"{what} cannot be saved: a {type(value).__name__} is not data. Use an integer seed."
    raise ModelFileError(msg)


def _encode_array(array: NDArray[Any], key: str, what: str, tensors: dict[str, NDArray[Any]]) -> Any:
    if array.dtype.kind in "biuf" and array.dtype.itemsize <= 8:
        # safetensors writes the memory as it lies: only a C-contiguous copy in native order is safe.
        plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
        by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
        return {"tensor": _store(plain, key, tensors), "shape": list(array.shape), "order": "CF"[by_columns]}
    if array.dtype.kind in "UO" and all(isinstance(item, str) for item in array.ravel()):
        return {"strings": array.tolist(), "object": array.dtype.kind == "O"}
    if array.dtype.kind == "O":
        items = [_encode(item, f"{key}.{i}", what, tensors) for i, item in enumerate(array.ravel())]
        return {"objects": items, "shape": list(array.shape)}
    msg = f"{what} cannot be saved: arrays of {array.dtype} are not supported. Use numbers or strings."
    raise ModelFileError(msg)


def _store(array: NDArray[Any], key: str, tensors: dict[str, NDArray[Any]]) -> str:
    """Keep an array under ``key``, or under a longer name where that is taken; return the name."""
    while key in tensors:
        key += "'"
    tensors[key] = array
    return key


def _skops_bytes(model: BaseEstimator, what: str) -> bytes:
    import skops.io

    data: bytes = skops.io.dumps(model)
    untrusted = _untrusted_types(data)
    if untrusted:
        msg = f"{what} cannot be saved: it holds types that are not known to be safe to load, {listed(untrusted)}."
        raise ModelFileError(msg)
    return data


def _untrusted_types(data: bytes) -> list[str]:
    """Return the types in a skops archive that are neither trusted by skops nor by us, by name."""
    import skops.io

    return sorted(set(skops.io.get_untrusted_types(data=data)) - set(_TRUSTED))


# -------------------------------------------------------------------------------- reading


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that ``model.save(path)`` wrote.

    Nothing in the file can run code: arrays and JSON are all it holds, and only gmil's own classes are built.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    estimator
        The model, as it was saved.
    """
    document, tensors = _read(path)
    with clear_damage(path):
        if "parts" in document and "model" not in document:
            msg = f"{path} holds a {document['parts'].get('kind')}, and not one model."
            raise ModelFileError(msg)
        return _decode_model(document["model"], tensors)


def load_parts(path: str | os.PathLike[str], kind: str) -> dict[str, Any]:
    """Read what `save_parts` wrote; a file of another kind is refused."""
    document, tensors = _read(path)
    with clear_damage(path):
        parts = document.get("parts") or {}
        if parts.get("kind") != kind:
            msg = f"{path} holds a {parts.get('kind') or document['model']['class']}, and not a {kind}."
            raise ModelFileError(msg)
        return {name: _decode(value, tensors) for name, value in parts.items()}


@contextlib.contextmanager
def clear_damage(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what a damaged file raises while its parts are put together into one clear error."""
    try:
        yield
    except GmilError:
        raise
    except _DAMAGE as error:
        msg = f"{path} is damaged: {type(error).__name__} while reading it ({error}). Save the model again."
        raise ModelFileError(msg) from error


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Mapping[str, NDArray[Any]]]:
    from safetensors import SafetensorError, safe_open

    with open(path, "rb"):  # noqa: PTH123  a missing file or a folder is the system's own clear error
        pass
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  it is no dict
        document = dict(json.loads(metadata["gmil"]))
    except (SafetensorError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        msg = f"{path} is not a gmil model, or it is damaged: {error}. Save the model again."
        raise ModelFileError(msg) from error
    _check_version(document, path)
    return document, tensors


def _check_version(document: dict[str, Any], path: str | os.PathLike[str]) -> None:
    version = document.get("version")
    if not isinstance(version, int):
        msg = f"{path} is not a gmil model: it names no format version."
        raise ModelFileError(msg)
    if version > FORMAT_VERSION:
        msg = (
            f"{path} was written by gmil {document.get('gmil')} in format {version}, but this gmil reads "
            f"formats up to {FORMAT_VERSION}. Install a newer gmil."
        )
        raise ModelFileError(msg)


def _decode_model(entry: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> BaseEstimator:
    name = entry["class"]
    classes = _classes if name in _classes else registered_classes()
    if name not in classes:
        msg = f"The file holds a {name!r}, which this gmil does not know. Install a newer gmil."
        raise ModelFileError(msg)
    known = classes[name]._get_param_names()
    unknown = [key for key in entry["params"] if key not in known]
    if unknown:
        msg = f"The file gives {name} the parameter {unknown[0]!r}, which this gmil does not know."
        raise ModelFileError(msg)
    model: Any = classes[name](**{key: _decode(value, tensors) for key, value in entry["params"].items()})
    for key, value in entry["fitted"].items():
        if not _FITTED_NAME.fullmatch(key) or hasattr(type(model), key):
            msg = f"The file gives {name} the attribute {key!r}, which no fitted model has."
            raise ModelFileError(msg)
        setattr(model, key, _decode(value, tensors))
    model._complete()
    return model


def _decode(value: Any, tensors: Mapping[str, NDArray[Any]]) -> Any:
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return float.fromhex(value["float"])
    if "tensor" in value:
        # The same layout in memory, so that sums round as they did before.
        return np.asarray(tensors[value["tensor"]].reshape(value["shape"]), order=value["order"])
    if "strings" in value:
        return np.array(value["strings"], dtype=object if value["object"] else str)
    if "objects" in value:
        items = np.empty(len(value["objects"]), dtype=object)
        items[:] = [_decode(item, tensors) for item in value["objects"]]
        return items.reshape(value["shape"])
    if "list" in value:
        return [_decode(item, tensors) for item in value["list"]]
    if "tuple" in value:
        return tuple(_decode(item, tensors) for item in value["tuple"])
    if "dict" in value:
        return {key: _decode(item, tensors) for key, item in value["dict"].items()}
    if "pairs" in value:
        return {_decode(key, tensors): _decode(item, tensors) for key, item in value["pairs"]}
    if "model" in value:
        return _decode_model(value["model"], tensors)
    return _from_skops(tensors[value["skops"]].tobytes())


def _from_skops(data: bytes) -> Any:
    import skops.io

    try:
        _refuse_inflation(data)
        untrusted = _untrusted_types(data)
        if not untrusted:
            return skops.io.loads(data, trusted=_TRUSTED)
    except ModelFileError:
        raise
    except Exception as error:  # what a damaged archive raises is up to the libraries that read it
        msg = f"The scikit-learn model in the file is damaged: {type(error).__name__} ({error}). Save the model again."
        raise ModelFileError(msg) from error
    msg = f"The file holds types that are not known to be safe and are not loaded: {listed(untrusted)}."
    raise ModelFileError(msg)


def _refuse_inflation(data: bytes) -> None:
    """Refuse an archive of a few bytes that would fill all memory when it is unpacked."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        n_bytes = sum(member.file_size for member in archive.infolist())
    memory = physical_memory()
    if memory is not None and n_bytes > memory:
        msg = f"The scikit-learn model in the file takes {n_bytes / 2**30:.1f} GiB, more than this machine has."
        raise ModelFileError(msg)
