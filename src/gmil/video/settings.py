"""Everything that decides what the numbers of a frame mean."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from gmil.errors import VideoError
from gmil.io.model_files.schema import Choice, Count, Flag, Number, OrNone, Record
from gmil.video.decoding import LONGEST_SIDE, RATE
from gmil.video.hog3d import Hog3DSettings

_KINDS = {
    "int": Count(most=2**40),
    "int | None": OrNone(Count(1, most=2**40)),
    "float": Number(),
    "bool": Flag(),
    "str": Choice(),
}
ASSIGNMENTS = ("hard", "soft")
MOST_RATE = 1000.0
"""Frames per second: with an endless rate a video would never end."""


@dataclass(frozen=True, kw_only=True)
class IndexSettings:
    """How videos become word histograms of frames.

    Parameters
    ----------
    descriptor : Hog3DSettings
    rate : float
        Frames per second; a video whose own rate is within a quarter of it keeps its own.
    longest_side : int or None
        Larger pictures are made smaller to so many pixels.
    n_words : int
        The size of the vocabulary.
    sample_size, sample_per_video : int
        The vocabulary is learned from at most so many descriptors, at most so many of them from one video.
    max_iter : int
        The most rounds of k-means.
    assignment : {"hard", "soft"}
        Whether a descriptor counts for its nearest word, or is shared out among its ``neighbours`` nearest.
    neighbours : int
    window : int
        The frames around a frame whose descriptors its histogram counts.
    every : int
        One histogram for every so many frames.
    seed : int
        The seed of samples and words.
    """

    descriptor: Hog3DSettings = field(default_factory=Hog3DSettings)
    rate: float = RATE
    longest_side: int | None = LONGEST_SIDE
    n_words: int = 1000
    sample_size: int = 50_000
    sample_per_video: int = 1000
    max_iter: int = 30
    assignment: str = "hard"
    neighbours: int = 4
    window: int = 15
    every: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        whole = ("n_words", "sample_size", "sample_per_video", "max_iter", "neighbours", "window", "every")
        for name in whole:
            if getattr(self, name) < 1:
                msg = f"{name} must be at least 1, got {getattr(self, name)}."
                raise VideoError(msg)
        if not 0 < self.rate <= MOST_RATE:
            msg = f"rate must be a number of frames per second above 0 and up to {MOST_RATE:g}, got {self.rate}."
            raise VideoError(msg)
        if self.assignment not in ASSIGNMENTS:
            msg = f"assignment must be one of {list(ASSIGNMENTS)}, got {self.assignment!r}."
            raise VideoError(msg)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, from which `from_dict` makes the same settings."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> IndexSettings:
        """Return the settings of `as_dict`."""
        return cls(**{**values, "descriptor": Hog3DSettings(**values["descriptor"])})

    def sample_key(self) -> str:
        """Return a short name for what decides which descriptors are drawn from a video."""
        deciding = {"descriptor": asdict(self.descriptor)}
        deciding |= {name: getattr(self, name) for name in ("rate", "longest_side", "sample_per_video", "seed")}
        return short_digest(json.dumps(deciding, sort_keys=True).encode())


def _kinds_of(cls: type[Any]) -> dict[str, Any]:
    """Return what the fields of settings are in a file; a few dozen scales are more than any picture has."""
    kinds = {each.name: _KINDS[str(each.type)] for each in fields(cls) if each.name != "descriptor"}
    return {name: Count(1, most=64) if name.startswith("scales_") else kind for name, kind in kinds.items()}


SAVED_SETTINGS = Record({"descriptor": Record(_kinds_of(Hog3DSettings)), **_kinds_of(IndexSettings)})
"""What `IndexSettings.as_dict` is."""


def short_digest(data: bytes) -> str:
    """Return sixteen characters that tell contents apart."""
    return hashlib.sha256(data).hexdigest()[:16]
