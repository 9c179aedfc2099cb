"""Searches in step: what several of them ask for is evaluated together, as one product of matrices."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gmil.engine.arrays import Floats

Start = TypeVar("Start")
Found = TypeVar("Found")

_AT_ONCE = 32
"""Searches in step, each of which has a thread that mostly waits."""


class Lockstep:
    """A function of parameters that answers when all searches that still run have asked.

    Parameters
    ----------
    function : callable
        Takes parameters of several searches, (n_some, n_parameters); returns values, (n_some,), and gradients.
    n_searches : int
    """

    def __init__(self, function: Callable[[Floats], tuple[Floats, Floats]], n_searches: int) -> None:
        self.function, self.n_running = function, n_searches
        self.changed = threading.Condition()
        self.asked: dict[int, Floats] = {}
        self.answers: dict[int, tuple[float, Floats]] = {}
        self.error: BaseException | None = None

    def ask(self, search: int, parameters: Floats) -> tuple[float, Floats]:
        """Return value and gradient once all others have asked too."""
        with self.changed:
            self.asked[search] = np.copy(parameters)
            self._answer_if_all_wait()
            self.changed.wait_for(lambda: search in self.answers or self.error is not None)
            if self.error is not None:
                raise self.error
            return self.answers.pop(search)

    def leave(self) -> None:
        """Tell that a search has ended."""
        with self.changed:
            self.n_running -= 1
            self._answer_if_all_wait()

    def _answer_if_all_wait(self) -> None:
        if not self.asked or len(self.asked) < self.n_running:
            return
        # In the order of the searches: which thread came first must not matter.
        searches = sorted(self.asked)
        try:
            values, gradients = self.function(np.array([self.asked[i] for i in searches]))
            self.answers = {i: (float(v), g) for i, v, g in zip(searches, values, gradients, strict=True)}
        except BaseException as error:  # every search must hear of it, or the others would wait forever
            self.error = error
        self.asked = {}
        self.changed.notify_all()


def in_step(
    search: Callable[[Start, Callable[[Floats], tuple[float, Floats]]], Found],
    starts: Sequence[Start],
    function: Callable[[Floats], tuple[Floats, Floats]],
) -> list[Found]:
    """Return what a search finds from every start; it is given the start, and the function of its own parameters."""
    found: list[Found] = []
    for first in range(0, len(starts), _AT_ONCE):
        some = starts[first : first + _AT_ONCE]
        together = Lockstep(function, len(some))

        def run(number: int, start: Start, together: Lockstep = together) -> Found:
            try:
                return search(start, lambda parameters: together.ask(number, parameters))
            finally:
                together.leave()

        with ThreadPoolExecutor(len(some)) as threads:
            found += threads.map(run, range(len(some)), some)
    return found
