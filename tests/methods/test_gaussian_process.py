"""`GPMIL`: what its users see."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import gmil
from gmil import GPMIL, Bags
from gmil.methods.gaussian_process import prediction as gp_prediction


@pytest.mark.parametrize("offset", [0.0, 0.8])
@pytest.mark.parametrize("amplitude", [1.0, 6.0])
@pytest.mark.parametrize("length_scale", [0.5, 1.5])
def test_one_instance_bags_are_classified_as_scikit_learn_does(offset, amplitude, length_scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=60) > 0).astype(int)
    new = rng.normal(scale=2, size=(200, 2))
    kernel = ConstantKernel(amplitude**2) * RBF(length_scale) + ConstantKernel(offset**2 + 1e-12)
    theirs = GaussianProcessClassifier(kernel, optimizer=None).fit(X, y)
    ours = GPMIL(optimize=False, amplitude=amplitude, length_scale=length_scale, offset=offset, scale=None).fit(X, y)
    assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), atol=1e-3)
    assert_allclose(ours.log_evidence_, theirs.log_marginal_likelihood(), atol=1e-3)


def test_the_sharpness_means_nothing_for_one_instance_bags(gaussian_bags):
    bags, y = gaussian_bags(sizes=(1, 1))
    blunt, sharp = (GPMIL(optimize=False, sharpness=sharpness).fit(bags, y) for sharpness in (0.1, 10))
    assert_allclose(blunt.decision_function(bags), sharp.decision_function(bags), atol=1e-6)


def test_copies_of_its_instances_do_not_make_a_bag_more_positive(gaussian_bags):
    bags, y = gaussian_bags()
    model = GPMIL(random_state=0).fit(bags, y)
    many = Bags.from_list([np.repeat(bag, 7, axis=0) for bag in bags])
    assert_allclose(model.decision_function(many), model.decision_function(bags), atol=1e-6)
    assert_allclose(model.predict_variance(many), model.predict_variance(bags), atol=1e-6)


def test_bags_of_noise_have_even_odds_whatever_their_size():
    rng = np.random.default_rng(0)
    sizes = np.tile([1, 30], 20)
    bags = Bags.from_list([rng.normal(size=(size, 2)) for size in sizes])
    y = np.repeat([0, 1], 20)
    probabilities = GPMIL(random_state=0).fit(bags, y).predict_proba(bags)[:, 1]
    assert_allclose(probabilities[sizes == 30].mean(), 0.5, atol=0.1)
    assert_allclose(probabilities[sizes == 1].mean(), 0.5, atol=0.1)


def test_the_witness_of_a_bag_has_the_highest_score(gaussian_bags):
    bags, y = gaussian_bags(n_bags=60)
    model = GPMIL(random_state=0).fit(bags[:40], y[:40])
    scores = np.split(model.score_instances(bags), bags.offsets[1:-1])
    positive = np.flatnonzero(y)
    hits = [scores[i].argmax() == bags[int(i)][:, 0].argmax() for i in positive]
    assert np.mean(hits) > 0.9
    assert model.score(bags[40:], y[40:]) > 0.9


def test_instances_far_from_all_others_are_unsure(gaussian_bags):
    bags, y = gaussian_bags()
    model = GPMIL(random_state=0).fit(bags, y)
    far = np.full((1, 3), 1e4)
    _, deviations = model.score_instances(bags, return_std=True)
    mean, deviation = model.score_instances([far], return_std=True)
    assert deviation > deviations.max()
    assert_allclose(deviation, np.hypot(model.amplitude_, model.offset_), rtol=0.2)
    assert np.abs(mean) < np.abs(model.score_instances(bags)).max()
    assert model.predict_variance([far]) > model.predict_variance(bags).max()


def test_probabilities_follow_the_classes_and_the_positive_one(gaussian_bags):
    bags, y = gaussian_bags()
    plain = GPMIL(random_state=0).fit(bags, y)
    turned = GPMIL(pos_label="yes", random_state=0).fit(bags, np.where(y == 1, "yes", "zero"))
    assert_array_equal(turned.classes_, ["yes", "zero"])
    assert_allclose(turned.predict_proba(bags)[:, ::-1], plain.predict_proba(bags))
    first = GPMIL(pos_label=0, random_state=0).fit(bags, 1 - y)
    assert_allclose(first.predict_proba(bags)[:, 0], plain.predict_proba(bags)[:, 1])
    assert_allclose(first.predict_proba(bags).sum(axis=1), 1)
    assert_array_equal(first.predict(bags) == 0, plain.predict(bags) == 1)


def test_the_evidence_finds_the_feature_that_matters():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(120, 4))
    y = (np.sin(4 * X[:, 2]) > 0).astype(int)
    one = GPMIL(scale=None).fit(X, y)
    each = GPMIL(scale=None, ard=True).fit(X, y)
    assert each.length_scales_.shape == (4,)
    assert each.length_scales_.argmin() == 2
    assert np.delete(each.length_scales_, 2).min() > 5 * each.length_scales_[2]
    assert each.log_evidence_ > one.log_evidence_ + 5
    new = rng.uniform(-1, 1, size=(300, 4))
    truth = (np.sin(4 * new[:, 2]) > 0).astype(int)
    assert each.score(new, truth) > max(0.9, one.score(new, truth))


def test_the_evidence_prefers_a_sharp_maximum_where_one_instance_decides():
    rng = np.random.default_rng(0)
    labels, lone, mean = np.arange(60) % 2, [], []
    for label in labels:
        bag = rng.normal(size=(6, 2))
        witness = bag.copy()
        witness[0] += 6 * label
        lone.append(witness)
        mean.append(bag + 0.8 * label)
    sharp, blunt = (GPMIL(random_state=0).fit(bags, labels) for bags in (lone, mean))
    # What counts is the sharpness in units of the values that it compares.
    assert sharp.sharpness_ * sharp.amplitude_ > 3 * blunt.sharpness_ * blunt.amplitude_


def test_inducing_points_come_close_to_all_instances(gaussian_bags):
    bags, y = gaussian_bags(n_bags=60)
    full = GPMIL(random_state=0).fit(bags, y)
    few = GPMIL(n_inducing=60, random_state=0).fit(bags, y)
    assert full.basis_.shape == (bags.n_instances, 3)
    assert few.basis_.shape == (60, 3)
    new = gaussian_bags(n_bags=60, seed=1)[0]
    assert_allclose(few.predict_proba(new), full.predict_proba(new), atol=0.1)


def test_blocks_change_nothing(gaussian_bags, monkeypatch):
    bags, y = gaussian_bags(sizes=(5, 12))
    model = GPMIL(random_state=0, max_iter=3).fit(bags, y)
    expected = model.decision_function(bags), *model.score_instances(bags, return_std=True)
    monkeypatch.setattr(gp_prediction, "_BLOCK_ENTRIES", 20 * len(model.basis_))
    monkeypatch.setattr(gp_prediction, "_BLOCK_ROWS", 4)
    found = model.decision_function(bags), *model.score_instances(bags, return_std=True)
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize("ard", [False, True])
def test_sparse_bags_with_inducing_points(gaussian_bags, ard):
    bags, y = gaussian_bags(n_bags=40)
    sparse = Bags(sp.csr_array(bags.instances), bags.offsets)
    settings = {"n_inducing": 30, "ard": ard, "max_iter": 5, "scale": None, "random_state": 0}
    dense_model, sparse_model = GPMIL(**settings).fit(bags, y), GPMIL(**settings).fit(sparse, y)
    assert_allclose(sparse_model.log_evidence_, dense_model.log_evidence_, rtol=1e-4)


def test_given_values_are_kept_without_optimisation(gaussian_bags):
    bags, y = gaussian_bags()
    model = GPMIL(optimize=False, ard=True, length_scale=[1.0, 2.0, 3.0], amplitude=2, offset=0, sharpness=5)
    model.fit(bags, y)
    assert_array_equal(model.length_scales_, [1, 2, 3])
    assert (model.amplitude_, model.offset_, model.sharpness_, model.n_iter_) == (2, 0, 5, 1)
    assert GPMIL(offset=0, max_iter=3).fit(bags, y).offset_ == 0


@pytest.mark.parametrize("lengths", [[1.0, 2.0], [1.0, 2.0, -1.0], [1.0, 2.0, np.inf], [[1.0, 2.0, 3.0]]])
def test_length_scales_that_do_not_fit_are_refused(gaussian_bags, lengths):
    with pytest.raises(ValueError, match="length_scale must be a positive number, or 3 of them"):
        GPMIL(ard=True, length_scale=lengths).fit(*gaussian_bags())


def test_several_length_scales_need_to_be_asked_for(gaussian_bags):
    with pytest.raises(ValueError, match="Pass ard=True"):
        GPMIL(length_scale=[1.0, 2.0, 3.0]).fit(*gaussian_bags())


def test_nothing_but_equal_instances():
    bags, y = [np.ones((2, 3))] * 6, [0, 1] * 3
    for n_inducing in (None, 4):
        model = GPMIL(n_inducing=n_inducing, random_state=0).fit(bags, y)
        assert_allclose(model.predict_proba(bags), 0.5, atol=1e-6)


def test_probabilities_are_as_likely_as_they_say():
    bags, y = gmil.make_bags(400, separation=2, random_state=0, return_X_y=True)
    model = GPMIL(n_inducing=100, random_state=0).fit(bags[:150], y[:150])
    probabilities = model.predict_proba(bags[150:])[:, 1]
    assert abs(probabilities.mean() - y[150:].mean()) < 0.1
    order = np.argsort(probabilities)
    for part in np.array_split(order, 4):
        assert abs(probabilities[part].mean() - y[150:][part].mean()) < 0.2


@pytest.mark.parametrize("n_inducing", [60, None])
def test_a_sample_of_every_bag_is_enough_to_choose_the_covariance(gaussian_bags, n_inducing):
    bags, y = gaussian_bags(n_bags=40, sizes=(10, 20))
    all_of_them = GPMIL(n_inducing=n_inducing, random_state=0).fit(bags, y)
    sampled = GPMIL(n_inducing=n_inducing, sample_size=200, random_state=0).fit(bags, y)
    assert sampled.amplitude_ != all_of_them.amplitude_
    assert sampled.basis_.shape == all_of_them.basis_.shape
    new, truth = gaussian_bags(n_bags=40, sizes=(10, 20), seed=1)
    assert sampled.score(new, truth) > 0.9


@pytest.mark.slow
def test_a_hundred_thousand_instances():
    made = gmil.make_bags(2200, n_features=32, bag_size=50, witness_rate=0.1, random_state=0)
    model = GPMIL(max_iter=5, random_state=0).fit(made.bags[:2000], made.y[:2000])
    assert model.basis_.shape == (400, 32)
    assert model.score(made.bags[2000:], made.y[2000:]) > 0.9
