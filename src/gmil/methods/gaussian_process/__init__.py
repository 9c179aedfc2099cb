"""Gaussian-process multiple instance learning (GPMIL)."""
