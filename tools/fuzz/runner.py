"""Child processes that try cases: long-lived, watched by the clock, and replaced when one dies.

A child says which case it begins before it begins, so that a crash belongs to that case.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import shutil
import signal
import time
import traceback
from collections import deque
from multiprocessing import connection
from typing import TYPE_CHECKING, Any

from tools.fuzz import watch
from tools.fuzz.judging import MOST_BYTES_ASKED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from tools.fuzz.results import Case, Result

    Work = Callable[[Case, Callable[[Result], None]], Result]

SECONDS_PER_CASE = 60.0
_SECONDS_TO_START = 120.0
_BATCH = 16
_OUTPUT = "output.txt"
_PRELOADED = ["tools.fuzz.work"]


class BrokenCaseError(Exception):
    """A case that could not be made: a fault of the fuzzer, not of gmil."""


def run(
    make_work: Callable[[Path], Work],
    cases: Iterable[Case],
    *,
    jobs: int = 2,
    seconds: float = float("inf"),
    seconds_per_case: float = SECONDS_PER_CASE,
) -> Iterator[Result]:
    """Try cases in child processes and yield what comes out, in any order.

    Parameters
    ----------
    make_work : callable
        Given a scratch folder, returns what tries a case; called in every child, so that it must be picklable.
    cases : iterable of Case
    jobs : int
        How many children.
    seconds : float
        No case is begun after so many seconds.
    seconds_per_case : float
        A child that takes longer is killed, and its case is a hang.
    """
    pool = _Pool(make_work, deque(cases), seconds_per_case, seconds)
    try:
        yield from pool.results(jobs)
    finally:
        pool.close()


class _Pool:
    def __init__(self, make_work: Any, cases: deque[Case], seconds_per_case: float, seconds: float) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(_PRELOADED)
        self._make_work = make_work
        self._cases = cases
        self._seconds = seconds_per_case
        self._seconds_in_all = seconds
        self._end = float("inf")
        self._children: list[_Child] = []

    def results(self, jobs: int) -> Iterator[Result]:
        self._children = [_Child(self._context, self._make_work) for _ in range(min(jobs, len(self._cases)))]
        self._end = time.monotonic() + self._seconds_in_all  # the time to start children does not count
        while True:
            for child in self._children:
                if not child.cases:
                    child.take(self._next_cases())
            busy = [child for child in self._children if child.cases]
            if not busy:
                return
            yield from self._results_of(busy)

    def _next_cases(self) -> list[Case]:
        if time.monotonic() > self._end:
            self._cases.clear()
        return [self._cases.popleft() for _ in range(min(_BATCH, len(self._cases)))]

    def _results_of(self, busy: list[_Child]) -> Iterator[Result]:
        ready = connection.wait([child.pipe for child in busy], timeout=0.2)
        for child in busy:
            result = None
            if child.pipe in ready:
                result = child.answer(self._seconds)
            elif time.monotonic() > child.deadline:
                result = child.kill(self._seconds)
            if result is not None:
                yield result
            if not child.is_alive:
                self._replace(child)

    def _replace(self, child: _Child) -> None:
        self._cases.extendleft(reversed(child.cases))
        self._children.remove(child)
        child.close()
        self._children.append(_Child(self._context, self._make_work))

    def close(self) -> None:
        for child in self._children:
            child.close()


class _Child:
    """One child process, the cases that it has been given, and the one that it is at."""

    def __init__(self, context: Any, make_work: Any) -> None:
        self.pipe, theirs = context.Pipe()
        self._scratch = watch.scratch_folder()
        self._process = context.Process(target=_serve, args=(theirs, make_work, self._scratch / "case"), daemon=True)
        self._process.start()
        theirs.close()
        self.cases: deque[Case] = deque()
        self.deadline = time.monotonic() + _SECONDS_TO_START
        self.is_alive = True
        self._begun: Result | None = None
        self._last: Result | None = None

    def take(self, cases: list[Case]) -> None:
        self.cases.extend(cases)
        if cases:
            self.pipe.send(cases)
            self.deadline = time.monotonic() + _SECONDS_TO_START

    def answer(self, seconds: float) -> Result | None:
        """Return the result of a case, if that is what the child has to say."""
        try:
            kind, content = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            return self._died()
        if kind == "broken":
            raise BrokenCaseError(content)
        if kind == "begin":
            self._begun = content
            self.deadline = time.monotonic() + seconds
            return None
        self._done()
        self.deadline = time.monotonic() + _SECONDS_TO_START
        return content

    def _died(self) -> Result:
        """Blame the case that was begun, or else the one before: it left something broken behind."""
        self._process.join()
        code = self._process.exitcode
        why = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        if self._begun is None and self._last is None:
            msg = f"A child ended with {why} before its first case: {self._output()}"
            raise BrokenCaseError(msg)
        when = "" if self._begun else " after it"
        return self._ended("crash", f"{why}{when}. {self._output()}")

    def _output(self) -> str:
        """Return the last thing that the child or a library in it printed."""
        lines = (self._scratch / _OUTPUT).read_text(errors="replace").splitlines()
        return lines[-1][:200] if lines else ""

    def kill(self, seconds: float) -> Result:
        if self._begun is None:
            msg = f"A child did not begin its case {self.cases[0]} in time."
            raise BrokenCaseError(msg)
        self._process.kill()
        return self._ended("hang", f"no answer in {seconds:g} seconds")

    def _ended(self, outcome: str, note: str) -> Result:
        blamed = self._begun or self._last
        assert blamed is not None
        if self._begun is not None:
            self._done()
        self.is_alive = False
        return dataclasses.replace(blamed, outcome=outcome, note=note)

    def _done(self) -> None:
        self.cases.popleft()
        self._last, self._begun = self._begun, None

    def close(self) -> None:
        self._process.kill()
        self._process.join()
        self.pipe.close()
        shutil.rmtree(self._scratch, ignore_errors=True)


def _serve(pipe: connection.Connection, make_work: Callable[[Path], Work], scratch: Path) -> None:
    """Try cases until the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _print_to(scratch.parent / _OUTPUT)
    try:
        work = make_work(scratch)
        while True:
            for case in pipe.recv():
                watch.limit_memory(MOST_BYTES_ASKED)  # anew, since a child may keep what it got before
                result = work(case, lambda begun: pipe.send(("begin", begun)))
                pipe.send(("end", result))
    except (EOFError, BrokenPipeError):
        return
    except Exception:
        pipe.send(("broken", traceback.format_exc()))


def _print_to(path: Path) -> None:
    """Keep what libraries print away from the terminal: the last line of it may tell why a child died."""
    with path.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
