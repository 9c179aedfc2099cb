"""The paper's method: a codebook by density ratio, nearest-neighbour voting."""

from __future__ import annotations

from gmil.greedy.density_ratio import DensityRatio
from gmil.greedy.gmil import GMIL
from gmil.greedy.tuned import GMILCV

__all__ = ["GMIL", "GMILCV", "DensityRatio"]
