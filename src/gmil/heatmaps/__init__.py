"""Heat maps of slides: scores of patches as pictures, as GeoJSON for QuPath, as tables and as a page."""

from __future__ import annotations

from gmil.heatmaps.heatmap import HeatMap
from gmil.heatmaps.making import heatmap

__all__ = ["HeatMap", "heatmap"]
