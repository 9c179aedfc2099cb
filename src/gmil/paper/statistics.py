"""How sure a number is, and whether two methods differ.

Accuracies carry an interval by bootstrap over bags. Two methods on one data set are compared by the corrected
resampled t-test, several with the best of them under Holm's correction; many methods on many data sets by ranks,
Friedman's test and Nemenyi's critical difference.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from scipy import stats

from gmil.model_selection import metrics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from gmil.engine.arrays import Booleans, Floats

Verdict = Literal["better", "worse", "equivalent", "undecided"]

ZONE = 0.01
"""Differences of up to one point, either way, do not matter in practice."""


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
        Two-sided: how probable a difference at least as large would be if there were none.
    verdict : {"better", "worse", "equivalent", "undecided"}
        What the interval says about the zone of equivalence, see `compare`.
    p_holm : float or None
        ``p_value`` corrected for the number of comparisons, where this is one of several.
    """

    difference: float
    interval: tuple[float, float]
    p_value: float
    verdict: Verdict
    p_holm: float | None = None


def compare(first: ArrayLike, second: ArrayLike, *, n_bags: int, level: float = 0.95, zone: float = ZONE) -> Comparison:
    """Compare two methods by the corrected resampled t-test (Nadeau and Bengio 2003; Bouckaert and Frank 2004).

    The accuracies of repeats and folds are not independent, because training folds overlap. The variance of the
    mean of J = repeats x folds differences is therefore taken as ``(1/J + n_test/n_train) s^2`` in place of
    ``s^2/J``; in k-fold, ``n_test/n_train`` is ``1/(k - 1)``. The test has J - 1 degrees of freedom. The standard
    error is at least one bag, ``1/n_bags``: two methods without an error on 60 bags are not known to be the same.

    The verdict follows from the interval of the difference and from the zone of equivalence around zero:
    "better" where the whole interval is above the zone, "worse" where it is all below, "equivalent" where it is
    all inside (its limits included), else "undecided". A small p-value alone is therefore not "better": the
    difference must be known to matter.

    Parameters
    ----------
    first, second : arrays of shape (n_repeats, n_folds)
        Accuracies on the same folds.
    n_bags : int
        How many bags the folds have together.
    level : float, default=0.95
    zone : float, default=0.01
        Half the width of the zone of equivalence; the default is one point of accuracy.

    Examples
    --------
    >>> compare([[0.9, 0.8, 0.9]], [[0.9, 0.8, 0.9]], n_bags=3000).verdict
    'equivalent'
    >>> compare([[0.9, 0.8, 0.9]], [[0.9, 0.8, 0.9]], n_bags=30).verdict
    'undecided'
    """
    return _difference(first, second, n_bags).comparison(1 - level, zone)


def compare_with_best(
    accuracies: Mapping[str, ArrayLike], best: str, *, n_bags: int, level: float = 0.95, zone: float = ZONE
) -> dict[str, Comparison]:
    """Compare every other method with the best one, with Holm's correction for their number (Holm 1979).

    A verdict but "undecided" is given only where all such verdicts together are wrong with a probability of at most
    ``1 - level``. The smallest p-value of m is multiplied by m, the next by m - 1, and so on; the p-value of a verdict
    is one minus the highest level at which its interval still gives it. Intervals and ``p_value`` are those of the one
    comparison, ``p_holm`` and ``verdict`` are corrected. No correction undoes that the best was picked on the same
    folds: it is a little lucky, and the others look a little worse beside it.

    Parameters
    ----------
    accuracies : mapping of str to arrays of shape (n_repeats, n_folds)
        Of all methods on the same folds. One that has fewer repeats is compared with the best one on these.
    best : str
        The method that the others are compared with.
    n_bags : int
        How many bags the folds have together.
    level, zone : float
        As in `compare`.
    """
    pairs = {name: _shared_repeats(own, accuracies[best]) for name, own in accuracies.items() if name != best}
    found = {name: _difference(*pair, n_bags) for name, pair in pairs.items()}
    of_verdicts = holm([difference.verdict_p_value(zone) for difference in found.values()])
    of_differences = holm([difference.p_value for difference in found.values()])
    compared = {}
    for (name, difference), of_verdict, p_holm in zip(found.items(), of_verdicts, of_differences, strict=True):
        one = difference.comparison(1 - level, zone)
        verdict = one.verdict if of_verdict <= 1 - level else "undecided"
        compared[name] = replace(one, verdict=verdict, p_holm=float(p_holm))
    return compared


def holm(p_values: ArrayLike) -> Floats:
    """Return p-values corrected for their number by Holm's step-down rule, in the order given.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return corrected


class Difference(NamedTuple):
    """The mean of differences, its standard error and the degrees of freedom of the error."""

    mean: float
    error: float
    freedom: int

    def p_value_at(self, distance: float) -> float:
        """Return the two-sided p-value of a mean that is that far away."""
        return float(2 * stats.t.sf(distance / self.error, self.freedom))

    @property
    def p_value(self) -> float:
        """Of no difference."""
        return self.p_value_at(abs(self.mean))

    def verdict_p_value(self, zone: float) -> float:
        """Return the p-value from which on the interval lies on one side of the next limit of the zone."""
        return self.p_value_at(abs(abs(self.mean) - zone))

    def comparison(self, alpha: float, zone: float) -> Comparison:
        """Return the interval at the level ``1 - alpha``, and the verdict about the zone."""
        half = float(stats.t.ppf(1 - alpha / 2, self.freedom)) * self.error
        low, high = self.mean - half, self.mean + half
        verdict: Verdict = "undecided"
        if low > zone:
            verdict = "better"
        elif high < -zone:
            verdict = "worse"
        elif -zone <= low and high <= zone:
            verdict = "equivalent"
        return Comparison(self.mean, (low, high), self.p_value, verdict)


def _shared_repeats(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    n = min(len(one), len(other))
    return one[:n], other[:n]


def _difference(first: ArrayLike, second: ArrayLike, n_bags: int) -> Difference:
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.shape != other.shape or one.ndim != 2 or one.shape[1] < 2:
        msg = (
            f"Accuracies to compare must both be (n_repeats, n_folds) with 2 folds at least, got shapes {one.shape} "
            f"and {other.shape}."
        )
        raise ValueError(msg)
    differences = (one - other).ravel()
    return corrected_difference(differences, 1 / (one.shape[1] - 1), least_error=1 / n_bags)


def corrected_difference(differences: Floats, test_to_train: float, least_error: float = 0.0) -> Difference:
    """Return the mean of differences with its corrected error, with ``test_to_train=0`` that of a paired t-test."""
    n = len(differences)
    error = float(np.sqrt((1 / n + test_to_train) * differences.var(ddof=1)))
    return Difference(float(differences.mean()), max(error, least_error), n - 1)


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


def _score_table(scores: ArrayLike) -> Floats:
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or 0 in table.shape or np.isnan(table).any():
        msg = f"Scores must be (n_datasets, n_methods) without gaps, got shape {table.shape}."
        raise ValueError(msg)
    return table
