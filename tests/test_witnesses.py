"""Where in a bag: effects by hand and by brute force, witnesses, smoothing, explanations."""

from __future__ import annotations

import datetime as dt
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import gmil
from gmil import Bags, BagValidationError, LazyBags, smooth_scores
from gmil.base import BagClassifier
from gmil.engine import resolve
from gmil.methods.kernels.graph_training import clique_weights_without, within_bags
from gmil.witnesses import effects
from gmil.witnesses.carriers import carriers


class Total(BagClassifier):
    """The sum of the first feature over a bag, less one: what every instance adds is known."""

    _reads_blocks = True

    def __init__(self, pos_label=None):
        self.pos_label = pos_label

    def _learn(self, training):
        pass

    def _decide(self, X):
        bags = self._new_bags(X)
        if isinstance(bags, LazyBags):
            return bags.by_blocks(self._decide)
        return np.add.reduceat(bags.instances[:, 0], bags.offsets[:-1]) - 1.0

    def _decision_of_nothing(self):
        return -1.0


class LogOdds(Total):
    """Instances have the log-odds that stand in their first feature."""

    def score_instances(self, X):
        return self._new_bags(X).instances[:, 0]

    def _evidence(self, scores):
        return np.logaddexp(0, scores)


def fitted(cls=Total, **parameters):
    return cls(**parameters).fit([[[0.0]], [[1.0]]], [0, 1])


def by_brute_force(model, bags):
    """Return effects by deciding about every bag without every one of its instances, one after the other."""
    nothing = model._decision_of_nothing()
    found = []
    for bag in bags:
        whole = model._decide([bag])[0]
        for i in range(bag.shape[0]):
            rest = bag[np.arange(bag.shape[0]) != i]
            found.append(whole - (model._decide([rest])[0] if rest.shape[0] else nothing))
    return np.array([np.ravel(row) for row in found])


# ------------------------------------------------------------------ effects

VECTORS = [
    gmil.BagStatistics(),
    gmil.BagStatistics(("mean", "max"), scale="l2"),
    gmil.FisherVectorClassifier(random_state=0),
    gmil.FisherVectorClassifier(3, n_components=None, random_state=0),
    gmil.VLADClassifier(random_state=0),
    gmil.VLADClassifier(4, occupancy=False, scale="standard", random_state=0),
    gmil.PPMM(random_state=0),
    gmil.PPMM(8, assignment="hard", exponent=0.1, random_state=0),
    gmil.PPMM(6, codebook="gmm", random_state=0),
]
KERNELS = [
    gmil.SetKernelSVM(tune=False),
    gmil.SetKernelSVM(instance_kernel="linear", tune=False),
    gmil.SetKernelSVM(instance_kernel="poly", tune=False),
    gmil.SetKernelSVM(normalization="size", tune=False),
    gmil.SetKernelSVM("stk", scale="standard", tune=False),
]
PIECES = [VECTORS[0], VECTORS[4], VECTORS[6], KERNELS[0], KERNELS[4], gmil.GraphKernelSVM()]
GRAPHS = [gmil.GraphKernelSVM(), gmil.GraphKernelSVM("explicit"), gmil.GraphKernelSVM("explicit", normalize="sum")]
every_effect = pytest.mark.parametrize("classifier", [*VECTORS, *KERNELS, *GRAPHS], ids=str)


def test_an_instance_that_is_added_has_what_it_adds_as_effect():
    bags = Bags.from_list([[[1.0], [-2.0], [4.0]], [[0.5]], [[3.0], [3.0]]])
    assert_allclose(fitted().score_instances(bags), [1, -2, 4, 0.5, 3, 3])


def test_effects_are_about_the_positive_class():
    bags = Bags.from_list([[[1.0], [-2.0]], [[3.0]]])
    model = fitted(pos_label=0)
    assert_allclose(model.decision_function(bags), [2, -2])
    assert_allclose(model.score_instances(bags), [1, -2, 3])


@every_effect
@pytest.mark.parametrize("sparse", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["dense", "sparse"])
def test_effects_are_those_of_brute_force(classifier, sparse, gaussian_bags):
    bags, y = gaussian_bags(sizes=(1, 6))
    bags = Bags(sp.csr_array(bags.instances), bags.offsets) if sparse else bags
    model = clone(classifier).fit(bags, y)
    assert_allclose(model.score_instances(bags), by_brute_force(model, bags)[:, 0], atol=1e-9)


@pytest.mark.parametrize("classifier", [VECTORS[0], VECTORS[2], VECTORS[4], *KERNELS], ids=str)
def test_effects_on_every_class_are_those_of_brute_force(classifier, gaussian_bags):
    bags, y = gaussian_bags(n_bags=30, n_classes=3, sizes=(1, 5))
    model = clone(classifier).fit(bags, y)
    assert_allclose(model.score_instances(bags), by_brute_force(model, bags), atol=1e-9)


@every_effect
def test_effects_of_equal_instances_are_equal_and_single_precision_does(classifier, gaussian_bags):
    bags, y = gaussian_bags()
    model = clone(classifier).fit(bags, y)
    scores = model.score_instances([np.repeat(bags[1][:2], 2, axis=0)])
    assert_allclose(scores[::2], scores[1::2], atol=1e-9)
    single = bags.with_instances(bags.instances.astype(np.float32))
    assert_allclose(model.score_instances(single), model.score_instances(bags), atol=1e-3)


@pytest.mark.parametrize("most", [1, 20, 50])
@pytest.mark.parametrize("classifier", PIECES, ids=str)
def test_pieces_of_large_bags_give_the_same_effects(classifier, most, gaussian_bags, monkeypatch):
    bags, y = gaussian_bags(sizes=(1, 9))
    model = clone(classifier).fit(bags, y)
    expected = model.score_instances(bags)
    monkeypatch.setattr(effects, "_BLOCK_ENTRIES", most)
    assert_allclose(model.score_instances(bags), expected, atol=1e-9)


@pytest.mark.parametrize("classifier", [GRAPHS[0], gmil.GraphKernelSVM("explicit", max_edges=20)], ids=str)
def test_graphs_of_large_bags_lose_an_instance(classifier, gaussian_bags):
    bags, y = gaussian_bags(n_bags=8, sizes=(10, 25))
    model = clone(classifier).fit(bags, y)
    assert_allclose(model.score_instances(bags), by_brute_force(model, bags)[:, 0], atol=1e-9)


def test_neighbours_change_with_the_instance_that_is_left_out():
    line = np.array([[0.0], [1.0], [1.5], [9.0]])
    (apart,) = within_bags(line, np.array([0, 4]), resolve("numpy", 1))
    found = clique_weights_without(apart)
    expected = np.array([[0, 1 / 2, 1 / 2, 1], [1 / 2, 0, 1 / 2, 1], [1 / 2, 1 / 2, 0, 1], [1, 1 / 2, 1 / 2, 0]])
    assert_allclose(found, expected)  # without the last, the mean of 1, 1.5 and 0.5 is 1: 0 and 1 are not nearer


def test_every_other_classifier_leaves_instances_out_one_by_one(gaussian_bags):
    bags, y = gaussian_bags(n_bags=10, sizes=(1, 4))
    for classifier in (gmil.GMIL(5, random_state=0), gmil.WitnessSVM(), gmil.CitationKNN()):
        model = classifier.fit(bags, y)
        assert_allclose(model._effects(bags), by_brute_force(model, bags)[:, 0], atol=1e-9)


def test_left_out_bags_come_in_blocks(monkeypatch):
    bags = Bags.from_list([np.arange(n)[:, None] for n in (1, 3, 1, 4, 2)], feature_names=["a"])
    monkeypatch.setattr(effects, "_BLOCK_ENTRIES", 6)
    blocks = list(effects.left_out(bags))
    assert len(blocks) > 1
    assert max(some.n_instances for _, some in blocks) <= 6 + 3
    assert_array_equal(np.concatenate([rows for rows, _ in blocks]), [1, 2, 3, 5, 6, 7, 8, 9, 10])
    found = [bag[:, 0].tolist() for _, some in blocks for bag in some]
    assert found[:4] == [[1, 2], [0, 2], [0, 1], [1, 2, 3]]
    assert found[-2:] == [[1], [0]]
    assert blocks[0][1].feature_names == ("a",)


@given(st.lists(st.lists(st.integers(-9, 9), min_size=2, max_size=9), min_size=1, max_size=5))
def test_joining_what_is_before_and_after_is_joining_all_others(values):
    rows = np.array([[number] for some in values for number in some], dtype=float)
    offsets = np.cumsum([0, *map(len, values)])
    for join, reduce in ((np.add, sum), (np.minimum, min), (np.maximum, max)):
        expected = [reduce(some[:i] + some[i + 1 :]) for some in values for i in range(len(some))]
        assert_array_equal(effects.joined_without(rows, offsets, join)[:, 0], expected)


def test_no_bag_of_several_instances_is_no_problem(gaussian_bags):
    bags, y = gaussian_bags(sizes=(1, 1))
    for classifier in (gmil.VLADClassifier(random_state=0), gmil.SetKernelSVM(tune=False)):
        model = clone(classifier).fit(bags, y)
        assert_allclose(model.score_instances(bags), model.decision_function(bags) - model.intercept_[0])
    model = gmil.BagStatistics().fit(bags, y)
    assert_allclose(model.score_instances(bags), model.decision_function(bags))


def test_bags_on_disk_are_scored_in_blocks(tmp_path):
    rng = np.random.default_rng(0)
    bags = Bags.from_list([rng.normal(size=(n, 1)) + 1 for n in (3, 1, 4, 2)])
    lazy = LazyBags.from_array(bags.instances, bags.offsets)
    model = fitted()
    assert_allclose(model.score_instances(lazy[[2, 0]]), model.score_instances(bags[[2, 0]]))
    for found, expected in zip(model.witnesses(lazy), model.witnesses(bags), strict=True):
        assert_array_equal(found, expected)
    assert model.explain(lazy[[2]]) == model.explain(bags[[2]])


@pytest.mark.parametrize(
    "classifier",
    [gmil.GMIL(5, random_state=0), gmil.GMILCV(cv=2, random_state=0), gmil.WeightedGMIL(10, random_state=0)],
    ids=lambda classifier: type(classifier).__name__,
)
def test_witnesses_of_bags_on_disk(classifier, gaussian_bags):
    bags, y = gaussian_bags()
    lazy = LazyBags.from_array(bags.instances, bags.offsets)
    model = clone(classifier).fit(bags, y)
    for found, expected in zip(model.witnesses(lazy[[3, 1]]), model.witnesses(bags[[3, 1]]), strict=True):
        assert_array_equal(found, expected)
    assert model.explain(lazy[[1]]).witnesses == model.explain(bags[1]).witnesses


# ------------------------------------------------------------------ witnesses


@given(st.lists(st.integers(0, 50), min_size=1, max_size=7), st.sampled_from([0.1, 0.5, 0.9, 1.0]))
def test_no_smaller_set_carries_the_share(evidence, share):
    values = np.array(evidence, dtype=float)
    found = carriers(values, share)
    assert values[found].sum() >= share * values.sum() * (1 - 1e-12)
    smaller = itertools.combinations(evidence, max(0, len(found) - 1))
    assert len(found) == 0 or all(sum(some) < share * sum(evidence) for some in smaller)


def test_witnesses_by_hand():
    bags = Bags.from_list([[[1.0], [6.0], [-9.0], [3.0]], [[0.25], [0.5]], [[2.0]]])
    model = fitted()
    assert_array_equal(model.predict(bags), [0, 0, 1])
    found = model.witnesses(bags)
    assert [some.tolist() for some in found] == [[], [], [0]]
    positive = model.witnesses(bags, 0.6, label=1)  # 6 of 10 is enough
    assert [some.tolist() for some in positive] == [[1], [1], [0]]
    assert [some.tolist() for some in model.witnesses(bags, 0.61, label=1)] == [[1, 3], [1], [0]]
    assert [some.tolist() for some in model.witnesses(bags, 1.0, label=1)] == [[1, 3, 0], [1, 0], [0]]
    assert [some.tolist() for some in model.witnesses(bags, label=0)] == [[2], [0], []]


def test_a_positive_bag_has_a_witness_where_no_score_is_above_zero(monkeypatch):
    bags = Bags.from_list([[[1.0], [1.0], [2.0]]])
    model = fitted()
    monkeypatch.setattr(Total, "score_instances", lambda *_: np.array([-1.0, -1.0, -2.0]))
    assert_array_equal(model.witnesses(bags)[0], [0, 1])
    assert_array_equal(model.witnesses(bags, 0.5)[0], [0])
    assert [witness.share for witness in model.explain(bags).witnesses] == [0.5, 0.5]


def test_evidence_of_log_odds_adds_up_to_that_of_the_bag():
    odds = np.log([[0.4 / 0.6], [0.4 / 0.6], [0.01 / 0.99]])
    bags, model = Bags.from_list([odds]), fitted(LogOdds)
    assert model._evidence(odds[:, 0]).sum() == pytest.approx(-np.log(0.6 * 0.6 * 0.99))
    assert_array_equal(model.witnesses(bags, 0.9, label=1)[0], [0, 1])
    assert_array_equal(model.witnesses(bags, 0.999, label=1)[0], [0, 1, 2])


@pytest.mark.parametrize("share", [0, -0.1, 1.01, np.nan])
def test_shares_that_are_none_are_refused(share):
    with pytest.raises(BagValidationError, match="share must be above 0 and at most 1, got"):
        fitted().witnesses([[[2.0]]], share)


def test_classes_that_are_none_are_refused():
    with pytest.raises(BagValidationError, match="label=7 is not a class; the classes are \\[0, 1\\]"):
        fitted().witnesses([[[2.0]]], label=7)


def test_of_several_labels_one_must_be_named(gaussian_bags):
    bags, y = gaussian_bags(n_bags=30, n_classes=3)
    labels = np.column_stack([y == 1, y == 2]).astype(int)
    model = gmil.WeightedGMIL(10, random_state=0).fit(bags, labels)
    for method in (model.witnesses, lambda X: model.explain(X[0])):
        with pytest.raises(BagValidationError, match=r"several labels, .* one of the columns with label=\.\.\."):
            method(bags)
    called = model.predict(bags)[:, 1] == 1
    assert called.any()
    assert all(len(found) for found, is_one in zip(model.witnesses(bags, label=1), called, strict=True) if is_one)
    assert model.explain(bags[2], label=1).margin == pytest.approx(model.decision_function(bags[[2]])[0, 1])


# ------------------------------------------------------------------ explanations


def test_explanations_name_shares_and_info():
    bags = Bags.from_list([[[1.0], [6.0], [-2.0], [3.0]]], bag_ids=["b"], instance_info={"time": [1.5, 2.5, 3.5, 4.5]})
    found = fitted().explain(bags)
    assert (found.label, found.margin, found.bag_id) == (1, 7.0, "b")
    assert [(one.instance, one.share, one.info["time"]) for one in found.witnesses] == [(1, 0.6, 2.5), (3, 0.3, 4.5)]
    assert str(found) == "label 1: witnesses 1 (60%), 3 (30%); margin 7"
    assert str(fitted().explain(bags, share=0.5)) == "label 1: witness 1 (60%); margin 7"
    assert str(fitted().explain([[0.5]])) == "label 0: no witness; margin -0.5"
    with pytest.raises(BagValidationError, match="explain takes one bag, got 2"):
        fitted().explain(Bags.from_list([[[1.0]], [[2.0]]]))


# ------------------------------------------------------------------ neighbours in time and space


def slow_smooth(scores, places, bags, bandwidth):
    found = np.empty_like(scores)
    for i in range(bags.n_instances):
        own = np.flatnonzero(bags.segment_ids == bags.segment_ids[i])
        weights = np.exp(-((places[own] - places[i]) ** 2).sum(axis=1) / (2 * bandwidth**2))
        found[i] = np.average(scores[own], weights=weights, axis=0)
    return found


@pytest.mark.parametrize("columns", [("time",), ("x", "y")])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_smoothing_is_a_mean_over_the_own_bag(columns, shape, gaussian_bags, monkeypatch):
    bags, _ = gaussian_bags()
    rng = np.random.default_rng(0)
    places = rng.uniform(0, 5, size=(bags.n_instances, len(columns)))
    info = {"row": np.arange(bags.n_instances), **dict(zip(columns, places.T, strict=True))}
    bags = Bags(bags.instances, bags.offsets, instance_info=info)
    scores = rng.normal(size=(bags.n_instances, *shape))
    expected = slow_smooth(scores, places, bags, 0.7)
    assert_allclose(smooth_scores(scores, bags, 0.7), expected)
    monkeypatch.setattr("gmil.witnesses.smoothing._BLOCK_ENTRIES", 4)
    assert_allclose(smooth_scores(scores, bags, 0.7), expected)
    assert_allclose(smooth_scores(scores, bags, 1e-6), scores)
    assert_allclose(smooth_scores(scores, bags, 0.7, by=columns[:1]), slow_smooth(scores, places[:, :1], bags, 0.7))


def test_time_comes_before_space_and_dates_are_in_seconds():
    start = dt.datetime(2026, 1, 1)
    times = [start + dt.timedelta(seconds=s) for s in (0, 1, 60)]
    info = {"time": times, "x": [0.0, 0.0, 0.0], "y": [0.0, 0.0, 0.0]}
    bags = Bags.from_list([[[1.0], [2.0], [3.0]]], instance_info=info)
    near = np.exp(-0.5)
    assert_allclose(smooth_scores([1.0, 0.0, 5.0], bags, 1), [1 / (1 + near), near / (1 + near), 5])
    assert_allclose(smooth_scores([1.0, 0.0, 5.0], bags, 1, by=["x", "y"]), [2, 2, 2])


def test_witnesses_are_smoothed_on_request_only():
    info = {"time": [0.0, 1.0, 2.0, 100.0]}
    bags = Bags.from_list([[[2.0], [-1.0], [2.0], [3.0]]], instance_info=info)
    model = fitted()
    assert_array_equal(model.witnesses(bags, 0.4)[0], [3])
    assert_array_equal(model.witnesses(bags, 1.0)[0], [3, 0, 2])
    smoothed = smooth_scores(model.score_instances(bags), bags, 2.0)
    assert_array_equal(model.witnesses(bags, 1.0, smooth=2.0)[0], np.argsort(-smoothed))
    assert smoothed[1] > 0


@pytest.mark.parametrize(
    ("info", "arguments", "message"),
    [
        (None, {}, "needs instance_info with 'time' or 'x' and 'y', but there is none"),
        ({"x": [1.0, 2.0]}, {}, r"needs instance_info with 'time' or 'x' and 'y', but its columns are \['x'\]"),
        ({"x": [1.0, 2.0]}, {"by": ["z"]}, "needs instance_info with 'z', but its columns are"),
        ({"time": ["a", "b"]}, {}, "needs numbers or times, but 'time' of instance_info holds"),
        ({"time": [1.0, None]}, {}, "'time' of instance_info is missing for instance 1 of bag 0"),
        ({"time": [1.0, 2.0]}, {"bandwidth": 0}, "bandwidth must be a number above 0, got 0"),
        ({"time": [1.0, 2.0]}, {"bandwidth": np.inf}, "bandwidth must be a number above 0, got inf"),
        ({"time": [1.0, 2.0]}, {"scores": [1.0]}, r"scores must have one row for each of the 2 instances, got shape"),
    ],
)
def test_what_cannot_be_smoothed_is_refused(info, arguments, message):
    bags = Bags.from_list([[[1.0], [2.0]]], instance_info=info)
    with pytest.raises(BagValidationError, match=message):
        smooth_scores(**{"scores": [1.0, 2.0], "bags": bags, "bandwidth": 1.0, **arguments})


def test_missing_dates_are_refused():
    times = np.array(["2026-01-01", "NaT"], dtype="datetime64[s]")
    bags = Bags.from_list([[[1.0], [2.0]]], instance_info={"time": times})
    with pytest.raises(BagValidationError, match="is missing for instance 1 of bag 0"):
        smooth_scores([1.0, 2.0], bags, 1.0)


def test_methods_find_the_witness_that_was_put_in(gaussian_bags):
    bags, y = gaussian_bags(n_bags=60, sizes=(3, 6))
    new, new_y = gaussian_bags(n_bags=40, sizes=(3, 6), seed=1)
    for classifier in (*VECTORS[:3], VECTORS[6], KERNELS[0], KERNELS[4], GRAPHS[0]):
        model = clone(classifier).fit(bags, y)
        right = [
            found[0] == bag[:, 0].argmax()
            for found, bag, label in zip(model.witnesses(new), new, new_y, strict=True)
            if label and len(found)
        ]
        assert np.mean(right) > 0.9, classifier
