"""What cross-validation found about instances: scores by models that never saw their bags, and measures of them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.model_selection.instance_metrics import (
    aucs_within_bags,
    pooled_auc,
    pooled_average_precision,
    pooled_intervals,
    within_interval,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats, Integers


@dataclass(frozen=True, eq=False)
class InstanceResult:
    """Held-out scores of instances, and how well they find the instances of a class.

    Figures are means over repeats and, with more than two classes, over the classes, each against all others. They
    are one number per setting, and a plain number where there is one setting only.

    Attributes
    ----------
    labels : array of shape (n_instances, n_problems)
        1, 0, or -1 for unknown. Of two classes there is one problem, the positive class.
    scores : array of shape (n_settings, n_repeats, n_instances, n_problems)
        By the model of the fold that tested the bag of the instance.
    offsets : array of shape (n_bags + 1,)
        Where every bag begins.
    groups : array of shape (n_bags,) or None
        Which bags belong together.
    """

    labels: Integers
    scores: Floats
    offsets: Integers
    groups: NDArray[Any] | None = None

    def auc(self) -> Any:
        """Return the area under the ROC curve over the instances of all bags."""
        return _plain(self._pooled(pooled_auc))

    def average_precision(self) -> Any:
        """Return the average precision over the instances of all bags."""
        return _plain(self._pooled(pooled_average_precision))

    def auc_within(self) -> Any:
        """Return the mean area under the ROC curve within bags, over those with both kinds; NaN where none has."""
        return _plain(_mean_of_known(self.aucs_within(), axis=1))

    def aucs_within(self) -> Floats:
        """Return the area under the ROC curve within every bag, (n_settings, n_bags), NaN without both kinds.

        With several classes it is the mean over those of which the bag has both kinds.
        """
        by_repeat = np.array(
            [
                [
                    [aucs_within_bags(self.labels[:, p], rows[:, p], self.offsets) for p in self._problems]
                    for rows in one
                ]
                for one in self.scores
            ]
        )
        return _mean_of_known(_mean_of_known(by_repeat, axis=2), axis=1)

    def n_bags_within(self) -> int:
        """Return how many bags have both kinds of instances, in some problem."""
        starts = self.offsets[:-1]
        both = np.logical_or.reduceat(self.labels == 1, starts) & np.logical_or.reduceat(self.labels == 0, starts)
        return int(both.any(axis=1).sum())

    def intervals(self, level: float = 0.95, n_resamples: int = 2000, random_state: int = 0) -> dict[str, Any]:
        """Return the intervals of "auc", "average_precision" and "auc_within", (low, high) for every setting.

        They are by bootstrap over bags or, where bags belong together, over whole groups, and never collapse; see
        `gmil.model_selection.instance_metrics.pooled_intervals`. Where a figure is NaN, so are its limits.

        Parameters
        ----------
        level : float
            How often such intervals hold the figure that more bags of the kind would show.
        n_resamples : int
            How often they are drawn again.
        random_state : int
            The seed of the draws.
        """
        draw = {"level": level, "n_resamples": n_resamples, "random_state": random_state}
        pooled = [self._pooled_intervals(scores, draw) for scores in self.scores]
        within = [self._within_interval(aucs, draw) for aucs in self.aucs_within()]
        found = {
            "auc": [auc for auc, _ in pooled],
            "average_precision": [precision for _, precision in pooled],
            "auc_within": within,
        }
        return {name: limits[0] if len(limits) == 1 else np.array(limits) for name, limits in found.items()}

    def figures(self) -> dict[str, Any]:
        """Return the three figures of one setting with their intervals, and what they are of; None for NaN."""
        intervals = self.intervals()
        found: dict[str, Any] = {}
        for name, limits in intervals.items():
            found[name] = getattr(self, name)()
            found[f"{name}_interval"] = limits
        found = {name: None if np.isnan(value).any() else value for name, value in found.items()}
        of = self.labels[:, self._problems]
        counts = {"n_positive": (of == 1).any(axis=1), "n_known": (of >= 0).any(axis=1)}
        counted = {name: int(rows.sum()) for name, rows in counts.items()}
        return found | counted | {"n_compared": of.shape[1], "n_bags_within": self.n_bags_within()}

    def _pooled_intervals(self, scores: Floats, draw: dict[str, Any]) -> Any:
        if np.isnan(scores[:, :, self._problems]).any():
            return _NO_INTERVAL, _NO_INTERVAL
        some = self._problems
        return pooled_intervals(self.labels[:, some], scores[:, :, some], self.offsets, self.groups, **draw)

    def _within_interval(self, aucs: Floats, draw: dict[str, Any]) -> tuple[float, float]:
        known = ~np.isnan(aucs)
        groups = None if self.groups is None else self.groups[known]
        return within_interval(aucs[known], groups, **draw) if known.any() else _NO_INTERVAL

    def one_vs_rest(self, problem: int) -> InstanceResult:
        """Return the result of one class against all others.

        Parameters
        ----------
        problem : int
            The number of the class.
        """
        return replace(self, labels=self.labels[:, [problem]], scores=self.scores[..., [problem]])

    def negated(self) -> InstanceResult:
        """Return the result of the other one of two classes."""
        return replace(self, labels=np.where(self.labels < 0, self.labels, 1 - self.labels), scores=-self.scores)

    @property
    def _problems(self) -> Integers:
        """The classes of which both kinds of instances are known."""
        return np.flatnonzero((self.labels == 1).any(axis=0) & (self.labels == 0).any(axis=0))

    def _pooled(self, measure: Callable[[Integers, Floats], float]) -> Floats:
        return np.array(
            [
                np.mean([[measure(self.labels[:, p], rows[:, p]) for p in self._problems] for rows in one])
                for one in self.scores
            ]
        )


_NO_INTERVAL = (float("nan"), float("nan"))


def _mean_of_known(values: Floats, axis: int) -> Floats:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # none is known: NaN is the answer
        return np.asarray(np.nanmean(values, axis=axis))


def _plain(values: Floats) -> Any:
    return float(values[0]) if len(values) == 1 else values
