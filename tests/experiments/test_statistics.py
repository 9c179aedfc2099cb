"""Statistics against examples computed by hand and against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gmil import metrics
from gmil.experiments import accuracy_interval, average_ranks, compare, critical_difference, friedman
from gmil.experiments.plot_ranks import draw_ranks, groups
from gmil.experiments.statistics import resampled_t


def test_the_interval_is_the_bootstrap_over_bags_of_the_mean_over_repeats():
    rng = np.random.default_rng(0)
    correct = rng.random((5, 40)) < 0.8
    assert accuracy_interval(correct) == metrics.bootstrap_interval(correct.mean(axis=0))
    assert accuracy_interval(correct) == accuracy_interval(np.repeat(correct, 3, axis=0))  # copies are no news
    low, high = accuracy_interval(correct)
    assert low < correct.mean() < high
    assert accuracy_interval(np.ones((5, 40))) == metrics.wilson_interval(1.0, 40)


def test_the_corrected_test_by_hand():
    # Two repeats of two folds: differences 0.1, 0.3, 0.2, 0.2; mean 0.2, s^2 = 0.02/3; n_test/n_train = 1.
    found = compare([[0.9, 0.9], [0.8, 0.9]], [[0.8, 0.6], [0.6, 0.7]])
    error = np.sqrt((1 / 4 + 1) * 0.02 / 3)
    assert found.difference == pytest.approx(0.2)
    assert found.interval[0] == pytest.approx(0.2 - 3.182446305284263 * error)
    assert found.interval[1] == pytest.approx(0.2 + 3.182446305284263 * error)
    assert found.p_value == pytest.approx(2 * stats.t.sf(0.2 / error, 3))
    assert found.verdict == "undecided"


def test_without_overlap_it_is_the_paired_t_test():
    rng = np.random.default_rng(1)
    first, second = rng.random(30), rng.random(30)
    mean, interval, p_value = resampled_t(first - second, 0.0)
    expected = stats.ttest_rel(first, second)
    assert mean == pytest.approx((first - second).mean())
    assert p_value == pytest.approx(expected.pvalue)
    assert interval == pytest.approx(tuple(expected.confidence_interval()))


def test_the_correction_only_widens():
    rng = np.random.default_rng(2)
    differences = rng.normal(0.02, 0.1, 100)
    plain, corrected = resampled_t(differences, 0.0), resampled_t(differences, 1 / 9)
    assert corrected[2] > plain[2]
    assert corrected[1][0] < plain[1][0] < plain[1][1] < corrected[1][1]


def test_no_false_alarms_where_the_plain_test_has_many():
    """Folds that overlap by 8/9 of their training bags: the plain test cries wolf, the corrected one does not."""
    rng = np.random.default_rng(3)
    plain = corrected = 0
    for _ in range(200):
        shared = rng.normal(0, 0.1 / 3)  # what the overlap of training folds adds to all differences alike
        differences = shared + rng.normal(0, 0.1, 100)
        plain += resampled_t(differences, 0.0)[2] < 0.05
        corrected += resampled_t(differences, 1 / 9)[2] < 0.05
    assert plain > 60
    assert corrected <= 20


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([0.05, 0.051, 0.05, 0.049], "better"),
        ([-0.05, -0.051, -0.05, -0.049], "worse"),
        ([0.001, -0.001, 0.0, 0.0], "equivalent"),
        ([0.005, 0.0051, 0.005, 0.0049], "equivalent"),  # surely above zero, and surely of no account
        ([0.02, 0.03, 0.01, 0.02], "undecided"),  # significant, but perhaps within a point
        ([0.3, -0.3, 0.2, -0.1], "undecided"),
        ([0.0, 0.0, 0.0, 0.0], "equivalent"),
        ([0.01, 0.01, 0.01, 0.01], "equivalent"),
        ([0.5, 0.5, 0.5, 0.5], "better"),
    ],
)
def test_the_verdict_follows_from_interval_and_zone(differences, verdict):
    first = np.array([differences])
    found = compare(first, np.zeros((1, 4)))
    assert found.verdict == verdict
    mirrored = {"better": "worse", "worse": "better"}.get(verdict, verdict)
    assert compare(np.zeros((1, 4)), first).verdict == mirrored


def test_equal_methods_have_p_one_and_constant_differences_p_zero():
    assert compare(np.ones((2, 3)), np.ones((2, 3))).p_value == 1.0
    assert compare(np.ones((2, 3)), np.zeros((2, 3))).p_value == 0.0


def test_flat_accuracies_are_refused():
    with pytest.raises(ValueError, match=r"\(n_repeats, n_folds\) with 2 folds at least, got shape \(3,\)"):
        compare([1, 1, 1], [0, 1, 1])


def test_ranks_share_ties_and_average_over_data_sets():
    scores = np.array([[0.9, 0.8, 0.8, 0.1], [0.2, 0.9, 0.4, 0.3], [0.5, 0.5, 0.5, 0.5]])
    expected = np.array([stats.rankdata(-row) for row in scores]).mean(axis=0)
    assert average_ranks(scores).tolist() == expected.tolist()
    np.testing.assert_allclose(expected, [7.5 / 3, 6 / 3, 7 / 3, 9.5 / 3])
    np.testing.assert_allclose(average_ranks(scores, larger_is_better=False), 5 - expected)


def test_gaps_are_refused():
    with pytest.raises(ValueError, match="without gaps"):
        average_ranks([[0.5, np.nan]])


def test_friedman_agrees_with_scipy_and_with_the_formula():
    rng = np.random.default_rng(4)
    scores = rng.random((14, 5)) + np.arange(5) / 10
    found, expected = friedman(scores), stats.friedmanchisquare(*scores.T)
    assert (found.statistic, found.p_value) == (expected.statistic, expected.pvalue)
    n, k = scores.shape
    by_hand = 12 * n / (k * (k + 1)) * ((found.average_ranks - (k + 1) / 2) ** 2).sum()
    assert found.statistic == pytest.approx(by_hand)


def test_friedman_needs_three_methods():
    with pytest.raises(ValueError, match="needs 3 methods at least, got 2"):
        friedman(np.eye(2))


@pytest.mark.parametrize(("n_methods", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_nemenyi_has_the_constants_of_demsar(n_methods, q):
    expected = q * np.sqrt(n_methods * (n_methods + 1) / (6 * 20))
    assert critical_difference(n_methods, 20) == pytest.approx(expected, abs=2e-3)
    exact = stats.studentized_range.ppf(0.95, n_methods, np.inf) / np.sqrt(2)
    assert critical_difference(n_methods, 20) == pytest.approx(exact * np.sqrt(n_methods * (n_methods + 1) / 120))


def test_a_diagram_of_few_data_sets_is_refused_with_the_reason(tmp_path):
    with pytest.raises(ValueError, match="needs 12 data sets at least, got 5: with fewer, ranks are so coarse"):
        draw_ranks(np.random.default_rng(0).random((5, 4)), list("abcd"), tmp_path / "cd")
    assert not list(tmp_path.iterdir())


def test_a_diagram_of_twelve_data_sets_is_drawn(tmp_path):
    scores = np.random.default_rng(0).random((12, 4)) + np.array([0, 0.1, 1, 2])
    paths = draw_ranks(scores, ["one", "two", "three", "four"], tmp_path / "cd")
    assert [path.name for path in paths] == ["cd.png", "cd.svg"]
    assert "Nemenyi" in paths[1].read_text()


def test_groups_are_the_longest_runs_within_the_difference():
    assert groups(np.array([3.0, 1.0, 1.2, 5.0]), 2.0) == [(0, 2), (2, 3)]
    assert groups(np.array([1.0, 4.0]), 1.0) == []
