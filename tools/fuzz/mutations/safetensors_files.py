"""Safetensors files taken apart and put together by hand, so that their headers can lie."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

NUMPY_TYPES = {
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
_NAMES = {np.dtype(code): name for name, code in NUMPY_TYPES.items()}


@dataclass
class Tensor:
    """The bytes of an array and what the header says of them."""

    dtype: str
    shape: list[int]
    data: bytes

    @classmethod
    def of(cls, array: NDArray[Any]) -> Tensor:
        """Return an array as a tensor; types that the format does not know become float64."""
        array = np.asarray(array)
        if array.dtype not in _NAMES:
            array = np.zeros(array.shape)
        return cls(_NAMES[array.dtype], list(array.shape), np.ascontiguousarray(array).tobytes())

    def array(self) -> NDArray[Any]:
        """Return the array."""
        return np.frombuffer(self.data, dtype=NUMPY_TYPES[self.dtype]).reshape(self.shape)


def split(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header of a file and everything behind it."""
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def joined(header: dict[str, Any], blob: bytes) -> bytes:
    """Put a file together from a header, true or not, and what is behind it."""
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + blob


def parse(data: bytes) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return tensors and metadata of a file that is as it should be."""
    header, blob = split(data)
    metadata = header.pop("__metadata__", {})
    tensors = {
        name: Tensor(entry["dtype"], entry["shape"], blob[slice(*entry["data_offsets"])])
        for name, entry in header.items()
    }
    return tensors, metadata


def pack(tensors: dict[str, Tensor], metadata: dict[str, str]) -> bytes:
    """Return the file of these tensors, with a true header."""
    header: dict[str, Any] = {"__metadata__": metadata}
    blob = b""
    for name, tensor in tensors.items():
        offsets = [len(blob), len(blob) + len(tensor.data)]
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": offsets}
        blob += tensor.data
    return joined(header, blob)
