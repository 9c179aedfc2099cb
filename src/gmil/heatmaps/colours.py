"""Colour maps: equal steps of a value look like equal steps of colour, also to most colour-blind people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gmil.errors import BagValidationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats

_ANCHORS = {
    "viridis": "440154 48186a 472d7b 424086 3b528b 33638d 2c728e 26828e 21918c 1fa088 28ae80 3fbc73 5ec962 84d44b "
    "addc30 d8e219 fde725",
    "inferno": "000004 0b0724 210c4a 3d0965 57106e 71196e 8a226a a32c61 bc3754 d24644 e45a31 f1731d f98e09 fcac11 "
    "f9cb35 f2ea69 fcffa4",
    "cividis": "00224e 002e6a 1a386f 32436d 434e6c 535a6d 61656f 6f7073 7d7c78 8c8878 9b9476 aba072 bcae6c cdbb63 "
    "dec958 f0d846 fee838",
    "diverging": "123c75 2563a5 5f95c6 a5c6e0 f0f0ee eebfa5 d6826a b24039 7a1222",
}
COLOURS = tuple(_ANCHORS)
"""The names; "diverging" is for values on both sides of 0."""
LEVELS = 256
_NO_VALUE = (160, 160, 160)


def colour_table(name: str) -> NDArray[np.uint8]:
    """Return the colours of a map from its low end to its high end, (256, 3)."""
    if name not in _ANCHORS:
        msg = f"must be one of {', '.join(COLOURS)}, got {name!r}."
        raise BagValidationError(msg, parameter="colors")
    anchors = np.array([list(bytes.fromhex(text)) for text in _ANCHORS[name].split()])
    places = np.linspace(0, 1, len(anchors))
    levels = np.linspace(0, 1, LEVELS)
    return np.column_stack([np.interp(levels, places, part) for part in anchors.T]).round().astype(np.uint8)


def colour_values(values: Floats, limits: tuple[float, float], name: str) -> NDArray[np.uint8]:
    """Return the colour of every value, (..., 3); what is no number is grey.

    Parameters
    ----------
    values : array
    limits : (float, float)
        The values of the two ends; what lies beyond has the colour of the end.
    name : str
    """
    low, high = limits
    none = np.isnan(values)
    levels = np.clip((np.where(none, low, values) - low) * (LEVELS / (high - low)), 0, LEVELS - 1).astype(np.uint8)
    found = colour_table(name)[levels]
    found[none] = _NO_VALUE
    return found
