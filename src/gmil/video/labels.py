"""Which events happen in which video."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from gmil.errors import FormatError, VideoError, count_of, listed
from gmil.io.formats.delimited import delimiter_in
from gmil.safety.guard import expect, opening, parsing
from gmil.video.snippets.names import short_name

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from gmil.bags import Bags
    from gmil.engine.arrays import Integers

_VIDEO_NAMES = ("video", "bag", "file", "name")
_EVENT_NAMES = ("event", "events", "label")
_GROUP_NAME = "group"
_PARTS: tuple[Callable[[str], str], ...] = (
    lambda name: PurePosixPath(name).name,
    lambda name: PurePosixPath(name).stem,
    short_name,
)
"""By what names are matched that are not the same, one after the other."""


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
    groups : dict of str
        What a video belongs to, such as its camera; empty where nothing tells it.
    """

    events: list[str]
    of_video: dict[str, set[str]] = field(default_factory=dict)
    spans: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)


def read_event_labels(path: str | os.PathLike[str], *, group: str | os.PathLike[str] | None = None) -> EventLabels:
    """Read labels from a CSV file.

    Parameters
    ----------
    path : path
        Either a row per video and event (columns ``video`` and ``event``; an empty event means that nothing happens;
        several are parted by semicolons; ``start`` and ``end`` may hold the time, in seconds), or a row per video
        (column ``video`` and a column per event of 0 and 1).
    group : str or path, optional
        What videos belong to, such as their camera: a column of the labels, or another CSV file with the columns
        ``video`` and ``group``.
    """
    rows = _rows(Path(path))
    columns = list(rows[0])
    video = _video_column(columns, path)
    event = next((name for name in columns if name.casefold() in _EVENT_NAMES and name != group), None)
    others = [name for name in columns if name not in (video, group)]
    labels = EventLabels(sorted(others) if event is None else [])
    for number, row in enumerate(rows, start=2):
        name = row[video].strip()
        expect(name, f"Line {number} of {path} names no video. Fill it in.")
        where = f"Line {number} of {path}"
        found = _listed_events(row[event]) if event is not None else _marked_events(row, others, name, where)
        _refuse_contradiction(found, labels.of_video.get(name), f"{where} says of {name}", one_row=event is None)
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
    if group is not None:
        labels.groups.update(_groups(rows, video, str(group), path) if group in columns else _read_groups(group, path))
    return labels


def _video_column(columns: list[str], path: str | os.PathLike[str]) -> str:
    video = next((name for name in columns if name.casefold() in _VIDEO_NAMES), None)
    if video is None:
        msg = f"{path} has no column 'video'; its columns are {listed(columns)}. Name the videos in one."
        raise FormatError(msg)
    return video


def _read_groups(group: str | os.PathLike[str], labels: str | os.PathLike[str]) -> dict[str, str]:
    """Return the groups of another file than that of the labels."""
    if not Path(group).exists():
        msg = f"must be a column of {labels}, or a CSV file with the columns video and group, got {str(group)!r}."
        raise VideoError(msg, parameter="group")
    rows = _rows(Path(group))
    columns = list(rows[0])
    video = _video_column(columns, group)
    others = [name for name in columns if name != video]
    name = next((name for name in others if name.casefold() == _GROUP_NAME), others[0] if len(others) == 1 else None)
    if name is None:
        msg = f"{group} has no column 'group'; its columns are {listed(columns)}. Name the groups in one."
        raise FormatError(msg)
    return _groups(rows, video, name, group)


def _groups(rows: list[dict[str, str]], video: str, group: str, path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the group of every video, which is one in all of its rows."""
    found: dict[str, str] = {}
    for number, row in enumerate(rows, start=2):
        name, own = row[video].strip(), row[group].strip()
        expect(own, f"Line {number} of {path} has no group for {name}. Fill it in.")
        if found.setdefault(name, own) != own:
            msg = f"Line {number} of {path} has {name} in group {own}, a line before in {found[name]}. Correct one."
            raise FormatError(msg)
    return found


def _rows(path: Path) -> list[dict[str, str]]:
    with parsing(path, "CSV"), opening(path), path.open(newline="", encoding="utf-8-sig") as file:
        delimiter = delimiter_in(file.readline())
        file.seek(0)
        table = csv.DictReader(file, delimiter=delimiter)
        _refuse_same_columns(table.fieldnames or (), path)
        rows = [{key: value or "" for key, value in row.items() if key} for row in table]
    expect(rows, f"{path} has no rows. Give every video one at least.")
    return rows


def _refuse_same_columns(columns: Sequence[str], path: Path) -> None:
    names = [name.strip() for name in columns if name and name.strip()]
    twice = next((name for name in names if names.count(name) > 1), None)
    expect(twice is None, f"{path} has the column {twice!r} more than once. Keep one, or rename the others.")


def _seconds(text: str, number: int, path: str | os.PathLike[str]) -> float:
    try:
        return float(text)
    except ValueError:
        msg = f"Line {number} of {path} has {text!r} for a time; write seconds, such as 2.4."
        raise FormatError(msg) from None


def _listed_events(text: str) -> set[str]:
    return {part.strip() for part in text.split(";") if part.strip()}


def _marked_events(row: dict[str, str], events: Sequence[str], video: str, where: str) -> set[str]:
    for event in events:
        text = row.get(event, "").strip()
        expect(text, f"{where} does not say whether {event!r} happens in {video}. Write 1 where it does, else 0.")
        expect(text in ("0", "1"), f"{where} has {row[event]!r} for {event!r}; write 1 where it happens, else 0.")
    return {event for event in events if row[event].strip() == "1"}


def _refuse_contradiction(found: set[str], before: set[str] | None, where: str, *, one_row: bool) -> None:
    """Refuse a second row of a video that says otherwise: other zeros and ones, or that nothing happens."""
    if before is None or found == before:
        return
    if one_row or not (found and before):
        now, then = (listed(sorted(events)) if events else "nothing" for events in (found, before))
        msg = f"{where} that {now} happens, and a line before that {then} does. Correct one."
        raise FormatError(msg)


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
    groups : array of shape (n_bags,) or None
        What every video belongs to, where the labels tell it.
    """

    bags: Bags
    y: Integers
    events: list[str]
    spans: list[dict[str, list[tuple[float, float]]]]
    notes: list[str]
    groups: NDArray[np.str_] | None = None


def match_labels(bags: Bags, labels: EventLabels) -> LabelledVideos:
    """Bring labels to the bags of a file of features.

    A label belongs to the video of the same name, or else to the only one left whose file name, with or without its
    suffix and the name of the tool that made its features (``_i3d``), is the same.

    Parameters
    ----------
    bags : Bags
        From `read_features`.
    labels : EventLabels
    """
    names = [str(name) for name in bags.bag_ids] if bags.bag_ids is not None else []
    found = _matched(names, labels.of_video)
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
        how_many = count_of(len(left), "video has no label and is", "videos have no label and are")
        notes.append(f"{how_many} left out: {listed(left)}.")
    unused = sorted(set(labels.of_video) - set(found.values()))
    if unused:
        how_many = count_of(len(unused), "labelled video has", "labelled videos have")
        notes.append(f"{how_many} no features: {listed(unused)}.")
    labelled = [found[names[i]] for i in keep]
    spans = [{e: labels.spans[name, e] for e in labels.events if (name, e) in labels.spans} for name in labelled]
    happens = [labels.of_video[name] for name in labelled]
    y = np.array([[event in events for event in labels.events] for events in happens], dtype=np.int64)
    _refuse_one_sided(y, labels.events)
    groups = _groups_of([names[i] for i in keep], labels.groups) if labels.groups else None
    return LabelledVideos(bags[np.array(keep)], y, labels.events, spans, notes, groups)


def _groups_of(names: Sequence[str], groups: Mapping[str, str]) -> NDArray[np.str_]:
    """Return the group of every video; each needs one."""
    found = _matched(names, groups)
    lost = [name for name in names if name not in found]
    if lost:
        msg = f"names no group for {len(lost)} of {len(names)} videos: {listed(lost, most=3)}. Add them."
        raise VideoError(msg, parameter="group")
    return np.array([groups[found[name]] for name in names])


def _matched(names: Sequence[str], known: Collection[str]) -> dict[str, str]:
    """Return the known name of every video that has one; a name stands for one video only."""
    found = {name: name for name in names if name in known}
    for part in _PARTS:
        videos = _by_part(part, set(names) - set(found))
        others = _by_part(part, set(known) - set(found.values()))
        found |= {same[0]: others[key][0] for key, same in videos.items() if len(same) == 1 == len(others.get(key, ()))}
    return found


def _by_part(part: Callable[[str], str], names: Iterable[str]) -> dict[str, list[str]]:
    """Return names by a part of them."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(part(name), []).append(name)
    return found


def _refuse_one_sided(y: Integers, events: Sequence[str]) -> None:
    for event, column in zip(events, y.T, strict=True):
        if column.min() == column.max():
            how = "every" if column.min() else "no"
            msg = f"The event {event!r} happens in {how} labelled video; a detector needs videos with and without it."
            raise VideoError(msg)
