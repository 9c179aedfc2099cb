"""The file itself: one safetensors file, read whole, with a checksum over everything that it holds.

A safetensors file is the length of its header (8 bytes), the header (JSON) and the bytes of all tensors one after the
other. The header has two texts of ours: ``gmil``, a JSON document, and ``sha256``, the checksum.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import stat
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.errors import FileAccessError, ModelFileError
from gmil.io.model_files.damage import DamageError, expect
from gmil.safety.atomic import replacing
from gmil.safety.guard import opening, physical_memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

FORMAT_VERSION = 2
MOST_TEXT = 16 << 20
"""Bytes of the document: small JSON objects take 25 times their text in memory."""

_MOST_HEADER = 40 << 20
_DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "u1",
    "BOOL": "?",
}


class Container(NamedTuple):
    """What a file holds."""

    document: dict[str, Any]
    tensors: dict[str, NDArray[Any]]


def checksum(document: str, tensors: Mapping[str, NDArray[Any]]) -> str:
    """Return the checksum of a file, in hexadecimal digits.

    It is the SHA-256 of the document's UTF-8 bytes and then, for every tensor in the order of names, of its name, the
    name of its NumPy dtype and its lengths joined by commas, each closed by a zero byte, and of its bytes in C order.

    Parameters
    ----------
    document : str
        The JSON text under the key ``gmil``.
    tensors : dict of arrays
    """
    digest = hashlib.sha256(document.encode())
    for name in sorted(tensors):
        array = tensors[name]
        shape = ",".join(str(length) for length in array.shape)
        digest.update(f"{name}\0{array.dtype.name}\0{shape}\0".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def write_container(
    content: dict[str, Any], tensors: dict[str, NDArray[Any]], path: str | os.PathLike[str], gmil_version: str
) -> None:
    """Write a document and tensors; an existing file is replaced in one step."""
    from safetensors.numpy import save as to_bytes

    document = json.dumps({"version": FORMAT_VERSION, "gmil": gmil_version, **content})
    if len(document) > MOST_TEXT:
        msg = (
            f"The model cannot be saved: its names, settings and texts take {len(document) / 2**20:.0f} MiB, but a "
            f"file has room for {MOST_TEXT >> 20} MiB of them. Shorten the names of features or classes."
        )
        raise ModelFileError(msg)
    data = to_bytes(tensors, metadata={"gmil": document, "sha256": checksum(document, tensors)})
    with replacing(path) as temporary:
        temporary.write_bytes(data)


# -------------------------------------------------------------------------------- reading


def read_container(path: str | os.PathLike[str]) -> Container:
    """Read a file whole and check all of its structure; what is no file of ours is one clear error."""
    with opening(Path(path)):
        data = _read_whole(path)
    with _not_ours(path):
        metadata, found = _parse(data)
    version = found.document.get("version")
    if type(version) is not int or version < 1:
        msg = f"{path} is not a gmil model: it names no format version."
        raise ModelFileError(msg)
    if version > FORMAT_VERSION:
        msg = (
            f"{path} was written by gmil {found.document.get('gmil')} in format {version}, but this gmil reads "
            f"formats up to {FORMAT_VERSION}. Install a newer gmil."
        )
        raise ModelFileError(msg)
    if version > 1 or "sha256" in metadata:  # files of 0.1.0 have no checksum
        with _not_ours(path):
            _check_sum(metadata, found.tensors)
    return found


@contextlib.contextmanager
def _not_ours(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError, MemoryError, struct.error) as error:
        msg = f"{path} is not a gmil model, or it is damaged: {error}. Save the model again."
        raise ModelFileError(msg) from error


def _read_whole(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a regular file; a map would crash the process if the file were rewritten meanwhile."""
    with open(path, "rb", opener=_open_without_waiting) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            msg = f"{path} is not a regular file, but a pipe or a device, and no model can be read from it."
            raise FileAccessError(msg)
        memory = physical_memory()
        if memory is not None and status.st_size > memory:
            msg = f"{path} has {status.st_size / 2**30:.1f} GiB, more than this machine has memory."
            raise ModelFileError(msg)
        return file.read()


def _open_without_waiting(path: str, flags: int) -> int:
    """Open a file; a pipe that no one writes to would wait for ever."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _parse(data: bytes) -> tuple[dict[str, Any], Container]:
    """Return the texts of the header, and what they and the rest of the file hold."""
    expect(len(data) >= 8, f"it has {len(data)} bytes")
    (length,) = struct.unpack("<Q", data[:8])
    expect(length <= min(len(data) - 8, _MOST_HEADER), f"its header would have {length} bytes")
    header = _json_object(data[8 : 8 + length].decode(), "header")
    metadata = dict(header.pop("__metadata__", {}))
    text = metadata["gmil"]
    fits = isinstance(text, str) and len(text) <= MOST_TEXT
    expect(fits, f"it holds no document of at most {MOST_TEXT >> 20} MiB")
    document = _json_object(text, "document")
    return metadata, Container(document, _tensors(header, memoryview(data)[8 + length :]))


def _json_object(text: str, what: str) -> dict[str, Any]:
    found = strict_json(text)
    expect(isinstance(found, dict), f"its {what} is no JSON object")
    return found


def strict_json(text: str) -> Any:
    """Read JSON; what our files never hold is refused: a key twice, NaN, numbers with a point."""
    return json.loads(text, object_pairs_hook=_object, parse_constant=_no_number, parse_float=_no_number)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    expect(len(found) == len(pairs), "a key is there twice")
    return found


def _no_number(text: str) -> None:
    msg = f"{text[:20]} is no number of such a file"
    raise DamageError(msg)


def _tensors(entries: dict[str, Any], body: memoryview) -> dict[str, NDArray[Any]]:
    """Return all tensors; they must fill the rest of the file, one after the other."""
    places = {name: _place(name, entry) for name, entry in entries.items()}
    end = 0
    found = {}
    for name, (dtype, shape, first, last) in sorted(places.items(), key=lambda item: item[1][2:]):
        fits = first == end and last - first == math.prod(shape) * dtype.itemsize and last <= len(body)
        expect(fits, f"the tensor {name!r} does not lie where it should")
        found[name], end = _array(name, dtype, shape, body[first:last]), last
    expect(end == len(body), f"{len(body) - end} bytes belong to no tensor")
    return found


def _place(name: str, entry: Any) -> tuple[np.dtype[Any], tuple[int, ...], int, int]:
    is_described = isinstance(entry, dict) and set(entry) == {"dtype", "shape", "data_offsets"}
    expect(is_described, f"the tensor {name!r} is not described")
    expect(entry["dtype"] in _DTYPES, f"the tensor {name!r} is of type {entry['dtype']!r}, which NumPy does not have")
    first, last = entry["data_offsets"]
    shape = tuple(entry["shape"])
    are_sizes = all(type(number) is int and number >= 0 for number in (*shape, first, last))
    expect(are_sizes, f"the shape or the place of the tensor {name!r} is no number of bytes")
    return np.dtype(_DTYPES[entry["dtype"]]), shape, first, last


def _array(name: str, dtype: np.dtype[Any], shape: tuple[int, ...], data: memoryview) -> NDArray[Any]:
    """Return a copy, aligned and writable."""
    is_plain = dtype.kind != "b" or np.frombuffer(data, dtype=np.uint8).max(initial=0) <= 1
    expect(is_plain, f"the tensor {name!r} holds truth values other than 0 and 1")
    return np.frombuffer(data, dtype=dtype).reshape(shape).astype(dtype.newbyteorder("="))


def _check_sum(metadata: dict[str, Any], tensors: dict[str, NDArray[Any]]) -> None:
    expect("sha256" in metadata, "it has no checksum")
    expect(set(metadata) == {"gmil", "sha256"}, "it holds texts that are not ours")
    expect(metadata["sha256"] == checksum(metadata["gmil"], tensors), "its checksum is not that of its content")
