"""How sure a number is, and whether two methods differ.

Accuracies carry an interval by bootstrap over bags. Two methods on one data set are compared by the corrected
resampled t-test; many methods on many data sets by ranks, Friedman's test and Nemenyi's critical difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy import stats

from gmil import metrics

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from gmil.engine.arrays import Booleans, Floats

Verdict = Literal["better", "worse", "equivalent", "undecided"]

ZONE = 0.01
"""Differences of up to one point, either way, do not matter in practice."""
FEWEST_DATASETS = 12
"""From how many data sets on a critical-difference diagram is drawn."""


def accuracy_interval(correct: Booleans, *, level: float = 0.95, random_state: int = 0) -> tuple[float, float]:
    """Return the interval of an accuracy by bootstrap over bags, see `gmil.CVResult.accuracy_interval`.

    Parameters
    ----------
    correct : array of shape (n_repeats, n_bags)
        Whether every bag was right when it was in the test fold. Repeats are averaged first: they are not new
        bags and make the interval no shorter than the bags allow.
    level : float, default=0.95
    random_state : int, default=0
    """
    rates = np.asarray(correct, dtype=np.float64).mean(axis=0)
    return metrics.mean_interval(rates, level=level, random_state=random_state)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One method against another on one data set.

    Attributes
    ----------
    difference : float
        The mean difference of their accuracies, first minus second.
    interval : (float, float)
        Where the difference lies, at the level that was asked for.
    p_value : float
        Two-sided, of no difference at all.
    verdict : {"better", "worse", "equivalent", "undecided"}
        What the interval says about the zone of equivalence, see `compare`.
    """

    difference: float
    interval: tuple[float, float]
    p_value: float
    verdict: Verdict


def compare(first: ArrayLike, second: ArrayLike, *, level: float = 0.95, zone: float = ZONE) -> Comparison:
    """Compare two methods by the corrected resampled t-test (Nadeau and Bengio 2003; Bouckaert and Frank 2004).

    The accuracies of repeats and folds are not independent, because training folds overlap. The variance of the
    mean of J = repeats x folds differences is therefore taken as ``(1/J + n_test/n_train) s^2`` in place of
    ``s^2/J``; in k-fold, ``n_test/n_train`` is ``1/(k - 1)``. The test has J - 1 degrees of freedom.

    The verdict follows from the interval of the difference and from the zone of equivalence around zero:
    "better" where the whole interval is above the zone, "worse" where it is all below, "equivalent" where it is
    all inside (its limits included), else "undecided". A small p-value alone is therefore not "better": the
    difference must be known to matter.

    Parameters
    ----------
    first, second : arrays of shape (n_repeats, n_folds)
        Accuracies on the same folds.
    level : float, default=0.95
    zone : float, default=0.01
        Half the width of the zone of equivalence; the default is one point of accuracy.

    Examples
    --------
    >>> compare([[0.9, 0.8, 0.9]], [[0.9, 0.8, 0.9]]).verdict
    'equivalent'
    """
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    if differences.ndim != 2 or differences.shape[1] < 2:
        msg = f"Accuracies must be (n_repeats, n_folds) with 2 folds at least, got shape {differences.shape}."
        raise ValueError(msg)
    n_folds = differences.shape[1]
    return _verdict(*resampled_t(differences.ravel(), 1 / (n_folds - 1), level), zone)


def resampled_t(
    differences: Floats, test_to_train: float, level: float = 0.95
) -> tuple[float, tuple[float, float], float]:
    """Return mean, interval and two-sided p-value of differences under the corrected variance.

    With ``test_to_train=0`` this is the plain paired t-test.
    """
    n = len(differences)
    mean = float(differences.mean())
    error = float(np.sqrt((1 / n + test_to_train) * differences.var(ddof=1)))
    if error == 0:  # all differences are the same: nothing is left to doubt
        return mean, (mean, mean), 1.0 if mean == 0 else 0.0
    half = float(stats.t.ppf((1 + level) / 2, n - 1)) * error
    return mean, (mean - half, mean + half), float(2 * stats.t.sf(abs(mean) / error, n - 1))


def _verdict(difference: float, interval: tuple[float, float], p_value: float, zone: float) -> Comparison:
    low, high = interval
    verdict: Verdict = "undecided"
    if low > zone:
        verdict = "better"
    elif high < -zone:
        verdict = "worse"
    elif -zone <= low and high <= zone:
        verdict = "equivalent"
    return Comparison(difference, interval, p_value, verdict)


def average_ranks(scores: ArrayLike, *, larger_is_better: bool = True) -> Floats:
    """Return the mean rank of every method over data sets; 1 is best, equals share their ranks.

    Parameters
    ----------
    scores : array of shape (n_datasets, n_methods)
    larger_is_better : bool, default=True

    Examples
    --------
    >>> average_ranks([[0.9, 0.8, 0.8], [0.7, 0.9, 0.6]])
    array([1.5 , 1.75, 2.75])
    """
    table = _score_table(scores)
    return np.asarray(stats.rankdata(-table if larger_is_better else table, axis=1).mean(axis=0))


@dataclass(frozen=True, slots=True)
class Friedman:
    """Friedman's test of equal methods: chi-squared statistic, p-value, average ranks."""

    statistic: float
    p_value: float
    average_ranks: Floats


def friedman(scores: ArrayLike, *, larger_is_better: bool = True) -> Friedman:
    """Test whether methods differ over data sets, by their ranks.

    Parameters
    ----------
    scores : array of shape (n_datasets, n_methods)
        Of three methods at least.
    larger_is_better : bool, default=True
    """
    table = _score_table(scores)
    if table.shape[1] < 3:
        msg = f"Friedman's test needs 3 methods at least, got {table.shape[1]}. Compare two with `compare`."
        raise ValueError(msg)
    found = stats.friedmanchisquare(*table.T)
    return Friedman(
        float(found.statistic), float(found.pvalue), average_ranks(table, larger_is_better=larger_is_better)
    )


def critical_difference(n_methods: int, n_datasets: int, *, alpha: float = 0.05) -> float:
    """Return by how much average ranks must differ under Nemenyi's test (Demsar 2006).

    Examples
    --------
    >>> round(critical_difference(5, 30), 3)
    1.114
    """
    quantile = float(stats.studentized_range.ppf(1 - alpha, n_methods, np.inf)) / np.sqrt(2)
    return float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets)))


def refuse_few_datasets(n_datasets: int) -> None:
    """Refuse a critical-difference diagram of too few data sets, and say why."""
    if n_datasets < FEWEST_DATASETS:
        msg = (
            f"A critical-difference diagram needs {FEWEST_DATASETS} data sets at least, got {n_datasets}: with fewer, "
            "ranks are so coarse that hardly any methods can be told apart, and lines that join them all "
            "read as if they were equal. Compare two methods on each data set with `compare`."
        )
        raise ValueError(msg)


def _score_table(scores: ArrayLike) -> Floats:
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or 0 in table.shape or np.isnan(table).any():
        msg = f"Scores must be (n_datasets, n_methods) without gaps, got shape {table.shape}."
        raise ValueError(msg)
    return table
