"""Heat maps of slides: scores of patches as pictures, as GeoJSON for QuPath, as tables and as a page."""

from __future__ import annotations

from gmil.heatmaps.heatmap import HeatMap
from gmil.heatmaps.making import heatmap
from gmil.heatmaps.writing import WrittenMaps, write_maps

__all__ = ["HeatMap", "WrittenMaps", "heatmap", "write_maps"]
