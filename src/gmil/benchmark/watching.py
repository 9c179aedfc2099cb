"""What a process costs: CPU seconds, seconds on a GPU, memory; and the end of one that costs too much."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from gmil.benchmark.specification import Budget

OVER_TIME, OVER_MEMORY, OVER_FORECAST, ABANDONED = 71, 72, 73, 74
"""Exit codes of a process that stopped itself."""
_INTERRUPTIONS = ("SIGINT", "SIGTERM", "SIGHUP")
"""Signals of people and schedulers, which say nothing about a method; not every system has all."""
SURE_BY_FOLDS, SURE_BY_DEFAULT = 1.5, 3
"""A forecast is rough: what is stopped early, by its first folds, or not begun, by what the default setting costs, is
what would cost so many times what it may.
"""
_SECONDS_BETWEEN = 0.1


class Cost(NamedTuple):
    """Of one job, in a process of its own.

    Attributes
    ----------
    cpu_seconds : float
    gpu_seconds : float or None
        By the clock, where a GPU was used.
    peak_bytes : float or None
        The most memory beyond what the process had before; None where the system does not say.
    """

    cpu_seconds: float
    gpu_seconds: float | None
    peak_bytes: float | None


class Watch:
    """Ends this process where a job costs too much, or nobody waits for it; it is a thread, as methods know no budget.

    Parameters
    ----------
    budget : Budget
    n_in_turn : int
        How many folds are fitted one after the other: then the first one tells about the others. 0 where all are
        fitted together.
    """

    def __init__(self, budget: Budget, n_in_turn: int = 0) -> None:
        self.budget, self.n_in_turn = budget, n_in_turn
        self._stopped = threading.Event()
        self._memory_before = _peak_bytes()
        self.restart()

    def restart(self) -> None:
        """Begin with the next job."""
        self._cpu, self._clock = time.process_time(), time.perf_counter()
        self._seen: tuple[int, float] | None = None

    def see(self, done: int, total: int) -> None:
        """Take how many folds are done; where the others would clearly cost too much, end the process now."""
        seconds, sure = self.cost().cpu_seconds, SURE_BY_FOLDS
        expected = 0.0
        if self.n_in_turn:  # they share no work: every fold makes the forecast surer
            expected, sure = seconds * total / done, 1 + (SURE_BY_FOLDS - 1) / done
        elif self._seen is not None:
            expected = forecast(self._seen, (done, seconds), total)
        if expected > sure * 60 * self.budget.most_minutes:
            os._exit(OVER_FORECAST)
        self._seen = (done, seconds)

    def cost(self) -> Cost:
        """Return what the job has cost so far."""
        peak = None if self._memory_before is None else max(0.0, (_peak_bytes() or 0.0) - self._memory_before)
        gpu = time.perf_counter() - self._clock if _used_gpu() else None
        return Cost(time.process_time() - self._cpu, gpu, peak)

    def __enter__(self) -> Self:
        threading.Thread(target=self._look, name="gmil-budget", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()

    def _look(self) -> None:
        parent = multiprocessing.parent_process()
        while not self._stopped.wait(_SECONDS_BETWEEN):
            is_orphan = parent is not None and not parent.is_alive()
            code = ABANDONED if is_orphan else self._exceeded()
            if code is not None:
                os._exit(code)  # no cleaning up: whatever computes cannot be asked to stop

    def _exceeded(self) -> int | None:
        cost = self.cost()
        most = SURE_BY_FOLDS * 60 * self.budget.most_minutes
        if self._seen is None and self.n_in_turn * cost.cpu_seconds > most:  # the first fold is not done yet
            return OVER_FORECAST
        return exceeded(cost, self.budget)


def exceeded(cost: Cost, budget: Budget) -> int | None:
    """Return the exit code of a job that costs too much, None where it does not."""
    if cost.cpu_seconds > 60 * budget.most_minutes:
        return OVER_TIME
    return OVER_MEMORY if (cost.peak_bytes or 0) > budget.most_gib * 2**30 else None


def forecast(before: tuple[int, float], now: tuple[int, float], total: int) -> float:
    """Return the seconds of all folds, from two looks at folds done and seconds; work that folds share counts once.

    >>> forecast((1, 100.0), (2, 110.0), 10)
    190.0
    """
    each = (now[1] - before[1]) / max(1, now[0] - before[0])
    return now[1] + each * (total - now[0])


def is_interrupted(code: int | None) -> bool:
    """Tell whether a process was stopped from outside, so that its cell is as it was: not measured."""
    numbers = [getattr(signal, name) for name in _INTERRUPTIONS if hasattr(signal, name)]
    return code == ABANDONED or code in [-number for number in numbers]


def reason_of(code: int | None, budget: Budget) -> str:
    """Return why a process ended without a result."""
    reasons = {
        OVER_TIME: f"more than {budget.most_minutes:g} CPU minutes a k-fold",
        OVER_MEMORY: f"more than {budget.most_gib:g} GiB of memory",
        OVER_FORECAST: f"more than {budget.most_minutes:g} CPU minutes a k-fold, by its first folds",
    }
    return reasons.get(code or 0, f"the process ended with {code}: perhaps it was killed for want of memory")


def _peak_bytes() -> float | None:
    """Return the most memory that this process has had."""
    try:
        import resource
    except ImportError:  # not on this system
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if sys.platform == "darwin" else 1024 * peak)


def _used_gpu() -> bool:
    torch: Any = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized() and torch.cuda.max_memory_allocated() > 0
