"""From video files to event detectors."""

from __future__ import annotations

from gmil.video.hog3d import Hog3DSettings, hog3d

__all__ = ["Hog3DSettings", "hog3d"]
