"""Measures of risks and curves: by hand, by slow references, and by scikit-survival where it is installed."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import gmil
from gmil.model_selection.survival import (
    brier_scores,
    concordance,
    follow_up,
    integrated_brier_score,
    kaplan_meier,
    log_rank,
    times_to_measure,
    uno_concordance,
)
from gmil.target_checks import outcomes_of

# Freireich et al. (1963), remission in weeks under 6-MP and placebo, as in every textbook.
TREATED = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
SEEN = [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
PLACEBO = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]


def random_outcomes(n, seed, *, ties=True):
    rng = np.random.default_rng(seed)
    time = rng.integers(1, 12, n).astype(float) if ties else rng.exponential(size=n)
    event = rng.random(n) < 0.6
    event[0] = True
    return outcomes_of(event, time), np.round(rng.normal(size=n), 1)


def test_kaplan_meier_of_the_remission_data():
    curve = kaplan_meier(outcomes_of(SEEN, TREATED))
    expected = [1, 6 / 7, 0.8067, 0.7529, 0.6902, 0.6275, 0.5378, 0.4482, 0.4482]
    assert_allclose(curve.at([5.9, 6, 7, 10, 13, 16, 22, 23, 30]), expected, atol=5e-5)


def test_log_rank_of_the_remission_data():
    y = outcomes_of([*SEEN, *[1] * 21], [*TREATED, *PLACEBO])
    groups = np.repeat(["treated", "placebo"], 21)
    assert log_rank(y, groups) == pytest.approx(4.17e-5, rel=0.01)  # chi-squared 16.79
    with pytest.raises(gmil.BagValidationError, match="two groups, got 1"):
        log_rank(y, np.zeros(42))


def test_being_followed_up_is_a_curve_of_its_own():
    # At 2 an event and a censoring: the event leaves first, so two are at risk of being censored there.
    curve = follow_up([[1, 1.0], [1, 2.0], [0, 2.0], [0, 3.0]])
    assert_allclose(curve.at([0.5, 1, 2, 3]), [1, 1, 0.5, 0])


def test_concordance_by_hand():
    y = [[1, 1.0], [0, 2.0], [1, 3.0], [0, 4.0]]
    # Pairs: 1-2, 1-3, 1-4, 3-4; the risk of the second is unknown to the third.
    assert concordance(y, [4, 3, 2, 1]) == 1
    assert concordance(y, [1, 3, 2, 1]) == pytest.approx((0 + 0 + 0.5 + 1) / 4)
    assert concordance([[1, 1.0], [0, 1.0]], [1, 0]) == 1  # an event comes before a censoring of the same time
    with pytest.raises(gmil.BagValidationError, match="No two bags can be compared"):
        concordance([[1, 1.0], [1, 1.0]], [1, 0])


def slow_concordance(y, risk, weights):
    right = total = 0.0
    for i, j in itertools.permutations(range(len(y)), 2):
        if y["event"][i] and (y["time"][i] < y["time"][j] or (y["time"][i] == y["time"][j] and not y["event"][j])):
            total += weights[i]
            right += weights[i] * (1.0 if risk[i] > risk[j] else 0.5 if risk[i] == risk[j] else 0.0)
    return right / total


@settings(max_examples=30)
@given(st.integers(5, 40), st.integers(0, 1000), st.booleans())
def test_concordance_is_that_of_a_slow_reference(n, seed, ties):
    y, risk = random_outcomes(n, seed, ties=ties)
    try:
        found = concordance(y, risk)
    except gmil.BagValidationError:
        return
    assert found == pytest.approx(slow_concordance(y, risk, np.ones(n)))


def test_uno_weighs_by_the_chance_to_be_followed_up():
    y, risk = random_outcomes(60, 3)
    until = 9.0
    chance = follow_up(y).at(y["time"])
    weights = np.where(y["time"] < until, 1 / np.maximum(chance, 1e-9) ** 2, 0)
    assert uno_concordance(y, y, risk, until=until) == pytest.approx(slow_concordance(y, risk, weights))
    complete = outcomes_of(np.ones(60), y["time"])
    assert uno_concordance(complete, complete, risk) == pytest.approx(concordance(complete, risk))


def test_brier_without_censoring_is_a_mean_squared_error():
    y = outcomes_of([1, 1, 1], [1.0, 2.0, 3.0])
    survival = np.array([[0.1, 0.0], [0.6, 0.5], [0.9, 0.8]])
    expected = [(0.1**2 + 0.4**2 + 0.1**2) / 3, (0 + 0.5**2 + 0.2**2) / 3]
    assert_allclose(brier_scores(y, y, survival, [1.5, 2.5]), expected)
    assert integrated_brier_score(y, y, survival, [1.5, 2.5]) == pytest.approx(np.mean(expected))
    with pytest.raises(gmil.BagValidationError, match="shape"):
        brier_scores(y, y, survival[:2], [1.5, 2.5])
    with pytest.raises(gmil.BagValidationError, match="two times at least"):
        integrated_brier_score(y, y, survival[:, :1], [1.5])


def test_times_beyond_the_follow_up_are_refused():
    y = outcomes_of([1, 0, 0], [1.0, 2.0, 3.0])
    with pytest.raises(gmil.BagValidationError, match="beyond the follow-up"):
        brier_scores(y, y, np.ones((3, 1)), [3.0])
    times = times_to_measure(*[random_outcomes(50, 1)[0]] * 2)
    assert len(times) == 50
    assert (np.diff(times) > 0).all()


def test_all_ways_to_write_outcomes():
    event, time = [True, False, True], [3.0, 1.0, 2.0]
    ways = [
        outcomes_of(event, time),
        np.column_stack([event, time]),
        [[1, 3.0], [0, 1.0], [1, 2.0]],
        pd.DataFrame({"time": time, "event": event}),
        np.array(list(zip(time, event, strict=True)), dtype=[("days", "f8"), ("died", "?")]),
    ]
    for y in ways:
        assert concordance(y, [1.0, 2.0, 3.0]) == 1.0


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[1, 1.0], [0, np.nan]], "NaN: the target of bag 1 is missing"),
        ([[1, 1.0], [0, np.inf]], "infinity: the target of bag 1"),
        ([[1, 1.0], [0, -2.0]], "must not be negative, but that of bag 1 is -2"),
        ([[0, 1.0], [0, 2.0]], "No event was seen"),
        ([[2, 1.0], [0, 2.0]], "0 and 1, or true and false, got 2"),
        (np.array([["a", "b"], ["c", "d"]]), "times must be numbers, but y holds texts such as 'b'"),
        ([1.0, 2.0], "needs an event and a time"),
        (pd.DataFrame({"a": [1], "b": [2]}), "columns 'event' and 'time'"),
    ],
)
def test_what_is_no_outcome_is_refused(y, message):
    with pytest.raises(gmil.BagValidationError, match=message):
        concordance(y, np.zeros(len(y)))


# ------------------------------------------------------------------ oracles


@pytest.mark.parametrize("ties", [True, False])
def test_scikit_survival_finds_the_same(ties):
    metrics = pytest.importorskip("sksurv.metrics")
    nonparametric = pytest.importorskip("sksurv.nonparametric")
    for seed in range(20):
        y, risk = random_outcomes(80, seed, ties=ties)
        times, survival = nonparametric.kaplan_meier_estimator(y["event"], y["time"])
        assert_allclose(kaplan_meier(y).at(times), survival, atol=1e-9)
        found = metrics.concordance_index_censored(y["event"], y["time"], risk)[0]
        assert concordance(y, risk) == pytest.approx(found, abs=1e-9)
        until = float(np.quantile(y["time"], 0.8))
        assert uno_concordance(y, y, risk, until=until) == pytest.approx(
            metrics.concordance_index_ipcw(y, y, risk, tau=until)[0], abs=1e-9
        )
        wanted = np.linspace(*np.quantile(y["time"], [0.2, 0.7]), 10)
        curves = np.exp(-np.exp(risk)[:, None] * wanted / 5)
        expected = metrics.brier_score(y, y, curves, wanted)[1]
        assert_allclose(brier_scores(y, y, curves, wanted), expected, atol=1e-9)
        assert integrated_brier_score(y, y, curves, wanted) == pytest.approx(
            metrics.integrated_brier_score(y, y, curves, wanted), abs=1e-9
        )


def test_lifelines_finds_the_same():
    lifelines = pytest.importorskip("lifelines")
    y, risk = random_outcomes(80, 5)
    fitted = lifelines.KaplanMeierFitter().fit(y["time"], y["event"])
    curve = fitted.survival_function_["KM_estimate"]
    assert_allclose(kaplan_meier(y).at(curve.index), curve, atol=1e-9)
    assert concordance(y, risk) == pytest.approx(
        lifelines.utils.concordance_index(y["time"], -risk, y["event"]), abs=1e-9
    )
