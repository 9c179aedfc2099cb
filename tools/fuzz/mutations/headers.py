"""Mutations of the header of a safetensors file: sizes, offsets, types and shapes that are not true."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

from tools.fuzz.mutations.hostile import INTEGERS, PATHS
from tools.fuzz.mutations.safetensors_files import NUMPY_TYPES, joined, split
from tools.fuzz.mutations.trees import TREES, pick, to_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

    Mutate = Callable[[bytes, Generator], bytes]

_TYPES = (*NUMPY_TYPES, "BF16", "F8_E4M3", "F8_E5M2", "C64", "F4", "X99", "", None, 3)


def lying_length(data: bytes, rng: Generator) -> bytes:
    """Lie about the length of the header."""
    (length,) = struct.unpack("<Q", data[:8])
    lies = (*INTEGERS, length - 1, length + 1, length + 8, len(data), len(data) - 8, length // 2)
    return struct.pack("<Q", pick(lies, rng) % 2**64) + data[8:]


def _on_entry(change: Callable[[dict[str, Any], int, Generator], None]) -> Mutate:
    def mutate(data: bytes, rng: Generator) -> bytes:
        header, blob = split(data)
        names = [name for name in header if name != "__metadata__"]
        if names:
            change(header[pick(names, rng)], len(blob), rng)
        return joined(header, blob)

    return mutate


def _change_offsets(entry: dict[str, Any], length: int, rng: Generator) -> None:
    begin, end = entry["data_offsets"]
    lies = ([end, begin], [begin, end + 8], [begin + 8, end], [0, length], [length, length + end - begin], [0, 0])
    entry["data_offsets"] = pick((*lies, [-8, end], [begin, 2**63], [begin], [], None, ["0", "8"], [0.0, 8.0]), rng)


def _change_shape(entry: dict[str, Any], length: int, rng: Generator) -> None:
    shape = entry["shape"]
    lies = ([*shape, 2], shape[1:], [0], [-1], [2**62, 4], [2**32, 2**32], [length], [1] * 100, None, ["3"], [1.5])
    entry["shape"] = pick(lies, rng)


def _change_type(entry: dict[str, Any], _length: int, rng: Generator) -> None:
    entry["dtype"] = pick(_TYPES, rng)


def swap_offsets(data: bytes, rng: Generator) -> bytes:
    """Let two tensors have each other's bytes, or one byte range."""
    header, blob = split(data)
    names = [name for name in header if name != "__metadata__"]
    if names:
        first, second = header[pick(names, rng)], header[pick(names, rng)]
        first["data_offsets"], second["data_offsets"] = second["data_offsets"], first["data_offsets"]
        if rng.random() < 0.3:
            first["data_offsets"] = second["data_offsets"]
    return joined(header, blob)


def header_tree(data: bytes, rng: Generator) -> bytes:
    """Change the header as any JSON."""
    header, blob = split(data)
    root = [header]
    pick(TREES.values(), rng)(root, rng)
    text = to_text(root).encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(text)) + text + blob


def key_twice(data: bytes, rng: Generator) -> bytes:
    """Write a name of the header twice."""
    header, blob = split(data)
    name = pick(header, rng)
    text = json.dumps(header)[:-1] + f", {json.dumps(name)}: {json.dumps(header[name])}}}"
    return struct.pack("<Q", len(text)) + text.encode() + blob


def change_metadata(data: bytes, rng: Generator) -> bytes:
    """Leave out or change what stands beside the tensors: the checksum, the document, the format version."""
    header, blob = split(data)
    metadata = header["__metadata__"]
    name = pick(metadata, rng)
    chance = rng.random()
    if chance < 0.3:
        del metadata[name]
    elif chance < 0.6:
        metadata[name] = pick((*PATHS, "0" * 64, "{}", "[]", "null", '{"version": 1}', "{" * 5000, "NaN"), rng)
    else:
        document = json.loads(metadata["gmil"])
        document["version"] = pick((0, 1, 2, 3, -1, "1", 1.0, True, None, 10**30, [1]), rng)
        metadata["gmil"] = json.dumps(document)
    return joined(header, blob)


HEADERS: dict[str, Mutate] = {
    "header length": lying_length,
    "header offsets": _on_entry(_change_offsets),
    "header shape": _on_entry(_change_shape),
    "header type": _on_entry(_change_type),
    "header offsets swapped": swap_offsets,
    "header name twice": key_twice,
    "header json": header_tree,
}
METADATA: dict[str, Mutate] = {"metadata": change_metadata}
