"""WeightedGMIL: every centre, and every other look at a bag, has a learned say."""

from __future__ import annotations

from gmil.weighted.estimator import WeightedGMIL

__all__ = ["WeightedGMIL"]
