"""What a piece of code does to the machine: memory it takes, and acts that reading a file has no need of."""

from __future__ import annotations

import contextlib
import functools
import os
import resource
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.fuzz.mutations.hostile import CANARY, OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Iterator

_ACTS = {
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.kill",
    "os.link",
    "os.mkdir",
    "os.posix_spawn",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.spawn",
    "os.symlink",
    "os.system",
    "os.truncate",
    "pickle.find_class",
    "pty.spawn",
    "shutil.rmtree",
    "subprocess.Popen",
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_watches: list[tuple[str, list[str]]] = []


@contextlib.contextmanager
def acts(folder: Path) -> Iterator[list[str]]:
    """Collect what happens that must not while a file is read; files below ``folder`` may be written."""
    _install_hook()
    seen: list[str] = []
    _watches.append((str(folder), seen))
    try:
        yield seen
    finally:
        _watches.pop()
        if sys.modules.pop(CANARY, None):
            seen.append(f"import of {CANARY}")
        if Path(OUTSIDE).exists():
            seen.append(f"{OUTSIDE} exists")


@functools.cache
def _install_hook() -> None:
    sys.addaudithook(_on_event)  # for ever: a hook cannot be taken out


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watches:
        return
    folder, seen = _watches[-1]
    if event in _ACTS or event.startswith("socket."):
        if not str(arguments[0] if arguments else "").startswith(folder):
            seen.append(f"{event} {arguments!r}"[:300])
    elif event == "exec" and getattr(arguments[0], "co_filename", "") == "<string>":
        seen.append(f"{event} of a text")
    elif event == "open" and _is_written(arguments) and not str(arguments[0]).startswith(folder):
        seen.append(f"{event} {arguments!r}"[:300])


def _is_written(arguments: tuple[Any, ...]) -> bool:
    _, mode, flags = arguments
    return any(letter in (mode or "") for letter in "wax+") or bool((flags or 0) & _WRITING)


def memory_now() -> int:
    """Return the bytes of memory that this process has."""
    return _status("VmRSS")


def reset_peak() -> None:
    """Begin anew to remember the most memory that this process had."""
    Path("/proc/self/clear_refs").write_text("5")


def memory_peak() -> int:
    """Return the most bytes of memory since `reset_peak`."""
    return _status("VmHWM")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    msg = f"/proc/self/status has no {name}: run this on Linux."
    raise OSError(msg)


def limit_memory(more: int) -> None:
    """Let this process take so many bytes of addresses more than it has, and no core files."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_status("VmSize") + more, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def scratch_folder() -> Path:
    """Return a new folder of this process, in memory where the system has a place for that."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="gmil-fuzz-", dir=memory if memory.is_dir() else None))
