"""How many threads a computation may use."""

from __future__ import annotations

import os
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

import joblib
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from collections.abc import Callable


def usable_cores() -> int:
    """Return the number of cores that this process may use: its affinity, and the quota of its container."""
    allowed = cores_by_quota()
    return min(allowed, len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else allowed


@cache
def cores_by_quota() -> int:
    """Return what joblib counts, quotas included; it reads files for that, so it is asked once."""
    return int(joblib.cpu_count())


def n_threads(n_jobs: int | None = None) -> int:
    """Return the number of threads that ``n_jobs`` stands for.

    ``None`` is every core that this process may use, or ``OMP_NUM_THREADS`` where that is less (process pools set
    it, so that their workers share the machine); -1 is every core, -2 all but one.

    >>> n_threads(3)
    3
    """
    if n_jobs is None:
        return min(usable_cores(), _threads_in_environment())
    if n_jobs == 0:
        msg = "n_jobs=0 asks for no thread at all. Pass a positive number, -1 for every core, or None."
        raise ValueError(msg)
    return n_jobs if n_jobs > 0 else max(1, usable_cores() + 1 + n_jobs)


def _threads_in_environment() -> int:
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return max(1, int(first)) if first.isdecimal() else usable_cores()


class SharedSetting:
    """A context for a setting of the whole process: the first who enters changes it, the last who leaves restores it.

    Two threads that each restored what they had found would leave behind the setting of the other.

    Parameters
    ----------
    change : callable
        Changes the setting; returns a function that restores it.
    """

    def __init__(self, change: Callable[[], Callable[[], None]]) -> None:
        self._change = change
        self._lock = Lock()
        self._n_inside = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._n_inside == 0:
                self._restore = self._change()
            self._n_inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._restore()


def one_blas_thread() -> SharedSetting:
    """Return a context in which BLAS uses one thread: for work that is too small to be shared, or is shared already."""
    return _ONE_BLAS_THREAD


def _limit_blas() -> Callable[[], None]:
    restore: Callable[[], None] = _blas().limit(limits=1, user_api="blas").restore_original_limits
    return restore


_ONE_BLAS_THREAD = SharedSetting(_limit_blas)


@cache
def _blas() -> ThreadpoolController:
    """Return what controls the libraries of this process; to look for them takes milliseconds."""
    return ThreadpoolController()
