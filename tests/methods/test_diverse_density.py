"""Diverse density and EM-DD against paper and pencil, plain loops and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime

import gmil
from gmil import EMDD, Bags, DiverseDensity, cross_validate
from gmil.datasets import load
from gmil.methods.density.diverse_density import choose_starts
from gmil.methods.density.lockstep import in_step
from gmil.methods.density.noisy_or import (
    LEAST_EXPONENT,
    Concept,
    alternate,
    bag_nll,
    concept_nll,
    exponents_of,
    labelled_instances,
    likelihood_path,
    likelihood_paths,
    maximise_likelihood,
    nll_and_gradient,
    nlls_and_gradients,
)

BOTH = pytest.mark.parametrize("method", [DiverseDensity, EMDD])


# ------------------------------------------------------------------ plain loops


def plain_nll(point, scales, bags, positive):
    total = 0.0
    for bag, is_positive in zip(bags, positive, strict=True):
        some_is = 0.0  # summed up, and not 1 minus a product, which would round small probabilities away
        for x in bag:
            exponent = sum((s * (a - t)) ** 2 for s, a, t in zip(scales, x, point, strict=True))
            p = np.exp(-exponent)
            some_is += (1 - some_is) * p
            # A negative instance at the very point would have the likelihood 0: it has a floor.
            total -= 0 if is_positive else np.log(-np.expm1(-max(exponent, LEAST_EXPONENT)))
        total -= np.log(some_is) if is_positive else 0
    return total


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    n_bags, n_features = draw(st.integers(2, 6)), draw(st.integers(1, 4))
    bags = [rng.normal(size=(rng.integers(1, 5), n_features)) for _ in range(n_bags)]
    positive = rng.permutation(np.arange(n_bags) % 2 == 0)
    point, scales = rng.normal(size=n_features), rng.normal(size=n_features)
    return bags, positive, point, scales * draw(st.sampled_from([0.3, 1.0]))


def data_of(bags, positive):
    made = Bags.from_list(bags)
    return labelled_instances(made.instances, made.offsets, positive)


# ------------------------------------------------------------------ paper and pencil


def test_the_likelihood_by_hand():
    # With s = 1 and t = 0: p(1) = exp(-1), p(2) = exp(-4).
    data = data_of([np.array([[1.0], [2.0]]), np.array([[2.0]])], np.array([True, False]))
    positive = 1 - (1 - np.exp(-1)) * (1 - np.exp(-4))
    expected = -np.log(positive) - np.log(1 - np.exp(-4))
    assert_allclose(nll_and_gradient(np.array([0.0, 1.0]), data)[0], expected)


def test_one_instance_bags_have_its_exponent_as_cost():
    nll, weights = bag_nll(np.array([0.5, 3.0, 200.0]), np.arange(4))
    assert_allclose(nll, [0.5, 3.0, 200.0])
    assert_allclose(weights, 1)


def test_far_bags_neither_underflow_nor_jump():
    exponents = np.array([29.9, 31.0, 30.1, 31.0, 2000.0, 2001.0])
    nll, weights = bag_nll(exponents, np.array([0, 2, 4, 6]))
    near = -np.log(np.exp(-exponents[:4].reshape(2, 2)).sum(axis=1))
    assert_allclose(nll, [*near, 2000 - np.log1p(np.exp(-1))])
    assert_allclose(weights.reshape(3, 2).sum(axis=1), 1)


@BOTH
def test_a_concept_by_hand(method):
    # All positive bags have an instance near 5; what is elsewhere is in negative bags too.
    positives = [[[5.0], [0.0]], [[5.1], [9.0]], [[4.9], [1.0]]]
    negatives = [[[0.0], [9.0]], [[1.0]], [[8.0], [2.0]]]
    model = method(scale=None, n_start_bags=None, n_starts_per_bag=None).fit(positives + negatives, [1, 1, 1, 0, 0, 0])
    assert abs(model.points_[model.nll_.argmin(), 0] - 5) < 0.3
    assert_array_equal(model.predict([[[5.0]], [[0.0], [9.0]], [[7.0], [5.05]]]), [1, 0, 1])
    scores = model.score_instances([[[5.0], [0.0]], [[1.0], [5.05]]])
    assert_array_equal(scores > 0, [True, False, False, True])


# ------------------------------------------------------------------ likelihood and gradient


@settings(max_examples=60)
@given(problems())
def test_the_likelihood_is_that_of_a_plain_loop(problem):
    bags, positive, point, scales = problem
    found = nll_and_gradient(np.concatenate([point, scales]), data_of(bags, positive))[0]
    assert_allclose(found, plain_nll(point, scales, bags, positive), rtol=1e-9)


@settings(max_examples=60)
@given(problems())
def test_the_gradient_is_that_of_finite_differences(problem):
    bags, positive, point, scales = problem
    data, parameters = data_of(bags, positive), np.concatenate([point, scales])
    numeric = approx_fprime(parameters, lambda values: nll_and_gradient(values, data)[0], 1e-7)
    gradient = nll_and_gradient(parameters, data)[1]
    assert_allclose(gradient, numeric, rtol=2e-3, atol=2e-3 * max(1, np.abs(numeric).max()))


@settings(max_examples=40)
@given(problems(), st.integers(1, 5))
def test_several_concepts_at_once_are_one_by_one(problem, n_concepts):
    bags, positive, point, scales = problem
    data, rng = data_of(bags, positive), np.random.default_rng(n_concepts)
    parameters = np.concatenate([point, scales]) * rng.uniform(0.5, 1.5, size=(n_concepts, 2 * len(point)))
    nlls, gradients = nlls_and_gradients(parameters, data)
    for one, nll, gradient in zip(parameters, nlls, gradients, strict=True):
        expected, slope = nll_and_gradient(one, data)
        assert_allclose(nll, expected, rtol=1e-6)
        assert_allclose(gradient, slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())


def test_searches_in_step_end_where_they_end_alone():
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(4, 3)) + 2 * (i % 2) for i in range(20)]
    data = data_of(bags, np.arange(20) % 2 == 1)
    starts = [Concept(bags[i % 20][0], np.full(3, 0.5)) for i in range(40)]  # more than go in step at once
    paths = likelihood_paths(starts, data, {3, 8})
    for start, path in zip(starts, paths, strict=True):
        for n_iter, concept in likelihood_path(start, data, {3, 8}).items():
            assert_allclose(path[n_iter].point, concept.point, rtol=1e-6, atol=1e-6)
            assert_allclose(path[n_iter].nll, maximise_likelihood(start, data, n_iter).nll, rtol=1e-6)


def test_large_data_are_searched_in_step(gaussian_bags, monkeypatch):
    bags, y = gaussian_bags()
    model = DiverseDensity(random_state=0)
    alone = model.fit(bags, y).decision_function(bags)
    monkeypatch.setattr("gmil.methods.density.diverse_density.MANY_NUMBERS", 0)
    assert_allclose(model.fit(bags, y).decision_function(bags), alone, rtol=1e-4, atol=1e-4)


def test_an_error_ends_all_searches_in_step():
    def fail(parameters):
        msg = f"{len(parameters)} at once"
        raise ValueError(msg)

    with pytest.raises(ValueError, match="3 at once"):
        in_step(lambda start, own: own(np.array([start])), [1.0, 2.0, 3.0], fail)


@settings(max_examples=30)
@given(problems())
def test_searches_never_end_worse_than_they_began(problem):
    bags, positive, point, scales = problem
    data = data_of(bags, positive)
    start = Concept(point, scales)
    assert maximise_likelihood(start, data, 20).nll <= concept_nll(start, data) + 1e-12
    found = alternate(start, data, 20, 5)
    chosen = concept_nll(found, data.only(data.nearest(found)))
    assert chosen <= concept_nll(start, data.only(data.nearest(start))) + 1e-12
    assert_allclose(found.nll, concept_nll(found, data))


@settings(max_examples=30)
@given(problems())
def test_the_nearest_instance_of_every_bag_is_chosen(problem):
    bags, positive, point, scales = problem
    data = data_of(bags, positive)
    exponents = exponents_of(data.terms, point, scales)
    rows = data.nearest(Concept(point, scales))
    for row, start, stop in zip(rows, data.offsets[:-1], data.offsets[1:], strict=True):
        assert start <= row < stop
        assert exponents[row] == exponents[start:stop].min()


# ------------------------------------------------------------------ starts, thresholds, features


def test_starts_are_instances_of_positive_bags():
    offsets, positive = np.array([0, 3, 10, 11, 15]), np.array([True, False, True, True])
    everything = choose_starts(offsets, positive, None, None, np.random.default_rng(0))
    assert_array_equal(everything, [0, 1, 2, 10, 11, 12, 13, 14])
    some = choose_starts(offsets, positive, 2, 2, np.random.default_rng(0))
    assert set(some) <= set(everything)
    assert len(some) <= 4


@BOTH
@pytest.mark.parametrize("combine", ["max", "noisy-or"])
def test_a_threshold_is_a_probability(method, combine, gaussian_bags):
    bags, y = gaussian_bags(all_witnesses=True)
    model = method(threshold=0.3, combine=combine, random_state=0).fit(bags, y)
    assert model.threshold_ == -np.log(0.3)
    exponents = model.threshold_ - model.score_instances(bags)
    parts = np.split(np.exp(-exponents), bags.offsets[1:-1])
    probabilities = [part.max() if combine == "max" else 1 - np.prod(1 - part) for part in parts]
    assert_array_equal(model.predict(bags), np.array(probabilities) > 0.3)


def test_the_best_instance_decides_about_a_bag(gaussian_bags):
    bags, y = gaussian_bags()
    model = EMDD(random_state=0).fit(bags, y)
    scores = model.score_instances(bags)
    assert_array_equal(model.decision_function(bags), np.maximum.reduceat(scores, bags.offsets[:-1]))


@BOTH
def test_constant_features_are_left_out(method, gaussian_bags):
    bags, y = gaussian_bags()
    padded = bags.with_instances(np.insert(bags.instances, 1, 7.0, axis=1))
    model = method(random_state=0).fit(padded, y)
    assert_array_equal(model.features_, [0, 2, 3])
    plain = method(random_state=0).fit(bags, y)
    assert_allclose(model.decision_function(padded), plain.decision_function(bags))


@BOTH
def test_data_far_from_the_origin_are_learnt_as_those_around_it(method, gaussian_bags):
    bags, y = gaussian_bags()
    near = method(scale=None, random_state=0).fit(bags, y)
    away = bags.with_instances(bags.instances + 2.0**27)
    far = method(scale=None, random_state=0).fit(away, y)
    assert_allclose(far.points_, near.points_ + 2.0**27, rtol=1e-11)
    assert_allclose(far.nll_, near.nll_, rtol=1e-3)
    assert_array_equal(far.predict(away), near.predict(bags))


@BOTH
def test_bags_that_are_all_the_same_are_no_failure(method):
    model = method().fit([np.ones((2, 3))] * 4, [0, 1, 0, 1])
    assert np.isfinite(model.decision_function([np.ones((1, 3)), np.zeros((1, 3))])).all()


@BOTH
def test_threads_change_nothing(method, gaussian_bags):
    bags, y = gaussian_bags()
    one, two = (method(n_jobs=n, random_state=0).fit(bags, y).decision_function(bags) for n in (None, 2))
    assert_array_equal(one, two)


def test_the_best_concepts_are_kept(gaussian_bags):
    bags, y = gaussian_bags(n_bags=30, seed=3)
    everything = EMDD(n_concepts=100, random_state=0).fit(bags, y)
    by_errors, by_likelihood = (
        EMDD(n_concepts=1, select=how, random_state=0).fit(bags, y) for how in ("errors", "likelihood")
    )
    assert by_errors.score(bags, y) >= by_likelihood.score(bags, y)
    assert by_likelihood.nll_ == everything.nll_.min()
    assert by_errors.nll_ == everything.nll_[0]
    assert len(EMDD(n_concepts=3, random_state=0).fit(bags, y).points_) == 3


def test_probabilities_are_means_over_concepts(gaussian_bags):
    bags, y = gaussian_bags()
    model = EMDD(scale=None, random_state=0).fit(bags, y)
    assert len(model.points_) == 5
    differences = (bags.instances - model.points_[:, None]) * model.scales_[:, None]  # (concepts, instances, features)
    mean = np.exp(-(differences**2).sum(axis=2)).mean(axis=0)
    assert_allclose(np.exp(model.score_instances(bags) - model.threshold_), mean, rtol=1e-6, atol=1e-12)


@BOTH
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_start_bags": 0}, "'n_start_bags' parameter of .* must be"),
        ({"n_starts_per_bag": 0}, "'n_starts_per_bag' parameter of .* must be"),
        ({"initial_scale": 0}, "'initial_scale' parameter of .* must be"),
        ({"threshold": 1.0}, "'threshold' parameter of .* must be"),
        ({"combine": "sum"}, "'combine' parameter of .* must be"),
        ({"pos_label": "x"}, "pos_label='x' is not a class of y"),
    ],
)
def test_bad_parameters_are_refused(method, parameters, message, gaussian_bags):
    with pytest.raises(ValueError, match=message):
        method(**parameters).fit(*gaussian_bags())


@BOTH
def test_three_classes_are_refused(method, gaussian_bags):
    with pytest.raises(ValueError, match=r"Only binary classification is supported\..*3 classes"):
        method().fit(*gaussian_bags(n_classes=3))


# ------------------------------------------------------------------ accuracy


@BOTH
def test_musk1_is_learnt(method):
    bags, y = gmil.load_musk1(return_X_y=True)
    model = method(n_start_bags=2, n_starts_per_bag=3, random_state=0).fit(bags[::2], y[::2])
    assert model.score(bags[1::2], y[1::2]) > 0.7


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("method", "name", "measured"),
    [
        (DiverseDensity, "musk1", 88.0),
        (EMDD, "musk1", 87.5),
        (EMDD, "elephant", 77.5),
        (EMDD, "fox", 62.0),
        (EMDD, "tiger", 71.0),
    ],
)
def test_accuracy_is_that_of_independent_runs(method, name, measured):
    data = load(name)
    result = cross_validate(method(), data.bags, data.y, repeats=2 if name == "musk1" else 1)
    assert 100 * result.accuracy() > measured - 5


def test_rounds_of_em_dd_end_when_told():
    bags, y = gmil.make_bags(30, n_features=4, random_state=0, return_X_y=True)
    once, often = (gmil.EMDD(max_rounds=rounds, max_iter=1, random_state=0).fit(bags, y) for rounds in (1, 10))
    assert once.n_iter_ == 1
    assert 1 < often.n_iter_ <= 10
