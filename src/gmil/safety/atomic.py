"""Writing files so that a kill at any moment leaves the old file or the new one, never half of one."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from gmil.errors import DiskError, FileAccessError, GmilError, MissingFileError
from gmil.safety.temporaries import make_temporary, remove_leftovers

if TYPE_CHECKING:
    from collections.abc import Iterator

_one_at_a_time = threading.Lock()
_FIXES = {
    getattr(errno, "EDQUOT", errno.ENOSPC): "Remove files of yours, or choose a folder on another disk.",
    errno.ENOSPC: "Free some space on that disk, or choose a folder on another one.",
    errno.EFBIG: "Choose a disk, or a limit of this process, that allows larger files.",
    errno.EIO: "Check the disk, or choose a folder on another one.",
}
"""What may go wrong on the way to the disk, after the file was opened, and what helps."""


@contextlib.contextmanager
def replacing(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside ``target``; rename it onto ``target`` when the block succeeds.

    The temporary file keeps the suffix of the target, because some writers go by it, and is removed when the block
    fails; where the process is killed, the next one that writes the target removes it. A target that exists keeps its
    mode, a new one gets that of the user's umask. A link stays one, and the file that it names is replaced.

    Raises
    ------
    DiskError
        The disk is full, or fails.
    """
    target = Path(target)
    target = target.resolve() if target.is_symlink() else target
    refuse_target(target)
    with clear_disk_errors(target):
        temporary = _temporary_beside(target)
        try:
            yield temporary
            _flush_to_disk(temporary)
            temporary.chmod(stat.S_IMODE(target.stat().st_mode) if target.exists() else _mode_of_new_files())
            temporary.replace(target)
            _flush_folder(target.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a folder beside ``path`` that takes its name when the block succeeds, and goes when it fails."""
    if path.exists():
        msg = f"{path} exists already. Remove it, or choose another folder."
        raise FileAccessError(msg)
    refuse_target(path)
    with clear_disk_errors(path):
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}-"))
        try:
            yield temporary
            temporary.chmod(0o755)
            temporary.rename(path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def clear_disk_errors(target: Path) -> Iterator[None]:
    """Name the file and the fix where a disk is full, or fails; every other error passes."""
    try:
        yield
    except OSError as error:
        if not is_disk_error(error) or error.errno is None:
            raise
        msg = f"{target} cannot be written: {os.strerror(error.errno)}. {_FIXES[error.errno]}"
        raise DiskError(msg) from error


def is_disk_error(error: BaseException) -> bool:
    """Tell whether it is the disk that is full, or fails."""
    return isinstance(error, OSError) and not isinstance(error, GmilError) and error.errno in _FIXES


def _temporary_beside(target: Path) -> Path:
    try:
        remove_leftovers(target.parent, target)
        return make_temporary(target)
    except OSError as error:
        if is_disk_error(error):
            raise
        msg = f"{target} cannot be written: {error.strerror}. Choose another folder."
        raise FileAccessError(msg) from error


def refuse_target(target: str | os.PathLike[str], *sources: str | os.PathLike[str]) -> None:
    """Refuse a target that cannot be a file, or is one that is read: better before hours of work than after them."""
    target = Path(target)
    if target.exists() and any(Path(source).exists() and target.samefile(source) for source in sources):
        msg = f"{target} cannot be written: it is what is read. Name another file."
        raise FileAccessError(msg)
    if not target.parent.is_dir():
        msg = f"{target} cannot be written: there is no folder {target.parent}. Create it first."
        raise MissingFileError(msg)
    if target.is_dir():
        msg = f"{target} cannot be written: it is a folder. Name a file in it."
        raise FileAccessError(msg)
    if target.exists() and not target.is_file():
        msg = f"{target} cannot be written: it is a device or a pipe, which a file would replace. Name a file."
        raise FileAccessError(msg)


def _flush_to_disk(path: Path) -> None:
    with path.open("r+b") as file:  # Windows flushes only what is open for writing
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Make a rename last through a loss of power; some file systems, and Windows, cannot flush a folder."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _mode_of_new_files() -> int:
    """Return the mode that the user's umask gives to a new file (a temporary one is private)."""
    with _one_at_a_time:  # another thread would take the mask of this moment for the user's
        mask = os.umask(0o077)  # it can only be read by setting it
        os.umask(mask)
    return 0o666 & ~mask
