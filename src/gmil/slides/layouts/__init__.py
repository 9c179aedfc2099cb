"""The layouts of tools, and which of them a folder has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gmil.bags import bag_files
from gmil.errors import BagValidationError, FormatError
from gmil.slides import hdf5, torch_files
from gmil.slides.layouts.base import Asked, Layout, Peek, files_in, first_peek, hdf5_in, without_features
from gmil.slides.layouts.clam import Clam
from gmil.slides.layouts.mil_baseline import MilBaseline
from gmil.slides.layouts.nnmil import NnMil
from gmil.slides.layouts.slideflow import Slideflow
from gmil.slides.layouts.stamp import Stamp
from gmil.slides.layouts.torchmil import TorchMil
from gmil.slides.layouts.trident import Trident

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["LAYOUTS", "Asked", "chosen_layout", "is_slide_folder", "recognised"]

LAYOUTS: dict[str, type[Layout]] = {
    "trident": Trident,
    "clam": Clam,
    "stamp": Stamp,
    "slideflow": Slideflow,
    "nnmil": NnMil,
    "torchmil": TorchMil,
    "mil_baseline": MilBaseline,
}
"""The layouts by the names that users give."""
_INDICES = (".index.npy", ".index.npz")
"""What slideflow calls its files of coordinates."""


def recognised(folder: Path, asked: Asked) -> dict[str, Layout]:
    """Return every layout that a folder can be read as."""
    found = {name: layout.of(folder, asked) for name, layout in LAYOUTS.items()}
    return {name: layout for name, layout in found.items() if layout is not None}


def is_slide_folder(folder: Path) -> bool:
    """Tell whether a folder has files of slides; one with bags in files of NumPy or Parquet has not."""
    own = files_in(folder, bag_files.SUFFIXES)
    if any(not path.name.endswith(_INDICES) for path in own):
        return False
    has_slides = any(path.suffix in (*hdf5.SUFFIXES, *torch_files.SUFFIXES) for path in folder.rglob("*"))
    return has_slides or bool(recognised(folder, Asked()))


def chosen_layout(folder: Path, name: str | None, asked: Asked) -> Layout:
    """Return the layout that a user names, or the only one that the folder has."""
    if name is not None:
        return _named(folder, name, asked)
    found = recognised(folder, asked)
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        names = " or ".join(repr(name) for name in found)
        msg = f"{folder} can be read as {' and as '.join(layout.title for layout in found.values())}."
        raise FormatError(msg, parameter="layout", fix=f"Name one of {names} with {{layout}}")
    raise _unknown(folder, first_peek(hdf5_in(folder)))


def _named(folder: Path, name: str, asked: Asked) -> Layout:
    if name.lower() not in LAYOUTS:
        msg = f"must be one of {', '.join(LAYOUTS)}, got {name!r}."
        raise BagValidationError(msg, parameter="layout")
    found = LAYOUTS[name.lower()].of(folder, asked._replace(forced=True))
    if found is None:
        msg = f"{folder} has no files of the layout {name!r}."
        raise FormatError(msg, parameter="layout", fix="Name another folder, or another {layout}")
    return found


def _unknown(folder: Path, seen: Peek) -> FormatError:
    if seen.keys and seen.feature_key is None:
        return without_features(hdf5_in(folder)[0], seen)
    msg = f"{folder} is of no layout that is known ({', '.join(layout.title for layout in LAYOUTS.values())})."
    if seen.feature_key == "features":
        msg += " Its files have 'features', as those of trident, clam and nnmil do."
    return FormatError(msg, parameter="layout", fix="If it is one of them, name it with {layout}")
