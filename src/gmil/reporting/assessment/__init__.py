"""Predictions held against labels: figures, confusion matrix, curves, difficult bags, which features matter."""

from __future__ import annotations

from gmil.reporting.assessment.assess import assess
from gmil.reporting.assessment.held_out import HeldOut

__all__ = ["HeldOut", "assess"]
