"""Measures of risks and survival curves where times may be censored.

Curves are right-continuous steps. Censoring at the time of an event counts as later than the event, as usual.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.integrate import trapezoid

from gmil.errors import BagValidationError
from gmil.target_checks import Outcomes, check_outcomes

if TYPE_CHECKING:
    from gmil.engine.arrays import Booleans, Floats, Integers

_TIE = 1e-8
"""Risks that differ by no more than this are equal."""
_AT_ONCE = 1 << 22


class Steps(NamedTuple):
    """A curve that is constant from every time to the next."""

    times: Floats  # (n_times,), ascending
    values: Floats  # (n_times,): from each time on
    before: float = 1.0  # before the first time

    def at(self, times: Any) -> Floats:
        """Return the values of the curve at times.

        Parameters
        ----------
        times : array
        """
        places = np.searchsorted(self.times, np.asarray(times, dtype=np.float64), side="right")
        return np.concatenate([[self.before], self.values])[places]


def kaplan_meier(y: Any) -> Steps:
    """Return the Kaplan-Meier estimate of the survival curve.

    Parameters
    ----------
    y : structured array, data frame, or array of shape (n_bags, 2)
        Events and times, as `gmil.WeightedGMILSurvival` takes them.

    Returns
    -------
    Steps
        ``times``, ``values``, and ``at(times)`` for other times.

    Examples
    --------
    >>> curve = kaplan_meier([[1, 2.0], [0, 3.0], [1, 4.0]])
    >>> curve.times.tolist(), curve.values.round(3).tolist()
    ([2.0, 3.0, 4.0], [0.667, 0.667, 0.0])
    """
    event, time = check_outcomes(y)
    found: Any = stats.ecdf(stats.CensoredData(uncensored=time[event], right=time[~event])).sf
    return Steps(found.quantiles, found.probabilities)


def follow_up(y: Any) -> Steps:
    """Return the Kaplan-Meier estimate of the curve of not being censored, by which pairs are weighted.

    Whoever has an event at a time is no more at risk of being censored then.

    Parameters
    ----------
    y : structured array, data frame, or array of shape (n_bags, 2)
    """
    event, time = check_outcomes(y)
    times, place = np.unique(time, return_inverse=True)
    n_events = np.bincount(place, weights=event)
    n_censored = np.bincount(place, weights=~event)
    at_risk = len(time) - np.concatenate([[0], np.cumsum(n_events + n_censored)[:-1]]) - n_events
    left = 1 - np.divide(n_censored, at_risk, out=np.zeros(len(times)), where=n_censored > 0)
    return Steps(times, np.cumprod(left))


def log_rank(y: Any, groups: Any) -> float:
    """Return the p-value of the log-rank test that two groups have the same survival curve.

    Parameters
    ----------
    y : structured array, data frame, or array of shape (n_bags, 2)
    groups : array of shape (n_bags,)
        Two different values.
    """
    event, time = check_outcomes(y)
    names = np.unique(groups)
    if len(names) != 2:
        msg = f"must name two groups, got {len(names)}."
        raise BagValidationError(msg, parameter="groups")
    parts = [
        stats.CensoredData(uncensored=time[own & event], right=time[own & ~event])
        for own in (np.asarray(groups) == name for name in names)
    ]
    return float(stats.logrank(*parts).pvalue)


def concordance(y: Any, risk: Any) -> float:
    """Return Harrell's concordance index: how often, of two bags, the one with the earlier event has the larger risk.

    Pairs count of which is known which event came first; equal risks count half.

    Parameters
    ----------
    y : structured array, data frame, or array of shape (n_bags, 2)
        Events and times.
    risk : array of shape (n_bags,)
        Larger means earlier.

    Examples
    --------
    >>> concordance([[1, 1.0], [1, 2.0], [0, 3.0]], [0.9, 0.5, 0.7])
    0.6666666666666666
    """
    outcomes = check_outcomes(y)
    return _concordance(outcomes, _risks(risk, outcomes), np.ones(len(outcomes.time)))


def uno_concordance(training: Any, y: Any, risk: Any, *, until: float | None = None) -> float:
    """Return Uno's concordance index, which does not depend on how many times are censored.

    Pairs weigh by the inverse square of the chance to be followed up so long, estimated on training bags.

    Parameters
    ----------
    training : structured array, data frame, or array of shape (n_bags, 2)
        Events and times that the chance to be followed up is estimated on.
    y : structured array, data frame, or array of shape (n_bags, 2)
        Events and times of the bags whose risks are measured.
    risk : array of shape (n_bags,)
    until : float, optional
        Only events before this time count.
    """
    outcomes = check_outcomes(y)
    counted = outcomes.event if until is None else outcomes.event & (outcomes.time < until)
    weights = np.zeros(len(outcomes.time))
    weights[counted] = _inverse(follow_up(training).at(outcomes.time[counted]), "until") ** 2
    return _concordance(outcomes, _risks(risk, outcomes), weights)


def brier_scores(training: Any, y: Any, survival: Any, times: Any) -> Floats:
    """Return the Brier score at every time: squared errors of survival probabilities, weighted for censoring.

    Parameters
    ----------
    training, y : structured array, data frame, or array of shape (n_bags, 2)
        Events and times of training bags, and of the bags that are measured.
    survival : array of shape (n_bags, n_times)
        The predicted probability of no event up to each time.
    times : array of shape (n_times,)
        Within the follow-up of the bags that are measured.
    """
    return np.asarray(brier_errors(training, y, survival, times).mean(axis=0))


def brier_errors(training: Any, y: Any, survival: Any, times: Any) -> Floats:
    """Return what every bag adds to `brier_scores` at every time, (n_bags, n_times); the parameters are the same."""
    event, time = check_outcomes(y)
    survival, times = np.asarray(survival, dtype=np.float64), np.asarray(times, dtype=np.float64)
    if survival.shape != (len(time), len(times)):
        msg = f"must be of shape {(len(time), len(times))}, a row a bag and a column a time, got {survival.shape}."
        raise BagValidationError(msg, parameter="survival")
    curve = follow_up(training)
    of_events = np.zeros(len(time))
    counted = event & (time <= times.max())
    of_events[counted] = _inverse(curve.at(time[counted]), "times")
    of_times = _inverse(curve.at(times), "times")
    happened = (time[:, None] <= times) & event[:, None]
    errors = np.where(happened, survival**2 * of_events[:, None], 0.0)
    errors += np.where(time[:, None] > times, (1 - survival) ** 2 * of_times, 0.0)
    return np.asarray(errors)


def integrated_brier_score(training: Any, y: Any, survival: Any, times: Any) -> float:
    """Return the mean over time of `brier_scores`, by the trapezoid rule.

    Parameters
    ----------
    training, y : structured array, data frame, or array of shape (n_bags, 2)
    survival : array of shape (n_bags, n_times)
    times : array of shape (n_times,)
        Ascending, two at least.
    """
    times = np.asarray(times, dtype=np.float64)
    if len(times) < 2 or (np.diff(times) <= 0).any():
        msg = "must be two times at least, each later than the one before."
        raise BagValidationError(msg, parameter="times")
    return float(trapezoid(brier_scores(training, y, survival, times), times) / (times[-1] - times[0]))


def times_to_measure(training: Any, y: Any, n_times: int = 50) -> Floats:
    """Return times at which survival probabilities are measured: within the follow-up of both sets of bags."""
    known, (event, time) = check_outcomes(training), check_outcomes(y)
    followed = follow_up(training)
    reached = followed.times[followed.values > 0]
    last = min(time.max(), known.time.max(), reached.max() if len(reached) else np.inf)
    first, end = np.quantile(time[event], 0.05), min(np.quantile(time[event], 0.95), np.nextafter(last, 0))
    return np.linspace(first, end, n_times) if end > first else np.array([])


def _risks(risk: Any, outcomes: Outcomes) -> Floats:
    values = np.asarray(risk, dtype=np.float64)
    if values.shape != outcomes.time.shape or not np.isfinite(values).all():
        msg = f"must be a finite number for each of the {len(outcomes.time)} bags, got shape {values.shape}."
        raise BagValidationError(msg, parameter="risk")
    return values


def _inverse(chances: Floats, parameter: str) -> Floats:
    if (chances <= 0).any():
        msg = "reaches beyond the follow-up of the training bags: no one was followed up so long. Take earlier times."
        raise BagValidationError(msg, parameter=parameter)
    return 1 / chances


def _concordance(outcomes: Outcomes, risk: Floats, weights: Floats) -> float:
    """Return the share of comparable pairs that are in order; pairs weigh by the bag with the earlier event."""
    event, time = outcomes
    rows = np.flatnonzero(event & (weights > 0))
    right = total = 0.0
    at_once = max(1, _AT_ONCE // len(time))
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        in_order, compared = _pairs(some, event, time, risk)
        right, total = right + float(weights[some] @ in_order), total + float(weights[some] @ compared)
    if total == 0:
        msg = "No two bags can be compared: it is never known which event came first."
        raise BagValidationError(msg, parameter="y")
    return float(right / total)


def _pairs(rows: Integers, event: Booleans, time: Floats, risk: Floats) -> tuple[Floats, Floats]:
    """Return for some bags with an event how many pairs are in order, and how many there are."""
    own = time[rows, None]
    later = (time > own) | ((time == own) & ~event)
    return np.asarray((_in_order(risk[rows], risk) * later).sum(axis=1)), later.sum(axis=1, dtype=np.float64)


def ordered_pairs(event: Booleans, time: Floats, risk: Floats, counted: Booleans) -> tuple[Floats, Floats]:
    """Return which pairs of bags are in order, a half for equal risks, and which can be compared.

    Both are of shape (n_bags, n_bags), the bag with the earlier event first; only pairs that are ``counted`` count.
    """
    later = counted & event[:, None] & ((time > time[:, None]) | ((time == time[:, None]) & ~event))
    return _in_order(risk, risk) * later, later.astype(np.float64)


def _in_order(earlier: Floats, risk: Floats) -> Floats:
    difference = earlier[:, None] - risk
    return (difference > _TIE) + 0.5 * (np.abs(difference) <= _TIE)
