"""Which events happen in which video."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from gmil.errors import FormatError, VideoError, listed
from gmil.io.formats.delimited import delimiter_in
from gmil.safety.guard import expect, opening, parsing

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from gmil.bags import Bags
    from gmil.engine.arrays import Integers

_VIDEO_NAMES = ("video", "bag", "file", "name")
_EVENT_NAMES = ("event", "events", "label")


@dataclass(frozen=True)
class EventLabels:
    """The events of every labelled video.

    Attributes
    ----------
    events : list of str
        All events, sorted.
    of_video : dict of set
        The events of a video, none for one in which nothing happens.
    spans : dict of list
        When an event happens, in seconds, by video and event; where the file has it. They serve to
        evaluate detectors, and never to train them.
    """

    events: list[str]
    of_video: dict[str, set[str]] = field(default_factory=dict)
    spans: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=dict)


def read_event_labels(path: str | os.PathLike[str]) -> EventLabels:
    """Read labels from a CSV file.

    Parameters
    ----------
    path : path
        Either a row per video and event (columns ``video`` and ``event``; an empty event means that nothing happens;
        several are parted by semicolons; ``start`` and ``end`` may hold the time, in seconds), or a row per video
        (column ``video`` and a column per event of 0 and 1).
    """
    rows = _rows(Path(path))
    columns = list(rows[0])
    video = next((name for name in columns if name.casefold() in _VIDEO_NAMES), None)
    if video is None:
        msg = f"{path} has no column 'video'; its columns are {listed(columns)}. Name the videos in one."
        raise FormatError(msg)
    event = next((name for name in columns if name.casefold() in _EVENT_NAMES), None)
    others = [name for name in columns if name != video]
    labels = EventLabels(sorted(others) if event is None else [])
    for number, row in enumerate(rows, start=2):
        name = row[video].strip()
        expect(name, f"Line {number} of {path} names no video. Fill it in.")
        found = _listed_events(row[event]) if event is not None else _marked_events(row, others, number, path)
        labels.of_video.setdefault(name, set()).update(found)
        if event is not None and row.get("start", "").strip() and row.get("end", "").strip():
            start, end = _seconds(row["start"], number, path), _seconds(row["end"], number, path)
            times = f"the event starts at {start:g} and ends at {end:g}"
            expect(not start > end, f"Line {number} of {path}: {times}. Correct it.")
            for one in found:
                labels.spans.setdefault((name, one), []).append((start, end))
    if event is not None:
        labels.events.extend(sorted(set().union(*labels.of_video.values())))
    expect(labels.events, f"{path} names no event. At least one video needs one.")
    return labels


def _rows(path: Path) -> list[dict[str, str]]:
    with parsing(path, "CSV"), opening(path), path.open(newline="", encoding="utf-8-sig") as file:
        delimiter = delimiter_in(file.readline())
        file.seek(0)
        table = csv.DictReader(file, delimiter=delimiter)
        rows = [{key: value or "" for key, value in row.items() if key} for row in table]
    expect(rows, f"{path} has no rows. Give every video one at least.")
    return rows


def _seconds(text: str, number: int, path: str | os.PathLike[str]) -> float:
    try:
        return float(text)
    except ValueError:
        msg = f"Line {number} of {path} has {text!r} for a time; write seconds, such as 2.4."
        raise FormatError(msg) from None


def _listed_events(text: str) -> set[str]:
    return {part.strip() for part in text.split(";") if part.strip()}


def _marked_events(row: dict[str, str], events: Sequence[str], number: int, path: str | os.PathLike[str]) -> set[str]:
    for event in events:
        if row[event].strip() not in ("0", "1", ""):
            msg = f"Line {number} of {path} has {row[event]!r} for {event!r}; write 1 where it happens, else 0."
            raise FormatError(msg)
    return {event for event in events if row[event].strip() == "1"}


@dataclass(frozen=True)
class LabelledVideos:
    """Videos that have both features and labels.

    Attributes
    ----------
    bags : Bags
    y : array of shape (n_bags, n_events)
        One where the event happens.
    events : list of str
    spans : list of dict
        When events happen, for every bag.
    notes : list of str
        What a person should know about videos that were left out.
    """

    bags: Bags
    y: Integers
    events: list[str]
    spans: list[dict[str, list[tuple[float, float]]]]
    notes: list[str]


def match_labels(bags: Bags, labels: EventLabels) -> LabelledVideos:
    """Bring labels to the bags of a file of features.

    A label belongs to the video of the same name, or else to the only one left whose file name, with or without its
    suffix, is the same.

    Parameters
    ----------
    bags : Bags
        From `read_features`.
    labels : EventLabels
    """
    names = [str(name) for name in bags.bag_ids] if bags.bag_ids is not None else []
    found = _labels_of(names, labels)
    keep = [i for i, name in enumerate(names) if name in found]
    if not keep:
        msg = (
            f"No video has both features and labels: the features know {listed(names, most=3)}, the labels "
            f"{listed(sorted(labels.of_video), most=3)}. Use the same names."
        )
        raise VideoError(msg)
    notes = []
    if len(keep) < len(names):
        left = [name for name in names if name not in found]
        notes.append(f"{len(left)} videos have no label and are left out: {listed(left)}.")
    unused = sorted(set(labels.of_video) - set(found.values()))
    if unused:
        notes.append(f"{len(unused)} labelled videos have no features: {listed(unused)}.")
    labelled = [found[names[i]] for i in keep]
    spans = [{e: labels.spans[name, e] for e in labels.events if (name, e) in labels.spans} for name in labelled]
    happens = [labels.of_video[name] for name in labelled]
    y = np.array([[event in events for event in labels.events] for events in happens], dtype=np.int64)
    _refuse_one_sided(y, labels.events)
    return LabelledVideos(bags[np.array(keep)], y, labels.events, spans, notes)


def _labels_of(names: Sequence[str], labels: EventLabels) -> dict[str, str]:
    """Return the name that the labels have for every video that they know; a name stands for one video only."""
    found = {name: name for name in names if name in labels.of_video}
    for part in ("name", "stem"):
        videos = _by_part(part, set(names) - set(found))
        known = _by_part(part, set(labels.of_video) - set(found.values()))
        found |= {same[0]: known[key][0] for key, same in videos.items() if len(same) == 1 == len(known.get(key, ()))}
    return found


def _by_part(part: str, names: Iterable[str]) -> dict[str, list[str]]:
    """Return names by a part of the path that they are."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(getattr(PurePosixPath(name), part), []).append(name)
    return found


def _refuse_one_sided(y: Integers, events: Sequence[str]) -> None:
    for event, column in zip(events, y.T, strict=True):
        if column.min() == column.max():
            how = "every" if column.min() else "no"
            msg = f"The event {event!r} happens in {how} labelled video; a detector needs videos with and without it."
            raise VideoError(msg)
