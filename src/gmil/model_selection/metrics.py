"""Measures of predicted labels and decisions, over many folds at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gmil.engine.arrays import Booleans, Floats, Integers

FEWEST = 5
"""With fewer bags wrong, or right, a bootstrap interval holds the true share too seldom."""
_NO_WIDTH = 1e-9
_MOST_DRAWN = 1 << 16
"""How many bags a bootstrap draws at once, 1.5 MB of them: all at once they would take 300 MB for 10 000 bags."""


def mean_by_fold(values: Floats | Booleans, folds: Integers, n_folds: int) -> Floats:
    """Return the mean of values over every fold: (..., n_bags) -> (..., n_folds)."""
    member = folds[..., None, :] == np.arange(n_folds)[:, None]  # (..., n_folds, n_bags)
    return np.asarray((member * values[..., None, :]).sum(axis=-1) / member.sum(axis=-1))


def balanced_accuracy_by_fold(correct: Booleans, y: NDArray[Any], folds: Integers, n_folds: int) -> Floats:
    """Return the mean, over the classes that a fold has, of the share of its bags that are right."""
    recalls = []
    for label in np.unique(y):
        member = (folds[..., None, :] == np.arange(n_folds)[:, None]) & (y == label)
        count = member.sum(axis=-1)
        hits = (member & correct[..., None, :]).sum(axis=-1)
        recalls.append(np.where(count > 0, hits / np.maximum(count, 1), np.nan))
    return np.asarray(np.nanmean(np.stack(recalls), axis=0))


def auc(positive: Booleans, decisions: Floats) -> float:
    """Return the chance that a positive bag has a larger decision than a negative one; a tie is half.

    NaN where there is one class only, or a decision is missing.
    """
    n_positive = int(positive.sum())
    n_negative = len(positive) - n_positive
    if n_positive == 0 or n_negative == 0 or np.isnan(decisions).any():
        return float("nan")
    ranks = rankdata(decisions)
    return float((ranks[positive].sum() - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))


def average_precision(positive: Booleans, decisions: Floats) -> float:
    """Return the mean precision at every positive bag in the order of decisions, equal decisions together.

    NaN where no bag is positive, or a decision is missing.
    """
    if not positive.any() or np.isnan(decisions).any():
        return float("nan")
    return float(average_precision_score(positive, decisions))


def quadratic_kappa(grades: NDArray[Any], predictions: NDArray[Any]) -> float:
    """Return Cohen's kappa with quadratic weights of ranks of grades; NaN where all are one grade.

    >>> quadratic_kappa(np.array([0, 1, 2, 2]), np.array([0, 1, 2, 1]))
    0.8
    """
    mean, expected = grades.mean() - predictions.mean(), grades.var() + predictions.var()
    by_chance = expected + mean**2
    return float(1 - np.mean((grades - predictions) ** 2) / by_chance) if by_chance > 0 else float("nan")


def risk_coverage(confidence: Floats, wrong: Booleans) -> tuple[Floats, Floats]:
    """Return the shares of bags that are answered, the surest first, and the share of wrong answers among them.

    Equally sure bags are answered together: they have the risk of all of them.

    Parameters
    ----------
    confidence : array of shape (n_bags,)
        Larger is surer: the distance of a decision from zero, or the largest probability.
    wrong : array of shape (n_bags,)
        Whether the answer is wrong.

    Examples
    --------
    >>> answered, risk = risk_coverage(np.array([3.0, 1.0, 2.0, 1.0]), np.array([False, True, False, False]))
    >>> answered.tolist(), risk.tolist()
    ([0.25, 0.5, 1.0, 1.0], [0.0, 0.0, 0.25, 0.25])
    """
    order = np.argsort(-confidence, kind="stable")
    ranked = confidence[order]
    last = np.searchsorted(-ranked, -ranked, side="right")  # so many bags are at least as sure
    errors = np.cumsum(np.asarray(wrong)[order])
    return last / len(order), errors[last - 1] / last


def mean_interval(
    values: Floats,
    groups: NDArray[Any] | None = None,
    *,
    level: float = 0.95,
    n_resamples: int = 2000,
    random_state: int = 0,
) -> tuple[float, float]:
    """Return an interval of the mean of ``values (n_bags,)``, each from 0 to 1, that never collapses.

    It is the percentile interval of `bootstrap_interval`. A bootstrap draws only from what was seen: without a wrong
    bag its interval has no width, with one or two it is too short. Where fewer than five bags (of ``groups``: fewer
    than five groups' worth of bags) are wrong, or fewer than five are right, or where all resamples agree, it is
    therefore widened to hold the interval of `wilson_interval`, too.
    """
    drawn = bootstrap_interval(values, groups, level=level, n_resamples=n_resamples, random_state=random_state)
    mean = float(values.mean())
    n_drawn = len(values) if groups is None else len(np.unique(groups))
    return widened(drawn, mean, n_drawn, n_drawn * min(mean, 1 - mean), level=level)


def widened(
    drawn: tuple[float, float], figure: float, n: int, n_rare: float, *, level: float = 0.95
) -> tuple[float, float]:
    """Return a bootstrap interval so that it holds its figure, which is from 0 to 1, and never collapses.

    It also holds Wilson's interval of ``n`` bags (or groups) where all resamples agree, or where fewer than five bags
    are wrong, or right: ``n_rare`` is how many of the rarer kind there are.
    """
    limits = [*drawn, figure]
    if n_rare < FEWEST or drawn[1] - drawn[0] < _NO_WIDTH:
        limits += wilson_interval(figure, n, level=level)
    return min(limits), max(limits)


def wilson_interval(share: float, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval of a share of ``n``; the share need not be a whole number of them.

    >>> low, high = wilson_interval(1.0, 60)
    >>> round(low, 3), high
    (0.94, 1.0)
    """
    z2 = float(ndtri((1 + level) / 2)) ** 2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    # At the ends the limit is the share itself, but for rounding.
    return float(min(max(middle - half, 0.0), share)), float(max(min(middle + half, 1.0), share))


def bootstrap_interval(
    values: Floats,
    groups: NDArray[Any] | None = None,
    *,
    level: float = 0.95,
    n_resamples: int = 2000,
    random_state: int = 0,
) -> tuple[float, float]:
    """Return the percentile interval of the mean under resampling of bags, or of groups of bags.

    ``values (n_bags,)`` is how often each bag was right over the repeats: bags are what another sample would
    change, so bags are what is drawn, and where ``groups (n_bags,)`` are given whole groups.
    """
    means = resampled_means(values, groups, n_resamples, random_state)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def resampled_means(values: Floats, groups: NDArray[Any] | None, n_resamples: int, random_state: int) -> Floats:
    """Return the mean of ``values (n_bags,)`` in every resample of bags, or of groups of bags."""
    groups = np.arange(len(values)) if groups is None else groups
    _, number, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    totals = np.bincount(number.ravel(), weights=values)
    blocks = draws(len(totals), n_resamples, random_state)
    return np.concatenate([totals[rows].sum(axis=1) / sizes[rows].sum(axis=1) for rows in blocks])


def draws(n: int, n_resamples: int, random_state: int) -> Iterator[Integers]:
    """Yield what a bootstrap draws from ``n`` bags or groups, some resamples at a time: (n_some_resamples, n)."""
    generator = np.random.default_rng(random_state)
    at_once = max(1, _MOST_DRAWN // n)
    for start in range(0, n_resamples, at_once):
        yield generator.integers(0, n, size=(min(at_once, n_resamples - start), n))
