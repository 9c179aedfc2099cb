"""Mutations of the tensors in a model file, under a true header."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from tools.fuzz.mutations import npy
from tools.fuzz.mutations.archives import mutate_skops
from tools.fuzz.mutations.hostile import PATHS
from tools.fuzz.mutations.plain import edit_bytes, flip_bit, flip_bits
from tools.fuzz.mutations.safetensors_files import Tensor
from tools.fuzz.mutations.trees import pick

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator
    from numpy.typing import NDArray

    Tensors = dict[str, Tensor]

_ZIP = b"PK\x03\x04"


def _numbers(tensors: Tensors) -> list[str]:
    """Return the names of the tensors that are arrays, not archives."""
    return [name for name, tensor in tensors.items() if tensor.data and not tensor.data.startswith(_ZIP)]


def _on_array(change: Callable[[NDArray[Any], Generator], NDArray[Any]]) -> Callable[[Tensors, Generator], None]:
    def edit(tensors: Tensors, rng: Generator) -> None:
        name = pick(_numbers(tensors), rng)
        if name is not None:
            tensors[name] = Tensor.of(change(tensors[name].array(), rng))

    return edit


def _on_bytes(change: Callable[[bytes, Generator], bytes]) -> Callable[[Tensors, Generator], None]:
    def edit(tensors: Tensors, rng: Generator) -> None:
        name = pick(_numbers(tensors), rng)
        if name is not None:
            tensors[name].data = change(tensors[name].data, rng)

    return edit


def other_type(tensors: Tensors, rng: Generator) -> None:
    """Call the same bytes another type of the same size."""
    name = pick(_numbers(tensors), rng)
    if name is not None:
        size = tensors[name].array().itemsize
        same = {8: ("F64", "I64", "U64"), 4: ("F32", "I32", "U32"), 2: ("F16", "I16", "U16"), 1: ("U8", "I8", "BOOL")}
        tensors[name].dtype = pick(same[size], rng)


def same_bytes_other_shape(tensors: Tensors, rng: Generator) -> None:
    """Give a tensor another shape of as many values."""
    name = pick(_numbers(tensors), rng)
    if name is not None:
        tensor = tensors[name]
        size = int(np.prod(tensor.shape))
        tensor.shape = pick((tensor.shape[::-1], [size], [size, 1], [1, size], [1, *tensor.shape]), rng)


def swap_tensors(tensors: Tensors, rng: Generator) -> None:
    """Swap two tensors."""
    if tensors:
        first, second = pick(tensors, rng), pick(tensors, rng)
        tensors[first], tensors[second] = tensors[second], tensors[first]


def drop_tensor(tensors: Tensors, rng: Generator) -> None:
    """Leave out a tensor."""
    if tensors:
        del tensors[pick(tensors, rng)]


def rename_tensor(tensors: Tensors, rng: Generator) -> None:
    """Give a tensor another name."""
    if tensors:
        tensors[pick(PATHS, rng)] = tensors.pop(pick(tensors, rng))


def add_tensor(tensors: Tensors, rng: Generator) -> None:
    """Add a tensor that nothing refers to."""
    tensors[f"more{int(rng.integers(100))}"] = Tensor.of(rng.normal(size=(3, 3)))


def change_archive(tensors: Tensors, rng: Generator) -> None:
    """Change a scikit-learn model inside."""
    archives = [name for name, tensor in tensors.items() if tensor.data.startswith(_ZIP)]
    if archives:
        name = pick(archives, rng)
        data = mutate_skops(tensors[name].data, rng)
        tensors[name] = Tensor("U8", [len(data)], data)


TENSORS: dict[str, Any] = {
    "tensor bit": _on_bytes(flip_bit),
    "tensor bits": _on_bytes(flip_bits),
    "tensor bytes": _on_bytes(edit_bytes),
    "tensor value": _on_array(npy.change_values),
    "tensor order": _on_array(npy.shuffle_values),
    "tensor cut or grown": _on_array(npy.change_shape),
    "tensor converted": _on_array(npy.change_dtype),
    "tensor type": other_type,
    "tensor shape": same_bytes_other_shape,
    "tensors swapped": swap_tensors,
    "tensor dropped": drop_tensor,
    "tensor name": rename_tensor,
    "tensor added": add_tensor,
    "archive": change_archive,
}
