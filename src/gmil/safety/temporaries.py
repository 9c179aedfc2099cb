"""Temporary files whose names say who writes them, so that those of killed processes can be told and removed."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import re
import tempfile
import time
from pathlib import Path

from gmil.safety.processes import is_alive

_MARK = "gmil-tmp"
_LONGEST_STEM = 40  # a name has at most 255 bytes, and a character up to four
_NAME = re.compile(rf"\..*-{_MARK}-(?P<host>[0-9a-f]{{8}})-(?P<pid>\d+)-[^.]*(\..*)?")
_SECONDS_OF_SILENCE = 24 * 3600.0
"""After so long without a change, a file of another machine is taken for one that nobody writes."""


def make_temporary(target: Path) -> Path:
    """Create an empty file beside ``target``, with its suffix; the name holds this machine and process."""
    prefix = f"{_beginning(target)}{_host()}-{os.getpid()}-"
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=prefix, suffix=target.suffix)
    os.close(handle)
    return Path(name)


def remove_leftovers(folder: Path, target: Path | None = None) -> int:
    """Remove temporary files that killed processes left for ``target``, or for any file; return how many.

    A file of this machine is removed when its process is gone. Nobody can ask another machine that shares the disk:
    its files, and those of a process number that is used again, are removed after a day without a change.
    """
    beginning = "." if target is None else _beginning(target)
    removed = 0
    with contextlib.suppress(OSError), os.scandir(folder) as entries:  # a folder may be written to and not listed
        for entry in entries:
            match = _NAME.fullmatch(entry.name) if entry.name.startswith(beginning) else None
            if match is not None and _remove_if_left(Path(entry.path), match["host"], int(match["pid"])):
                removed += 1
    return removed


def _remove_if_left(path: Path, host: str, pid: int) -> bool:
    try:
        is_left = _is_left(host, pid, path.stat().st_mtime)
        if is_left:
            path.unlink()
    except OSError:  # removed by another process meanwhile, or not ours to remove
        return False
    return is_left


def _is_left(host: str, pid: int, changed: float) -> bool:
    if host == _host() and not is_alive(pid):
        return True
    return pid != os.getpid() and time.time() - changed > _SECONDS_OF_SILENCE


def _beginning(target: Path) -> str:
    return f".{target.stem[:_LONGEST_STEM]}-{_MARK}-"


@functools.cache
def _host() -> str:
    """Return a short name of this machine; containers that number their processes apart count as machines."""
    try:
        numbering = str(Path("/proc/self/ns/pid").readlink())
    except OSError:  # not Linux
        numbering = ""
    return hashlib.sha256(f"{platform.node()} {numbering}".encode()).hexdigest()[:8]
