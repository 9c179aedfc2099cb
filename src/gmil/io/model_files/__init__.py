"""Models as files that cannot run code.

A model is one safetensors file: arrays as tensors, everything else (parameters, classes, names) as one JSON
document under the metadata key ``gmil``. A scikit-learn model inside ours is kept as a skops archive in a byte
tensor, and read with skops' own list of trusted types. Nothing is unpickled.

The way from file to model is one: `container` reads bytes and checks their sum, `values` makes values of them,
`fitted` holds them against what classes declare in the words of `schema`, `sklearn_models` looks at what compiled code
would believe, and `probing` asks the model about two tiny bags.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from gmil.errors import ModelFileError
from gmil.io.model_files.container import FORMAT_VERSION, checksum, read_container, write_container
from gmil.io.model_files.damage import DamageError, clear_damage
from gmil.io.model_files.origin import Origin
from gmil.io.model_files.probing import check_probe, probe
from gmil.io.model_files.registry import import_estimators, register_class, registered_classes
from gmil.io.model_files.schema import Choice, Record
from gmil.io.model_files.values import Decoder, encode, encode_model
from gmil.names import version

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from sklearn.base import BaseEstimator

    from gmil.io.model_files.schema import Kind

__all__ = [
    "FORMAT_VERSION",
    "DamageError",
    "Origin",
    "checksum",
    "clear_damage",
    "import_estimators",
    "load",
    "load_parts",
    "load_with_origin",
    "origin_of",
    "register_class",
    "registered_classes",
    "save",
    "save_parts",
]


_ORIGINS: WeakKeyDictionary[BaseEstimator, tuple[Any, Origin]] = WeakKeyDictionary()
"""Of the models that were read from files, as long as they live: their ``classes_``, and what is known of the data."""


def save(model: BaseEstimator, path: str | os.PathLike[str], origin: Origin | None = None) -> None:
    """Write a fitted model to ``path``; an existing file is replaced in one step."""
    tensors: dict[str, NDArray[Any]] = {}
    content = {"model": encode_model(model, "", tensors), "probe": probe(model)}
    if origin is not None and any(origin):
        content["origin"] = origin.to_json()
    write_container(content, tensors, path, version())


def save_parts(parts: Mapping[str, Any], path: str | os.PathLike[str], kinds: Mapping[str, Kind]) -> None:
    """Write several things as one file: numbers, strings, arrays, models, and lists and dicts of them.

    ``parts["kind"]`` says what they are together; `load_parts` asks for it. ``kinds`` says what each of the others is;
    what does not fit is not written.
    """
    try:
        Record({"kind": Choice(), **kinds}).check(dict(parts), "the file", {})
    except DamageError as error:
        msg = f"A {parts['kind']} cannot be saved: {error}."
        raise ModelFileError(msg) from error
    tensors: dict[str, NDArray[Any]] = {}
    encoded = {name: encode(value, name, f"the part {name!r}", tensors) for name, value in parts.items()}
    write_container({"parts": encoded}, tensors, path, version())


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that ``model.save(path)`` wrote.

    Nothing in the file can run code: arrays and JSON are all it holds, and only gmil's own classes are built. The
    whole file is checked first: its checksum, every parameter, the type, shape and range of every array.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    estimator
        The model, as it was saved.
    """
    return load_with_origin(path)[0]


def load_with_origin(path: str | os.PathLike[str]) -> tuple[Any, Origin]:
    """Read a model as `load` does, and what is known of the data that it was fitted on."""
    document, tensors = read_container(path)
    with clear_damage(path):
        if "parts" in document and "model" not in document:
            msg = f"{path} holds a {document['parts'].get('kind')}, and not one model."
            raise ModelFileError(msg)
        decoder = Decoder(tensors)
        model = decoder.model(document["model"])
        decoder.finish()
        check_probe(model, document["probe"] if document["version"] > 1 else None)
        origin = Origin.from_json(document.get("origin"))
        _ORIGINS[model] = getattr(model, "classes_", None), origin
        return model, origin


def origin_of(model: BaseEstimator) -> Origin:
    """Return what is known of the data that a model from a file was fitted on; of other models nothing."""
    classes, origin = _ORIGINS.get(model, (None, Origin()))
    # One that was fitted again has classes of its own.
    return origin if classes is not None and getattr(model, "classes_", None) is classes else Origin()


def load_parts(path: str | os.PathLike[str], kind: str, kinds: Mapping[str, Kind]) -> dict[str, Any]:
    """Read what `save_parts` wrote; a file of another kind, or with parts of other kinds, is refused."""
    document, tensors = read_container(path)
    with clear_damage(path):
        parts = document.get("parts") or {}
        if parts.get("kind") != kind:
            msg = f"{path} holds a {parts.get('kind') or document['model']['class']}, and not a {kind}."
            raise ModelFileError(msg)
        decoder = Decoder(tensors)
        found = {name: decoder.value(value) for name, value in parts.items()}
        decoder.finish()
        Record({"kind": Choice(), **kinds}).check(found, "the file", {})
        return found
