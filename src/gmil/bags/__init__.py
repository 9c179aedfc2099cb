"""Bags in memory: `Bags`, and how frames, tables and files become bags."""

from __future__ import annotations

from gmil.bags.bags import Bags

__all__ = ["Bags"]
