"""Logistic weights of left-out decisions, and calibration curves: the best, whatever the decisions look like."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, log_expit
from sklearn.linear_model import LogisticRegression

from gmil.stacking import calibrate, cross_fitted, logistic_weights


@pytest.fixture
def decisions():
    """Return two models, of which the second knows nothing, and labels drawn from twice the first."""
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(4000, 2))
    return columns, rng.random(4000) < expit(2 * columns[:, 0] + 0.5)


def test_many_bags_find_what_the_labels_were_drawn_from(decisions):
    columns, positive = decisions
    found, loss = logistic_weights(columns, positive, np.ones(4000), np.full(2, 0.5))
    np.testing.assert_allclose(found, [2, 0, 0.5], atol=0.15)
    signs = np.where(positive, 1, -1)
    away = found[:2] - 0.5
    assert loss == pytest.approx(away @ away / 2 - log_expit(signs * (columns @ found[:2] + found[2])).sum())


def test_around_zero_it_is_logistic_regression_where_no_weight_is_negative(decisions):
    columns = decisions[0][:200]
    positive = np.random.default_rng(1).random(200) < expit(2 * columns[:, 0] - columns[:, 1])
    found, _ = logistic_weights(columns, positive, np.ones(200), np.zeros(2), width=2.0)
    both = LogisticRegression(C=4, tol=1e-8).fit(columns, positive)
    assert (both.coef_[0] >= 0).tolist() == [True, False]
    one = LogisticRegression(C=4, tol=1e-8).fit(columns[:, :1], positive)
    np.testing.assert_allclose(found, [one.coef_[0, 0], 0, one.intercept_[0]], rtol=1e-3)


def test_a_narrow_prior_and_weights_of_zero_leave_weights_as_they_are(decisions):
    columns, positive = decisions
    prior = np.array([0.3, 0.7])
    narrow, _ = logistic_weights(columns[:50], positive[:50], np.ones(50), prior, width=1e-4)
    np.testing.assert_allclose(narrow[:2], prior, atol=1e-4)
    nothing, loss = logistic_weights(columns[:50], positive[:50], np.zeros(50), prior)
    assert (nothing[:2].tolist(), loss) == (prior.tolist(), 0.0)


def test_a_weight_of_two_counts_as_two_bags(decisions):
    columns, positive = (array[:60] for array in decisions)
    twice = np.repeat(np.arange(60), 2)
    weighted, _ = logistic_weights(columns, positive, np.full(60, 2.0), np.zeros(2))
    repeated, _ = logistic_weights(columns[twice], positive[twice], np.ones(120), np.zeros(2))
    np.testing.assert_allclose(weighted, repeated, atol=1e-5)


def test_cross_fitted_sums_by_hand():
    columns, folds = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([[1, 1, 0, 0], [0, 0, 1, 0]], dtype=bool)

    def weigh(rows):
        return np.array([columns[rows].sum(), 0.5])

    # The fourth bag is in no fold, and has the weights of all.
    np.testing.assert_allclose(cross_fitted(columns, np.array([10.0, 1.0]), folds, weigh), [7.5, 14.5, 21.5, 41.0])


def _loss(decisions, positive, slope, shift):
    """Return the cross-entropy to Platt's soft targets."""
    goal = np.where(positive, (positive.sum() + 1) / (positive.sum() + 2), 1 / ((~positive).sum() + 2))
    odds = slope * decisions + shift
    return -(goal * log_expit(odds) + (1 - goal) * log_expit(-odds)).mean()


@pytest.mark.parametrize("seed", range(30))
def test_a_calibration_curve_is_the_best_one(seed):
    """Of heavy tails, tiny and huge decisions, and such as lie far from zero: where steps on the log of the slope ended
    on the way."""
    rng = np.random.default_rng(seed)
    positive = rng.permutation(np.arange(90) < 30)
    decisions = rng.standard_cauchy(90) if seed % 2 else rng.normal(size=90)
    decisions = (decisions + positive + [0, 5, 100][seed % 3]) * 10.0 ** (seed % 5 - 2)
    slope, shift = calibrate(decisions, positive, np.ones(90))
    assert slope > 0
    found, middle, flattest = (
        _loss(decisions, positive, slope, shift),
        np.median(decisions),
        np.exp(-5) / _size(decisions),
    )
    for factor, move in [(f, m) for f in (0.7, 0.98, 1.02, 1.4) for m in (-0.3, -0.02, 0.02, 0.3)]:
        other = max(factor * slope, flattest)
        assert _loss(decisions, positive, other, shift + (slope - other) * middle + move) > found - 1e-9


def _size(decisions):
    return np.sqrt(np.mean(decisions**2)) or 1.0


def test_decisions_that_tell_nothing_have_the_flattest_curve():
    positive = np.array([True, False, True, False, True])
    for decisions in (np.full(5, 3.0), np.zeros(5), np.where(positive, -1.0, 1.0)):
        slope, shift = calibrate(decisions, positive, np.ones(5))
        assert slope * _size(decisions) == pytest.approx(np.exp(-5))
        assert np.mean(slope * decisions + shift) == pytest.approx(
            np.log(4 / 5 * 3 + 1 / 4 * 2) - np.log(3 / 5 + 3 / 4 * 2), abs=0.02
        )
