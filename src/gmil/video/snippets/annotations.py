"""When something happens, as this field writes it down: ``name class start end start end``, in frames."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gmil.errors import FormatError
from gmil.safety.guard import expect, opening, parsing
from gmil.video.snippets.names import short_name

if TYPE_CHECKING:
    import os

NORMAL = "Normal"
_LABEL = re.compile(r"_label_([A-Za-z0-9]+)")
_NORMAL_CODES = ("A", "0")  # of XD-Violence, and of lists that number classes


@dataclass(frozen=True)
class Annotation:
    """What happens in one video.

    Attributes
    ----------
    kind : str
        The class, "Normal" where nothing happens.
    spans : list of tuple
        First and last frame of every event, counted from 0.
    """

    kind: str
    spans: list[tuple[int, int]] = field(default_factory=list)


def read_annotations(path: str | os.PathLike[str]) -> dict[str, Annotation]:
    """Read temporal annotations, by the name of the video without folder and suffix.

    Parameters
    ----------
    path : path
        A line for every video: its name, its class (which may be left out: XD-Violence has it in the name), and first
        and last frame of every event; ``-1`` stands for none.
    """
    with parsing(Path(path), "CSV"), opening(Path(path)):
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    found: dict[str, Annotation] = {}
    for number, line in enumerate(lines, start=1):
        words = line.replace(",", " ").split()
        if words:
            name = short_name(words[0])
            expect(name not in found, f"Line {number} of {path} names {name} for the second time. Join the two lines.")
            found[name] = _annotation(words, f"Line {number} of {path}")
    expect(found, f"{path} has no lines. Give every video one.")
    return found


def _annotation(words: list[str], where: str) -> Annotation:
    has_kind = len(words) > 1 and not _is_number(words[1])
    times = words[1 + has_kind :]
    expect(all(map(_is_number, times)), f"{where} must be: name class start end start end, in frames.")
    expect(len(times) % 2 == 0, f"{where} has {len(times)} times, but every start needs an end.")
    pairs = zip(map(int, times[::2]), map(int, times[1::2]), strict=True)
    spans = [(start, end) for start, end in pairs if start >= 0 and end >= 0]
    for start, end in spans:
        if start > end:
            msg = f"{where}: an event starts at frame {start} and ends at {end}. Correct it."
            raise FormatError(msg)
    return Annotation(_kind(words, has_kind, spans), spans)


def _kind(words: list[str], has_kind: bool, spans: list[tuple[int, int]]) -> str:
    label = _LABEL.search(words[0])
    kind = words[1] if has_kind else label[1] if label else "Anomaly" if spans else NORMAL
    return NORMAL if kind.casefold().startswith("normal") or kind in _NORMAL_CODES else kind


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+", text) is not None
