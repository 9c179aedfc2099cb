"""`VLADClassifier` and `FisherVectorClassifier`: bags as differences from a codebook or a mixture."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.mixture import GaussianMixture

import gmil
from gmil import Bags, BagValidationError, FisherVectorClassifier, VLADClassifier
from gmil.engine import available_backends, resolve
from gmil.transform.vectors import base as vectors_base
from gmil.transform.vectors import fisher
from gmil.transform.vectors.fisher import fisher_vectors, fit_mixture, responsibilities
from gmil.transform.vectors.mixtures import Mixture
from gmil.transform.vectors.vlad import normalize_vectors, vlad_vectors

BOTH = [VLADClassifier, FisherVectorClassifier]


@pytest.fixture(params=available_backends())
def backend(request):
    return resolve(request.param, 1)


@st.composite
def some_bags(draw):
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    return Bags.from_list([rng.normal(size=(size, 2)) for size in sizes])


# ------------------------------------------------------------------ vectors


def test_differences_from_centres_on_paper(backend):
    # The bag {1, 2, 9}: 1 and 2 belong to the centre 0, 9 to the centre 10.
    X, offsets, centers = np.array([[1.0], [2.0], [9.0]]), np.array([0, 3]), np.array([[0.0], [10.0]])
    assert_allclose(vlad_vectors(X, offsets, centers, backend), [[1, -1 / 3]])
    assert_allclose(vlad_vectors(X, offsets, centers, backend, occupancy=True), [[1, -1 / 3, 2 / 3, 1 / 3]])


@given(bags=some_bags(), entries=st.integers(1, 12), sparse=st.booleans())
@settings(max_examples=25)
def test_differences_from_centres_one_by_one(bags, entries, sparse):
    centers = np.array([[-1.0, 0.0], [0.0, 0.5], [1.0, 0.0]])
    expected = np.zeros((len(bags), 3, 2))
    for i, bag in enumerate(bags):
        for x in bag:
            k = np.argmin([((x - center) ** 2).sum() for center in centers])
            expected[i, k] += (x - centers[k]) / len(bag)
    X = sp.csr_array(bags.instances) if sparse else bags.instances
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors_base, "_BLOCK_ENTRIES", entries)
        found = vlad_vectors(X, bags.offsets, centers, resolve("auto", 1))
    assert_allclose(found, expected.reshape(len(bags), -1), atol=1e-12)


def test_gradients_of_one_gaussian_on_paper(backend):
    # Mean 0, deviation 2: the bag {2, 4} lies 1 and 2 deviations above; squares less one are 0 and 3.
    mixture = Mixture(np.ones(1), np.zeros((1, 1)), np.full((1, 1), 4.0), 1)
    found = fisher_vectors(np.array([[2.0], [4.0]]), np.array([0, 2]), mixture, backend)
    assert_allclose(found, [[1.5, 1.5 / np.sqrt(2)]])


@given(bags=some_bags(), entries=st.integers(1, 12))
@settings(max_examples=25)
def test_gradients_one_by_one(bags, entries):
    mixture = Mixture(np.array([0.3, 0.7]), np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[1.0, 2.0], [0.5, 1.0]]), 1)
    expected = np.zeros((len(bags), 2, 2, 2))
    for i, bag in enumerate(bags):
        for x in bag:
            densities = mixture.weights * norm.pdf(x, mixture.means, np.sqrt(mixture.variances)).prod(axis=1)
            for k, share in enumerate(densities / densities.sum()):
                z = (x - mixture.means[k]) / np.sqrt(mixture.variances[k])
                expected[i, k, 0] += share * z / np.sqrt(mixture.weights[k]) / len(bag)
                expected[i, k, 1] += share * (z**2 - 1) / np.sqrt(2 * mixture.weights[k]) / len(bag)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors_base, "_BLOCK_ENTRIES", entries)
        found = fisher_vectors(bags.instances, bags.offsets, mixture, resolve("auto", 1))
    assert_allclose(found, expected.reshape(len(bags), -1), atol=1e-12)


def test_normalised_vectors_on_paper():
    assert_allclose(normalize_vectors(np.array([[9.0, -16.0], [0.0, 0.0]])), [[0.6, -0.8], [0, 0]])


# ------------------------------------------------------------------ mixtures


def test_one_gaussian_is_mean_and_variance():
    X = np.random.default_rng(0).normal(size=(50, 3))
    found = fit_mixture(X, 1, 300, resolve("auto", 1), np.random.default_rng(0))
    assert_allclose(found.means[0], X.mean(axis=0))
    assert_allclose(found.variances[0], X.var(axis=0), rtol=1e-5)


def test_two_gaussians_are_found():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(300, 2)), rng.normal(size=(100, 2)) * 2 + 10])
    found = fit_mixture(X, 2, 300, resolve("auto", 1), np.random.default_rng(0))
    order = found.means[:, 0].argsort()
    assert_allclose(found.weights[order], [0.75, 0.25], atol=0.01)
    assert_allclose(found.means[order], [[0, 0], [10, 10]], atol=0.5)
    oracle = GaussianMixture(2, covariance_type="diag", random_state=0).fit(X)
    assert_allclose(np.sort(found.variances.ravel()), np.sort(oracle.covariances_.ravel()), rtol=0.05)
    model = Mixture(oracle.weights_, oracle.means_, oracle.covariances_, 1)
    assert_allclose(responsibilities(X, model), oracle.predict_proba(X), atol=1e-9)


def test_constant_instances_have_a_mixture():
    found = fit_mixture(np.ones((5, 2)), 1, 10, resolve("auto", 1), np.random.default_rng(0))
    assert np.isfinite(found.variances).all()
    assert (found.variances > 0).all()


# ------------------------------------------------------------------ classifiers


@pytest.mark.parametrize("cls", BOTH)
def test_decisions_are_products_of_vectors_and_weights(cls, gaussian_bags):
    bags, y = gaussian_bags()
    model = cls(2, scale=None, random_state=0).fit(bags, y)
    vectors = model.transformer_.transform(bags)
    assert_allclose(np.linalg.norm(vectors, axis=1), 1)
    assert_allclose(model.decision_function(bags), (vectors @ model.coef_)[:, 0] + model.intercept_[0])


def test_shares_tell_clusters_apart(gaussian_bags):
    # Bags that lie close to one of two centres differ in nothing but the centre.
    bags, y = gaussian_bags(n_bags=60, all_witnesses=True)
    new, truth = gaussian_bags(n_bags=60, all_witnesses=True, seed=1)
    assert VLADClassifier(random_state=0).fit(bags, y).score(new, truth) == 1
    assert VLADClassifier(occupancy=False, random_state=0).fit(bags, y).score(new, truth) < 0.9


def test_principal_components_are_kept_as_asked(gaussian_bags):
    bags, y = gaussian_bags(n_features=6)
    assert FisherVectorClassifier(n_components=2).fit(bags, y).means_.shape == (1, 2)
    assert FisherVectorClassifier(n_components=None).fit(bags, y).means_.shape == (1, 6)
    assert FisherVectorClassifier(n_components=0.5).fit(bags, y).means_.shape[1] < 6
    constant = Bags(np.ones_like(bags.instances), bags.offsets)
    assert np.isfinite(FisherVectorClassifier().fit(constant, y).decision_function(constant)).all()


def test_large_sparse_bags_stay_sparse_until_they_are_projected(gaussian_bags, monkeypatch):
    bags, y = gaussian_bags(n_features=6, all_witnesses=True)
    sparse = Bags(sp.csr_array(bags.instances), bags.offsets)
    monkeypatch.setattr(fisher, "_DENSE_ENTRIES", 1)
    model = FisherVectorClassifier(random_state=0).fit(sparse, y)
    assert model.means_.shape == (1, 5)
    assert model.score(bags, y) >= 0.9


@pytest.mark.parametrize("cls", BOTH)
def test_clusters_may_be_learnt_on_a_sample(cls, gaussian_bags):
    bags, y = gaussian_bags(n_bags=40, all_witnesses=True)
    whole, part = (cls(2, sample_size=size, random_state=0).fit(bags, y) for size in (None, 30))
    assert part.score(bags, y) >= 0.9
    assert not np.array_equal(whole.decision_function(bags), part.decision_function(bags))


@pytest.mark.parametrize("cls", BOTH)
def test_the_positive_class_can_be_chosen(cls, gaussian_bags):
    bags, y = gaussian_bags(all_witnesses=True)
    model = cls(pos_label=0, random_state=0).fit(bags, y)
    assert_array_equal(model.decision_function(bags) < 0, model.predict(bags) == 0)
    assert model.score(bags, y) >= 0.9


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (VLADClassifier(1000), "n_clusters=1000 is above the number of instances to learn them from, "),
        (FisherVectorClassifier(1000), "n_gaussians=1000 is above"),
        (FisherVectorClassifier(n_components=9), "n_components=9 is above what the data allow"),
        (VLADClassifier(2, sample_size=1), "n_clusters=2 is above .* 1"),
    ],
)
def test_more_than_the_data_allow_is_refused(model, message, gaussian_bags):
    with pytest.raises(BagValidationError, match=message):
        model.fit(*gaussian_bags())


@pytest.mark.slow
@pytest.mark.parametrize(("model", "least"), [(VLADClassifier(), 0.78), (FisherVectorClassifier(), 0.82)])
def test_accuracy_on_musk1(model, least):
    bags, y = gmil.load_musk1(return_X_y=True)
    assert gmil.cross_validate(model, bags, y, repeats=2).accuracy() > least
