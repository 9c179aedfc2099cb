"""PNG files of arrays, and letters on them; the standard library has all that this needs."""

from __future__ import annotations

import struct
import zlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_FIRST_LETTER = 32


def png_bytes(pixels: NDArray[np.uint8], texts: Mapping[str, str] | None = None) -> bytes:
    """Return a PNG file.

    Parameters
    ----------
    pixels : array of shape (height, width, 3 or 4)
        Red, green, blue, and how opaque a pixel is.
    texts : dict of str, optional
        What the file says of itself, by keyword.
    """
    height, width, depth = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, {3: 2, 4: 6}[depth], 0, 0, 0)
    lines = np.zeros((height, 1 + width * depth), dtype=np.uint8)  # each begins with 0: no filter
    lines[:, 1:] = pixels.reshape(height, -1)
    parts = [_chunk(b"IHDR", header)]
    for keyword, text in (texts or {}).items():
        parts.append(_chunk(b"iTXt", keyword.encode("latin-1") + b"\0\0\0\0\0" + text.encode("utf-8", "replace")))
    parts += [_chunk(b"IDAT", zlib.compress(lines.tobytes(), 6)), _chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


@cache
def _letters() -> tuple[NDArray[Any], NDArray[Any]]:
    with files("gmil.heatmaps").joinpath("glyphs.npz").open("rb") as file, np.load(file) as found:
        return found["letters"], found["starts"]


def text_coverage(text: str) -> NDArray[Any]:
    """Return how much ink a line of text puts on each pixel, from 0 to 1; letters beyond ASCII are question marks.

    Parameters
    ----------
    text : str

    Returns
    -------
    array of shape (height, width)
    """
    letters, starts = _letters()
    known = [ord(c) - _FIRST_LETTER for c in text.encode("ascii", "replace").decode()]
    codes = [code if 0 <= code < len(starts) - 1 else ord("?") - _FIRST_LETTER for code in known]
    parts = [letters[:, starts[code] : starts[code + 1]] for code in codes]
    return np.hstack([letters[:, :0], *parts]) / 255
