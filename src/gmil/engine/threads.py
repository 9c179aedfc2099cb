"""How many threads a computation may use."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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


def one_blas_thread() -> Any:
    """Return a context in which BLAS uses one thread: for work that is too small to be shared, or is shared already."""
    return _blas().limit(limits=1, user_api="blas")


@cache
def _blas() -> ThreadpoolController:
    """Return what controls the libraries of this process; to look for them takes milliseconds."""
    return ThreadpoolController()
