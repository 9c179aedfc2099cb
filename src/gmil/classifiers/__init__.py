"""Classifiers of bags: the paper's method."""

from __future__ import annotations

from gmil.classifiers.explanation import Explanation
from gmil.classifiers.gmil import GMIL

__all__ = ["GMIL", "Explanation"]
