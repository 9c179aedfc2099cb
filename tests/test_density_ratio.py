"""Eq. 1 and 2 by brute force: against a plain loop, against the histogram of Eq. 5, and at the ends of h_n."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import gmil
from gmil import GMIL, Bags, BagValidationError, DensityRatio, cross_validate
from gmil.base import methods
from gmil.greedy import windows

BOTH = pytest.mark.parametrize("kernel", ["box", "gaussian"])
PLACES = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0], [12.0, 12.0]])


def separated_clusters(seed=0, n_bags=40):
    """Return bags over four far clusters; positive bags alone have instances in the last one."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_bags) % 2
    bags = []
    for label in y:
        clusters = rng.integers(0, 3, size=rng.integers(4, 9))
        clusters[-2:] = 3 * label
        bags.append(PLACES[clusters] + rng.normal(0, 0.5, (len(clusters), 2)))
    return Bags.from_list(bags), y


def ratios_by_hand(bags, y, kernel, width):
    """Return Eq. 2 at every instance of every positive bag, written as a plain loop."""

    def phi(u):
        return float((np.abs(u) < 0.5).all()) if kernel == "box" else np.exp(-(u @ u) / 2)

    positive = np.vstack([bag for bag, label in zip(bags, y, strict=True) if label])
    negative = np.vstack([bag for bag, label in zip(bags, y, strict=True) if not label])
    ratios = []
    for x in positive:
        above = sum(phi((x - t) / width) for t in positive) / len(positive)
        below = sum(phi((x - t) / width) for t in negative) / len(negative)
        ratios.append(above / (below + 1 / len(negative)))
    return positive, np.array(ratios)


# ------------------------------------------------------------------ the equation


@BOTH
@pytest.mark.parametrize("width", [0.7, 3.0])
def test_the_target_is_that_of_a_plain_loop(kernel, width):
    bags, y = separated_clusters(n_bags=12)
    points, ratios = ratios_by_hand(bags, y, kernel, width)
    model = DensityRatio(kernel=kernel, width=width).fit(bags, y)
    assert model.ratio_ == pytest.approx(ratios.max())
    assert_array_equal(model.target_, points[ratios.argmax()])
    assert_array_equal(bags.instances[model.target_instance_], model.target_)
    assert model.width_ == width


@BOTH
def test_the_window_and_the_best_bin_of_the_histogram_are_the_same_region(kernel):
    for seed in range(4):
        bags, y = separated_clusters(seed)
        model = DensityRatio(kernel=kernel).fit(bags, y)
        binned = GMIL(4, 1, 0, init=PLACES, weighting=None, epsilon="negatives").fit(bags, y)
        to_centers = np.linalg.norm(binned.cluster_centers_ - model.target_, axis=1)
        assert to_centers.argmin() == binned.positive_bins_[0] == 3
        assert_array_equal(model.predict(bags), binned.predict(bags))


@BOTH
def test_a_huge_window_holds_everything_and_says_nothing(kernel):
    bags, y = separated_clusters()
    model = DensityRatio(kernel=kernel, width=1e9, n_targets=5).fit(bags, y)
    n_negative = bags.sizes[y == 0].sum()
    assert model.ratio_ == pytest.approx(1 / (1 + 1 / n_negative))
    assert len(model.ratios_) == 1  # every other window overlaps


@BOTH
def test_a_tiny_window_holds_its_candidate_alone_and_says_nothing(kernel):
    bags, y = separated_clusters()
    model = DensityRatio(kernel=kernel, width=1e-9, n_targets=10**6, n_candidates=None).fit(bags, y)
    n_positive, n_negative = bags.sizes[y == 1].sum(), bags.sizes[y == 0].sum()
    assert_allclose(model.ratios_, n_negative / n_positive)  # one instance over the one of epsilon, at every candidate
    assert len(model.ratios_) == n_positive
    assert model.target_instance_ == bags.offsets[1]  # all are equal, so the first is taken


def test_between_the_ends_the_concept_is_found():
    bags, y = separated_clusters()
    right = [
        np.linalg.norm(DensityRatio(width=width).fit(bags, y).target_ - PLACES[3]) < 3
        for width in (1e-9, 1, 2, 5, 10, 1e9)
    ]
    assert right[1:5] == [True] * 4
    assert not right[-1]


def test_epsilon():
    bags, y = separated_clusters()
    small, large = (DensityRatio(epsilon=value, width=2.0).fit(bags, y) for value in (1e-3, 1.0))
    automatic = DensityRatio(epsilon=1 / int(bags.sizes[y == 0].sum()), width=2.0).fit(bags, y)
    assert small.ratio_ == pytest.approx(1000 * large.ratio_)  # no negative instance is there
    assert automatic.ratio_ == DensityRatio(width=2.0).fit(bags, y).ratio_


# ------------------------------------------------------------------ the rule for h_n


@BOTH
def test_the_automatic_window_of_the_median_candidate_holds_the_root_of_the_instances(kernel):
    bags, y = gmil.make_bags(60, n_features=4, random_state=1, return_X_y=True)
    model = DensityRatio(kernel=kernel, n_candidates=150, random_state=0).fit(bags, y)
    in_positive = (y == 1)[bags.segment_ids]
    points = bags.instances[in_positive]
    held = np.add(*windows.window_sums(points, bags.instances, in_positive, kernel, model.width_))
    assert np.median(held) == pytest.approx(np.sqrt(bags.n_instances), rel=0.2)


@BOTH
def test_a_rule_from_a_sample_is_near_that_from_everything(kernel, monkeypatch):
    bags, y = gmil.make_bags(100, n_features=3, random_state=2, return_X_y=True)
    whole = DensityRatio(kernel=kernel, random_state=0).fit(bags, y).width_
    monkeypatch.setattr(windows, "_MOST_POINTS_OF_A_RULE", 50)
    monkeypatch.setattr(windows, "_MOST_INSTANCES_OF_A_RULE", 300)
    assert DensityRatio(kernel=kernel, random_state=0).fit(bags, y).width_ == pytest.approx(whole, rel=0.25)


@BOTH
def test_instances_that_are_all_the_same(kernel):
    model = DensityRatio(kernel=kernel).fit([np.zeros((3, 2))] * 4, [0, 0, 1, 1])
    assert model.width_ == 1
    assert model.predict([np.zeros((1, 2))]).tolist() == [0]


def test_blocks_change_nothing(monkeypatch):
    bags, y = separated_clusters()
    whole = DensityRatio(kernel="gaussian", n_targets=3).fit(bags, y)
    monkeypatch.setattr(windows, "_BLOCK_ENTRIES", 500)
    pieces = DensityRatio(kernel="gaussian", n_targets=3).fit(bags, y)
    assert_allclose(pieces.ratios_, whole.ratios_)
    assert_array_equal(pieces.cluster_centers_, whole.cluster_centers_)


# ------------------------------------------------------------------ targets, candidates, decisions


@BOTH
def test_targets_do_not_overlap(kernel):
    bags, y = separated_clusters()
    model = DensityRatio(kernel=kernel, width=2.0, n_targets=4).fit(bags, y)
    assert (np.diff(model.ratios_) <= 0).all()
    differences = model.cluster_centers_[:, None] - model.cluster_centers_
    apart = np.abs(differences).max(axis=-1) if kernel == "box" else np.linalg.norm(differences, axis=-1) / 2
    assert (apart[np.triu_indices(len(apart), 1)] >= 2).all()
    assert_array_equal(model.target_, model.cluster_centers_[0])


def test_two_concepts_need_two_targets():
    made = gmil.make_bags(120, n_features=2, n_concepts=2, separation=9, random_state=3)
    one = cross_validate(DensityRatio(width=4.0), made.bags, made.y, cv=5).accuracy()
    two = cross_validate(DensityRatio(width=4.0, n_targets=2), made.bags, made.y, cv=5).accuracy()
    assert two > 0.95
    assert one < 0.85


def test_candidates_may_be_a_sample():
    bags, y = separated_clusters()
    model = DensityRatio(n_candidates=20, random_state=1).fit(bags, y)
    again = DensityRatio(n_candidates=20, random_state=1).fit(bags, y)
    assert_array_equal(model.target_, again.target_)
    assert (y == 1)[bags.segment_ids][model.target_instance_]
    assert np.linalg.norm(model.target_ - PLACES[3]) < 3


def test_decisions_are_distances_to_the_target_and_a_threshold():
    bags, y = separated_clusters()
    model = DensityRatio().fit(bags, y)
    nearest = np.array([np.linalg.norm(bag - model.target_, axis=1).min() for bag in bags])
    assert model.threshold_ == pytest.approx(nearest.mean())
    assert_allclose(model.decision_function(bags), nearest.mean() - nearest, atol=1e-9)
    assert_allclose(
        model.score_instances(bags), nearest.mean() - np.linalg.norm(bags.instances - model.target_, axis=1), atol=1e-9
    )
    assert DensityRatio(threshold=0.5).fit(bags, y).threshold_ == 0.5
    midpoint = (nearest[y == 1].mean() + nearest[y == 0].mean()) / 2
    assert DensityRatio(threshold="midpoint").fit(bags, y).threshold_ == pytest.approx(midpoint)


def test_explanations_and_probabilities():
    bags, y = separated_clusters()
    model = DensityRatio().fit(bags, y)
    explained = model.explain(bags[1])
    assert explained.label == 1
    assert explained.positive_distance == pytest.approx(np.linalg.norm(bags[1] - model.target_, axis=1).min())
    probabilities = model.predict_proba(bags)
    assert_allclose(probabilities.sum(axis=1), 1)
    assert_array_equal(probabilities[:, 1] > 0.5, model.predict(bags) == 1)


@BOTH
@pytest.mark.parametrize("scale", [None, "standard", "l2"])
def test_sparse_bags_and_scalings(kernel, scale):
    bags, y = separated_clusters()
    bags = bags.with_instances(bags.instances + 1)
    sparse = Bags(sp.csr_array(bags.instances), bags.offsets)
    dense, other = (DensityRatio(kernel=kernel, scale=scale).fit(X, y) for X in (bags, sparse))
    assert dense.ratio_ == pytest.approx(other.ratio_)
    assert_allclose(dense.decision_function(bags), other.decision_function(sparse), atol=1e-9)


def test_the_positive_class_and_more_classes():
    bags, y = separated_clusters()
    turned = DensityRatio(pos_label=0).fit(bags, 1 - y)
    assert_array_equal(turned.decision_function(bags), -DensityRatio().fit(bags, y).decision_function(bags))
    with pytest.raises(BagValidationError, match=r"Only binary classification is supported.*OneVsRestClassifier"):
        DensityRatio().fit(bags, np.arange(40) % 3)
    with pytest.raises(BagValidationError, match="pos_label=7 is not a class"):
        DensityRatio(pos_label=7).fit(bags, y)


def test_saved_models_and_the_command_line(tmp_path):
    bags, y = separated_clusters()
    model = DensityRatio(n_targets=2).fit(bags, y)
    model.save(tmp_path / "model.gmil")
    loaded = gmil.load(tmp_path / "model.gmil")
    assert_array_equal(loaded.decision_function(bags), model.decision_function(bags))
    assert_array_equal(loaded.target_, model.target_)
    assert methods()["density-ratio"] is DensityRatio


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("kernel", "ball"), ("width", 0.0), ("n_targets", 0), ("n_candidates", 0), ("threshold", "variance")],
)
def test_wrong_parameters(parameter, value):
    with pytest.raises(ValueError, match=f"'{parameter}' parameter of DensityRatio must be .* Got {value!r}"):
        DensityRatio(**{parameter: value}).fit(*separated_clusters())
