"""torchmil: parallel folders ``features/features_ENCODER``, ``coords``, ``labels``, ``patch_labels`` of NumPy files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.errors import FormatError, count_of
from gmil.slides import arrays
from gmil.slides.arrays import Place
from gmil.slides.hdf5 import SUFFIXES as HDF5
from gmil.slides.layouts.base import Layout, by_name, files_in, peek, the_only
from gmil.slides.names import slide_name
from gmil.slides.slide import Frame, Slide

if TYPE_CHECKING:
    from gmil.slides.layouts.base import Asked

_SIBLINGS = ("coords", "labels", "patch_labels")
_SUFFIXES = (".npy", *HDF5)


class TorchMil(Layout):
    """A folder with features and their siblings, or one such folder below."""

    title = "torchmil"

    @classmethod
    def of(cls, folder: Path, asked: Asked) -> TorchMil | None:
        """See `Layout.of`."""
        tops = [top for top in (folder, *sorted(folder.glob("patches_*"))) if _has_siblings(top)]
        top = the_only(folder, tops, "patches")
        if top is None:
            return None
        below = [top / "features", *sorted(top.glob("features_*")), *sorted((top / "features").glob("*"))]
        place = the_only(folder, [path for path in below if files_in(path, _SUFFIXES)], "features")
        if place is None:
            return None
        files = files_in(place, _SUFFIXES)
        return cls(folder, by_name(files, map(slide_name, files)), asked, {"top": str(top), "features": place.name})

    def slide(self, name: str) -> Slide:
        """See `Layout.slide`."""
        path = self.files[name]
        key = "features" if path.suffix in HDF5 else ""
        if key and key not in peek(path).keys:
            msg = f"{path} holds no array called features."
            raise FormatError(msg)
        own = self.context["features"]
        kept = {"encoder": own.removeprefix("features_")} if own.startswith("features_") else {}
        slide = Slide.of(
            name,
            Place(str(path), key),
            self._sibling("coords", name),
            frame=Frame("px", self.asked.patch_size),
            provenance=kept,
        )
        marks = self._sibling("patch_labels", name)
        if marks is not None and arrays.header_of(marks).shape[:1] != (slide.n_patches,):
            n_marks = arrays.header_of(marks).shape
            there = count_of(slide.n_patches, "patch", "patches")
            msg = f"{path} has {there}, but {marks} has labels of shape {n_marks}. Write both again."
            raise FormatError(msg)
        return slide

    def own_label(self, name: str) -> str | None:
        """See `Layout.own_label`."""
        place = self._sibling("labels", name)
        if place is None:
            return None
        found: Any = np.unique(arrays.read(place))
        if len(found) != 1:
            msg = f"{place} must hold one label, got {len(found)} values. Write one number."
            raise FormatError(msg)
        return str(found[0])

    def _sibling(self, folder: str, name: str) -> Place | None:
        path = Path(self.context["top"]) / folder / f"{name}.npy"
        if path.exists():
            return Place(str(path))
        own = self.files[name]
        return Place(str(own), folder) if own.suffix in HDF5 and folder in peek(own).keys else None


def _has_siblings(top: Path) -> bool:
    has_features = (top / "features").is_dir() or any(top.glob("features_*/"))
    return has_features and any((top / name).is_dir() for name in _SIBLINGS)
