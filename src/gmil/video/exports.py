"""Lists of events that other programs open: tables (CSV, JSON), players (WebVTT), editors (EDL)."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmil.errors import VideoError
from gmil.safety.atomic import replacing

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from gmil.video.detection import Detection
    from gmil.video.timeline import Segment, TimeLine

_COLUMNS = ("video", "event", "start", "end", "probability", "score", "tolerance")
_EDL_RATE = 25
"""Frames per second of time codes: an edit list states none of its own, and PAL is what this one is in."""


def write_events(detections: Sequence[Detection], path: str | os.PathLike[str], tolerance: float = 0.0) -> None:
    """Write when events happen; the suffix decides how.

    Parameters
    ----------
    detections : sequence of Detection
    path : path
        ``.csv`` or ``.json``: a row for every segment. ``.vtt`` (WebVTT, subtitles of a player) and ``.edl`` (CMX 3600,
        an edit list at 25 frames per second): of one video.
    tolerance : float
        Seconds by which a start or an end may be off, as ``EventDetectors.tolerance_of`` has them.
    """
    path = Path(path)
    refuse_events_file(path, len(detections))
    write = _WRITERS[path.suffix.lower()]
    with replacing(path) as temporary:
        temporary.write_text(write(events_of(detections, tolerance)), encoding="utf-8")


def refuse_events_file(path: str | os.PathLike[str], n_videos: int) -> None:
    """Refuse a file that the events of so many videos cannot be written to.

    Parameters
    ----------
    path : path
    n_videos : int
    """
    path = Path(path)
    if path.suffix.lower() not in _WRITERS:
        msg = f"Events are written as {', '.join(_WRITERS)}, got {path.name!r}. Name such a file."
        raise VideoError(msg)
    if path.suffix.lower() in (".vtt", ".edl") and n_videos > 1:
        msg = f"{path.name} is about one video, but there are {n_videos}. Detect them one by one, or write .csv."
        raise VideoError(msg)


def events_of(detections: Sequence[Detection], tolerance: float = 0.0) -> list[dict[str, Any]]:
    """Return a row for every segment of every event, in the order of time.

    Parameters
    ----------
    detections : sequence of Detection
    tolerance : float
    """
    return [
        {
            "video": detection.video,
            "event": line.event,
            "start": round(segment.start, 3),
            "end": round(segment.end, 3),
            "probability": round(line.probability, 4),
            "score": round(segment.score, 4),
            "tolerance": round(tolerance, 3),
        }
        for detection in detections
        for line, segment in _in_time(detection)
    ]


def _in_time(detection: Detection) -> list[tuple[TimeLine, Segment]]:
    pairs = [(line, segment) for line in detection.time_lines for segment in line.segments]
    return sorted(pairs, key=lambda pair: pair[1][:2])


def _csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _json(rows: list[dict[str, Any]]) -> str:
    return json.dumps(rows, indent=2) + "\n"


def _vtt(rows: list[dict[str, Any]]) -> str:
    cues = [
        f"{_clock(row['start'])} --> {_clock(row['end'])}\n{_escaped(row['event'])} {100 * row['probability']:.0f} %\n"
        for row in rows
    ]
    return "\n".join(["WEBVTT\n", *cues])


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _clock(seconds: float) -> str:
    """Return a time as WebVTT has it.

    >>> _clock(3725.5)
    '01:02:05.500'
    """
    whole, thousandths = divmod(round(1000 * seconds), 1000)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}.{thousandths:03d}"


def _edl(rows: list[dict[str, Any]]) -> str:
    """Return an edit list in which the events follow each other."""
    title = rows[0]["video"] if rows else "no events"
    lines, at = [f"TITLE: {title}", "FCM: NON-DROP FRAME", ""], 0
    for number, row in enumerate(rows, start=1):
        first, last = (round(row[name] * _EDL_RATE) for name in ("start", "end"))
        last = max(last, first + 1)
        codes = (first, last, at, at + last - first)
        lines.append(f"{number:03d}  AX       V     C        {' '.join(map(_time_code, codes))}")
        comment = f"* COMMENT: {row['event']} {100 * row['probability']:.0f} %"
        lines += [f"* FROM CLIP NAME: {row['video']}", comment, ""]
        at = codes[3]
    return "\n".join(lines)


def _time_code(frame: int) -> str:
    """Return hours, minutes, seconds and frames.

    >>> _time_code(25 * 61 + 3)
    '00:01:01:03'
    """
    seconds, rest = divmod(frame, _EDL_RATE)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}:{rest:02d}"


_WRITERS: dict[str, Callable[[list[dict[str, Any]]], str]] = {".csv": _csv, ".json": _json, ".vtt": _vtt, ".edl": _edl}
