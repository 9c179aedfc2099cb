"""Dense optical flow from frame to frame, with the motion of the camera taken out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.errors import BackendUnavailableError, installing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats
    from gmil.video.motion.settings import MotionSettings

_FARNEBACK = {"pyr_scale": 0.5, "levels": 3, "winsize": 15, "iterations": 3, "poly_n": 5, "poly_sigma": 1.2, "flags": 0}
_ROUNDS = 5
_FIT_STEP = 4  # pixels between those that the motion of the camera is fitted to
_LEAST_SPREAD = 0.05  # pixels


def import_cv2() -> Any:
    """Return OpenCV on one thread; where it is missing, the error has the command that installs it."""
    try:
        import cv2
    except ImportError as error:
        msg = f"Optical flow needs OpenCV, which is not installed. {installing('video')}"
        raise BackendUnavailableError(msg) from error
    cv2.setNumThreads(1)  # videos are worked on side by side, each by one core
    return cv2


class Field(NamedTuple):
    """The motion from one frame to the next, in pixels."""

    gray: Floats  # (height, width), of the first of the two
    flow: Floats  # (height, width, 2), as seen
    own: Floats  # (height, width, 2), without the motion of the camera


class FlowStream:
    """Turns frames that come one by one into fields; one frame is held."""

    def __init__(self, settings: MotionSettings) -> None:
        self.cv2, self.settings = import_cv2(), settings
        self._before: NDArray[np.uint8] | None = None
        if settings.flow == "dis":
            self._dis = self.cv2.DISOpticalFlow_create(self.cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)

    def advance(self, frame: NDArray[np.uint8]) -> Field | None:
        """Return the field between the frame before and this one; None at the first."""
        now = self._reduced(frame)
        before, self._before = self._before, now
        if before is None:
            return None
        flow = self._flow(before, now)
        return Field(before.astype(np.float32), flow, flow - camera_motion(flow, self.settings.camera))

    def _reduced(self, frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
        share = self.settings.longest_side / max(frame.shape)
        if share >= 1:
            return frame
        height, width = (max(1, round(length * share)) for length in frame.shape)
        reduced: NDArray[np.uint8] = self.cv2.resize(frame, (width, height), interpolation=self.cv2.INTER_AREA)
        return reduced

    def _flow(self, before: NDArray[np.uint8], now: NDArray[np.uint8]) -> Floats:
        if self.settings.flow == "dis":
            found: Floats = self._dis.calc(before, now, None)
        else:
            found = self.cv2.calcOpticalFlowFarneback(before, now, None, **_FARNEBACK)
        return np.nan_to_num(found)


def camera_motion(flow: Floats, how: str) -> Floats:
    """Return the motion of the camera at every pixel, as it broadcasts to the flow.

    Parameters
    ----------
    flow : array of shape (height, width, 2)
    how : {"median", "affine", "none"}
    """
    if how == "none":
        return np.zeros(2, dtype=np.float32)
    median: Floats = np.median(flow.reshape(-1, 2), axis=0).astype(np.float32)
    return median if how == "median" else _affine(flow, median)


def _affine(flow: Floats, start: Floats) -> Floats:
    """Return the affine motion that most pixels follow: least squares in which those that do not count less."""
    height, width = flow.shape[:2]
    ys, xs = (np.arange(0, n, _FIT_STEP) for n in (height, width))
    places = np.stack([np.ones((len(ys), len(xs))), *np.meshgrid(ys / height, xs / width, indexing="ij")], axis=2)
    rows, seen = places.reshape(-1, 3), flow[ys][:, xs].reshape(-1, 2).astype(np.float64)
    found = np.vstack([start, np.zeros((2, 2))])
    for _ in range(_ROUNDS):
        lengths = np.linalg.norm(seen - rows @ found, axis=1)
        spread = max(float(np.median(lengths)), _LEAST_SPREAD)
        weighted = rows * (1 / (1 + (lengths / spread) ** 2))[:, None]
        found = np.linalg.lstsq(weighted.T @ rows, weighted.T @ seen, rcond=None)[0]
    down, across = np.arange(height)[:, None, None] / height, np.arange(width)[None, :, None] / width
    return np.asarray(found[0] + down * found[1] + across * found[2], dtype=np.float32)
