"""WeightedGMIL: stacked kernel ridge regression on several embeddings of a bag."""

from __future__ import annotations

from gmil.weighted.estimator import WeightedGMIL

__all__ = ["WeightedGMIL"]
