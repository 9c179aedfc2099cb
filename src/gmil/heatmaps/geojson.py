"""Patches as GeoJSON (RFC 7946) that QuPath opens: tiles with measurements, in pixels of level 0."""

from __future__ import annotations

import gzip
import json
import math
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.heatmaps.colours import colour_table, colour_values

if TYPE_CHECKING:
    from pathlib import Path

    from gmil.engine.arrays import Integers
    from gmil.heatmaps.heatmap import HeatMap
    from gmil.heatmaps.places import Places

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "gmil.heatmaps")
_DECIMALS = 2


def feature_collection(
    found: HeatMap, chosen: Integers, *, mpp: float | None = None, origin: tuple[float, float] = (0.0, 0.0)
) -> dict[str, Any]:
    """Return the patches of a map as a FeatureCollection.

    Parameters
    ----------
    found : HeatMap
    chosen : array of int
        The patches to take.
    mpp : float, optional
        Micrometres of a pixel.
    origin : (float, float)
        The corner of what the viewer shows, which is subtracted.
    """
    places = found.places.in_pixels(mpp).take(chosen)
    colours = colour_values(found.values[chosen], found.limits, found.colors).tolist()
    measured = {name: column[chosen].tolist() for name, column in found.measurements().items()}
    kind = {"name": found.quantity.label or "patch", "color": colour_table(found.colors)[-1].tolist()}
    features = [
        {
            "type": "Feature",
            "id": str(uuid.uuid5(_NAMESPACE, f"{found.name}\n{places.x[i]}\n{places.y[i]}\n{chosen[i]}")),
            "geometry": {"type": "Polygon", "coordinates": [ring]},
            "properties": {
                "objectType": "tile",
                "classification": kind,
                "color": colours[i],
                "measurements": {name: _number(column[i]) for name, column in measured.items()},
            },
        }
        for i, ring in enumerate(_rings(places, origin))
    ]
    return {"type": "FeatureCollection", "features": features}


def write_geojson(collection: dict[str, Any], path: Path) -> None:
    """Write a collection; a path that ends with .gz is compressed, always to the same bytes."""
    text = json.dumps(collection, separators=(",", ":"), allow_nan=False).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if path.name.lower().endswith(".gz") else text)


def _rings(places: Places, origin: tuple[float, float]) -> list[list[list[float]]]:
    """Return the corners of every patch, the first once more at the end; they turn as RFC 7946 recommends."""
    left, top = places.x - origin[0], places.y - origin[1]
    right, bottom = left + places.side, top + places.side
    x = np.column_stack([left, right, right, left, left])
    y = np.column_stack([top, top, bottom, bottom, top])
    corners = np.stack([x, y], axis=2).tolist()
    return [[[_plain(number) for number in corner] for corner in ring] for ring in corners]


def _plain(number: float) -> float:
    return int(number) if number.is_integer() else round(number, _DECIMALS)


def _number(value: float) -> float | str:
    """Return a number as QuPath reads it: JSON has none that is not finite, so those are texts."""
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
