"""MIL_BASELINE: a table with the path of every slide, of which the name alone is used; no stored path is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gmil.slides.arrays import Place
from gmil.slides.hdf5 import SUFFIXES as HDF5
from gmil.slides.layouts.base import Layout, by_name, hdf5_in, peek, torch_in, without_features
from gmil.slides.names import slide_name
from gmil.slides.slide import Frame, Slide

if TYPE_CHECKING:
    from pathlib import Path

    from gmil.slides.layouts.base import Asked

_COLUMN = "slide_path"


class MilBaseline(Layout):
    """Files of PyTorch or HDF5 in a folder and below, which a table names by their paths."""

    title = "MIL_BASELINE"

    @classmethod
    def of(cls, folder: Path, asked: Asked) -> MilBaseline | None:
        """See `Layout.of`."""
        if not (asked.forced or _COLUMN in asked.columns):
            return None
        tensors = torch_in(folder, deep=True)
        # Where a slide has a tensor, an HDF5 file of the same name has its coordinates.
        stored = {slide_name(path): path for path in hdf5_in(folder, deep=True)}
        own = by_name(tensors, map(slide_name, tensors))
        files = {**stored, **own}
        return cls(folder, dict(sorted(files.items())), asked, {"stored": stored}) if files else None

    def slide(self, name: str) -> Slide:
        """See `Layout.slide`."""
        path, stored = self.files[name], self.context["stored"].get(name)
        seen = None if stored is None else peek(stored)
        key = ""
        if path.suffix in HDF5 and seen is not None:
            if seen.feature_key is None:
                raise without_features(path, seen)
            key = seen.feature_key
        places = Place(str(stored), "coords") if seen is not None and "coords" in seen.keys else None
        return Slide.of(name, Place(str(path), key), places, frame=Frame("px", self.asked.patch_size))
