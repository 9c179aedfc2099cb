"""A page that plays videos beside the time lines of their events; it needs nothing but itself and the video files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from gmil.safety.atomic import replacing
from gmil.templating import render
from gmil.video.timeline import SHORTEST_GAP, SHORTEST_SEGMENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine.arrays import Floats
    from gmil.video.detection import Detection
    from gmil.video.timeline import TimeLine

_WIDTH, _HEIGHT, _EDGE = 1000, 60, 2  # of a drawing, in its own units; lines at the edge are seen, too
_MOST_POINTS = 1000
_MOST_STEPS = 5  # between ticks: with more, their texts meet on a telephone


def write_page(detections: Sequence[Detection], path: str | os.PathLike[str]) -> None:
    """Write the page.

    Parameters
    ----------
    detections : sequence of Detection
    path : path
        The page refers to the videos relative to its own folder.
    """
    folder = Path(os.path.abspath(path)).parent  # noqa: PTH100  links keep their names
    videos = [_video(number, detection, folder) for number, detection in enumerate(detections)]
    rule = {"gap": SHORTEST_GAP, "shortest": SHORTEST_SEGMENT}
    text = render("gmil.video", ".", "page.html", videos=videos, **rule)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _video(number: int, detection: Detection, folder: Path) -> dict[str, Any]:
    times = detection.time_lines[0].times
    step = float(np.median(np.diff(times))) if len(times) > 1 else 0.04
    seconds = float(times[-1]) + step
    return {
        "id": f"video{number}",
        "name": detection.video,
        "source": _address(detection.path, folder),
        "seconds": round(seconds, 3),
        "step": round(step, 4),
        "ticks": [{"at": 100 * tick / seconds, "text": clock(tick)} for tick in _ticks(seconds)],
        "events": [_event(line, seconds) for line in detection.time_lines],
    }


def _address(path: Path, folder: Path) -> str:
    """Return how a page in a folder refers to a file."""
    try:
        return quote(Path(os.path.relpath(path, folder)).as_posix())
    except ValueError:  # another drive
        return path.as_uri()


def _event(line: TimeLine, seconds: float) -> dict[str, Any]:
    return {
        "name": line.event,
        "happens": line.decision > 0,
        "percent": f"{100 * line.probability:.0f}",
        "curve": _curve(line.times, line.probabilities, seconds),
        "threshold": None if line.threshold is None else _threshold(line.threshold),
        "segments": [
            {
                "start": round(segment.start, 3),
                "end": round(segment.end, 3),
                "x": round(_WIDTH * segment.start / seconds, 2),
                "width": round(_WIDTH * (segment.end - segment.start) / seconds, 2),
                "text": f"{clock(segment.start)} to {clock(segment.end)}",
            }
            for segment in line.segments
        ],
    }


def _threshold(probability: float) -> dict[str, Any]:
    """Return where the line of a threshold lies, and its words: above the line, or below it where it is high."""
    y = _height(probability)
    place = f"top:{100 * y / _HEIGHT:.1f}%" if probability > 0.5 else f"bottom:{100 - 100 * y / _HEIGHT:.1f}%"
    return {"y": round(y, 2), "place": place, "percent": f"{100 * probability:.0f}"}


def _curve(times: Floats, probabilities: Floats, seconds: float) -> str:
    """Return the points of the curve; of a long video the highest in every stretch that one point stands for."""
    parts = np.array_split(np.arange(len(times)), min(len(times), _MOST_POINTS))
    tops = [part[np.argmax(probabilities[part])] for part in parts]
    points = [f"{_WIDTH * times[i] / seconds:.1f},{_height(float(probabilities[i])):.1f}" for i in tops]
    return " ".join([*points, f"{_WIDTH},{_height(float(probabilities[-1])):.1f}"])


def _height(probability: float) -> float:
    """Return where a probability lies in the drawing: 0 at the bottom, 1 at the top, in every video."""
    return _EDGE + (_HEIGHT - 2 * _EDGE) * (1 - probability)


def _ticks(seconds: float) -> list[float]:
    steps = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)
    step = next((step for step in steps if seconds / step <= _MOST_STEPS), steps[-1])
    return [round(i * step, 1) for i in range(int(seconds / step) + 1)]


def clock(seconds: float) -> str:
    """Return a time as people read it.

    >>> clock(3.24), clock(75), clock(3725.5)
    ('0:03.2', '1:15.0', '1:02:05.5')
    """
    tenths = round(10 * seconds)
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    text = f"{minutes:02d}" if hours else f"{minutes}"
    return f"{f'{hours}:' if hours else ''}{text}:{rest // 10:02d}.{rest % 10}"
