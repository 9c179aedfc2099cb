"""TRIDENT: ``20x_256px_0px_overlap/features_ENCODER/SLIDE.h5``, with sizes as attributes of the coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmil.slides.arrays import Place
from gmil.slides.layouts.base import Layout, by_name, first_peek, hdf5_in, peek, the_only, whole, without_features
from gmil.slides.layouts.clam import patch_side
from gmil.slides.names import slide_name
from gmil.slides.slide import Frame, Slide

if TYPE_CHECKING:
    from pathlib import Path

    from gmil.slides.layouts.base import Asked, Peek

_KEPT = ("level0_magnification", "target_magnification", "overlap", "level0_width", "level0_height", "savetodir")


class Trident(Layout):
    """A folder of features, or a job folder with one of them."""

    title = "TRIDENT"

    @classmethod
    def of(cls, folder: Path, asked: Asked) -> Trident | None:
        """See `Layout.of`."""
        below = [*folder.glob("features_*"), *folder.glob("*px_overlap/features_*")]
        found = the_only(folder, sorted(path for path in below if hdf5_in(path)), "features")
        place = found or folder
        files = hdf5_in(place)
        if not files or not (asked.forced or _is_written_by_trident(place, first_peek(files))):
            return None
        return cls(folder, by_name(files, (slide_name(path) for path in files)), asked, {"features": place.name})

    def slide(self, name: str) -> Slide:
        """See `Layout.slide`."""
        path = self.files[name]
        seen = peek(path)
        if "features" not in seen.keys:
            raise without_features(path, seen)
        attributes = seen.coords
        kept = {key: attributes[key] for key in _KEPT if attributes.get(key) is not None}
        encoder = seen.features.get("encoder") or self.context["features"].removeprefix("features_")
        size = self.asked.patch_size or _side_at_level0(path, attributes)
        return Slide.of(
            name,
            Place(str(path), "features"),
            Place(str(path), "coords") if "coords" in seen.keys else None,
            frame=Frame("px", size),
            provenance={"encoder": encoder, **kept},
        )


def _is_written_by_trident(folder: Path, seen: Peek) -> bool:
    """Tell by attributes; files of an older version have some of them, those from coordinates of CLAM have CLAM's."""
    if "features" not in seen.keys:
        return False
    return bool({"patch_size_level0", "target_magnification", "patch_level"} & set(seen.coords)) or (
        folder.name.startswith("features_") and "encoder" in seen.features
    )


def _side_at_level0(path: Path, attributes: dict[str, Any]) -> float | None:
    if attributes.get("patch_size_level0") is not None:
        return whole(attributes["patch_size_level0"], path, "patch_size_level0")
    return patch_side(path, attributes)
