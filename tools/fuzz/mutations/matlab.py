"""Mutations of Matlab files, versions 4 and 5: tags, sizes, nesting, compression."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

from tools.fuzz.mutations.hostile import INTEGERS
from tools.fuzz.mutations.plain import PLAIN
from tools.fuzz.mutations.trees import pick
from tools.fuzz.mutations.zips import deflated_zeros

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

    Mutate = Callable[[bytes, Generator], bytes]

_HEADER = 128
_INT8, _INT32, _UINT32, _DOUBLE, _MATRIX, _COMPRESSED = 1, 5, 6, 9, 14, 15
_CELL, _STRUCT, _CLASS_DOUBLE = 1, 2, 6


def element(kind: int, content: bytes, size: int | None = None) -> bytes:
    """Return an element: its type, its size (true unless given) and its content, padded to eight bytes."""
    tag = struct.pack("<II", kind, len(content) if size is None else size % 2**32)
    return tag + content + bytes(-len(content) % 8)


def elements(data: bytes) -> list[bytes]:
    """Return the variables of a version 5 file, each with its tag."""
    found, place = [], _HEADER
    while place + 8 <= len(data):
        kind, size = struct.unpack("<II", data[place : place + 8])
        end = place + 8 + size + (0 if kind == _COMPRESSED else -size % 8)
        found.append(data[place:end])
        place = end
    return found


def matrix(kind: int, dims: tuple[int, ...], name: bytes, content: bytes) -> bytes:
    """Return a variable of any class and dimensions."""
    flags = element(_UINT32, struct.pack("<II", kind, 0))
    shape = element(_INT32, struct.pack(f"<{len(dims)}i", *dims))
    return element(_MATRIX, flags + shape + element(_INT8, name) + content)


def _is_version_5(data: bytes) -> bool:
    return data[124:128] == b"\x00\x01IM"


def _on_elements(change: Callable[[list[bytes], Generator], None]) -> Mutate:
    def mutate(data: bytes, rng: Generator) -> bytes:
        if not _is_version_5(data):
            return data
        found = elements(data)
        change(found, rng)
        return data[:_HEADER] + b"".join(found)

    return mutate


def _unpacked(variable: bytes) -> bytes:
    (kind,) = struct.unpack("<I", variable[:4])
    return zlib.decompress(variable[8:]) if kind == _COMPRESSED else variable


def _packed(variable: bytes) -> bytes:
    content = zlib.compress(variable)
    return struct.pack("<II", _COMPRESSED, len(content)) + content


def lying_number(variables: list[bytes], rng: Generator) -> None:
    """Change a tag, a size or a dimension of a variable, inside its compression."""
    at = int(rng.integers(len(variables)))
    inside = _unpacked(variables[at])
    place = 4 * int(rng.integers(min(24, len(inside) // 4)))
    value = pick((*INTEGERS, *range(20)), rng) % 2**32
    inside = inside[:place] + struct.pack("<I", value) + inside[place + 4 :]
    variables[at] = _packed(inside) if rng.random() < 0.5 else inside


def change_inside(variables: list[bytes], rng: Generator) -> None:
    """Change bytes of a variable, inside its compression."""
    at = int(rng.integers(len(variables)))
    variables[at] = _packed(pick(PLAIN.values(), rng)(_unpacked(variables[at]), rng))


def change_beginning(variables: list[bytes], rng: Generator) -> None:
    """Change a byte where type, class, dimensions and name of a variable stand."""
    at = int(rng.integers(len(variables)))
    inside = bytearray(_unpacked(variables[at]))
    inside[int(rng.integers(min(80, len(inside))))] = int(rng.integers(256))
    variables[at] = _packed(bytes(inside)) if rng.random() < 0.5 else bytes(inside)


def swap_variables(variables: list[bytes], rng: Generator) -> None:
    """Swap, drop or repeat variables."""
    at = int(rng.integers(len(variables)))
    variables.append(variables.pop(at))
    if rng.random() < 0.6:
        variables.extend([variables[0]] * int(pick((1, 500), rng)))
        del variables[0]


def nested_cells(variables: list[bytes], rng: Generator) -> None:
    """Add a cell in a cell in a cell."""
    kind = int(pick((_CELL, _STRUCT), rng))
    inside = matrix(_CLASS_DOUBLE, (1, 1), b"", element(_DOUBLE, struct.pack("<d", 1.0)))
    fields = b"" if kind == _CELL else element(_INT32, struct.pack("<i", 2)) + element(_INT8, b"a\x00")
    for _ in range(int(pick((3, 100, 2000), rng))):
        inside = matrix(kind, (1, 1), b"", fields + inside)
    variables.insert(0, matrix(kind, (1, 1), b"features", fields + inside))


def inflate(variables: list[bytes], rng: Generator) -> None:
    """Replace a variable by one that unpacks to hundreds of megabytes."""
    n_megabytes = 256
    size = n_megabytes * 2**20
    flags = element(_UINT32, struct.pack("<II", _CLASS_DOUBLE, 0))
    shape = element(_INT32, struct.pack("<2i", size // 8, 1))
    inside = flags + shape + element(_INT8, b"features") + struct.pack("<II", _DOUBLE, size)
    beginning = struct.pack("<II", _MATRIX, len(inside) + size) + inside
    stream, _, adler = deflated_zeros(beginning, n_megabytes)
    content = b"\x78\x9c" + stream + struct.pack(">I", adler)
    variables[int(rng.integers(len(variables)))] = struct.pack("<II", _COMPRESSED, len(content)) + content


def claim_everything(variables: list[bytes], rng: Generator) -> None:
    """Add a variable with dimensions of petabytes."""
    dims = pick(((2**31 - 1, 2**20), (-1, 5), (0, 2**31 - 1), (1,) * 40, (2**31 - 1,) * 4), rng)
    content = element(_DOUBLE, struct.pack("<d", 1.0), pick((8, 0, 2**31, 2**32 - 8), rng))
    kind = int(rng.integers(1, 19))
    variables.insert(0, matrix(kind, dims, b"features", content))


def version_4(data: bytes, rng: Generator) -> bytes:
    """Replace the file by a variable of version 4, whose header may lie."""
    header = [0, 3, 2, 0, 9]
    header[int(rng.integers(5))] = pick((*INTEGERS, 10, 51, 52, 1000), rng)
    return struct.pack("<5I", *(value % 2**32 for value in header)) + b"features\x00" + data[:48]


MATLAB: dict[str, Mutate] = {
    "mat number": _on_elements(lying_number),
    "mat beginning": _on_elements(change_beginning),
    "mat inside": _on_elements(change_inside),
    "mat variables": _on_elements(swap_variables),
    "mat nesting": _on_elements(nested_cells),
    "mat bomb": _on_elements(inflate),
    "mat petabytes": _on_elements(claim_everything),
    "mat version 4": version_4,
}
