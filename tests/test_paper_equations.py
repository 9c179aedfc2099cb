"""Eq. 3-7 of the paper against a second, slow implementation that is written from the text alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gmil import GMIL, Bags

# ------------------------------------------------------------------ the paper, in plain Python


def distance(x, c):
    return math.sqrt(sum((float(a) - float(b)) ** 2 for a, b in zip(x, c, strict=True)))


def nearest_center(x, centers):
    distances = [distance(x, c) for c in centers]
    return distances.index(min(distances))


def count_instances(bags, centers):
    """Eq. 3 and 4: how many instances fall into every bin."""
    bins = [0] * len(centers)
    for bag in bags:
        for x in bag:
            bins[nearest_center(x, centers)] += 1
    return bins


def histogram(bins):
    return [count / sum(bins) for count in bins]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def scores_of_bins(positive_bins, negative_bins, n_positive_bags, epsilon):
    """Eq. 6."""
    k = len(positive_bins)
    h_plus, h_minus = histogram(positive_bins), histogram(negative_bins)
    expected = n_positive_bags / k
    return [h_plus[i] / (h_minus[i] + epsilon) * sigmoid((positive_bins[i] - expected) / expected) for i in range(k)]


def first(values, n):
    """Return the positions of the n largest values, the first of equals first."""
    return sorted(range(len(values)), key=lambda i: (-values[i], i))[:n]


def bag_to_codebook(bag, codebook):
    """Return the minimum Hausdorff distance."""
    return min(distance(x, c) for x in bag for c in codebook)


def label_of(bag, positive, negative):
    """Eq. 7."""
    return 1 if bag_to_codebook(bag, positive) < bag_to_codebook(bag, negative) else 0


def slow_gmil(bags, y, centers, p, q, epsilon):
    positive = [bag for bag, label in zip(bags, y, strict=True) if label == 1]
    negative = [bag for bag, label in zip(bags, y, strict=True) if label == 0]
    bins_plus, bins_minus = count_instances(positive, centers), count_instances(negative, centers)
    scores = scores_of_bins(bins_plus, bins_minus, len(positive), epsilon)
    c_plus, c_minus = first(scores, p), first(histogram(bins_minus), q)
    return bins_plus, bins_minus, scores, c_plus, c_minus


# ------------------------------------------------------------------ bags to compare on


@st.composite
def labelled_bags(draw):
    """Bags with duplicates, zeros and ties, since coordinates are few; both classes are there."""
    n_features = draw(st.integers(1, 3))
    coordinate = st.sampled_from([0.0, 0.0, 1.0, 2.0, -1.5, 0.1, 7.25, -30.0, 1e-3])
    n_bags = draw(st.integers(2, 8))
    sizes = draw(st.lists(st.integers(1, 5), min_size=n_bags, max_size=n_bags))
    bags = [np.array([[draw(coordinate) for _ in range(n_features)] for _ in range(n)]) for n in sizes]
    y = np.array(draw(st.lists(st.integers(0, 1), min_size=n_bags, max_size=n_bags)))
    assume(0 < y.sum() < n_bags)
    n_instances = sum(sizes)
    k = draw(st.integers(1, min(6, n_instances)))
    p, q = draw(st.integers(1, k)), draw(st.integers(0, k))
    epsilon = draw(st.sampled_from([1e-6, 0.01, 0.5]))
    seed = draw(st.integers(0, 1000))
    return bags, y, k, p, q, epsilon, seed


def relative_gap(values):
    """Return the smallest gap between different values, relative to the largest: below it, order is rounding."""
    ordered = np.sort(np.asarray(values, dtype=float))
    gaps = np.diff(ordered)
    gaps = gaps[gaps > 0]
    return gaps.min() / max(abs(ordered).max(), 1e-300) if len(gaps) else np.inf


@settings(max_examples=200)
@given(labelled_bags())
def test_bins_scores_codebooks_and_labels_are_those_of_the_paper(case):
    bags, y, k, p, q, epsilon, seed = case
    model = GMIL(k, p, q, epsilon=epsilon, random_state=seed, backend="numpy").fit(bags, y)
    centers = model.cluster_centers_
    instances = np.concatenate(bags)
    # Where an instance is (all but) as near to a second centre, either bin is right: not a case to compare.
    d = np.sqrt(((instances[:, None] - centers) ** 2).sum(axis=2))
    if k > 1:
        two = np.sort(d, axis=1)[:, :2]
        distinct = np.abs(two[:, 1] - two[:, 0]) > 1e-9 * max(1.0, np.abs(instances).max())
        assume(distinct.all())
    bins_plus, bins_minus, scores, c_plus, c_minus = slow_gmil(bags, y, centers, p, q, epsilon)
    assert model.positive_counts_.tolist() == bins_plus
    assert model.negative_counts_.tolist() == bins_minus
    np.testing.assert_allclose(model.bin_scores_, scores, rtol=1e-12, atol=0)
    assume(relative_gap(scores) > 1e-12)
    assert model.positive_bins_.tolist() == c_plus
    assert model.negative_bins_.tolist() == c_minus
    for bag, decision, label in zip(bags, model.decision_function(bags), model.predict(bags), strict=True):
        to_plus = bag_to_codebook(bag, centers[c_plus])
        if q == 0:
            assert model.threshold_ == pytest.approx(
                np.mean([bag_to_codebook(b, centers[c_plus]) for b in bags]), rel=1e-6, abs=1e-6
            )
            continue
        to_minus = bag_to_codebook(bag, centers[c_minus])
        assert decision == pytest.approx(to_minus - to_plus, abs=1e-6 * max(1.0, np.abs(instances).max()))
        if abs(to_minus - to_plus) > 1e-6 * max(1.0, np.abs(instances).max()) or to_minus == to_plus == 0:
            assert label == label_of(bag, centers[c_plus], centers[c_minus])


def test_an_example_small_enough_to_check_on_paper():
    # Three places on a line: 0 (both kinds of bag), 10 (positive bags alone), 20 (negative bags alone).
    bags = Bags.from_list([[[0.0], [10.0]], [[0.0], [10.0], [10.0]], [[0.0], [20.0]], [[20.0], [20.0]]])
    y = [1, 1, 0, 0]
    centers = [[0.0], [10.0], [20.0]]
    model = GMIL(n_positive=1, n_negative=1, epsilon=0.1, init=centers).fit(bags, y)
    assert model.positive_counts_.tolist() == [2, 3, 0]
    assert model.negative_counts_.tolist() == [1, 0, 3]
    # h+ = (2/5, 3/5, 0), h- = (1/4, 0, 3/4), n/K = 2/3; Eq. 6 by hand:
    expected = [
        0.4 / 0.35 / (1 + math.exp(-(2 - 2 / 3) / (2 / 3))),
        0.6 / 0.10 / (1 + math.exp(-(3 - 2 / 3) / (2 / 3))),
        0.0,
    ]
    np.testing.assert_allclose(model.bin_scores_, expected)
    assert model.positive_bins_.tolist() == [1]
    assert model.negative_bins_.tolist() == [2]
    # 14 is 4 from C+ and 6 from C-; 15 is a tie, and a tie is negative; the nearest instance speaks for a bag.
    new = Bags.from_list([[[14.0]], [[15.0]], [[0.0], [19.0]], [[-5.0]]])
    np.testing.assert_allclose(model.decision_function(new), [2.0, 0.0, -8.0, 10.0], atol=1e-9)
    assert model.predict(new).tolist() == [1, 0, 0, 1]
    np.testing.assert_allclose(model.score_instances(new), [2.0, 0.0, 10.0, -8.0, 10.0], atol=1e-9)


def test_without_negative_centers_the_mean_distance_of_all_training_bags_decides():
    bags = Bags.from_list([[[0.0], [10.0]], [[11.0]], [[0.0]], [[20.0]]])
    model = GMIL(n_positive=1, n_negative=0, epsilon=0.1, init=[[0.0], [10.5], [20.0]]).fit(bags, [1, 1, 0, 0])
    assert model.positive_bins_.tolist() == [1]
    # Distances to 10.5: 0.5, 0.5, 10.5, 9.5.
    assert model.threshold_ == pytest.approx((0.5 + 0.5 + 10.5 + 9.5) / 4)
    np.testing.assert_allclose(model.decision_function([[[10.5]], [[0.0]]]), [5.25, -5.25])


@settings(max_examples=60)
@given(labelled_bags(), st.randoms(use_true_random=False))
def test_predict_does_not_depend_on_the_order_of_bags_or_instances(case, random):
    bags, y, k, p, q, epsilon, seed = case
    model = GMIL(k, p, q, epsilon=epsilon, random_state=seed).fit(bags, y)
    order = list(range(len(bags)))
    random.shuffle(order)
    shuffled = [bag[random.sample(range(len(bag)), len(bag))] for bag in (bags[i] for i in order)]
    np.testing.assert_array_equal(model.decision_function(shuffled), model.decision_function(bags)[order])


@settings(max_examples=60)
@given(st.integers(0, 10_000))
def test_fit_from_given_centers_does_not_depend_on_the_order_of_bags_or_instances(seed):
    rng = np.random.default_rng(seed)
    bags = [rng.normal(size=(rng.integers(1, 6), 4)) for _ in range(12)]
    y = np.arange(12) % 2
    init = np.concatenate(bags)[:5]
    order = rng.permutation(12)
    shuffled = [rng.permutation(bags[i]) for i in order]
    one = GMIL(n_positive=2, n_negative=2, init=init).fit(bags, y)
    other = GMIL(n_positive=2, n_negative=2, init=init).fit(shuffled, y[order])
    np.testing.assert_allclose(one.cluster_centers_, other.cluster_centers_, atol=1e-10)
    np.testing.assert_array_equal(one.positive_counts_, other.positive_counts_)
    np.testing.assert_array_equal(one.positive_bins_, other.positive_bins_)
    np.testing.assert_array_equal(one.negative_bins_, other.negative_bins_)
    np.testing.assert_array_equal(one.predict(bags), other.predict(bags))
