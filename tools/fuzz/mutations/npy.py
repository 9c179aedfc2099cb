"""Mutations of NumPy arrays and of the header of ``.npy`` files."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
from tools.fuzz.mutations.hostile import FLOATS, INTEGERS, PICKLES
from tools.fuzz.mutations.plain import PLAIN
from tools.fuzz.mutations.trees import pick

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

_DTYPES = ("<f8", "<f4", "<f2", "<i8", "<i4", "<u1", "|b1", "<c16", "<U3", "|S5", "<M8[s]", "|O", "|V8", ">f8", "<f16")
_SHAPES = ("(-1,)", "(0,)", "()", "(2**62,)", "(10**12, 10**12)", "(1e3,)", "(3, 0)", "(99999999,)", "[3]", "'a'")
_DESCRIPTIONS = ("'|O'", "[('a', '|O')]", "[('a', '<f8')] * 9", "'x9'", "__import__('os')", "(" * 200 + ")" * 200)


def change_values(array: NDArray[Any], rng: Generator) -> NDArray[Any]:
    """Return an array with one value, or all, replaced by something out of range."""
    found = np.array(array)
    if found.size == 0 or found.dtype.kind not in "biuf":
        return found
    value = pick(FLOATS if found.dtype.kind == "f" and rng.random() < 0.8 else INTEGERS, rng)
    everywhere = rng.random() < 0.2
    where: Any = Ellipsis if everywhere else np.unravel_index(int(rng.integers(found.size)), found.shape)
    found[where] = _as_type(value, found.dtype)
    return found


def _as_type(value: float, dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "iu":
        bits = 8 * dtype.itemsize
        return np.array(int(value) % 2**bits, dtype=f"u{dtype.itemsize}").astype(dtype)
    with np.errstate(over="ignore"):
        return np.array(float(value)).astype(dtype)


def shuffle_values(array: NDArray[Any], rng: Generator) -> NDArray[Any]:
    """Return the same values in another order."""
    return rng.permutation(array.ravel()).reshape(array.shape)


def change_shape(array: NDArray[Any], rng: Generator) -> NDArray[Any]:
    """Return a transposed, flat, cut or grown array."""
    ways = (
        lambda a: a.T,
        lambda a: a.ravel(),
        lambda a: a[..., :-1],
        lambda a: a[:-1],
        lambda a: a[:0],
        lambda a: a[None],
        lambda a: np.concatenate([a, a]),
        lambda a: np.repeat(a, 2, axis=-1),
    )
    return np.ascontiguousarray(pick(ways, rng)(np.atleast_1d(array)))


def change_dtype(array: NDArray[Any], rng: Generator) -> NDArray[Any]:
    """Return an array of another type, which may not hold the values."""
    with np.errstate(all="ignore"):
        try:
            return array.astype(pick([d for d in _DTYPES if d != "|O"], rng))
        except (TypeError, ValueError):  # texts are not numbers
            return np.zeros(array.shape)


def to_bytes(array: NDArray[Any]) -> bytes:
    """Write an array as a ``.npy`` file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()


def from_bytes(data: bytes) -> NDArray[Any]:
    """Read a ``.npy`` file that is as it should be."""
    return np.load(io.BytesIO(data), allow_pickle=False)


def lying_header(data: bytes, rng: Generator) -> bytes:
    """Write another type, shape or order into the header, and nothing else into the file."""
    array = from_bytes(data)
    fields = {"descr": repr(array.dtype.str), "fortran_order": "False", "shape": repr(array.shape)}
    field = pick(fields, rng)
    fields[field] = pick(
        {
            "descr": (*map(repr, _DTYPES), *_DESCRIPTIONS),
            "shape": (*_SHAPES, repr(array.shape[::-1])),
            "fortran_order": ("True", "1", "None"),
        }[field],
        rng,
    )
    return header_of(fields) + array.tobytes()


def header_of(fields: dict[str, str]) -> bytes:
    """Return the header of a ``.npy`` file with these fields, whatever they are."""
    text = "{" + ", ".join(f"{name!r}: {value}" for name, value in fields.items()) + ", }"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode("latin-1")


def pickled(data: bytes, rng: Generator) -> bytes:
    """Replace the array by objects: a pickle that would run code when it is read."""
    array = from_bytes(data)
    return header_of({"descr": "'|O'", "fortran_order": "False", "shape": repr(array.shape)}) + pick(PICKLES, rng)


def mutate_npy(data: bytes, rng: Generator) -> bytes:
    """Change one ``.npy`` file in one of many ways."""
    ways = (change_values, change_values, change_values, shuffle_values, change_shape, change_shape, change_dtype)
    chance = rng.random()
    if chance < 0.15:
        return lying_header(data, rng)
    if chance < 0.2:
        return pickled(data, rng)
    if chance < 0.3:
        return pick(PLAIN.values(), rng)(data, rng)
    return to_bytes(pick(ways, rng)(from_bytes(data), rng))
