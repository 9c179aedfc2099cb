"""Can these data be trusted? What to know of bags and labels before any method is compared on them."""

from __future__ import annotations

from gmil.checks.check import check_data
from gmil.checks.drift import DriftCheck, check_drift
from gmil.checks.findings import DataCheck, Finding
from gmil.checks.labels import LabelIssues, apply_corrections, find_label_issues

__all__ = [
    "DataCheck",
    "DriftCheck",
    "Finding",
    "LabelIssues",
    "apply_corrections",
    "check_data",
    "check_drift",
    "find_label_issues",
]
