"""All folds of a cross-validation as one piece of work, for estimators that are faster on all of them together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.scale import LazyBags

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
