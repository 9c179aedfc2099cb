"""The methods that the paper compares with, and strong simple references: one file for every family."""

from __future__ import annotations

__all__: list[str] = []
