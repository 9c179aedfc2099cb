"""Statistics against examples computed by hand and against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gmil.model_selection import metrics
from gmil.paper import accuracy_interval, average_ranks, compare, compare_with_best, critical_difference, friedman, holm
from gmil.paper.statistics import corrected_difference

MANY = 10**9


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
    found = compare([[0.9, 0.9], [0.8, 0.9]], [[0.8, 0.6], [0.6, 0.7]], n_bags=MANY)
    error = np.sqrt((1 / 4 + 1) * 0.02 / 3)
    assert found.difference == pytest.approx(0.2)
    assert found.interval[0] == pytest.approx(0.2 - 3.182446305284263 * error)
    assert found.interval[1] == pytest.approx(0.2 + 3.182446305284263 * error)
    assert found.p_value == pytest.approx(2 * stats.t.sf(0.2 / error, 3))
    assert found.verdict == "undecided"


def test_without_overlap_it_is_the_paired_t_test():
    rng = np.random.default_rng(1)
    first, second = rng.random(30), rng.random(30)
    found = corrected_difference(first - second, 0.0)
    expected = stats.ttest_rel(first, second)
    assert found.mean == pytest.approx((first - second).mean())
    assert found.p_value == pytest.approx(expected.pvalue)
    assert found.comparison(0.05, 0.01).interval == pytest.approx(tuple(expected.confidence_interval()))


def test_the_correction_only_widens():
    rng = np.random.default_rng(2)
    differences = rng.normal(0.02, 0.1, 100)
    plain, corrected = (corrected_difference(differences, share).comparison(0.05, 0.01) for share in (0, 1 / 9))
    assert corrected.p_value > plain.p_value
    assert corrected.interval[0] < plain.interval[0] < plain.interval[1] < corrected.interval[1]


def test_no_false_alarms_where_the_plain_test_has_many():
    """Folds that overlap by 8/9 of their training bags: the plain test cries wolf, the corrected one does not."""
    rng = np.random.default_rng(3)
    plain = corrected = 0
    for _ in range(200):
        shared = rng.normal(0, 0.1 / 3)  # what the overlap of training folds adds to all differences alike
        differences = shared + rng.normal(0, 0.1, 100)
        plain += corrected_difference(differences, 0.0).p_value < 0.05
        corrected += corrected_difference(differences, 1 / 9).p_value < 0.05
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
        ([0.009, 0.009, 0.009, 0.009], "equivalent"),
        ([0.5, 0.5, 0.5, 0.5], "better"),
    ],
)
def test_the_verdict_follows_from_interval_and_zone(differences, verdict):
    first = np.array([differences])
    found = compare(first, np.zeros((1, 4)), n_bags=MANY)
    assert found.verdict == verdict
    mirrored = {"better": "worse", "worse": "better"}.get(verdict, verdict)
    assert compare(np.zeros((1, 4)), first, n_bags=MANY).verdict == mirrored


@pytest.mark.parametrize("difference", [0.0, 0.05])
@pytest.mark.parametrize("n_bags", [20, 60, 500])
def test_differences_without_spread_are_not_certain(difference, n_bags):
    """By hand: the error is one bag, and of 2 x 3 folds five degrees of freedom are left."""
    found = compare(np.full((2, 3), 0.9), np.full((2, 3), 0.9 - difference), n_bags=n_bags)
    half = 2.5705818366147395 / n_bags
    assert found.interval == pytest.approx((difference - half, difference + half))
    assert found.p_value == pytest.approx(2 * stats.t.sf(difference * n_bags, 5))
    decided = {(0.0, 500): "equivalent", (0.05, 500): "better"}
    assert found.verdict == decided.get((difference, n_bags), "undecided")


def test_flat_and_unequal_accuracies_are_refused():
    with pytest.raises(ValueError, match=r"\(n_repeats, n_folds\) with 2 folds at least, got shapes \(3,\) and \(3,\)"):
        compare([1, 1, 1], [0, 1, 1], n_bags=9)
    with pytest.raises(ValueError, match=r"got shapes \(1, 3\) and \(2, 3\)"):
        compare(np.ones((1, 3)), np.ones((2, 3)), n_bags=9)


def test_holm_by_hand():
    # Sorted 0.01 x 4, 0.02 x 3, 0.03 x 2 = 0.06 again, 0.5 x 1; never above 1, never below one before it.
    assert holm([0.5, 0.02, 0.01, 0.03]) == pytest.approx([0.5, 0.06, 0.04, 0.06])
    assert holm([0.6, 0.7]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_holm_rejects_what_its_steps_reject(p_values):
    corrected = holm(p_values)
    assert (corrected >= p_values).all()
    assert (corrected <= np.minimum(len(p_values) * np.array(p_values), 1)).all()  # at least as sharp as Bonferroni
    for alpha in (0.01, 0.05, 0.2):
        rejected, order = set(), np.argsort(p_values, kind="stable")
        for step, index in enumerate(order):
            if p_values[index] * (len(order) - step) > alpha:
                break
            rejected.add(int(index))
        assert set(np.flatnonzero(corrected <= alpha)) == rejected


def test_one_other_method_is_compared_as_ever_and_more_are_corrected():
    rng = np.random.default_rng(0)
    best = 0.9 + rng.normal(0, 0.02, (3, 10))
    others = {f"other{i}": best - 0.02 - 0.004 * i + rng.normal(0, 0.03, (3, 10)) for i in range(12)}
    for name, accuracies in others.items():
        alone = compare(accuracies, best, n_bags=100)
        (found,) = compare_with_best({"best": best, name: accuracies}, "best", n_bags=100).values()
        assert found.verdict == alone.verdict
        assert (found.interval, found.p_value, found.p_holm) == (alone.interval, alone.p_value, alone.p_value)
    together = compare_with_best({"best": best, **others}, "best", n_bags=100)
    alone = {name: compare(accuracies, best, n_bags=100) for name, accuracies in others.items()}
    assert list(together) == list(others)
    p_values = [one.p_value for one in alone.values()]
    assert [one.p_holm for one in together.values()] == pytest.approx(stats_holm(p_values))
    verdicts = [(one.verdict, together[name].verdict) for name, one in alone.items()]
    assert {after for before, after in verdicts if before == "undecided"} <= {"undecided"}
    assert ("worse", "undecided") in verdicts  # what the correction takes back
    assert ("worse", "worse") in verdicts


def stats_holm(p_values):
    """Return Holm's p-values by their definition: the largest of the products up to the own step."""
    ordered = sorted(p_values)
    products = [min(1, (len(ordered) - step) * p) for step, p in enumerate(ordered)]
    return [max(products[: ordered.index(p) + 1]) for p in p_values]


def test_methods_that_are_equal_are_seldom_told_apart_when_many_are_compared():
    """Twenty methods that differ by exactly the zone: verdicts of any of them are wrong."""
    rng = np.random.default_rng(5)
    plain = corrected = 0
    for _ in range(200):
        best = np.zeros((1, 40))
        others = {str(i): rng.normal(-0.01, 0.1, (1, 40)) for i in range(20)}
        found = compare_with_best({"best": best, **others}, "best", n_bags=400, zone=0.01)
        corrected += any(one.verdict == "worse" for one in found.values())
        plain += any(compare(a, best, n_bags=400).verdict == "worse" for a in others.values())
    assert corrected <= 10  # at most one in forty are expected: one side of 5 %
    assert plain > corrected


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
