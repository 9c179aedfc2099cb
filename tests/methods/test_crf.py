"""MI-CRF: inference against enumeration, weights against a general solver, energies by hand, and the whole."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.svm import LinearSVC

import gmil
from gmil import APR, MICA, MICRF, Bags, InstanceSVM, MILEnsemble, SingleInstance, WitnessSVM, cross_validate
from gmil.engine import resolve
from gmil.methods.crf.graph import conditional_energies, descend, energy, minimise
from gmil.methods.crf.states import Dissimilarity, best_candidates, make_states
from gmil.methods.crf.training import (
    Cuts,
    alternate,
    best_rows,
    clamped,
    features_of,
    graph_of,
    solve_margin,
    train_crf,
    with_losses,
)
from gmil.methods.ensemble.out_of_fold import out_of_fold_scores

BACKEND = resolve("auto")
EVERY_KIND = ("euclidean", "gaussian")


class FirstFeature(ClassifierMixin, BaseEstimator):
    """Score an instance by its first feature, and remember which bags were seen: those of the second feature."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.seen_ = set(X.instances[:, 1].tolist())
        return self

    def predict(self, X):
        return self.classes_[(np.maximum.reduceat(self.score_instances(X), X.offsets[:-1]) > 0).astype(int)]

    def score_instances(self, X):
        return X.instances[:, 0]


class Outsider(FirstFeature):
    """Score an instance one where its own bag was not in training."""

    def score_instances(self, X):
        return np.array([float(bag not in self.seen_) for bag in X.instances[:, 1]])


# ------------------------------------------------------------------ slow references


def every_labelling(offsets):
    return [np.array(rows) for rows in itertools.product(*(range(*cut) for cut in itertools.pairwise(offsets)))]


def slow_energy(graph, labels):
    pairs = itertools.combinations(labels, 2)
    return sum(graph.unary[row] for row in labels) + sum(graph.strengths @ graph.pairs[:, a, b] for a, b in pairs)


def random_states(seed, n_bags=5, most=3, kinds=EVERY_KIND, per_pair=None):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, most + 1, n_bags))])
    points = rng.normal(size=(offsets[-1], 2))
    per_pair = 2 / n_bags if per_pair is None else per_pair
    apart = cdist(points, points)
    return make_states(rng.normal(size=(1, offsets[-1])), apart, offsets, Dissimilarity(kinds, 1.5), per_pair)


def random_graph(seed, strength=1.0, **kwargs):
    states = random_states(seed, **kwargs)
    weights = np.random.default_rng(seed + 1).uniform(0, strength, size=len(states.pairs))
    return graph_of(states, np.concatenate([[1.0], weights, [-strength / 2]]))


def slow_margin(rows, losses, C):
    """Solve the same program with a general solver, from several starts."""
    n_weights = rows.shape[1]

    def objective(x):
        return (x[:-2] @ x[:-2] + 1e-4 * x[-2] ** 2 + C * x[-1] ** 2) / 2

    found = minimize(
        objective,
        np.ones(n_weights + 1),
        constraints={"type": "ineq", "fun": lambda x: rows @ x[:-1] + x[-1] - losses},
        bounds=[(0, None)] * (n_weights - 1) + [(None, None), (None, None)],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    return objective(found.x)


# ------------------------------------------------------------------ inference


@settings(max_examples=60)
@given(st.integers(0, 2**16), st.floats(0, 5))
def test_energies_are_what_they_are_defined_as(seed, strength):
    graph = random_graph(seed, strength)
    labels = graph.offsets[:-1] + np.random.default_rng(seed).integers(np.diff(graph.offsets))
    assert energy(graph, labels) == pytest.approx(slow_energy(graph, labels))
    costs = conditional_energies(graph, labels)
    for bag, (start, stop) in enumerate(itertools.pairwise(graph.offsets)):
        moved = [energy(graph, np.where(np.arange(len(labels)) == bag, row, labels)) for row in range(start, stop)]
        assert_allclose(np.subtract(moved, moved[0]), costs[start:stop] - costs[start], atol=1e-12)


@settings(max_examples=60)
@given(st.integers(0, 2**16), st.floats(0, 5))
def test_descent_ends_where_no_single_change_gains(seed, strength):
    graph = random_graph(seed, strength)
    start = graph.offsets[:-1] + np.random.default_rng(seed).integers(np.diff(graph.offsets))
    labels = descend(graph, start)
    assert energy(graph, labels) <= energy(graph, start) + 1e-9
    costs = conditional_energies(graph, labels)
    assert (np.minimum.reduceat(costs, graph.offsets[:-1]) >= costs[labels] - 1e-9).all()


def starts_of(graph, rng):
    best = [start + graph.unary[start:stop].argmin() for start, stop in itertools.pairwise(graph.offsets)]
    drawn = graph.offsets[:-1] + rng.integers(np.diff(graph.offsets), size=(2, len(best)))
    return [graph.offsets[:-1], np.array(best), *drawn]


@pytest.mark.parametrize(("strength", "hits"), [(0.0, 60), (0.5, 60), (1.0, 58), (3.0, 52)])
def test_inference_against_enumeration(strength, hits):
    """Without pairs the optimum is certain; with pairs it is found nearly always, and never missed by much."""
    rng, found = np.random.default_rng(0), 0
    for seed in range(60):
        graph = random_graph(seed, strength)
        optimum = min(energy(graph, labels) for labels in every_labelling(graph.offsets))
        reached = energy(graph, minimise(graph, starts_of(graph, rng)))
        assert reached >= optimum - 1e-9
        assert reached <= optimum + 0.25 * abs(optimum) + 1e-9
        found += reached <= optimum + 1e-9
    assert found >= hits


@pytest.mark.parametrize("change", [with_losses, clamped])
def test_inference_with_losses_and_with_labels_against_enumeration(change):
    found = 0
    for seed in range(40):
        positive = np.random.default_rng(seed).random(5) < 0.5
        graph = random_graph(seed)
        changed = change(graph, positive)
        allowed = [labels for labels in every_labelling(graph.offsets) if np.isfinite(changed.unary[labels]).all()]
        optimum = min(energy(changed, labels) for labels in allowed)
        reached = energy(changed, minimise(changed, [allowed[0], allowed[-1]]))
        assert reached >= optimum - 1e-9
        found += reached <= optimum + 1e-9
    assert found >= 38


def test_the_loss_counts_wrong_bags_and_labels_forbid_them():
    graph = random_graph(3)
    positive = np.array([True, False, True, False, False])
    for labels in every_labelling(graph.offsets):
        wrong = (labels != graph.offsets[:-1]) != positive
        assert energy(with_losses(graph, positive), labels) == pytest.approx(energy(graph, labels) - wrong.sum())
        assert np.isinf(clamped(graph, positive).unary[labels]).any() == wrong.any()


# ------------------------------------------------------------------ states


def test_states_by_hand():
    """Two bags: one with instances at 0 and 3, one with an instance at 4; distances in units of 2, halved."""
    points = np.array([[0.0], [3.0], [4.0]])
    apart = np.abs(points - points.T)
    states = make_states(np.array([[5.0, 6.0, 7.0]]), apart, np.array([0, 2, 3]), Dissimilarity(EVERY_KIND, 2.0), 0.5)
    assert_array_equal(states.offsets, [0, 3, 5])
    assert_array_equal(states.scores, [[0, 5, 6, 0, 7]])
    expected = np.zeros((5, 5))
    expected[1, 4] = expected[4, 1] = 1.0  # distance 4, over 2, halved
    expected[2, 4] = expected[4, 2] = 0.25
    assert_allclose(states.pairs[0], expected)
    assert states.pairs[1, 2, 4] == pytest.approx(0.5 * (1 - np.exp(-0.25)))
    assert_allclose(features_of(states, np.array([2, 4])), [-13, 0.25, 0.5 * (1 - np.exp(-0.25)), 2])
    assert_allclose(features_of(states, np.array([0, 4])), [-7, 0, 0, 1])


@settings(max_examples=40)
@given(st.integers(0, 2**16))
def test_the_energy_is_the_weighted_sum_of_features(seed):
    states = random_states(seed)
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0, 2, size=4)
    labels = states.offsets[:-1] + rng.integers(np.diff(states.offsets))
    assert energy(graph_of(states, weights), labels) == pytest.approx(weights @ features_of(states, labels))


@settings(max_examples=60)
@given(st.integers(0, 2**16), st.integers(1, 6))
def test_candidates_are_the_best_of_every_bag(seed, max_states):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 8, 6))])
    scores = rng.normal(size=offsets[-1]).round(1)
    rows, cuts = best_candidates(scores, offsets, max_states)
    assert (np.diff(rows) > 0).all()
    for bag, (start, stop) in enumerate(itertools.pairwise(offsets)):
        mine = rows[cuts[bag] : cuts[bag + 1]]
        assert len(mine) == min(max_states, stop - start)
        assert (mine >= start).all()
        assert (mine < stop).all()
        assert_array_equal(np.sort(scores[mine]), np.sort(scores[start:stop])[-len(mine) :])


def test_many_bags_have_fewer_candidates_each():
    offsets = np.arange(0, 1501 * 9, 9)
    rows, cuts = best_candidates(np.tile(np.arange(9.0), 1500), offsets, 9)
    assert_array_equal(np.diff(cuts), 2)
    assert_array_equal(rows[:4], [7, 8, 16, 17])


def test_labellings_become_instances_and_back():
    candidates = best_candidates(np.array([1.0, 9.0, 3.0, 7.0, 5.0]), np.array([0, 3, 5]), 2)
    assert_array_equal(candidates.rows, [1, 2, 3, 4])  # states: none 1 2, none 3 4
    assert_array_equal(candidates.chosen(np.array([0, 3])), [-1, -1])
    assert_array_equal(candidates.chosen(np.array([2, 4])), [2, 3])
    assert_array_equal(candidates.chosen(np.array([1, 5])), [1, 4])


@settings(max_examples=25)
@given(st.integers(0, 2**16))
def test_totals_are_sums_over_pairs(seed):
    rng = np.random.default_rng(seed)
    left, right, weights = rng.normal(size=(7, 3)), rng.normal(size=(4, 3)), rng.uniform(size=2)
    apart = cdist(left, right) / 1.3
    expected = (weights[0] * apart + weights[1] * (1 - np.exp(-(apart**2)))).sum(axis=1)
    assert_allclose(Dissimilarity(EVERY_KIND, 1.3).total(left, right, weights, BACKEND), expected, atol=1e-12)
    assert_array_equal(Dissimilarity((), 1.3).total(left, right, weights[:0], BACKEND), np.zeros(7))


# ------------------------------------------------------------------ weights


def test_the_margin_by_hand():
    """Minimise a^2 / 2 + 3 s^2 / 2 where a + s >= 1: the slope of both is equal at a = 3/4, s = 1/4."""
    weights, slack = solve_margin(np.array([[1.0, 0.0]]), np.array([1.0]), 3.0)
    assert_allclose([*weights, slack], [0.75, 0, 0.25], atol=1e-9)


def test_weights_that_would_be_negative_are_zero():
    weights, slack = solve_margin(np.array([[-1.0, 0.0]]), np.array([1.0]), 3.0)
    assert_allclose([*weights, slack], [0, 0, 1], atol=1e-9)
    weights, slack = solve_margin(np.array([[0.0, -1.0]]), np.array([1.0]), 3.0)
    assert weights[1] == pytest.approx(-1, abs=1e-3)  # the threshold may be
    assert slack < 1e-3


@settings(max_examples=40)
@given(st.integers(0, 2**16), st.sampled_from([1.0, 30.0, 1000.0]))
def test_the_margin_against_a_general_solver(seed, C):
    rng = np.random.default_rng(seed)
    rows, losses = rng.normal(size=(12, 4)), rng.uniform(size=12)
    weights, slack = solve_margin(rows, losses, C)
    assert (weights[:-1] >= 0).all()
    assert (rows @ weights + slack >= losses - 1e-9).all()
    mine = (weights[:-1] @ weights[:-1] + 1e-4 * weights[-1] ** 2 + C * slack**2) / 2
    assert mine <= slow_margin(rows, losses, C) * (1 + 1e-5) + 1e-8


@pytest.mark.parametrize("seed", range(6))
def test_training_against_all_constraints_at_once(seed):
    """On a graph small enough to enumerate, cutting planes reach what all labellings together demand."""
    states, positive, C = random_states(seed), np.array([True, False, True, False, True]), 50.0
    truth = np.where(positive, best_rows(states), states.none)
    found, reached = Cuts(states, positive, 4, np.random.default_rng(0)).learn(truth, C)
    others = every_labelling(states.offsets)
    rows = np.array([features_of(states, labels) - features_of(states, truth) for labels in others]) / 5
    losses = np.array([((labels != states.none) != positive).mean() for labels in others])
    weights, slack = solve_margin(rows, losses, C)
    objective = weights[:-1] @ weights[:-1] / 2 + C * slack**2 / 2
    assert reached == pytest.approx(objective, rel=0.02)
    assert reached <= objective * (1 + 1e-3)
    assert (losses - rows @ found).max() <= np.sqrt(2 * objective / C) + 2e-3


@pytest.mark.parametrize("seed", range(6))
def test_training_keeps_the_first_witnesses_that_end_best(seed):
    states, positive = random_states(seed, n_bags=12), np.arange(12) % 2 == 0
    best = np.where(positive, best_rows(states), states.none)
    alone = Cuts(states, positive, 2, np.random.default_rng(0)).learn(best, 100.0)[1]
    assert train_crf(states, positive, 100.0, 20, 2, np.random.default_rng(0)).objectives[-1] <= alone * (1 + 1e-2)


def test_witnesses_are_the_best_for_the_weights():
    """Witnesses of the last round are a local optimum under the labels, and negative bags choose none."""
    states, positive = random_states(0, n_bags=12), np.arange(12) % 2 == 0
    solution = train_crf(states, positive, 100.0, 50, 2, np.random.default_rng(0))
    assert solution.stop_reason == "converged"
    assert_array_equal(solution.labels != states.none, positive)
    graph = clamped(graph_of(states, solution.weights), positive)
    assert_array_equal(descend(graph, solution.labels), solution.labels)


def alike_bags(n_bags=30, seed=0):
    """Return bags with the same best score each; in positive bags the instances that look alike score less."""
    rng = np.random.default_rng(seed)
    y, bags = np.arange(n_bags) % 2, []
    for label in y:
        bag = rng.normal(size=(3, 4)) * 3
        bag[:, 0] = rng.uniform(0.0, 1.2), 1.3, 0.2
        if label:
            bag[0] = [0.9, 5, 5, 5] + rng.normal(size=4) * 0.1
        bags.append(bag)
    return Bags.from_list(bags), y


def test_pairs_find_the_instances_that_look_alike():
    bags, y = alike_bags()
    with_pairs = MICRF(FirstFeature(), scale=None, random_state=0).fit(bags, y)
    without = MICRF(FirstFeature(), dissimilarity=None, scale=None, random_state=0).fit(bags, y)
    assert_array_equal(without.witnesses_[y == 1] % 3, 1)
    assert np.mean(with_pairs.witnesses_[y == 1] % 3 == 0) > 0.9
    assert with_pairs.n_iter_ > 1
    assert with_pairs.objectives_[-1] < with_pairs.objectives_[0]
    new, labels = alike_bags(60, seed=1)
    assert with_pairs.score(new, labels) > 0.95
    scores = with_pairs.score_instances(new)
    assert np.mean(scores.reshape(-1, 3)[labels == 1].argmax(axis=1) == 0) > 0.95


# ------------------------------------------------------------------ the classifier


def hand_model(transductive=False):
    """Return a model as if trained: witnesses at 0 and 2, two of four bags positive, score the first feature."""
    model = MICRF(FirstFeature(), scale=None, transductive=transductive)
    model.classes_, model.n_features_in_ = np.array([0, 1]), 2
    model.scale_shift_ = model.scale_divisor_ = None
    model.scorers_ = [FirstFeature()]
    model.score_weights_, model.threshold_ = np.array([2.0]), 1.0
    model.dissimilarity_weights_, model.width_ = np.array([0.5, 0.25]), 2.0
    model.witness_instances_ = np.array([[0.0, 0.0], [2.0, 0.0]])
    model.positive_share_, model.n_training_bags_ = 0.5, 4
    model._complete()
    return model


def test_decisions_by_hand():
    """A bag expects 2 positive bags among 4 others, so dissimilarities to both witnesses are averaged."""

    def cost(distance):
        return 0.5 * distance / 2 + 0.25 * (1 - np.exp(-((distance / 2) ** 2)))

    model = hand_model()
    bags = [np.array([[1.0, 0.0], [4.0, 0.0]]), np.array([[0.0, 0.0]])]
    first, second = 2 * 1 - 1 - cost(1), 2 * 4 - 1 - (cost(4) + cost(2)) / 2
    third = -1 - (cost(0) + cost(2)) / 2
    assert_allclose(model.score_instances(bags), [first, second, third])
    assert_allclose(model.decision_function(bags), [second, third])
    assert_array_equal(model.predict(bags), [1, 0])


def test_joint_decisions_by_hand():
    """Both new bags choose; with 6 bags a bag expects 2.5 positive ones, and each pays for the other too."""

    def cost(distance):
        return (0.5 * distance / 2 + 0.25 * (1 - np.exp(-((distance / 2) ** 2)))) / 2.5

    model = hand_model(transductive=True)
    bags = [np.array([[1.0, 0.0]]), np.array([[3.0, 0.0], [0.1, 0.0]])]
    expected = [
        1 - 2 * cost(1) - cost(2),
        5 - cost(3) - cost(1) - cost(2),
        -0.8 - cost(0.1) - cost(1.9) - cost(0.9),
    ]
    assert_allclose(model.score_instances(bags), expected)
    assert_allclose(model.decision_function(bags), expected[:2])


def test_one_bag_alone_is_the_same_jointly(gaussian_bags):
    bags, y = gaussian_bags()
    model = MICRF(random_state=0).fit(bags, y)
    alone = model.decision_function(bags)
    model = MICRF(transductive=True, random_state=0).fit(bags, y)
    assert_allclose(np.concatenate([model.decision_function(bags[[i]]) for i in range(len(bags))]), alone, atol=1e-9)
    joint = model.decision_function(bags)
    assert not np.allclose(joint, alone)
    assert np.mean((joint > 0) == (alone > 0)) > 0.8


@pytest.mark.parametrize("seed", range(5))
def test_joint_prediction_against_enumeration(seed, gaussian_bags):
    train, y = gaussian_bags(seed=seed)
    new, _ = gaussian_bags(n_bags=6, sizes=(1, 3), seed=seed + 100)
    model = MICRF(scale=None, transductive=True, random_state=0).fit(train, y)
    per_pair = 1 / (0.5 * (len(train) + len(new) - 1))

    def cost(left, right):
        apart = cdist(left, right) / model.width_
        return per_pair * np.tensordot(model.dissimilarity_weights_, [apart, 1 - np.exp(-(apart**2))], axes=1)

    unary = model.threshold_ - model.score_weights_[0] * model.scorers_[0].score_instances(new)
    unary += cost(new.instances, model.witness_instances_).sum(axis=1)
    pairs = cost(new.instances, new.instances)

    def total(choice):
        chosen = [row for row in choice if row is not None]
        return unary[chosen].sum() + sum(pairs[a, b] for a, b in itertools.combinations(chosen, 2))

    options = ([None, *range(start, stop)] for start, stop in itertools.pairwise(new.offsets))
    best = min(itertools.product(*options), key=total)
    assert_array_equal(model.predict(new), [int(row is not None) for row in best])


def test_without_pairs_it_is_the_scorer_with_another_threshold(gaussian_bags):
    bags, y = gaussian_bags()
    model = MICRF(dissimilarity=None, random_state=0).fit(bags, y)
    by_scorer = model.scorers_[0].decision_function(bags)
    assert_allclose(model.decision_function(bags), model.score_weights_[0] * by_scorer - model.threshold_)


def test_the_unit_of_the_scores_does_not_matter(gaussian_bags):
    class Louder(FirstFeature):
        def score_instances(self, X):
            return 1000 * X.instances[:, 0]

    bags, y = gaussian_bags()
    quiet, loud = (MICRF(scorer, random_state=0).fit(bags, y) for scorer in (FirstFeature(), Louder()))
    assert_allclose(loud.decision_function(bags), quiet.decision_function(bags), atol=1e-6)
    assert loud.score_weights_[0] == pytest.approx(quiet.score_weights_[0] / 1000, rel=1e-5)


@pytest.mark.parametrize(
    "scorer", [None, MICA(), InstanceSVM(), SingleInstance(), MILEnsemble(WitnessSVM(), 2)], ids=str
)
@pytest.mark.parametrize("transductive", [False, True])
def test_any_method_with_instance_scores_may_be_the_scorer(scorer, transductive, gaussian_bags, tmp_path):
    bags, y = gaussian_bags()
    model = MICRF(scorer, transductive=transductive, random_state=0).fit(bags, y)
    assert isinstance(model.scorers_[0], WitnessSVM if scorer is None else type(scorer))
    assert model.score(bags, y) > 0.8
    assert model.stop_reason_ in {"converged", "cycle", "iterations"}
    assert len(model.objectives_) == model.n_iter_
    model.save(tmp_path / "model.gmil")
    assert_array_equal(gmil.load(tmp_path / "model.gmil").score_instances(bags), model.score_instances(bags))


def test_objectives_fall(gaussian_bags):
    """Up to what a constraint may be violated by: C times the slack times its tolerance."""
    for seed in range(5):
        bags, y = gaussian_bags(n_bags=40, seed=seed)
        model = MICRF(random_state=0).fit(bags, y)
        slack = np.sqrt(2 * model.objectives_.max() / model.C)
        assert (np.diff(model.objectives_) <= model.C * slack * 2e-3).all()


def test_why_training_stops():
    bags, y = alike_bags()
    apart = cdist(bags.instances, bags.instances)
    states = make_states(bags.instances.T[:1], apart, bags.offsets, Dissimilarity(EVERY_KIND, 5.0), 1 / 15)
    best = np.where(y == 1, best_rows(states), states.none)

    def reason(max_iter):
        solution = alternate(Cuts(states, y == 1, 2, np.random.default_rng(0)), best, 1000.0, max_iter)
        return len(solution.objectives), solution.stop_reason

    n_iter, why = reason(20)
    assert n_iter > 1
    assert why == "converged"
    assert reason(1) == (1, "iterations")


def test_the_positive_class_reaches_the_scorer(gaussian_bags):
    bags, y = gaussian_bags()
    labels = np.array(["yes", "no"])[y]
    model = MICRF(pos_label="no", random_state=0).fit(bags, labels)
    assert model.scorers_[0].pos_label == "no"
    assert model.score(bags, labels) > 0.8
    plain = MICRF(random_state=0).fit(bags, y)
    assert_array_equal(model.decision_function(bags), -plain.decision_function(bags))


# ------------------------------------------------------------------ out-of-fold scores


def numbered_bags(n_bags=20):
    """Return bags of one instance whose second feature is the number of the bag, or of its group."""
    instances = np.column_stack([np.arange(n_bags) % 2, np.arange(n_bags)]).astype(float)
    return Bags(instances, np.arange(n_bags + 1)), np.arange(n_bags) % 2


def test_training_scores_come_from_scorers_that_did_not_see_the_bag():
    bags, y = numbered_bags()
    folds = [np.arange(20) % 5 == fold for fold in range(5)]
    model, scores = out_of_fold_scores(Outsider(), bags, y, None, folds, 0)
    assert_array_equal(scores, np.ones(20))
    assert model.seen_ == set(range(20))
    _, scores = out_of_fold_scores(Outsider(), bags, y, None, folds[:1], 0)
    assert_array_equal(scores, folds[0])  # no fold tests the others


def test_groups_are_left_out_as_a_whole(monkeypatch):
    groups = np.repeat(np.arange(10), 4)
    instances = np.column_stack([np.tile([0.0, 1.0], 20), groups])
    bags, y, seen = Bags(instances, np.arange(41)), np.tile([0, 1], 20), []

    class Watching(Outsider):
        def score_instances(self, X):
            seen.append((self.seen_, set(X.instances[:, 1].tolist())))
            return X.instances[:, 0] + super().score_instances(X)

    MICRF(Watching(), random_state=0).fit(bags, y, groups=groups)
    assert len(seen) == 6
    assert not any(trained & scored for trained, scored in seen[1:])
    seen.clear()
    MICRF(Watching(), random_state=0).fit(bags, y)
    assert all(trained & scored for trained, scored in seen[1:])


def test_a_scorer_that_takes_groups_gets_them(gaussian_bags):
    class Grouped(FirstFeature):
        def fit(self, X, y, groups=None):
            assert groups is not None
            assert len(groups) == len(X)
            return super().fit(X, y)

    bags, y = gaussian_bags()
    MICRF(Grouped(), random_state=0).fit(bags, y, groups=np.arange(24) // 2)
    with pytest.raises(ValueError, match="groups must name the group of each of the 24 bags"):
        MICRF().fit(bags, y, groups=[1, 2])


# ------------------------------------------------------------------ edges


def test_tuning_chooses_the_settings_of_the_default_scorer_once(gaussian_bags, monkeypatch):
    bags, y = gaussian_bags(n_bags=20)
    fitted = []
    real = WitnessSVM.fit
    monkeypatch.setattr(WitnessSVM, "fit", lambda self, *args, **more: fitted.append(self) or real(self, *args, **more))
    MICRF(tune=True, pos_label=0, random_state=0).fit(bags, y, groups=np.arange(20) // 2)
    assert [scorer.tune for scorer in fitted] == [True, *[False] * 6]
    chosen = [(scorer.C_, scorer.kernel_, scorer.gamma_, scorer.balance_) for scorer in fitted]
    assert len(set(chosen)) == 1
    assert {scorer.pos_label for scorer in fitted} == {0}
    with pytest.raises(gmil.BagValidationError, match="tune=True chooses the settings of the default scorer"):
        MICRF(WitnessSVM(), tune=True).fit(bags, y)


def test_two_bags_suffice():
    bags = [np.array([[0.0, 0.0]]), np.array([[1.0, 1.0], [5.0, 5.0]])]
    model = MICRF(random_state=0).fit(bags, [0, 1])
    assert_array_equal(model.predict(bags), [0, 1])


def test_bags_all_alike_are_no_error():
    model = MICRF(random_state=0).fit([np.ones((2, 3))] * 6, [0, 1] * 3)
    assert np.isfinite(model.decision_function([np.ones((1, 3))])).all()


def test_large_bags_are_cut_to_their_best_instances(gaussian_bags):
    bags, y = gaussian_bags(n_bags=12, sizes=(60, 80))
    for transductive in (False, True):
        model = MICRF(max_states=3, transductive=transductive, random_state=0).fit(bags, y)
        assert model.score_instances(bags).shape == (bags.n_instances,)
        assert model.decision_function(bags).shape == (12,)


def test_a_graph_that_is_too_large_is_refused():
    scores, offsets = np.zeros((1, 40_000)), np.arange(40_001)
    with pytest.raises(ValueError, match=r"The graph of 40000 bags needs .* GiB, above the 4 GiB"):
        make_states(scores, np.zeros((1, 1)), offsets, Dissimilarity(EVERY_KIND, 1.0), 1.0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0}, "'C' parameter of MICRF must be"),
        ({"dissimilarity": "chi2"}, "'dissimilarity' parameter of MICRF must be"),
        ({"estimator": "svm"}, "'estimator' parameter of MICRF must be"),
        ({"estimator": APR(tau=2.0)}, "'tau' parameter of APR must be"),
        ({"estimator": []}, "must have fit and score_instances, but the list is empty"),
        ({"estimator": [APR(), LinearSVC()]}, "but LinearSVC lacks one"),
        ({"estimator": [APR(), WitnessSVM(pos_label=0)]}, "has pos_label=0, but the positive class is 1"),
        ({"max_states": 0}, "'max_states' parameter of MICRF must be"),
        ({"n_restarts": -1}, "'n_restarts' parameter of MICRF must be"),
        ({"pos_label": 5}, "pos_label=5 is not a class of y"),
    ],
)
def test_bad_parameters_are_refused(parameters, message, gaussian_bags):
    with pytest.raises((ValueError, TypeError), match=message):
        MICRF(**parameters).fit(*gaussian_bags())


@pytest.mark.slow
def test_it_is_about_as_good_as_its_scorer_on_musk1_and_fast():
    bags, y = gmil.load_musk1(return_X_y=True)
    alone, graph = (cross_validate(model, bags, y, repeats=3) for model in (WitnessSVM(), MICRF()))
    assert graph.accuracy() > alone.accuracy() - 0.03
    assert graph.fit_seconds.sum() / 3 < 20
