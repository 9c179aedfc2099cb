"""All video commands: importing this module adds them to the group."""

from __future__ import annotations

from gmil.cli.videos import detecting, index, learning, scoring, watching
from gmil.cli.videos.shared import video

__all__ = ["detecting", "index", "learning", "scoring", "video", "watching"]
