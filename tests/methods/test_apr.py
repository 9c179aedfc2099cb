"""The axis-parallel rectangle against paper and pencil and plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr, ndtri

import gmil
from gmil import APR, Bags, cross_validate
from gmil.datasets import load
from gmil.methods.density.growing import grow
from gmil.methods.density.rectangles import discriminating_features, expand, inside_of, minimax_seed, overshoot

# ------------------------------------------------------------------ plain loops


def size_of(points):
    points = np.array(points)
    return float((points.max(axis=0) - points.min(axis=0)).sum())


def plain_grow(bags, seed_bag, seed):
    """Grow and exchange by trying everything, one instance after the other."""
    chosen = {seed_bag: seed}
    while len(chosen) < len(bags):
        held = [bags[i][j] for i, j in chosen.items()]
        trials = [
            (size_of([*held, x]), i, j) for i in range(len(bags)) if i not in chosen for j, x in enumerate(bags[i])
        ]
        _, bag, instance = min(trials)
        chosen[bag] = instance
        plain_exchange(bags, chosen)
    return chosen


def plain_exchange(bags, chosen):
    changed = True
    while changed:
        changed = False
        for bag in sorted(chosen):
            others = [bags[i][j] for i, j in chosen.items() if i != bag]
            if not others:
                return
            sizes = [size_of([*others, x]) for x in bags[bag]]
            if min(sizes) < sizes[chosen[bag]] * (1 - 1e-12):
                chosen[bag] = int(np.argmin(sizes))
                changed = True


@st.composite
def positive_bags(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    n_bags, n_features = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    # Eighths are exact in binary: sums of widths tie exactly, or differ clearly.
    whole = draw(st.booleans())
    sizes = rng.integers(1, 6, size=n_bags)
    return [np.round(rng.normal(size=(n, n_features)) * (1 if whole else 64)) / 8 for n in sizes]


# ------------------------------------------------------------------ paper and pencil


def test_a_box_by_hand():
    bags = Bags.from_list([[[0.0, 0.0], [9.0, 9.0]], [[1.0, 0.0], [-9.0, 5.0]], [[0.5, 2.0], [7.0, 7.0]]])
    # The minimax box: maxima of the bags are (9, 9), (1, 5), (7, 7), minima (0, 0), (-9, 0), (0.5, 2): from (1, 5)
    # to (0.5, 2). Its middle is (0.75, 3.5), and (0.5, 2) is nearest to it.
    assert minimax_seed(bags.instances, bags.offsets) == 4
    # From (0.5, 2): (0, 0) and (1, 0) both add 2.5, the first is taken; then (1, 0) adds 0.5.
    box = grow(bags.instances, bags.offsets, 4)
    assert_array_equal(box.members, [0, 2, 4])
    assert_array_equal(box.edges, [[0, 0], [1, 2]])


def test_an_exchange_makes_the_box_smaller():
    # From 0 the nearest of bag 1 is 3; then bag 2 has 10 only, and bag 1 gains nothing; bag 0 exchanges 0 for 4.
    bags = Bags.from_list([[[0.0], [4.0]], [[3.0]], [[10.0]]])
    box = grow(bags.instances, bags.offsets, 0)
    assert_array_equal(box.members, [1, 2, 3])
    assert_array_equal(box.edges, [[3], [10]])


def test_features_that_exclude_by_hand():
    edges = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    negatives = np.array(
        [
            [3.0, 0.5, 0.5],  # outside by 2 on feature 0
            [3.0, 1.5, 0.5],  # outside by 2 on feature 0, by less than the margin on feature 1
            [0.5, 0.5, -0.4],  # only a little outside: its farthest feature is 2
            [0.5, 0.5, 0.5],  # inside: nothing can exclude it
        ]
    )
    assert_array_equal(discriminating_features(negatives, edges, 1.0), [0, 2])
    assert_array_equal(discriminating_features(negatives, edges, 0.5), [0, 2])
    assert_array_equal(discriminating_features(negatives[3:], edges, 1.0), [0, 1, 2])
    assert_array_equal(discriminating_features(negatives[:0], edges, 1.0), [0, 1, 2])


def test_of_equal_features_the_one_with_the_larger_distances_is_taken():
    edges = np.zeros((2, 2))
    assert_array_equal(discriminating_features(np.array([[2.0, 3.0], [4.0, 5.0]]), edges, 1.0), [1])


def test_an_expansion_by_hand():
    # One value in the middle: the kernel keeps tau inside, so the edges stay where the mass outside is 1 - tau.
    X = np.array([[0.0], [1.0], [2.0]])
    edges = np.array([[0.0], [2.0]])
    deviation = 2 / (2 * ndtri(0.9995))
    low, high = expand(edges, X, 0.999, 0.01)[:, 0]
    assert low < 0 < 2 < high
    assert_allclose(ndtr((low - X) / deviation).mean(), 0.005, rtol=1e-6)
    assert_allclose(ndtr((X - high) / deviation).mean(), 0.005, rtol=1e-6)
    assert_allclose(low + high, 2)


def test_only_instances_inside_the_box_count_for_its_expansion():
    X, edges = np.array([[0.0, 0.0], [2.0, 2.0], [1.0, 50.0]]), np.array([[0.0, 0.0], [2.0, 2.0]])
    assert_array_equal(inside_of(X, edges), X[:2])


def test_a_box_never_shrinks_and_may_have_no_width():
    X = np.array([[0.0, 3.0], [1.0, 3.0], [1.0, 3.0]])
    edges = np.array([[0.0, 3.0], [1.0, 3.0]])
    found = expand(edges, X, 0.9, 0.9)
    assert found[0, 0] <= 0
    assert found[1, 0] >= 1
    assert_array_equal(found[:, 1], [3, 3])


@pytest.mark.parametrize(("tau", "epsilon"), [(0.999, 0.01), (0.9, 0.1), (0.5, 0.9), (1 - 1e-12, 1e-9)])
def test_an_expansion_is_that_of_halving(tau, epsilon):
    X = np.random.default_rng(0).normal(size=(40, 6)) ** 3 * 10.0 ** np.arange(-3, 3)
    edges = np.stack([X.min(axis=0), X.max(axis=0)])
    lower, upper = edges
    deviations = (upper - lower) / (2 * ndtri((1 + tau) / 2))
    left, right = lower - 10 * deviations, upper.copy()
    for _ in range(60):
        middle = (left + right) / 2
        too_much = ndtr((middle - X) / deviations).mean(axis=0) > epsilon / 2
        left, right = np.where(too_much, left, middle), np.where(too_much, middle, right)
    found = expand(edges, X, tau, epsilon)[0]
    assert_allclose((found - lower) / (upper - lower), (np.minimum(lower, right) - lower) / (upper - lower), atol=1e-12)


def test_overshoot_by_hand():
    edges, units = np.array([[0.0, 0.0], [2.0, 2.0]]), np.array([1.0, 2.0])
    assert_allclose(overshoot(np.array([[1.0, 1.0], [3.0, 1.0], [1.0, 5.0]]), edges, units), [-0.5, 1.0, 1.5])


# ------------------------------------------------------------------ growing


@settings(max_examples=80)
@given(positive_bags(), st.data())
def test_boxes_are_those_of_a_plain_loop(bags, data):
    made = Bags.from_list(bags)
    seed = data.draw(st.integers(0, made.n_instances - 1))
    seed_bag = int(made.segment_ids[seed])
    box = grow(made.instances, made.offsets, seed)
    expected = plain_grow(bags, seed_bag, seed - int(made.offsets[seed_bag]))
    assert_array_equal(box.members - made.offsets[:-1], [expected[i] for i in range(len(bags))])


@pytest.mark.parametrize(("origin", "outlier"), [(0.0, 1.0), (1e6, 1.0), (0.0, 1e9)])
def test_boxes_of_many_features_are_those_of_a_plain_loop(origin, outlier):
    rng = np.random.default_rng(0)
    bags = [origin + rng.normal(size=(n, 30)) for n in rng.integers(1, 8, size=15)]
    bags[3][0] += outlier  # the box may hold it for a while: what was far outside is inside, and outside again
    made = Bags.from_list(bags)
    box = grow(made.instances, made.offsets, 0)
    expected = plain_grow(bags, 0, 0)
    assert_array_equal(box.members - made.offsets[:-1], [expected[i] for i in range(len(bags))])
    assert_array_equal(box.edges, [made.instances[box.members].min(axis=0), made.instances[box.members].max(axis=0)])


@settings(max_examples=40)
@given(positive_bags())
def test_boxes_hold_an_instance_of_every_bag(bags):
    made = Bags.from_list(bags)
    box = grow(made.instances, made.offsets, 0)
    inside = ((made.instances >= box.edges[0]) & (made.instances <= box.edges[1])).all(axis=1)
    assert np.maximum.reduceat(inside, made.offsets[:-1]).all()


# ------------------------------------------------------------------ the classifier


def test_training_bags_that_are_positive_are_inside(gaussian_bags):
    bags, y = gaussian_bags()
    model = APR().fit(bags, y)
    assert model.predict(bags)[y == 1].all()
    assert_array_equal(
        model.decision_function(bags), np.maximum.reduceat(model.score_instances(bags), bags.offsets[:-1])
    )


@pytest.mark.parametrize("origin", [0.0, 1e12])
def test_the_edges_belong_to_the_box(origin):
    # Two bags of 150 stretch the box; the mass that the estimate has outside is below epsilon, and no edge moves.
    X = np.random.default_rng(0).normal(scale=0.01, size=(170, 2))
    X[:2], X[150:] = [[1.0, 1.0], [-1.0, -1.0]], 5.0
    y = np.arange(170) < 150
    model = APR().fit(X + origin, y)
    assert_allclose([model.lower_[0], model.upper_[0]], [origin - 1, origin + 1], rtol=1e-8)
    assert_array_equal(model.predict(X + origin), y)


def test_features_without_use_are_dropped():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), np.arange(60) % 2
    X[y == 1, 2] += 20
    model = APR().fit(X, y)
    assert_array_equal(model.features_, [2])
    assert model.score(X, y) == 1


def test_negatives_inside_the_box_end_nothing():
    model = APR().fit([[[0.0], [1.0]], [[1.0], [2.0]], [[0.5]], [[1.5]]], [1, 1, 0, 0])
    assert_array_equal(model.features_, [0])
    assert np.isfinite(model.decision_function([[[1.0]]])).all()


def test_one_positive_bag_is_enough():
    model = APR().fit([[[1.0, 2.0]], [[5.0, 5.0]], [[6.0, 4.0]]], [1, 0, 0])
    assert_array_equal(model.predict([[[1.0, 2.0]], [[5.0, 5.0]]]), [1, 0])


def test_bags_that_are_all_the_same_are_no_failure():
    model = APR().fit([np.ones((2, 3))] * 4, [0, 1, 0, 1])
    assert_array_equal(model.predict([np.ones((1, 3)), np.zeros((1, 3))]), [1, 0])


def test_constant_features_are_left_out(gaussian_bags):
    bags, y = gaussian_bags()
    padded = bags.with_instances(np.insert(bags.instances, 0, 7.0, axis=1))
    assert_array_equal(APR().fit(padded, y).decision_function(padded), APR().fit(bags, y).decision_function(bags))


@pytest.mark.parametrize("load_musk", [gmil.load_musk1, gmil.load_musk2])
def test_the_automatic_margin_is_the_published_one_on_musk(load_musk):
    assert APR(max_iter=1).fit(*load_musk(return_X_y=True)).margin_ == 100


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"margin": -1.0}, "'margin' parameter of APR must be"),
        ({"tau": 1.0}, "'tau' parameter of APR must be"),
        ({"epsilon": 0.0}, "'epsilon' parameter of APR must be"),
        ({"max_iter": 0}, "'max_iter' parameter of APR must be"),
        ({"pos_label": 3}, "pos_label=3 is not a class of y"),
    ],
)
def test_bad_parameters_are_refused(parameters, message, gaussian_bags):
    with pytest.raises(ValueError, match=message):
        APR(**parameters).fit(*gaussian_bags())


def test_three_classes_are_refused(gaussian_bags):
    with pytest.raises(ValueError, match=r"Only binary classification is supported\..*3 classes"):
        APR().fit(*gaussian_bags(n_classes=3))


# ------------------------------------------------------------------ accuracy


def test_musk1_is_learnt():
    bags, y = gmil.load_musk1(return_X_y=True)
    assert cross_validate(APR(), bags, y, cv=3).accuracy() > 0.75


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "measured"), [("musk1", 89.2), ("musk2", 88.1), ("elephant", 74), ("fox", 55), ("tiger", 59)]
)
def test_accuracy_is_that_of_independent_runs(name, measured):
    data = load(name)
    assert 100 * cross_validate(APR(), data.bags, data.y, repeats=2).accuracy() > measured - 5
