"""Which files belong to which video: crops in files of their own, suffixes of features, lists of files."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING

from gmil.errors import FormatError, MissingFileError, count_of, listed
from gmil.safety.guard import expect, opening, parsing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SUFFIXES = (".npy", ".npz", ".parquet", ".h5", ".hdf5")
LISTS = (".list", ".txt")
_CROP = re.compile(r"(?P<name>.+?)(?:__|_crop_?)(?P<number>\d)")
_TOOLS = re.compile(r"_(?:i3d|x3d|c3d|clip|vit|rgb|flow|features?)$", re.IGNORECASE)


def is_list(path: Path) -> bool:
    """Tell whether a file lists files of features."""
    return path.suffix.lower() in LISTS


def files_in(folder: Path) -> list[Path]:
    """Return the files of features in a folder and in the folders in it, which are often classes."""
    found = (path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
    return sorted(path for path in found if not path.name.startswith("."))


def listed_files(path: Path) -> list[Path]:
    """Return the files that a list names, one on a line, before a label or a number of frames.

    The path is used as it stands, or below the folder of the list. Lists come from other machines, so that a file of
    the same name below that folder will do; of several, the one whose path ends most alike.
    """
    with parsing(path, "CSV"), opening(path):
        lines = [line.split()[0] for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    expect(lines, f"{path} lists no files.")
    below: dict[str, list[Path]] = {}
    for file in files_in(path.parent):
        below.setdefault(file.name, []).append(file)
    found = {name: _existing(name, path, below) for name in (Path(line.replace("\\", "/")) for line in lines)}
    lost = [str(name) for name, file in found.items() if file is None]
    if lost:
        what = count_of(len(lost), "file that is", "files that are")
        msg = f"{path} lists {what} not there: {listed(lost, most=3)}. Put them below its folder."
        raise MissingFileError(msg)
    files = {name: file for name, file in found.items() if file is not None}
    _refuse_one_for_two(path, files)
    return list(files.values())


def _existing(name: Path, path: Path, below: Mapping[str, list[Path]]) -> Path | None:
    """Return the file that a list means by a name."""
    for candidate in (name, path.parent / name):
        if candidate.suffix.lower() in SUFFIXES and candidate.is_file():
            return candidate
    names = [name.name, *(f"{name.stem}{suffix}" for suffix in SUFFIXES)]
    candidates = next((below[each] for each in names if each in below), [])
    alike = [_common_ending(name.parent, file.parent) for file in candidates]
    best = [file for file, count in zip(candidates, alike, strict=True) if count == max(alike)]
    if len(best) > 1:
        msg = f"{path} lists {name}, which may be {best[0]} or {best[1]}. Write its path below the folder of the list."
        raise FormatError(msg)
    return best[0] if best else None


def _common_ending(one: Path, other: Path) -> int:
    """Return how many folders at the end of two paths are the same.

    >>> _common_ending(Path("/data/ucf/test"), Path("here/test")), _common_ending(Path("a"), Path("b"))
    (1, 0)
    """
    pairs = zip(reversed(one.parts), reversed(other.parts), strict=False)
    return len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))


def _refuse_one_for_two(path: Path, files: Mapping[Path, Path]) -> None:
    first: dict[Path, Path] = {}
    for name, file in files.items():
        if first.setdefault(file, name) != name:
            msg = (
                f"{path} lists {first[file]} and {name}, but there is only {file} for both. Put both below its folder."
            )
            raise MissingFileError(msg)


def by_video(files: Iterable[Path]) -> dict[str, list[Path]]:
    """Return the files of every video: one, or one for every crop, in the order of their numbers.

    >>> files = [Path("a__1.npy"), Path("a__0.npy"), Path("b_7.npy")]
    >>> {name: [file.name for file in own] for name, own in by_video(files).items()}
    {'a': ['a__0.npy', 'a__1.npy'], 'b_7': ['b_7.npy']}
    """
    crops: dict[tuple[Path, str], dict[int, Path]] = {}
    for file in files:
        match = _CROP.fullmatch(file.stem)
        if match:
            crops.setdefault((file.parent, match["name"]), {})[int(match["number"])] = file
    # Videos may have numbers for names: crops are counted from 0, and there are several.
    whole = {key: own for key, own in crops.items() if len(own) > 1 and set(own) == set(range(len(own)))}
    found: dict[str, list[Path]] = {}
    for file in files:
        match = _CROP.fullmatch(file.stem)
        key = (file.parent, match["name"]) if match else None
        own = [whole[key][i] for i in sorted(whole[key])] if key in whole else [file]
        name = key[1] if key in whole else file.stem
        if found.setdefault(name, own) != own:
            msg = f"Two files hold the features of {name}: {found[name][0]} and {file}. Rename one."
            raise FormatError(msg)
    return found


def short_name(name: str) -> str:
    """Return the name of a video without folder, suffix of a video and of the tool that made its features.

    >>> short_name("Abuse/Abuse028_x264.mp4"), short_name("Abuse028_x264_i3d")
    ('Abuse028_x264', 'Abuse028_x264')
    """
    last = re.split(r"[/\\]", name)[-1]
    last = re.sub(r"\.(mp4|avi|mkv|webm|mov|npy|npz|h5|hdf5|parquet)$", "", last, flags=re.IGNORECASE)
    return _TOOLS.sub("", last)
