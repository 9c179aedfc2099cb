"""STAMP: ``EXTRACTOR-HASH/COHORT/SLIDE.h5`` with ``feats`` and coordinates in micrometres, in three generations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.errors import FormatError
from gmil.slides import arrays
from gmil.slides.arrays import Place
from gmil.slides.hdf5 import FEATURE_KEYS
from gmil.slides.layouts.base import (
    Layout,
    by_name,
    first_peek,
    hdf5_in,
    peek,
    the_only,
    without_features,
)
from gmil.slides.slide import Frame, Slide

if TYPE_CHECKING:
    from pathlib import Path

    from gmil.slides.layouts.base import Asked, Peek

_TAG = re.compile(r".+-[0-9a-f]{8}")
_KEPT = {"stamp_version": "tool_version", "extractor": "encoder", "code_hash": "code_hash", "tile_size_px": "tile_px"}
_HISTORIC_SIDE = 224  # pixels of 256 um / 224, the only unit of the first generation
_HISTORIC_UM = 256.0


class Stamp(Layout):
    """Files in sub-folders; the name of a slide is its path below the folder of the extractor."""

    title = "STAMP"

    @classmethod
    def of(cls, folder: Path, asked: Asked) -> Stamp | None:
        """See `Layout.of`."""
        top = folder
        if not hdf5_in(folder):
            tagged = [path for path in sorted(folder.iterdir()) if path.is_dir() and _TAG.fullmatch(path.name)]
            top = the_only(folder, [path for path in tagged if hdf5_in(path, deep=True)], "features") or folder
        files = hdf5_in(top, deep=True)
        if not files or not (asked.forced or _is_written_by_stamp(first_peek(files))):
            return None
        names = (path.relative_to(top).with_suffix("").as_posix() for path in files)
        return cls(folder, by_name(files, names), asked)

    def slide(self, name: str) -> Slide:
        """See `Layout.slide`."""
        path = self.files[name]
        seen = peek(path)
        key = next((key for key in ("feats", *FEATURE_KEYS) if key in seen.keys), None)
        if key is None:
            raise without_features(path, seen)
        kind = seen.root.get("feat_type", "tile")
        if kind != "tile":
            msg = f"{path} holds an embedding of a whole {kind}, not of patches. Name the folder of tile features."
            raise FormatError(msg)
        coordinates = Place(str(path), "coords") if "coords" in seen.keys else None
        frame = Frame() if coordinates is None else _frame(coordinates, seen)
        kept = {ours: seen.root[theirs] for theirs, ours in _KEPT.items() if seen.root.get(theirs) is not None}
        mpp = self.asked.mpp
        return Slide.of(
            name,
            Place(str(path), key),
            coordinates,
            frame=frame.in_pixels(mpp),
            provenance=kept if mpp is None else {**kept, "mpp": mpp},
        )


def _is_written_by_stamp(seen: Peek) -> bool:
    if {"stamp_version", "feat_type", "tile_size_um"} & set(seen.root):
        return True
    return "feats" in seen.keys or ("patch_embeddings" in seen.keys and bool(seen.root))


def _frame(coordinates: Place, seen: Peek) -> Frame:
    """Return the frame of a file: the size in micrometres, the size of version 2.0, or the historic stride of 224."""
    attributes = seen.root
    if attributes.get("tile_size_um") is not None:
        return Frame("um", float(attributes["tile_size_um"]))
    if attributes.get("tile_size") is not None and attributes.get("unit") == "um":
        return Frame("um", float(attributes["tile_size"]))
    if abs(_stride(coordinates) - _HISTORIC_SIDE) < 1:
        return Frame("um", _HISTORIC_UM, scale=_HISTORIC_UM / _HISTORIC_SIDE)
    msg = (
        f"{coordinates.file} tells neither the size of its tiles (tile_size_um) nor has it the historic stride of "
        f"{_HISTORIC_SIDE}, so that its coordinates have no unit. Write it again with a newer STAMP."
    )
    raise FormatError(msg)


def _stride(coordinates: Place) -> float:
    """Return the smallest step between columns or rows of patches; 0 where there is one patch."""
    stored: Any = np.asarray(arrays.read(coordinates), dtype=np.float64)
    if stored.ndim != 2 or len(stored) < 2:
        return float(_HISTORIC_SIDE)
    steps = np.concatenate([np.diff(np.unique(column)) for column in stored.T[:2]])
    return float(steps.min()) if len(steps) else 0.0
