"""One summary -> HTML, Markdown, JSON: of a fitted model, or of a run of experiments."""

from __future__ import annotations

from gmil.reporting.models import report
from gmil.reporting.result import Report

__all__ = ["Report", "report"]
