"""CLAM: ``h5_files/SLIDE.h5`` and ``pt_files/SLIDE.pt``; the size of patches is in ``patches/SLIDE.h5`` alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmil.errors import FormatError
from gmil.slides.arrays import Place
from gmil.slides.hdf5 import DamagedFileError
from gmil.slides.layouts.base import Layout, by_name, hdf5_in, is_unfinished, peek, torch_in, whole
from gmil.slides.names import slide_name
from gmil.slides.slide import Frame, Slide

if TYPE_CHECKING:
    from pathlib import Path

    from gmil.slides.layouts.base import Asked

_HDF5_FOLDERS = ("h5_files", "feats_h5")
_TORCH_FOLDERS = ("pt_files", "feats_pt")
_PATCHES = "patches"


class Clam(Layout):
    """A folder with both kinds of files, or with one."""

    title = "CLAM"

    @classmethod
    def of(cls, folder: Path, asked: Asked) -> Clam | None:
        """See `Layout.of`."""
        top = folder.parent if folder.name in (*_HDF5_FOLDERS, *_TORCH_FOLDERS) else folder
        stored = [path for name in _HDF5_FOLDERS for path in hdf5_in(top / name)]
        tensors = [path for name in _TORCH_FOLDERS for path in torch_in(top / name)]
        if asked.forced and not (stored or tensors):
            stored, tensors = hdf5_in(folder), torch_in(folder)
        if not (stored or tensors):
            return None
        of_tensors = by_name(tensors, map(slide_name, tensors))
        files = {**of_tensors, **by_name(stored, map(slide_name, stored))}
        return cls(
            top, dict(sorted(files.items())), asked, {"tensors": of_tensors, "patches": _folders_of_patches(top)}
        )

    def slide(self, name: str) -> Slide:
        """See `Layout.slide`; where the HDF5 file is damaged, the tensor is read."""
        path = self.files[name]
        of_patches = self._patch_file(name)
        attributes = {} if of_patches is None else peek(of_patches).coords
        size = self.asked.patch_size or (patch_side(of_patches, attributes) if of_patches else None)
        kept = {key: attributes[key] for key in ("patch_level",) if key in attributes}
        further: dict[str, Any] = {"frame": Frame("px", size), "provenance": kept}
        if path == self.context["tensors"].get(name):
            places = None if of_patches is None else Place(str(of_patches), "coords")
            return Slide.of(name, Place(str(path)), places, **further)
        seen = peek(path)
        if "features" not in seen.keys:
            msg = f"{path} holds coordinates or images, but no features. Name the folder of features."
            raise FormatError(msg)
        places = Place(str(path), "coords") if "coords" in seen.keys else None
        return Slide.of(name, Place(str(path), "features"), places, **further)

    def _patch_file(self, name: str) -> Path | None:
        """Return the file of coordinates that a slide was cut by; a damaged one is none."""
        for folder in self.context["patches"]:
            path = folder / f"{name}.h5"
            if path.exists() and not is_unfinished(path):
                try:
                    peek(path)
                except DamagedFileError:
                    continue
                return path
        return None


def _folders_of_patches(top: Path) -> list[Path]:
    near = [top / _PATCHES, top.parent / _PATCHES, *sorted(top.parent.glob(f"*/{_PATCHES}"))]
    return [path for path in near if path.is_dir()]


def patch_side(path: Path, attributes: dict[str, Any]) -> float | None:
    """Return the side of a patch at level 0: CLAM keeps it at its own level, with the factor between them."""
    size, level, factor = (attributes.get(key) for key in ("patch_size", "patch_level", "downsample"))
    if size is None or level is None:
        return None
    if factor is None and level != 0:
        return None
    pair = factor if isinstance(factor, list) else [1 if factor is None else factor]
    custom = float(attributes.get("custom_downsample") or 1)
    return whole(size, path, "patch_size") * int(pair[0]) * custom
