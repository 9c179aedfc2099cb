"""`PPMM`: posteriors, compositions, the exponent and the restart that agree best with the labels."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.utils._param_validation import InvalidParameterError

import gmil
from gmil import PPMM, Bags, BagValidationError
from gmil.engine import resolve
from gmil.methods.kernels import ppmm
from gmil.methods.kernels.ppmm_kernels import (
    EXPONENTS,
    Patterns,
    adapt,
    centred_alignment,
    compositions,
    fit_kmeans,
    fit_mixture,
    posteriors,
    powered,
)
from gmil.methods.shared import tuning

BACKEND = resolve("auto", 1)
few = settings(max_examples=25)
TWO = Patterns(np.array([[0.0], [10.0]]), width=50.0)


# ------------------------------------------------------------------ by hand


def test_shares_of_two_patterns():
    bags = Bags.from_list([[[0.0], [1.0], [9.0]], [[10.0]]])
    hard = compositions(bags.instances, bags.offsets, TWO, "hard", BACKEND)
    assert_allclose(hard, [[2 / 3, 1 / 3], [0, 1]])
    soft = posteriors(np.array([[0.0], [5.0]]), TWO, "soft", BACKEND)
    assert_allclose(soft, [[1 / (1 + np.exp(-2)), 1 / (1 + np.exp(2))], [0.5, 0.5]])


def test_the_exponent_makes_rare_patterns_count():
    shares = np.array([[0.9, 0.1], [0.1, 0.9]])
    kernels = [(powered(shares, p) @ powered(shares, p).T)[0, 1] for p in (1e-9, 1.0, 3.0)]
    assert_allclose(kernels[0], 1)  # both bags hold both patterns
    assert_allclose(kernels[1], 0.18 / 0.82)
    assert kernels[2] < kernels[1]


def test_a_kernel_that_is_the_labels_is_aligned():
    features = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert_allclose(centred_alignment(features, np.array([True, True, False])), 1)
    assert centred_alignment(np.ones((3, 2)), np.array([True, True, False])) == 0


# ------------------------------------------------------------------ the definitions, as loops


@st.composite
def shares_and_labels(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    n_bags = draw(st.integers(3, 8))
    positive = rng.random(n_bags) < 0.5
    positive[:2] = True, False
    return rng.dirichlet(np.ones(4), size=n_bags), positive


@few
@given(shares_and_labels(), st.sampled_from([0.1, 0.7, 1.0, 2.5]))
def test_kernel_and_alignment_are_their_definitions(case, exponent):
    shares, positive = case
    n = len(shares)
    kernel = np.zeros((n, n))
    for i, j in np.ndindex(n, n):
        kernel[i, j] = sum(a**exponent * b**exponent for a, b in zip(shares[i], shares[j], strict=True))
    kernel /= np.sqrt(np.outer(np.diag(kernel), np.diag(kernel)))
    features = powered(shares, exponent)
    assert_allclose(features @ features.T, kernel, atol=1e-12)
    centring = np.eye(n) - 1 / n
    centred = centring @ kernel @ centring
    signs = np.where(positive, 1, -1)
    target = centring @ np.outer(signs, signs) @ centring
    expected = (centred * target).sum() / np.linalg.norm(centred) / np.linalg.norm(target)
    assert_allclose(centred_alignment(features, positive), expected, atol=1e-9)


@few
@given(shares_and_labels())
def test_no_restart_and_exponent_is_aligned_better(case):
    shares, positive = case
    restarts = [shares, shares[:, ::-1] ** 2 / (shares**2).sum(axis=1, keepdims=True)]
    best = adapt(restarts, positive, EXPONENTS)
    every = [centred_alignment(powered(h, p), positive) for h in restarts for p in EXPONENTS]
    assert best.alignment == max(every)
    assert best.exponent in EXPONENTS
    assert_allclose(centred_alignment(powered(restarts[best.restart], best.exponent), positive), best.alignment)


def test_posteriors_of_a_mixture_are_those_of_scikit_learn():
    X = np.random.default_rng(0).normal(size=(60, 3)) * [1, 2, 3]
    patterns = fit_mixture(X, 3, BACKEND, np.random.default_rng(0))
    mixture = GaussianMixture(3, covariance_type="diag")
    mixture.weights_, mixture.means_ = np.exp(patterns.log_weights), patterns.centers
    mixture.covariances_, mixture.precisions_cholesky_ = patterns.variances, 1 / np.sqrt(patterns.variances)
    assert_allclose(posteriors(X, patterns, "soft", BACKEND), mixture.predict_proba(X), atol=1e-9)
    assert_allclose(posteriors(sp.csr_array(X), patterns, "soft", BACKEND), mixture.predict_proba(X), atol=1e-9)


def test_a_mixture_of_equal_instances_keeps_its_empty_patterns():
    X = np.repeat(np.eye(2), 5, axis=0)
    with pytest.warns(ConvergenceWarning, match="duplicate points"):
        patterns = fit_mixture(X, 4, BACKEND, np.random.default_rng(0))
    assert_allclose(posteriors(X, patterns, "soft", BACKEND).sum(axis=1), 1)
    assert_allclose(np.exp(patterns.log_weights).sum(), 1)


def test_the_width_follows_the_spread():
    X = np.array([[0.0], [2.0], [10.0], [12.0]])
    patterns = fit_kmeans(X, 2, 0.5, BACKEND, np.random.default_rng(0))
    assert_allclose(np.sort(patterns.centers.ravel()), [1, 11])
    assert_allclose(patterns.width, 0.5)  # half of the mean squared distance, 1
    alone = fit_kmeans(X, 4, 0.5, BACKEND, np.random.default_rng(0))
    assert np.isfinite(posteriors(X, alone, "soft", BACKEND)).all()


# ------------------------------------------------------------------ the class


@pytest.mark.parametrize("codebook", ["kmeans", "gmm"])
@pytest.mark.parametrize("assignment", ["soft", "hard"])
def test_all_codebooks_learn_and_are_saved(codebook, assignment, gaussian_bags, tmp_path):
    bags, y = gaussian_bags(n_bags=40, all_witnesses=True)
    model = PPMM(8, codebook=codebook, assignment=assignment, random_state=0).fit(bags, y)
    assert model.score(bags, y) > 0.9
    assert model.cluster_centers_.shape == (8, 3)
    model.save(tmp_path / "model.gmil")
    assert_array_equal(gmil.load(tmp_path / "model.gmil").decision_function(bags), model.decision_function(bags))


def test_more_restarts_are_never_less_aligned(gaussian_bags):
    bags, y = gaussian_bags()
    found = [PPMM(6, n_init=n, random_state=0).fit(bags, y).alignment_ for n in (1, 3, 9)]
    assert found == sorted(found)


def test_a_given_exponent_is_kept(gaussian_bags):
    assert PPMM(exponent=0.5, random_state=0).fit(*gaussian_bags()).exponent_ == 0.5


def test_softness_widens_the_patterns(gaussian_bags):
    bags, y = gaussian_bags()
    sharp, soft = (PPMM(softness=softness, n_init=1, random_state=0).fit(bags, y) for softness in (0.5, 2.0))
    assert soft.width_ == pytest.approx(4 * sharp.width_)


def test_patterns_may_be_learnt_on_a_sample(gaussian_bags):
    bags, y = gaussian_bags(n_bags=40, all_witnesses=True)
    model = PPMM(10, sample_size=30, random_state=0).fit(bags, y)
    assert model.score(bags, y) > 0.9


def test_tuning_leaves_bags_out(gaussian_bags, monkeypatch):
    bags, y = gaussian_bags(n_bags=40)
    trained_on = []
    real = ppmm.solve_svm
    monkeypatch.setattr(ppmm, "solve_svm", lambda k, p, c: trained_on.append(len(p)) or real(k, p, c))
    model = PPMM(tune=True, n_init=2, random_state=0).fit(bags, y, groups=np.arange(40) // 2)
    assert len(trained_on) == 2 * 2 * 2 * 3 * 10 + 1
    assert max(trained_on[:-1]) < trained_on[-1] == 40
    assert (len(model.cluster_centers_), model.assignment_) in {(k, a) for k in (30, 100) for a in ("soft", "hard")}


def test_inner_decisions_do_not_know_the_labels_of_the_bags_decided(gaussian_bags, monkeypatch):
    """The choice sees shares of all training bags, which need no labels, and labels outside the fold."""
    bags, y = gaussian_bags(n_bags=30)
    found = []

    def spy(self, settings, untuned, decide):
        found.append([decide(settings[0], test) for test in self.folds[:1]])
        return settings[0]

    monkeypatch.setattr(tuning.Tuning, "choose", spy)
    test = np.arange(30) < 6
    monkeypatch.setattr(tuning, "inner_folds", lambda *_: [test])
    for labels in (y, np.where(test, 1 - y, y)):
        PPMM(tune=True, n_init=1, random_state=0).fit(bags, labels)
    assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("scale", ["auto", None, "l2", "standard+l2"])
def test_new_bags_are_scaled_as_training_bags(scale, gaussian_bags, tmp_path):
    bags, y = gaussian_bags(n_bags=40, all_witnesses=True)
    shifted = bags.with_instances(bags.instances * [1, 10, 100] + 5)
    model = PPMM(10, scale=scale, random_state=0).fit(shifted, y)
    assert model.score(shifted, y) > (0.9 if scale in ("auto", "standard+l2") else 0.4)
    assert model.scale_ == ("minmax" if scale == "auto" else scale)
    tuned = PPMM(scale=scale, tune=True, n_init=1, random_state=0).fit(shifted, y)
    tuned.save(tmp_path / "model.gmil")
    assert_array_equal(gmil.load(tmp_path / "model.gmil").predict(shifted), tuned.predict(shifted))
    assert tuned.scale_ in (("minmax", "standard") if scale == "auto" else (scale,))


def test_bad_input_is_refused(gaussian_bags):
    bags, y = gaussian_bags(n_bags=6)
    with pytest.raises(BagValidationError, match="n_patterns=999 is above the number of instances to cluster"):
        PPMM(999).fit(bags, y)
    with pytest.raises(InvalidParameterError, match="'exponent' parameter of PPMM must be"):
        PPMM(exponent=-1).fit(bags, y)
    with pytest.raises(InvalidParameterError, match="'codebook' parameter of PPMM must be"):
        PPMM(codebook="trees").fit(bags, y)


@pytest.mark.slow
def test_musk1():
    bags, y = gmil.load_musk1(return_X_y=True)
    assert gmil.cross_validate(PPMM(), bags, y, repeats=2).accuracy() > 0.78
