"""Mutations of the document in a model file: classes, references, shapes, and what fills memory."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from tools.fuzz.mutations.hostile import CLASSES, HEX_FLOATS, PATHS
from tools.fuzz.mutations.safetensors_files import Tensor
from tools.fuzz.mutations.trees import pick, places

from gmil.io.model_files import registered_classes

if TYPE_CHECKING:
    from numpy.random import Generator

_SHAPES: tuple[Any, ...] = ([], [0], [-1], [2**62], [10**12, 10**12], [1e3], ["3"], [3, 0], None, 3, [1] * 70)
_NAMES = (
    "__class__",
    "__dict__",
    "__init__",
    "__reduce__",
    "predict",
    "decision_function",
    "predict_",
    "classes_",
    "n_features_in_",
    "codebook_",
    "x" * 10_000 + "_",
)


def _at_key(root: list[Any], *keys: str) -> list[tuple[Any, Any]]:
    return [(c, k) for c, k in places(root) if isinstance(c, dict) and k in keys]


def tidy(root: list[Any], tensors: dict[str, Tensor]) -> None:
    """Let the document agree with the tensors, as somebody would who writes a false file with care.

    Shapes are those of the tensors, every tensor is referred to once, and none is left over.
    """
    used: set[str] = set()
    for container, key in _at_key(root, "tensor", "skops"):
        name = container[key]
        if not isinstance(name, str) or name not in tensors:
            continue
        if name in used:
            tensors[f"{name} {len(used)}"] = tensors[name]
            name = container[key] = f"{name} {len(used)}"
        used.add(name)
        if key == "tensor" and "shape" in container:
            container["shape"] = list(tensors[name].shape)
    for name in set(tensors) - used:
        del tensors[name]


def lying_class(root: list[Any], rng: Generator) -> None:
    """Name another class: a registered one half of the time, else one that must not be built."""
    container, key = pick(_at_key(root, "class") or [(root, 0)], rng)
    known = sorted(registered_classes())
    container[key] = pick(known, rng) if rng.random() < 0.5 else pick(CLASSES, rng)


def other_reference(root: list[Any], rng: Generator) -> None:
    """Refer to another tensor, or to none that is there."""
    found = _at_key(root, "tensor", "skops")
    if found:
        container, key = pick(found, rng)
        other, name = pick(found, rng)
        container[key] = other[name] if rng.random() < 0.7 else pick((*PATHS, None, 3, []), rng)


def other_kind(root: list[Any], rng: Generator) -> None:
    """Call a value something else: an array a skops archive, a list a model."""
    kinds = ("tensor", "strings", "objects", "list", "tuple", "dict", "pairs", "model", "skops", "float")
    found = _at_key(root, *kinds)
    if found:
        container, key = pick(found, rng)
        container[pick(kinds, rng)] = container.pop(key)


def lying_shape(root: list[Any], rng: Generator) -> None:
    """Give an array another shape or order."""
    found = _at_key(root, "shape", "order")
    if found:
        container, key = pick(found, rng)
        if key == "order":
            container[key] = pick(("C", "F", "K", "A", "", None, "FF", 3), rng)
        else:
            old = container[key]
            container[key] = pick((*_SHAPES, old[::-1], [*old, 1], [int(np.prod(old))], old[1:]), rng)


def swap_fitted(root: list[Any], rng: Generator) -> None:
    """Swap two fitted attributes, of one model or of two."""
    owners = [c[k] for c, k in _at_key(root, "fitted", "params") if isinstance(c[k], dict) and c[k]]
    if owners:
        first, second = pick(owners, rng), pick(owners, rng)
        a, b = pick(first, rng), pick(second, rng)
        first[a], second[b] = second[b], first[a]


def add_attribute(root: list[Any], rng: Generator) -> None:
    """Give a model an attribute or a parameter that it does not have."""
    found = _at_key(root, "fitted", "params")
    if found:
        container, key = pick(found, rng)
        if isinstance(container[key], dict):
            value = pick((None, 0, "x", {"list": []}, copy.deepcopy(pick(container[key].values(), rng))), rng)
            container[key][pick(_NAMES, rng)] = value


def odd_value(root: list[Any], rng: Generator) -> None:
    """Put a value there that is spelled in an odd way."""
    values = (
        {"pairs": [[{"list": []}, 1]]},
        {"pairs": [[1, 2, 3]]},
        {"float": pick(HEX_FLOATS, rng)},
        {"float": 1.0},
        {"objects": [1, 2], "shape": [3]},
        {"strings": [["a"], ["b", "c"]], "object": False},
        {"strings": [1, None], "object": True},
        {"strings": "abc", "object": False},
        {"tuple": {"a": 1}},
        {"unknown": 1},
        {"model": {"class": "GMIL"}},
        {"model": {"class": "GMIL", "params": {}, "fitted": {}}},
    )
    owners = [c[k] for c, k in _at_key(root, "fitted", "params") if isinstance(c[k], dict) and c[k]]
    if owners:
        owner = pick(owners, rng)
        owner[pick(owner, rng)] = pick(values, rng)


def a_thousand_references(root: list[Any], tensors: dict[str, Tensor], rng: Generator) -> None:
    """Refer a thousand times to one array of half a megabyte, each time in an order that needs a copy."""
    tensors["bomb"] = Tensor.of(np.zeros((256, 256)))
    reference = {"tensor": "bomb", "shape": [256, 256], "order": "F"}
    owners = [c[k] for c, k in _at_key(root, "fitted") if isinstance(c[k], dict) and c[k]]
    if owners:
        owner = pick(owners, rng)
        owner[pick(owner, rng)] = {"list": [reference] * 1000}


def one_long_text(root: list[Any], rng: Generator) -> None:
    """Put a long text among short ones: an array of texts pads all of them."""
    texts = ["a"] * 1000 + ["b" * 100_000]
    owners = [c[k] for c, k in _at_key(root, "fitted") if isinstance(c[k], dict) and c[k]]
    if owners:
        owner = pick(owners, rng)
        owner[pick(owner, rng)] = {"strings": texts, "object": False}


DOCUMENTS: dict[str, Any] = {
    "class": lying_class,
    "reference": other_reference,
    "kind of value": other_kind,
    "shape": lying_shape,
    "fitted swapped": swap_fitted,
    "attribute": add_attribute,
    "odd value": odd_value,
    "thousand references": a_thousand_references,
    "long text": one_long_text,
}
