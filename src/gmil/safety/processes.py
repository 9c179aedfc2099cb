"""Processes that are alive, and workers that end when the process that started them is gone."""

from __future__ import annotations

import functools
import multiprocessing
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_SECONDS_BETWEEN_LOOKS = 1.0
_SYNCHRONIZE, _ACCESS_DENIED, _STILL_RUNNING = 0x00100000, 5, 0x102  # of the Windows API

_watching = threading.Lock()  # held from the first watch on: one thread a process is enough


def is_alive(pid: int) -> bool:
    """Tell whether a process of this machine runs; one of another user counts."""
    if sys.platform == "win32":  # there os.kill ends the process, whatever the signal
        import ctypes

        handle = ctypes.windll.kernel32.OpenProcess(_SYNCHRONIZE, False, pid)
        if not handle:
            return ctypes.windll.kernel32.GetLastError() == _ACCESS_DENIED
        found = ctypes.windll.kernel32.WaitForSingleObject(handle, 0)
        ctypes.windll.kernel32.CloseHandle(handle)
        return found == _STILL_RUNNING
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def bound(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function for worker processes: one that calls it ends soon after this process has.

    A killed process cannot stop its workers, and they would go on computing for nobody.
    """
    return functools.partial(_call_bound, os.getpid(), function)


def end_with(parent: int) -> None:
    """End this process when its parent is gone; nothing is done where ``parent`` is not, and never was, the parent."""
    is_worker = multiprocessing.current_process().name.startswith("LokyProcess")  # those of joblib
    if is_worker and os.getppid() != parent and not is_alive(parent):
        os._exit(1)  # it was gone before this one had begun
    if os.getppid() == parent and _watching.acquire(blocking=False):
        threading.Thread(target=_watch, args=(parent,), name="gmil-end-with-parent", daemon=True).start()


def _call_bound(parent: int, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    end_with(parent)
    return function(*args, **kwargs)


def _watch(parent: int) -> None:
    # An orphan gets another parent, except under Windows, where the number stays.
    while os.getppid() == parent and (sys.platform != "win32" or is_alive(parent)):
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    os._exit(1)  # no cleaning up: what it would tell its parent, nobody reads
