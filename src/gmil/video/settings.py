"""Everything that decides what the numbers of a frame mean."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from gmil.errors import VideoError
from gmil.io.model_files.schema import Choice, Count, Flag, Items, Number, OrMissing, OrNone, Record
from gmil.video.decoding import LONGEST_SIDE, RATE
from gmil.video.encoding.codebooks import ENCODINGS
from gmil.video.hog3d import Hog3DSettings
from gmil.video.motion.settings import MotionSettings

_KINDS = {
    "int": Count(most=2**40),
    "int | None": OrNone(Count(1, most=2**40)),
    "float": Number(),
    "bool": Flag(),
    "str": Choice(),
}
ASSIGNMENTS = ("hard", "soft")
DESCRIPTORS = ("hog3d", "hog", "hof", "mbh", "trajectory", "flow", "pyramid")
_LATER = ("descriptors", "encodings", "motion", "n_centers", "n_components")
"""Settings that came with descriptors beside HOG3D; files of HOG3D alone do without."""
MOST_RATE = 1000.0
"""Frames per second: with an endless rate a video would never end."""


@dataclass(frozen=True, kw_only=True)
class IndexSettings:
    """How videos become features of frames: by default word histograms of HOG3D.

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
    descriptors : tuple of str
        Which of "hog3d", of "hog", "hof", "mbh" and "trajectory" (appearance, motion, its boundaries and its way, in
        boxes that follow the optical flow), and of "flow" and "pyramid" (energies of the whole picture).
    encodings : tuple of str
        How descriptors of a window of frames become one vector: "words", "vlad", "fisher"; with several, each does.
        "flow" and "pyramid" have one of their own.
    motion : MotionSettings
        For all but HOG3D.
    n_centers, n_components : int
        Centres or Gaussians, and principal components, of VLAD and Fisher vectors.
    cuts : bool
        Whether descriptors and windows end at the cuts of a video, as if a new one began; in the paper they do not.
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
    descriptors: tuple[str, ...] = ("hog3d",)
    encodings: tuple[str, ...] = ("words",)
    motion: MotionSettings = field(default_factory=MotionSettings)
    n_centers: int = 16
    n_components: int = 24
    cuts: bool = True

    def __post_init__(self) -> None:
        for name, known in (("descriptors", DESCRIPTORS), ("encodings", ENCODINGS)):
            self._check_names(name, known)
        whole = (
            "n_centers",
            "n_components",
            "n_words",
            "sample_size",
            "sample_per_video",
            "max_iter",
            "neighbours",
            "window",
            "every",
        )
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

    def _check_names(self, name: str, known: tuple[str, ...]) -> None:
        given = tuple(getattr(self, name))
        object.__setattr__(self, name, given)  # lists come from files and the command line
        if not given or len(set(given)) < len(given) or not set(given) <= set(known):
            msg = f"{name} must be some of {list(known)}, each once, got {list(given)}."
            raise VideoError(msg)

    @property
    def is_hog3d_alone(self) -> bool:
        """Whether frames are word histograms of HOG3D and nothing else, as in the paper."""
        return self.descriptors == ("hog3d",) and self.encodings == ("words",)

    @property
    def has_boxes(self) -> bool:
        """Whether a descriptor of boxes that follow the flow is asked for."""
        return bool(set(self.descriptors) & set(self.motion.columns))

    @property
    def smallest_side(self) -> int:
        """The pixels that every picture must have on its shorter side."""
        own = self.descriptor.smallest_side if "hog3d" in self.descriptors else 2
        return max(own, self.motion.smallest_side) if self.has_boxes else own

    @property
    def fewest_frames(self) -> int:
        """The frames that every video must have."""
        own = self.descriptor.fewest_frames if "hog3d" in self.descriptors else 2
        return max(own, self.motion.frames + 1) if self.has_boxes else own

    @property
    def longest_box(self) -> float:
        """The frames that one descriptor spans at most."""
        own = self.descriptor.longest_box if "hog3d" in self.descriptors else 1
        return max(own, self.motion.frames) if self.has_boxes else own

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, from which `from_dict` makes the same settings."""
        found = asdict(self)
        if not self.cuts:  # as in files of the first version
            del found["cuts"]
        if self.is_hog3d_alone:
            return {name: value for name, value in found.items() if name not in _LATER}
        return {**found, "descriptors": list(self.descriptors), "encodings": list(self.encodings)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> IndexSettings:
        """Return the settings of `as_dict`."""
        given = {"cuts": False, **values, "descriptor": Hog3DSettings(**values["descriptor"])}
        if "motion" in values:
            given["motion"] = MotionSettings(**values["motion"])
        return cls(**given)

    def frames_key(self) -> str:
        """Return a short name for what decides which frames are taken from a video."""
        return short_digest(json.dumps([self.rate, self.longest_side]).encode())

    def sample_key(self) -> str:
        """Return a short name for what decides which descriptors are drawn from a video."""
        deciding: dict[str, Any] = {"descriptor": asdict(self.descriptor)}
        if self.descriptors != ("hog3d",):
            families = ["hog3d" in self.descriptors, self.has_boxes]
            deciding |= {"motion": asdict(self.motion), "families": families}
        deciding |= {name: getattr(self, name) for name in ("rate", "longest_side", "sample_per_video", "seed")}
        if self.cuts:
            deciding["cuts"] = True
        return short_digest(json.dumps(deciding, sort_keys=True).encode())


def _kinds_of(cls: type[Any]) -> dict[str, Any]:
    """Return what the fields of settings are in a file; a few dozen scales are more than any picture has."""
    kinds = {each.name: _KINDS[str(each.type)] for each in fields(cls) if str(each.type) in _KINDS}
    return {name: Count(1, most=64) if name.startswith("scales_") else kind for name, kind in kinds.items()}


SAVED_SETTINGS = Record(
    {
        "descriptor": Record(_kinds_of(Hog3DSettings)),
        **_kinds_of(IndexSettings),
        "descriptors": OrMissing(Items(Choice(*DESCRIPTORS), least=1)),
        "encodings": OrMissing(Items(Choice(*ENCODINGS), least=1)),
        "motion": OrMissing(Record(_kinds_of(MotionSettings))),
        "n_centers": OrMissing(Count(1, most=2**20)),
        "n_components": OrMissing(Count(1, most=2**20)),
        "cuts": OrMissing(Flag()),
    }
)
"""What `IndexSettings.as_dict` is."""


def short_digest(data: bytes) -> str:
    """Return sixteen characters that tell contents apart."""
    return hashlib.sha256(data).hexdigest()[:16]
