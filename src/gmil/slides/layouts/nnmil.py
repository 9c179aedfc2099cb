"""nnMIL: ``TASK/dataset.csv`` (slide_id, patient_id, split, label) and ``TASK/features/SLIDE.h5``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gmil.errors import FormatError
from gmil.slides.arrays import Place, header_of
from gmil.slides.layouts.base import Layout, by_name, first_peek, hdf5_in, peek, without_features
from gmil.slides.names import slide_name
from gmil.slides.slide import Frame, Slide

if TYPE_CHECKING:
    from pathlib import Path

    from gmil.slides.layouts.base import Asked

_FEATURES, _TABLE, _ABOUT = "features", "dataset.csv", "dataset.json"


class NnMil(Layout):
    """A task folder, or its features alone; sub-folders, as those of TCGA, are searched."""

    title = "nnMIL"

    @classmethod
    def of(cls, folder: Path, asked: Asked) -> NnMil | None:
        """See `Layout.of`."""
        task = folder.parent if folder.name == _FEATURES else folder
        is_task = any((task / name).exists() for name in (_TABLE, _ABOUT))
        place = task / _FEATURES if is_task and (task / _FEATURES).is_dir() else folder
        files = hdf5_in(place, deep=True)
        if not files or not (asked.forced or (is_task and "features" in first_peek(files).keys)):
            return None
        return cls(task if is_task else folder, by_name(files, map(slide_name, files)), asked)

    def slide(self, name: str) -> Slide:
        """See `Layout.slide`; the unit of coordinates is taken as pixels of level 0, and nothing tells their size."""
        path = self.files[name]
        seen = peek(path)
        if "features" not in seen.keys:
            raise without_features(path, seen)
        if "coords" not in seen.keys:
            msg = f"{path} has no coords, which nnMIL needs. Write it again."
            raise FormatError(msg)
        features = Place(str(path), "features")
        shape = header_of(features).shape
        kept = {} if len(shape) != 3 else {"stored_shape": list(shape)}
        frame = Frame("px", self.asked.patch_size)
        return Slide.of(name, features, Place(str(path), "coords"), frame=frame, provenance=kept)

    def labels_table(self) -> Path | None:
        """See `Layout.labels_table`."""
        own = self.folder / _TABLE
        return own if own.exists() else super().labels_table()
