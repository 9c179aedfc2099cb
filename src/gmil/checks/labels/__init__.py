"""Wrong labels: which may be, how likely, and how to correct them."""

from __future__ import annotations

from gmil.checks.labels.corrections import apply_corrections
from gmil.checks.labels.issues import LabelIssues, find_label_issues

__all__ = ["LabelIssues", "apply_corrections", "find_label_issues"]
