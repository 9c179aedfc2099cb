"""Stacking of several methods."""
