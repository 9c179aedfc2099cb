"""HDF5 files of unknown origin: nothing outside the file is opened, and no more is read than is stored."""

from __future__ import annotations

import contextlib
import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from gmil.errors import BackendUnavailableError, FormatError, installing
from gmil.safety.guard import first_line, parsing, refuse_impossible_size

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy as np

SUFFIXES = (".h5", ".hdf5")
FEATURE_KEYS = ("features", "feats", "patch_embeddings")
"""What tools call embeddings of patches."""
COORDINATES = "coords"
_FILTERS = {1: "deflate", 2: "shuffle", 3: "fletcher32", 4: "szip", 5: "nbit", 6: "scaleoffset", 32000: "lzf"}
"""Filters that are part of the library; any other would be loaded from a plugin."""
_MOST_BYTES_OF_AN_ATTRIBUTE = 1 << 16


class DamagedFileError(FormatError):
    """A file that cannot be opened: cut short, locked, or of another kind. A folder may be read without it."""


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Yield an HDF5 file that is closed behind; nothing is locked, as nothing is written."""
    h5py = import_h5py()
    with parsing(path, "HDF5"):
        try:
            file = h5py.File(path, "r", locking=False)
        except OSError as error:
            msg = f"{path} cannot be opened as HDF5: {first_line(error)}. Write or download it again."
            raise DamagedFileError(msg) from error
        with file:
            yield file


def import_h5py() -> Any:
    """Return h5py, or say how to get it."""
    try:
        import h5py
    except ImportError as error:
        msg = f"HDF5 files need h5py, which is not installed. {installing('slides')}"
        raise BackendUnavailableError(msg) from error
    return h5py


@dataclass(frozen=True)
class Header:
    """Shape and stored type of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Contents(NamedTuple):
    """What a file holds, its numbers aside: names, attributes of the file, and known arrays with theirs."""

    keys: tuple[str, ...]
    root: dict[str, Any]
    headers: dict[str, Header]
    attributes: dict[str, dict[str, Any]]


def contents_of(path: Path) -> Contents:
    """Return what a file holds; one that was not changed since is not opened again."""
    stamp = path.stat() if path.exists() else None
    return _contents(path, 0 if stamp is None else stamp.st_mtime_ns, 0 if stamp is None else stamp.st_size)


@functools.lru_cache(maxsize=64)
def _contents(path: Path, _changed: int, _size: int) -> Contents:
    with opened(path) as file:
        keys = tuple(file.keys())
        arrays = {key: array_of(path, file, key) for key in (*FEATURE_KEYS, COORDINATES) if key in keys}
        headers = {key: Header(tuple(array.shape), array.dtype) for key, array in arrays.items()}
        return Contents(
            keys, attributes_of(file), headers, {key: attributes_of(array) for key, array in arrays.items()}
        )


def array_of(path: Path, file: Any, key: str) -> Any:
    """Return an array of a file, not yet read, whose numbers lie in this file and can be what it claims."""
    h5py = import_h5py()
    link = file.get(key, getlink=True)
    if not isinstance(link, h5py.HardLink):
        raise _refused(path, key, "is a link to another place")
    if file.get(key, getclass=True) is not h5py.Dataset:
        raise _refused(path, key, "is no array")
    array = file[key]
    if array.is_virtual:
        raise _refused(path, key, "is a virtual array, made of other files")
    if array.external:
        raise _refused(path, key, "keeps its numbers in other files")
    if array.dtype.kind not in "biuf" or array.shape is None:
        raise _refused(path, key, f"must hold numbers, got {array.dtype}")
    _refuse_plugins(path, array, key)
    _refuse_size(path, array, key)
    return array


def _refused(path: Path, key: str, why: str) -> FormatError:
    return FormatError(f"{path} is refused: {key!r} {why}. Write its numbers into the file itself.")


def _filters(array: Any) -> list[int]:
    created = array.id.get_create_plist()
    return [int(created.get_filter(i)[0]) for i in range(created.get_nfilters())]


def _refuse_plugins(path: Path, array: Any, key: str) -> None:
    others = [number for number in _filters(array) if number not in _FILTERS]
    if others:
        raise _refused(path, key, f"is compressed by filter {others[0]}, which needs a plugin")


def _refuse_size(path: Path, array: Any, key: str) -> None:
    """Refuse an array that claims more than is stored: absent numbers would be read as zeros, or fill the memory."""
    claimed = math.prod(array.shape) * array.dtype.itemsize
    stored, length = array.id.get_storage_size(), path.stat().st_size
    is_short = stored < claimed and not _filters(array)
    offset = array.id.get_offset()
    if is_short or stored > length or (offset is not None and offset + stored > length):
        msg = (
            f"{path} is damaged: {key!r} of shape {array.shape} claims {claimed} bytes, but the file stores "
            f"{min(stored, length)}. Write or download it again."
        )
        raise DamagedFileError(msg)
    refuse_impossible_size(path, repr(key), claimed, stored)


def attributes_of(holder: Any) -> dict[str, Any]:
    """Return small attributes as plain Python values: numbers, texts, lists of them; "None" is None."""
    h5py = import_h5py()
    found: dict[str, Any] = {}
    for name in holder.attrs:
        stored = holder.attrs.get_id(name)
        is_text = h5py.check_string_dtype(stored.dtype) is not None
        too_large = stored.get_storage_size() > _MOST_BYTES_OF_AN_ATTRIBUTE
        if too_large or not (is_text or stored.dtype.kind in "biufS"):
            continue
        with contextlib.suppress(UnicodeDecodeError):
            found[name] = _plain(holder.attrs[name])
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        value = value.decode()
    if hasattr(value, "tolist"):
        value = value.tolist()
    return None if value == "None" else value
