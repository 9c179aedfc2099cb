"""Motion from dense optical flow: HOG, HOF, MBH and the shape of tracks in boxes, and energies of the whole picture.

Needs OpenCV (``pip install 'gmil[video]'``).
"""

from __future__ import annotations

from gmil.video.motion.settings import MotionSettings
from gmil.video.motion.stream import motion_by_frame

__all__ = ["MotionSettings", "motion_by_frame"]
