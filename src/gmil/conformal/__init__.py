"""Conformal prediction: sets of classes, and intervals, that hold the truth as often as they claim."""

from __future__ import annotations

from gmil.conformal.abstention import abstain_label
from gmil.conformal.p_values import Calibration, conformity, p_values, prediction_sets
from gmil.conformal.residuals import residual_quantile

__all__ = ["Calibration", "abstain_label", "conformity", "p_values", "prediction_sets", "residual_quantile"]
