"""What a layout is: the files of slides in a folder, and how one of them becomes a `Slide`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from gmil.errors import BagValidationError, FormatError, listed
from gmil.slides import hdf5, torch_files
from gmil.slides.hdf5 import FEATURE_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gmil.slides.slide import Slide

LABELS_FILE = "labels.csv"


class Asked(NamedTuple):
    """What is known of a folder beside its files: columns of the labels, and sizes that a user gives."""

    columns: tuple[str, ...] = ()
    mpp: float | None = None
    patch_size: float | None = None
    forced: bool = False
    """Whether the user named the layout, so that nothing is left to be recognised."""


class Peek(NamedTuple):
    """What an HDF5 file holds, its numbers aside."""

    keys: tuple[str, ...] = ()
    root: dict[str, Any] = {}  # noqa: RUF012  # never changed
    features: dict[str, Any] = {}  # noqa: RUF012
    coords: dict[str, Any] = {}  # noqa: RUF012

    @property
    def feature_key(self) -> str | None:
        """The name of the features; None where no known one is there."""
        return next((key for key in FEATURE_KEYS if key in self.keys), None)


def peek(path: Path) -> Peek:
    """Return names and attributes of an HDF5 file."""
    found = hdf5.contents_of(path)
    features = next((key for key in FEATURE_KEYS if key in found.keys), "")
    of = found.attributes
    return Peek(found.keys, found.root, of.get(features, {}), of.get(hdf5.COORDINATES, {}))


def first_peek(files: Iterable[Path]) -> Peek:
    """Return what the first HDF5 file holds that can be opened; nothing where none can."""
    for path in files:
        if path.suffix in hdf5.SUFFIXES and not is_unfinished(path):
            try:
                return peek(path)
            except hdf5.DamagedFileError:
                continue
    return Peek()


def is_unfinished(path: Path) -> bool:
    """Tell whether a file is being written, or was left behind by who wrote it."""
    return path.name.startswith(("tmp", ".", "~")) or path.with_name(f"{path.name}.lock").exists()


def files_in(folder: Path, suffixes: tuple[str, ...], *, deep: bool = False) -> list[Path]:
    """Return the files of a folder with some suffixes, by name; hidden ones are none."""
    if not folder.is_dir():
        return []
    found = folder.rglob("*") if deep else folder.iterdir()
    return sorted(
        path for path in found if path.suffix in suffixes and not path.name.startswith(".") and path.is_file()
    )


def hdf5_in(folder: Path, *, deep: bool = False) -> list[Path]:
    """Return the HDF5 files of a folder."""
    return files_in(folder, hdf5.SUFFIXES, deep=deep)


def torch_in(folder: Path, *, deep: bool = False) -> list[Path]:
    """Return the files of PyTorch of a folder."""
    return files_in(folder, torch_files.SUFFIXES, deep=deep)


def the_only(folder: Path, found: list[Path], what: str) -> Path | None:
    """Return the one of several folders; None where there is none, and an error where several are."""
    if len(found) > 1:
        names = listed([str(path.relative_to(folder)) for path in found])
        msg = (
            f"{folder} holds several folders of {what}: {names}. Name one of them in place of {folder.name or folder}."
        )
        raise FormatError(msg)
    return found[0] if found else None


@dataclass(frozen=True)
class Layout(ABC):
    """The files of slides by their names, as one tool writes them."""

    title: ClassVar[str]
    folder: Path
    files: dict[str, Path]
    asked: Asked
    context: dict[str, Any] = field(default_factory=dict)

    @classmethod
    @abstractmethod
    def of(cls, folder: Path, asked: Asked) -> Layout | None:
        """Return the slides of a folder that is of this layout; None where it is not."""

    @abstractmethod
    def slide(self, name: str) -> Slide:
        """Look at the header of a slide."""

    def labels_table(self) -> Path | None:
        """Return the table that the folder itself has, if any."""
        table = self.folder / LABELS_FILE
        return table if table.exists() else None

    def own_label(self, name: str) -> str | None:  # noqa: ARG002
        """Return the label that lies beside a slide, where the layout has any; none by default."""
        return None


def by_name(files: Iterable[Path], names: Iterable[str]) -> dict[str, Path]:
    """Return files by the names of their slides; two of one name are refused."""
    found: dict[str, Path] = {}
    for path, name in zip(files, names, strict=True):
        if name in found:
            msg = f"The slide {name!r} is there twice: {found[name]} and {path}. Rename or remove one."
            raise BagValidationError(msg)
        found[name] = path
    return found


def whole(value: Any, path: Path, name: str) -> float:
    """Return a number of pixels that a tool may have written as 512.0; one with a fraction is refused."""
    number = float(value)
    if not number.is_integer() or number <= 0:
        msg = f"{path}: the attribute {name} must be a whole number of pixels above 0, got {value!r}."
        raise FormatError(msg)
    return number


def without_features(path: Path, seen: Peek) -> FormatError:
    """Return the error about a file that lacks features: most often one of coordinates."""
    if "coords" in seen.keys:
        msg = f"{path} holds coordinates of patches, but no features. Name the folder of features."
    else:
        msg = f"{path} holds no features: its arrays are {', '.join(sorted(seen.keys)) or 'none'}. Name another folder."
    return FormatError(msg)
