"""Measures of scores of instances: pooled over bags and within them, with intervals over bags."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import average_precision_score, roc_auc_score

from gmil.model_selection import metrics
from gmil.model_selection.instance_metrics import (
    _Ranking,
    aucs_within_bags,
    pooled_auc,
    pooled_average_precision,
    pooled_intervals,
)
from gmil.model_selection.instance_result import InstanceResult


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels, scores with many ties, and offsets of a few bags; both kinds are there."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 8, int(rng.integers(2, 12))))])
    labels = rng.integers(-1, 2, offsets[-1])
    labels[:2] = 1, 0
    return labels, rng.integers(-3, 4, offsets[-1]).astype(float), offsets


@settings(max_examples=100)
@given(st.integers(0, 10**6))
def test_figures_are_those_of_scikit_learn(seed):
    labels, scores, offsets = drawn(seed)
    known = labels >= 0
    assert pooled_auc(labels, scores) == pytest.approx(roc_auc_score(labels[known], scores[known]))
    expected = average_precision_score(labels[known], scores[known])
    assert pooled_average_precision(labels, scores) == pytest.approx(expected)
    found = aucs_within_bags(labels, scores, offsets)
    for bag, (one, value) in enumerate(
        zip(np.split(labels, offsets[1:-1]), np.split(scores, offsets[1:-1]), strict=True)
    ):
        both = {0, 1} <= set(one.tolist())
        assert both != np.isnan(found[bag])
        if both:
            assert found[bag] == pytest.approx(roc_auc_score(one[one >= 0], value[one >= 0]))


@settings(max_examples=100)
@given(st.integers(0, 10**6))
def test_resampled_figures_are_weighted_ones(seed):
    labels, scores, offsets = drawn(seed)
    units = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    counts = np.random.default_rng(seed).integers(0, 4, len(offsets) - 1)
    auc, precision = _Ranking.of(labels, scores, units).areas(counts)
    kept = (labels >= 0) & (counts[units] > 0)
    if len(np.unique(labels[kept])) < 2:
        assert np.isnan([auc, precision]).all()
        return
    given_twice = {"sample_weight": counts[units][kept]}
    assert auc == pytest.approx(roc_auc_score(labels[kept], scores[kept], **given_twice))
    assert precision == pytest.approx(average_precision_score(labels[kept], scores[kept], **given_twice))


def test_figures_by_hand():
    labels, scores = np.array([1, 0, 0, 1, 0, -1]), np.array([3.0, 1.0, 4.0, 2.0, 0.0, 9.0])
    assert pooled_auc(labels, scores) == pytest.approx(4 / 6)  # 3 beats 1 and 0, 2 beats 1 and 0, of six pairs
    assert pooled_average_precision(labels, scores) == pytest.approx((1 / 2 + 2 / 3) / 2)
    np.testing.assert_array_equal(aucs_within_bags(labels, scores, np.array([0, 3, 5, 6])), [0.5, 1.0, np.nan])
    assert np.isnan(pooled_auc(np.array([1, -1]), np.zeros(2)))
    assert np.isnan(pooled_average_precision(np.array([0, -1]), np.zeros(2)))


def log_odds_interval(figures, figure, n):
    """Return the interval as its definition says, by hand."""
    odds = np.log(figures / (1 - figures))
    half = stats.t.ppf(0.975, n - 1) * odds.std(ddof=1)
    return [1 / (1 + (1 / figure - 1) * np.exp(sign * half)) for sign in (1, -1)]


def test_intervals_are_those_of_a_plain_bootstrap():
    rng = np.random.default_rng(1)
    offsets = np.arange(0, 401, 4)
    labels = (rng.random(400) < 0.3).astype(int)
    scores = labels + rng.normal(size=(2, 400))
    found = pooled_intervals(labels[:, None], scores[..., None], offsets, n_resamples=60)
    figures, generator = [], np.random.default_rng(0)
    for row in generator.integers(0, 100, (60, 100)):
        rows = (4 * row[:, None] + np.arange(4)).ravel()
        both = [(f(labels[rows], s[rows])) for s in scores for f in (roc_auc_score, average_precision_score)]
        figures.append(np.reshape(both, (2, 2)).mean(axis=0))
    n_positive = len(np.unique(np.flatnonzero(labels) // 4))
    means = [np.mean([f(labels, s) for s in scores]) for f in (roc_auc_score, average_precision_score)]
    for limits, drawn_figures, mean in zip(found, np.transpose(figures), means, strict=True):
        np.testing.assert_allclose(limits, log_odds_interval(drawn_figures, mean, n_positive))
    assert pooled_intervals(labels[:, None], scores[..., None], offsets, n_resamples=60) == found
    assert pooled_intervals(labels[:, None], scores[..., None], offsets, n_resamples=60, random_state=1) != found


def test_intervals_over_groups_are_wider():
    rng = np.random.default_rng(2)
    offsets, groups = np.arange(0, 401, 4), np.repeat(np.arange(10), 10)
    labels = rng.integers(0, 2, 400)
    scores = (labels * np.repeat(rng.normal(1, 2, 10), 40) + rng.normal(size=400))[None, :, None]
    bags, together = (pooled_intervals(labels[:, None], scores, offsets, g, n_resamples=400) for g in (None, groups))
    assert together.auc[1] - together.auc[0] > 1.5 * (bags.auc[1] - bags.auc[0])


def test_one_bad_bag_of_many_widens_the_interval():
    """A bootstrap leaves out one bag of thirty in every third resample, and then sees no error at all."""
    offsets, labels = np.arange(0, 91, 3), np.tile([1, 0, 0], 30)[:, None]
    scores = labels.astype(float)
    scores[0] = -1
    for wrong, widens in ((1, True), (8, False)):
        scores[: 3 * wrong : 3] = -1
        found = InstanceResult(labels, scores[None, None], offsets).intervals(n_resamples=200)
        means = metrics.resampled_means(np.arange(30) >= wrong, None, 200, 0)
        limits = [*np.quantile(means, [0.025, 0.975]), *metrics.wilson_interval(1 - wrong / 30, 30)]
        expected = (min(limits), max(limits)) if widens else log_odds_interval(means, 1 - wrong / 30, 30)
        for name in ("auc", "auc_within"):
            assert found[name] == pytest.approx(expected)


@pytest.mark.parametrize("n_bags", [1, 2, 20])
def test_an_interval_never_collapses(n_bags):
    offsets = np.arange(0, 3 * n_bags + 1, 3)
    labels = np.tile([1, 0, 0], n_bags)[:, None]
    result = InstanceResult(labels, labels[None, None].astype(float), offsets)
    assert result.auc() == result.average_precision() == result.auc_within() == 1
    for low, high in result.intervals(n_resamples=50).values():
        assert low < 0.9
        assert high == 1


def test_a_result_is_the_mean_over_repeats_and_classes():
    rng = np.random.default_rng(3)
    offsets = np.arange(0, 61, 6)
    labels = np.stack([rng.integers(-1, 2, 60), rng.integers(0, 2, 60), np.zeros(60, dtype=int)], axis=1)
    scores = rng.normal(size=(2, 3, 60, 3))
    found = InstanceResult(labels, scores, offsets)
    for measure, one in (("auc", pooled_auc), ("average_precision", pooled_average_precision)):
        # The third class has one kind only.
        expected = [np.mean([[one(labels[:, p], rows[:, p]) for p in (0, 1)] for rows in by]) for by in scores]
        np.testing.assert_allclose(getattr(found, measure)(), expected)
    within = np.array(
        [[[aucs_within_bags(labels[:, p], rows[:, p], offsets) for p in (0, 1)] for rows in by] for by in scores]
    )
    np.testing.assert_allclose(found.auc_within(), np.nanmean(np.nanmean(within, axis=2), axis=(1, 2)))
    assert found.intervals(n_resamples=20)["auc_within"].shape == (2, 2)
    alone = found.one_vs_rest(1)
    assert alone.labels.shape == (60, 1)
    np.testing.assert_allclose(alone.auc(), [np.mean([pooled_auc(labels[:, 1], r[:, 1]) for r in by]) for by in scores])
    np.testing.assert_allclose(alone.negated().auc(), alone.auc())


def test_figures_that_cannot_be_had_are_none():
    labels, offsets = np.array([1, 1, 0, 0])[:, None], np.array([0, 2, 4])
    apart = InstanceResult(labels, np.arange(4.0)[None, None, :, None], offsets)
    assert apart.n_bags_within() == 0
    assert np.isnan(apart.auc_within())
    assert np.isnan(apart.intervals(n_resamples=20)["auc_within"]).all()
    assert apart.auc() == 0
    gap = InstanceResult(labels, np.array([np.nan, 1, 2, 3])[None, None, :, None], offsets)
    assert np.isnan(gap.auc())
    assert np.isnan(gap.intervals(n_resamples=20)["auc"]).all()
