"""What stands between files of unknown origin and the libraries that parse them."""

from __future__ import annotations

import contextlib
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from gmil.errors import FileAccessError, FormatError, GmilError, MissingFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_OF_A_MESSAGE = 200
_TEXTS = ("CSV", "C4.5 data", "ARFF")
_BEST_COMPRESSION = 1100  # deflate cannot do better than about 1032 to 1


@contextlib.contextmanager
def parsing(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a parser raises over a damaged file into one sentence; a pipe is refused before it is opened."""
    refuse_pipe(path)
    try:
        yield
    except GmilError:
        raise
    except Exception as error:  # parsers raise nearly anything over nearly arbitrary bytes
        if kind in _TEXTS and (isinstance(error, UnicodeDecodeError) or "invalid UTF8" in str(error)):
            raise not_utf8(path, error) from error
        msg = (
            f"{path} cannot be read as {kind}: {first_line(error)}. The file is damaged or of another "
            "kind; write or download it again."
        )
        raise FormatError(msg) from error


@contextlib.contextmanager
def opening(path: Path) -> Iterator[None]:
    """Name a file that is not there, or that the system does not open; a pipe is refused before it is opened."""
    refuse_pipe(path)
    try:
        yield
    except FileNotFoundError as error:
        msg = f"{path} does not exist. Check the name; the working folder is {Path.cwd()}."
        raise MissingFileError(msg) from error
    except OSError as error:
        if isinstance(error, GmilError) or error.errno is None:  # a library's own, about what the file holds
            raise
        msg = f"{path} cannot be opened: {error.strerror or first_line(error)}."
        raise FileAccessError(msg) from error


def refuse_pipe(path: Path) -> None:
    """Refuse a pipe, a socket or a device: opening one may wait for ever."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        msg = f"{path} is not a regular file, but a pipe or a device. Copy what it holds into a file."
        raise FileAccessError(msg)


def expect(holds: object, otherwise: str) -> None:
    """Refuse a file in which something does not hold."""
    if not holds:
        raise FormatError(otherwise)


def not_utf8(path: Path, error: Exception) -> FormatError:
    """Return what to say of a text in the encoding of another time or place."""
    return FormatError(f"{path} is no UTF-8 text: {first_line(error)}. Save it as UTF-8.")


def first_line(error: BaseException) -> str:
    """Return the beginning of an error message, without its full stop."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:_MOST_OF_A_MESSAGE].rstrip(". ")


def refuse_impossible_size(path: Path, what: str, n_bytes: int, stored_bytes: int) -> None:
    """Refuse arrays that a file cannot hold or that this machine cannot, before memory is taken."""
    refuse_false_size(path, what, n_bytes, stored_bytes)
    memory = physical_memory()
    if memory is not None and n_bytes > memory:
        msg = (
            f"{path} does not fit: {what} takes {n_bytes / 2**30:.1f} GiB, but this machine has "
            f"{memory / 2**30:.1f} GiB of memory. Read it on a larger machine, or split the file."
        )
        raise FormatError(msg)


def refuse_bomb(path: Path) -> None:
    """Refuse an archive that claims more than it can hold; other files pass."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            total = sum(member.file_size for member in archive.infolist())
        refuse_impossible_size(path, "what it holds", total, path.stat().st_size)


def refuse_false_size(path: Path, what: str, n_bytes: int, stored_bytes: int) -> None:
    """Refuse arrays that a file cannot hold."""
    if n_bytes > _BEST_COMPRESSION * (stored_bytes + 1024):
        msg = (
            f"{path} is damaged: {what} claims {n_bytes} bytes, but only {stored_bytes} are stored. "
            "Write or download the file again."
        )
        raise FormatError(msg)


def physical_memory() -> int | None:
    """Return the bytes of memory of this machine, or None where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not on this system
        return None
