"""How well scores find the instances of a class: pooled over all bags, and within every bag.

Labels of instances are 1 (of the class), 0 (of another) or -1 (unknown). Instances that are unknown are left out.
Pooled figures tell whether scores can be compared over bags; figures within bags tell whether the right instances of
a bag stand first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.special import expit, logit

from gmil.model_selection import metrics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats, Integers

Interval = tuple[float, float]
_LEAST = 1e-4
"""Areas of resamples that are nearer to 0 or 1 have no log-odds to work with."""


def pooled_auc(labels: Integers, scores: Floats) -> float:
    """Return the area under the ROC curve over the instances of all bags; NaN where one kind is known only.

    Parameters
    ----------
    labels : array of shape (n_instances,)
        1, 0, or -1 for unknown.
    scores : array of shape (n_instances,)

    Examples
    --------
    >>> pooled_auc(np.array([1, 0, 0, -1]), np.array([0.5, 0.1, 0.9, 0.7]))
    0.5
    """
    known = labels >= 0
    return metrics.auc(labels[known] == 1, scores[known])


def pooled_average_precision(labels: Integers, scores: Floats) -> float:
    """Return the average precision over the instances of all bags; NaN where none is known to be positive.

    Parameters
    ----------
    labels : array of shape (n_instances,)
        1, 0, or -1 for unknown.
    scores : array of shape (n_instances,)

    Examples
    --------
    >>> pooled_average_precision(np.array([1, 0, 0, -1]), np.array([0.5, 0.1, 0.9, 0.7]))
    0.5
    """
    known = labels >= 0
    return metrics.average_precision(labels[known] == 1, scores[known])


def aucs_within_bags(labels: Integers, scores: Floats, offsets: Integers) -> Floats:
    """Return the area under the ROC curve inside every bag, (n_bags,); NaN for bags without both kinds.

    Parameters
    ----------
    labels : array of shape (n_instances,)
        1, 0, or -1 for unknown.
    scores : array of shape (n_instances,)
    offsets : array of shape (n_bags + 1,)
        Bag ``i`` has the instances ``offsets[i]`` to ``offsets[i + 1]``.

    Examples
    --------
    >>> aucs_within_bags(np.array([1, 0, 0, 0, -1]), np.array([0.5, 0.1, 0.9, 0.7, 0.2]), np.array([0, 3, 5]))
    array([0.5, nan])
    """
    starts = offsets[:-1]
    mixed = np.logical_or.reduceat(labels == 1, starts) & np.logical_or.reduceat(labels == 0, starts)
    found = np.full(len(starts), np.nan)
    for bag in np.flatnonzero(mixed):
        rows = slice(offsets[bag], offsets[bag + 1])
        found[bag] = pooled_auc(labels[rows], scores[rows])
    return found


class PooledIntervals(NamedTuple):
    """Intervals of the two pooled figures, (low, high) each."""

    auc: Interval
    average_precision: Interval


def pooled_intervals(
    labels: Integers,
    scores: Floats,
    offsets: Integers,
    groups: NDArray[np.int64] | None = None,
    *,
    level: float = 0.95,
    n_resamples: int = 2000,
    random_state: int = 0,
) -> PooledIntervals:
    """Return intervals of pooled figures by bootstrap over bags, or over groups of bags.

    The figures are means over repeats and over problems. The instances of a bag are drawn together: they are not
    independent. The interval is made of the spread of the resamples on the scale of log-odds, with Student's quantiles
    for the number of bags (or groups) with positive instances: near 1 areas are skewed, and percentiles of resamples
    hold the true area too seldom. Where fewer than five of these bags have a positive instance that some negative
    instance outranks, or one that outranks some negative instance, the interval is as that of an accuracy:
    percentiles, widened to hold Wilson's.

    Parameters
    ----------
    labels : array of shape (n_instances, n_problems)
        1, 0, or -1 for unknown; every problem has both kinds.
    scores : array of shape (n_repeats, n_instances, n_problems)
        Without gaps.
    offsets : array of shape (n_bags + 1,)
    groups : array of shape (n_bags,), optional
        The number of the group of every bag.
    level : float
    n_resamples : int
    random_state : int
    """
    units = np.arange(len(offsets) - 1) if groups is None else np.unique(groups, return_inverse=True)[1]
    drawn_with = np.repeat(units, np.diff(offsets))
    rankings = [
        _Ranking.of(labels[:, p], by_repeat[:, p], drawn_with) for by_repeat in scores for p in range(labels.shape[1])
    ]
    n_units = int(units.max()) + 1
    resampled = np.array(
        [
            np.mean([ranking.areas(np.bincount(row, minlength=n_units)) for ranking in rankings], axis=0)
            for rows in metrics.draws(n_units, n_resamples, random_state)
            for row in rows
        ]
    )
    figures = np.mean([ranking.areas(np.ones(n_units)) for ranking in rankings], axis=0)
    n_positive = len(np.unique(drawn_with[(labels == 1).any(axis=1)]))
    n_rare = min(ranking.n_rare() for ranking in rankings)
    return PooledIntervals(
        *(
            _interval(drawn, float(figure), n_positive, n_rare, level)
            for drawn, figure in zip(resampled.T, figures, strict=True)
        )
    )


def within_interval(
    aucs: Floats,
    groups: NDArray[Any] | None = None,
    *,
    level: float = 0.95,
    n_resamples: int = 2000,
    random_state: int = 0,
) -> Interval:
    """Return the interval of the mean area within bags, by bootstrap over these bags, or over their groups.

    It is made as `pooled_intervals` makes it; percentiles and Wilson's interval are for fewer than five bags (or
    groups) that are not perfect, or not all wrong.

    Parameters
    ----------
    aucs : array of shape (n_bags,)
        Of the bags that have both kinds.
    groups : array of shape (n_bags,), optional
    level : float
    n_resamples : int
    random_state : int
    """
    drawn = metrics.resampled_means(aucs, groups, n_resamples, random_state)
    units = np.arange(len(aucs)) if groups is None else groups
    n_rare = min(len(np.unique(units[aucs < 1])), len(np.unique(units[aucs > 0])))
    return _interval(drawn, float(aucs.mean()), len(np.unique(units)), n_rare, level)


def _interval(drawn: Floats, figure: float, n: int, n_rare: int, level: float) -> Interval:
    """Return the interval of an area from its resamples.

    ``n`` is the number of bags (or groups) that count, ``n_rare`` as in `metrics.widened`.
    """
    drawn = drawn[~np.isnan(drawn)]  # a resample without a positive or a negative instance has no figure
    if n_rare >= metrics.FEWEST:
        half = stats.t.ppf((1 + level) / 2, n - 1) * _log_odds(drawn).std(ddof=1)
        low, high = expit(_log_odds(figure) + np.array([-half, half]))
    else:
        low, high = np.quantile(drawn if len(drawn) else [figure], [(1 - level) / 2, (1 + level) / 2])
    return metrics.widened((float(low), float(high)), figure, n, n_rare, level=level)


def _log_odds(areas: Floats | float) -> Floats:
    return np.asarray(logit(np.clip(areas, _LEAST, 1 - _LEAST)))


class _Ranking(NamedTuple):
    """The known instances of one problem in one repeat, from the largest score down."""

    positive: Floats  # 1 and 0
    unit: Integers  # the bag or group of every instance
    last: Integers  # the last of every run of equal scores

    @classmethod
    def of(cls, labels: Integers, scores: Floats, units: Integers) -> _Ranking:
        known = np.flatnonzero(labels >= 0)
        order = known[np.argsort(-scores[known], kind="stable")]
        last = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
        return cls((labels[order] == 1).astype(np.float64), units[order], last)

    def areas(self, counts: Floats | Integers) -> tuple[float, float]:
        """Return AUC and average precision where bag ``i`` was drawn ``counts[i]`` times."""
        weights = counts[self.unit]
        positive = np.cumsum(weights * self.positive)[self.last]
        seen = np.cumsum(weights)[self.last].astype(np.float64)
        negative = seen - positive
        if positive[-1] == 0 or negative[-1] == 0:
            return float("nan"), float("nan")
        gained = np.diff(positive, prepend=0.0)
        won = np.diff(negative, prepend=0.0) @ (positive - gained / 2)  # a tie is half
        precision = positive / np.maximum(seen, 1.0)  # nothing seen: nothing gained
        return float(won / (positive[-1] * negative[-1])), float(gained @ precision / positive[-1])

    def n_rare(self) -> int:
        """Return how many bags have a positive instance below a negative one, or above one: the smaller number."""
        run = np.searchsorted(self.last, np.arange(len(self.unit)))  # instances of equal scores share a rank
        is_positive = self.positive == 1
        best, worst = run[~is_positive].min(), run[~is_positive].max()
        outranked, outranking = (is_positive & rule for rule in (run >= best, run <= worst))
        return min(len(np.unique(self.unit[rows])) for rows in (outranked, outranking))
