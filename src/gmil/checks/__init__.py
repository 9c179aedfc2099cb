"""Can these data be trusted? What to know of bags and labels before any method is compared on them."""

from __future__ import annotations

from gmil.checks.check import check_data
from gmil.checks.findings import DataCheck, Finding

__all__ = ["DataCheck", "Finding", "check_data"]
