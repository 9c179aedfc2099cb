"""One process at a time: a lock that goes with its process, however that ends."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NAME = ".gmil-lock"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Wait until no other process is in such a block for a folder.

    On disks that know no locks, nothing waits; on Windows, ten seconds at most.
    """
    with (folder / _NAME).open("a+b") as file:
        with contextlib.suppress(OSError):
            _lock(file)
        yield  # closing the file ends the lock


def _lock(file: Any) -> None:
    if sys.platform == "win32":
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)
