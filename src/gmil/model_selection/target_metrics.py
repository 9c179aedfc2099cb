"""Measures of predicted values, grades and risks, with intervals by bootstrap over bags or groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata

from gmil.model_selection.metrics import FEWEST, draws, widened, wilson_interval
from gmil.model_selection.metrics import quadratic_kappa as quadratic_kappa

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats, Integers

MEASURES: dict[str, Callable[[Floats, Floats], float]] = {}
"""Measures of values and their predictions, (n_bags,) each, by name."""
_RESAMPLES = 1000


def _measure(function: Callable[[Floats, Floats], float]) -> Callable[[Floats, Floats], float]:
    MEASURES[function.__name__] = function
    return function


@_measure
def r2(values: Floats, predictions: Floats) -> float:
    """Return the share of the variance of values that predictions explain; NaN where values do not differ."""
    total = float(((values - values.mean()) ** 2).sum())
    return 1 - float(((values - predictions) ** 2).sum()) / total if total > 0 else float("nan")


@_measure
def mae(values: Floats, predictions: Floats) -> float:
    """Return the mean absolute error."""
    return float(np.abs(values - predictions).mean())


@_measure
def rmse(values: Floats, predictions: Floats) -> float:
    """Return the root of the mean squared error."""
    return float(np.sqrt(((values - predictions) ** 2).mean()))


@_measure
def spearman(values: Floats, predictions: Floats) -> float:
    """Return the rank correlation; NaN where values or predictions do not differ."""
    one, other = (rankdata(part) - (len(part) + 1) / 2 for part in (values, predictions))
    size = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / size if size > 0 else float("nan")


def resampled_interval(
    measure: Callable[[Floats, Floats], float],
    values: Floats,
    predictions: Floats,
    groups: NDArray[Any] | None = None,
    *,
    level: float = 0.95,
    random_state: int = 0,
) -> tuple[float, float]:
    """Return the percentile interval of a measure under resampling of bags, or of groups of bags."""
    found = [measure(values[rows], predictions[rows]) for rows in resampled_rows(len(values), groups, random_state)]
    return _limits(np.array(found), level)


def resampled_rows(n_bags: int, groups: NDArray[Any] | None, random_state: int) -> list[Integers]:
    """Return the bags of every resample, of bags or of groups of bags."""
    blocks = draws(n_bags if groups is None else len(np.unique(groups)), _RESAMPLES, random_state)
    drawn = [row for block in blocks for row in block]
    if groups is None:
        return drawn
    order = np.argsort(groups, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(np.unique(groups, return_inverse=True)[1][order])) + 1)
    return [np.concatenate([members[number] for number in row]) for row in drawn]


def kappa_interval(
    grades: Floats,
    predictions: Floats,
    groups: NDArray[Any] | None = None,
    *,
    level: float = 0.95,
    random_state: int = 0,
) -> tuple[float, float]:
    """Return an interval of the quadratic kappa that never collapses, by resampling of bags or groups.

    ``predictions (n_bags, n_repeats)`` are ranks of grades, NaN where a repeat does not test a bag; the kappa is the
    mean over repeats. Where fewer than five bags are wrong resamples hardly differ. The interval then also holds the
    kappa of as many bags that are wrong by one grade as Wilson's interval allows.
    """

    def mean_kappa(some: Floats, repeats: Floats) -> float:
        known = [(one, np.isfinite(one)) for one in repeats.T]
        return float(np.mean([quadratic_kappa(some[own], one[own]) for one, own in known]))

    low, high = resampled_interval(mean_kappa, grades, predictions, groups, level=level, random_state=random_state)
    n_drawn = _n_drawn(grades, groups)
    right = float((predictions == grades[:, None])[np.isfinite(predictions)].mean())
    if n_drawn * (1 - right) < FEWEST and grades.var() > 0:
        wrong = 1 - wilson_interval(right, n_drawn, level=level)[0]
        low = min(low, 1 - wrong / (2 * float(grades.var())))
    return low, high


def concordance_interval(
    right: Floats, total: Floats, groups: NDArray[Any] | None, *, level: float = 0.95, random_state: int = 0
) -> tuple[float, float]:
    """Return an interval of the share of pairs in order that never collapses, by resampling of bags or groups.

    ``right`` and ``total``, (n_bags, n_bags), are what every pair adds to those in order, and to all.
    """
    n_bags = len(right)
    found = []
    for rows in resampled_rows(n_bags, groups, random_state):
        counts = np.bincount(rows, minlength=n_bags).astype(np.float32)
        pairs = float(counts @ total @ counts)
        found.append(float(counts @ right @ counts) / pairs if pairs > 0 else np.nan)
    limits = _limits(np.array(found), level)
    if not np.isfinite(limits).all():
        return limits
    share, n_drawn = float(right.sum() / total.sum()), _n_drawn(right, groups)
    return widened(limits, share, n_drawn, n_drawn * min(share, 1 - share), level=level)


def _n_drawn(values: Floats, groups: NDArray[Any] | None) -> int:
    """Return how many bags, or groups, a resample draws."""
    return len(values) if groups is None else len(np.unique(groups))


def _limits(found: Floats, level: float) -> tuple[float, float]:
    known = found[np.isfinite(found)]
    if len(known) == 0:
        return float("nan"), float("nan")
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
