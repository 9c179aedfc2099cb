"""Frames to descriptors of motion, as they come by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gmil.video.hog3d import Descriptors
from gmil.video.motion.directions import KINDS, energies, pixel_histograms
from gmil.video.motion.flow import FlowStream
from gmil.video.motion.tracks import Tracks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from gmil.video.motion.settings import MotionSettings


def motion_by_frame(
    frames: Iterable[NDArray[np.uint8]], settings: MotionSettings, *, boxes: bool = True, picture: bool = True
) -> Iterator[dict[str, list[Descriptors]]]:
    """Yield, for every frame, what ends with it: rows of boxes as ``"boxes"``, of the picture as ``"picture"``.

    Parameters
    ----------
    frames : iterable of uint8 arrays of shape (height, width)
    settings : MotionSettings
    boxes, picture : bool
        What is asked for.
    """
    stream = FlowStream(settings)
    tracks = Tracks(settings, stream.cv2)
    for number, frame in enumerate(frames):
        field = stream.advance(frame)
        if field is None:
            yield {}
            continue
        histograms, motion = pixel_histograms(field, settings.still, stream.cv2)
        found: dict[str, list[Descriptors]] = {}
        if boxes:
            found["boxes"] = list(tracks.advance(number - 1, field, histograms))
        if picture:
            rows = energies(motion, histograms[..., KINDS["mbh"]])[None]
            y, x = (np.array([length / 2]) for length in field.gray.shape)
            found["picture"] = [Descriptors(rows, x, y, number - 0.5, float(max(field.gray.shape)), 1.0)]
        yield found
