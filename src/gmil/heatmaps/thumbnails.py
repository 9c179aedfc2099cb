"""Pictures of whole slides, by OpenSlide, where the slide files are at hand."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.errors import FormatError, MissingFileError
from gmil.heatmaps.lattice import LONGEST

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

_SHORT = (".tiff", ".mrxs", ".ndpi", ".svs", ".tif", ".scn", ".bif", ".vms", ".vmu", ".dcm", ".czi")
SUFFIXES = (".ome.tiff", ".ome.tif", ".svslide", *_SHORT)
"""Of files that OpenSlide reads, the longest first."""


class SlideImage(NamedTuple):
    """A small picture of a slide, (height, width, 3), its size at level 0, and what the file says of its frame."""

    pixels: NDArray[np.uint8]
    width: int
    height: int
    mpp: float | None = None
    origin: tuple[float, float] = (0.0, 0.0)
    """The corner of the scanned area, to which QuPath crops."""


class SlideFolder:
    """The slide files in a folder and below, by the names of slides.

    Parameters
    ----------
    path : path
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            msg = f"There is no folder {str(path)!r}."
            raise MissingFileError(msg, parameter="slides", fix="Name the folder of slide files with {slides}")
        _openslide()
        self._files: dict[str, list[Path]] = defaultdict(list)
        for file in sorted(self.path.rglob("*")):
            stem = _stem(file)
            if stem is not None and file.is_file():
                self._files[stem].append(file)

    def find(self, name: str) -> Path | None:
        """Return the file of a slide, None where there is none.

        Parameters
        ----------
        name : str
            The name of the file without its suffix, perhaps with its folder.
        """
        folder, _, stem = name.replace("\\", "/").rpartition("/")
        found = self._files.get(stem, [])
        if len(found) > 1 and folder:
            found = [file for file in found if file.parent == self.path / folder]
        if len(found) > 1:
            names = ", ".join(str(file.relative_to(self.path)) for file in found[:3])
            msg = f"Several files are called like slide {name!r}: {names}. Leave one in the folder."
            raise FormatError(msg)
        return found[0] if found else None


def _stem(file: Path) -> str | None:
    """Return the name of a slide file without its suffix, None for other files."""
    lower = file.name.lower()
    suffix = next((suffix for suffix in SUFFIXES if lower.endswith(suffix)), None)
    return None if suffix is None else file.name[: -len(suffix)]


def read_slide(path: str | os.PathLike[str], longest: int = LONGEST) -> SlideImage:
    """Read the small picture of a slide.

    Parameters
    ----------
    path : path
    longest : int
        Pixels of its longer side, at most.
    """
    openslide = _openslide()
    try:
        with openslide.OpenSlide(str(path)) as slide:
            width, height = slide.dimensions
            pixels = np.asarray(slide.get_thumbnail((longest, longest)).convert("RGB"))
            known = slide.properties
            mpp = _number(known.get("openslide.mpp-x"))
            left, top = (_number(known.get(f"openslide.bounds-{axis}")) or 0.0 for axis in "xy")
            return SlideImage(pixels, width, height, mpp, (left, top))
    except openslide.OpenSlideError as error:
        msg = f"{path} is no slide that OpenSlide can read: {error}."
        raise FormatError(msg) from error


def _number(text: Any) -> float | None:
    return None if text is None else float(text)


def _openslide() -> Any:
    try:
        import openslide
    except ImportError as error:
        msg = "Pictures of slides need OpenSlide. Install the extra slides, or openslide-python and openslide-bin."
        raise FormatError(msg) from error
    return openslide
