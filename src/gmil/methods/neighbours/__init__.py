"""Nearest neighbours between bags: citation kNN, distances between sets."""
