"""Classifiers of bags: the paper's method."""

from __future__ import annotations

from gmil.classifiers.density_ratio import DensityRatio
from gmil.classifiers.explanation import Explanation
from gmil.classifiers.gmil import GMIL
from gmil.classifiers.tuned import GMILCV
from gmil.classifiers.weighted import WeightedGMIL

__all__ = ["GMIL", "GMILCV", "DensityRatio", "Explanation", "WeightedGMIL"]
