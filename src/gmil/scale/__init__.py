"""Bags that do not fit into memory: where they lie, how they are read, and who reads them."""

from __future__ import annotations

from gmil.scale.lazy import LazyBags

__all__ = ["LazyBags"]
