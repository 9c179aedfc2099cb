"""Prediction sets for any classifier."""
