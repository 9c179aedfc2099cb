"""Events while they happen: a source that may stall, end or come back, and what is reported of it."""

from __future__ import annotations

from gmil.video.live.watching import watch

__all__ = ["watch"]
