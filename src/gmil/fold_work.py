"""All folds of a cross-validation as one piece of work, for estimators that are faster on all of them together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.scale import LazyBags

Found = TypeVar("Found")

_MOST_BYTES = 1 << 30

Receiver = Callable[[int, list[int], "Floats"], None]
"""Takes the number of a setting, the numbers of folds, and their decisions, (n_some_folds, n_problems, n_bags).

Decisions are about all bags, training and test, and say how positive they are: there may be too many to be kept.
"""


ScoreReceiver = Callable[[int, int, "Floats"], None]
"""Takes the number of a setting, the number of a fold, and scores of the instances it tests, (n_some, n_problems)."""


class Fold(NamedTuple):
    """One fold of one repeat."""

    training: Booleans  # (n_bags,)
    seed: int


class FoldWork(NamedTuple):
    """Every fold of every repeat, under every setting."""

    settings: Sequence[Mapping[str, Any]]
    bags: Bags | LazyBags
    y: NDArray[Any]
    folds: Sequence[Fold]
    groups: NDArray[Any] | None = None
    n_jobs: int | None = None  # threads
    progress: Callable[[int, int], None] | None = None
    instance_labels: Integers | None = None  # (n_instances, n_problems); where given, instances are scored too
    receive_scores: ScoreReceiver | None = None  # takes these scores, of an estimator with ``_folds_score_instances``

    @property
    def n_fits(self) -> int:
        """How many fits it replaces."""
        return len(self.settings) * len(self.folds)

    def report(self, done: int) -> None:
        """Tell how many fits are done."""
        if self.progress is not None:
            self.progress(done, self.n_fits)


Worker = Callable[[FoldWork, Receiver], None]


class Steps:
    """Steps of training, each taken by the model that asks for it: nothing is kept."""

    def once(
        self,
        key: Hashable,  # noqa: ARG002
        step: Callable[[], Found],
        generator: np.random.Generator | None = None,  # noqa: ARG002
    ) -> Found:
        """Return what a step finds.

        Parameters
        ----------
        key : hashable
            Names the step, and every parameter that it depends on.
        step : callable
            What it finds must not be changed by those that ask for it.
        generator : Generator, optional
            What the step draws from.
        """
        return step()


class SharedSteps(Steps):
    """Steps of training on the same bags with the same seed, each taken once for models of several settings.

    Of results that take much memory together, such as vectors of many columns, those used last are kept; a step that
    was forgotten is taken again.

    Parameters
    ----------
    most_bytes : int
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self._taken: dict[Hashable, tuple[Any, Any]] = {}

    def once(self, key: Hashable, step: Callable[[], Found], generator: np.random.Generator | None = None) -> Found:
        """Return what a step finds; taken before, it leaves the generator where it left it then."""
        if key in self._taken:
            found, state = self._taken.pop(key)
        else:
            found = step()
            state = None if generator is None else generator.bit_generator.state
        self._taken[key] = found, state  # behind all others
        self._forget()
        if generator is not None:
            generator.bit_generator.state = state
        return cast("Found", found)

    def _forget(self) -> None:
        sizes = {key: _bytes_of(found) for key, (found, _) in self._taken.items()}
        for key in [*sizes][:-1]:
            if sum(sizes.values()) <= self.most_bytes:
                return
            del self._taken[key], sizes[key]


def _bytes_of(found: Any) -> int:
    """Return the bytes of arrays: alone, in tuples, or as attributes of a fitted object."""
    if isinstance(found, (tuple, list)):
        return sum(map(_bytes_of, found))
    if isinstance(found, np.ndarray):
        return found.nbytes
    values = getattr(found, "__dict__", {}).values()
    return sum(_bytes_of(value) for value in values if isinstance(value, (np.ndarray, tuple)))


EACH_ALONE = Steps()
