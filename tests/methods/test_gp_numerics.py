"""The parts of `GPMIL` against finite differences and against dense, exact algebra."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp

from gmil.engine import resolve
from gmil.methods.gaussian_process import curved
from gmil.methods.gaussian_process.curved import solve_curved
from gmil.methods.gaussian_process.evidence import (
    Settings,
    TrainingSet,
    evidence_gradient,
    fit_posterior,
    maximise_evidence,
)
from gmil.methods.gaussian_process.gram import Kernel, times
from gmil.methods.gaussian_process.inducing import Basis, choose_basis, thin_bags
from gmil.methods.gaussian_process.laplace import surroundings
from gmil.methods.gaussian_process.likelihood import LabelledBags, soft_maxima
from gmil.methods.gaussian_process.merging import Merging, merge_equal
from gmil.methods.gaussian_process.prediction import BagMoments, Posterior

BACKEND = resolve("auto", 1)


def some_data(seed=0, n_bags=10, n_features=2, basis_every=None):
    """Return bags of one to five instances; the first instance of a positive bag lies apart."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, n_bags)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    positive = (np.arange(n_bags) % 2).astype(float)
    X = rng.normal(size=(offsets[-1], n_features))
    X[offsets[:-1]] += 1.5 * positive[:, None]
    basis = Basis(X, inducing=False) if basis_every is None else Basis(X[::basis_every].copy(), inducing=True)
    return TrainingSet(X, offsets, positive, basis)


def covariance(kernel, X, Z):
    squares = (((X[:, None, :] - Z[None, :, :]) / kernel.length_scales) ** 2).sum(axis=2)
    return kernel.amplitude**2 * np.exp(-squares / 2) + kernel.offset**2


def differences(function, at, step=1e-5):
    """Return central differences of a function of a vector, one row for every entry of the vector."""
    steps = step * np.eye(len(at))
    return np.array([(np.asarray(function(at + e)) - np.asarray(function(at - e))) / (2 * step) for e in steps])


# ------------------------------------------------------------------ the likelihood


def test_the_soft_maximum_on_paper():
    values, shares = soft_maxima(np.log([1.0, 3.0, 5.0]), np.array([0, 2, 3]), 1.0)
    assert_allclose(values, np.log([2.0, 5.0]))  # means of 1 and 3, and of 5
    assert_allclose(shares, [0.25, 0.75, 1])


some_bags = st.tuples(st.integers(0, 10_000), st.floats(0.05, 20))


@given(some_bags)
@settings(max_examples=50)
def test_the_soft_maximum_lies_between_mean_and_maximum_whatever_the_size_of_the_bag(case):
    seed, sharpness = case
    rng = np.random.default_rng(seed)
    f, size = rng.normal(scale=5, size=6), rng.integers(1, 50)
    value = soft_maxima(f, np.array([0, 6]), sharpness).values[0]
    assert f.mean() - 1e-9 <= value <= f.max() + 1e-9
    copies = soft_maxima(np.repeat(f, size), np.array([0, 6 * size]), sharpness).values[0]
    assert_allclose(copies, value, atol=1e-9)
    moved = soft_maxima(f + 1000, np.array([0, 6]), sharpness).values[0]
    assert_allclose(moved, value + 1000)


def test_a_sharp_maximum_is_the_maximum_and_a_blunt_one_the_mean():
    f, offsets = np.array([1.0, -2.0, 4.0]), np.array([0, 3])
    assert_allclose(soft_maxima(f, offsets, 1e6).values, 4, atol=1e-4)
    assert_allclose(soft_maxima(f, offsets, 1e-6).values, 1, atol=1e-4)


@given(some_bags)
@settings(max_examples=20)
def test_derivatives_of_the_likelihood(case):
    seed, sharpness = case
    data = some_data(seed, n_bags=4)
    bags = LabelledBags(data.offsets, data.positive, sharpness)
    f = np.random.default_rng(seed).normal(size=len(data.X))
    local = bags.around(f)

    def probability(f):
        halves = np.split(f, data.offsets[1:-1])
        maxima = np.array([(logsumexp(sharpness * part) - np.log(len(part))) / sharpness for part in halves])
        return log_expit(np.where(data.positive > 0, maxima, -maxima)).sum()

    close = {"rtol": 1e-5, "atol": 1e-7}
    assert_allclose(local.log_likelihood, probability(f))
    assert_allclose(local.gradient, differences(probability, f), **close)
    hessian = differences(lambda f: bags.around(f).gradient, f)
    assert_allclose(local.hessian_times(np.eye(len(f))), -hessian, **close)
    assert_allclose(local.hessian_times(f), -hessian @ f, **close)
    assert_allclose(local.curvatures, expit(local.maxima) * expit(-local.maxima))
    around = differences(lambda b: bags._replace(sharpness=b[0]).around(f).maxima, np.array([sharpness]))[0]
    assert_allclose(local.maxima_by_sharpness, around, **close)
    around = differences(lambda b: bags._replace(sharpness=b[0]).around(f).shares, np.array([sharpness]))[0]
    assert_allclose(local.shares_by_sharpness, around, **close)
    around = differences(lambda b: bags._replace(sharpness=b[0]).around(f).gradient, np.array([sharpness]))[0]
    assert_allclose(local.gradient_by_sharpness, around, **close)
    logistic_slope = differences(lambda g: expit(g) * expit(-g), local.maxima).diagonal()
    assert_allclose(local.curvatures_by_maxima, logistic_slope, **close)


# ------------------------------------------------------------------ the posterior


def exact_posterior(data, chosen, K, start):
    """Return mode, Fisher information and log-evidence by dense algebra and a general optimiser, K being invertible."""
    root = np.linalg.cholesky(K)
    bags = LabelledBags(data.offsets, data.positive, chosen.sharpness)

    def loss(z):  # f = root z: what has to be found is of one size in all directions, however nearly singular K is
        local = bags.around(root @ z)
        return 0.5 * z @ z - local.log_likelihood, z - root.T @ local.gradient

    options = {"gtol": 1e-9, "maxiter": 10_000}
    z = minimize(loss, np.linalg.solve(root, start), jac=True, method="BFGS", options=options).x
    f = root @ z
    local = bags.around(f)
    information = np.zeros_like(K)
    for bag, (start, stop) in enumerate(pairwise(data.offsets)):
        shares = local.shares[start:stop]
        information[start:stop, start:stop] = local.curvatures[bag] * np.outer(shares, shares)
    sign, log_determinant = np.linalg.slogdet(np.eye(len(K)) + K @ information)
    assert sign == 1
    return f, information, -loss(z)[0] - 0.5 * log_determinant


SETTINGS = [
    Settings(Kernel(2.0, 0.8, np.array([0.7])), 1.7),
    Settings(Kernel(5.0, 0.0, np.array([0.5])), 4.0),
    Settings(Kernel(1.0, 3.0, np.array([0.9, 0.4])), 0.2),
]


@pytest.mark.parametrize("chosen", SETTINGS)
def test_the_posterior_is_that_of_dense_exact_algebra(chosen):
    data = some_data()
    K = covariance(chosen.kernel, data.X, data.X)
    fit = fit_posterior(data, chosen, BACKEND)
    # A sharp maximum makes several modes: from zero two climbers may end in two of them.
    start = np.zeros(len(K)) if chosen.sharpness < 2 else fit.mode.local.f + 0.01
    f, information, evidence = exact_posterior(data, chosen, K, start)
    assert_allclose(fit.mode.local.f, f, atol=1e-6)
    assert_allclose(fit.log_evidence, evidence, atol=1e-8)

    new = np.random.default_rng(1).normal(size=(6, 2))
    offsets = np.array([0, 1, 4, 6])
    cross = covariance(chosen.kernel, new, data.X)
    means = cross @ np.linalg.solve(K, f)
    gain = np.linalg.solve(np.eye(len(K)) + information @ K, information)
    covariances = covariance(chosen.kernel, new, new) - cross @ gain @ cross.T
    posterior = Posterior.of(fit, data.basis.points)
    found, deviations = posterior.instances(new, offsets, BACKEND, deviations=True)
    assert_allclose(found, means, atol=1e-5)
    assert_allclose(deviations, np.sqrt(np.diag(covariances)), atol=1e-5)
    maxima, shares = soft_maxima(means, offsets, chosen.sharpness)
    moments = posterior.bags(new, offsets, BACKEND)
    assert_allclose(moments.means, maxima, atol=1e-5)
    blocks = [slice(*edges) for edges in pairwise(offsets)]
    expected = [shares[rows] @ covariances[rows, rows] @ shares[rows] for rows in blocks]
    assert_allclose(moments.variances, expected, atol=1e-5)


def test_inducing_points_give_the_posterior_of_the_covariance_that_they_leave():
    data, chosen = some_data(basis_every=2), SETTINGS[0]
    Z = data.basis.points
    inner = covariance(chosen.kernel, Z, Z) + 1e-6 * chosen.kernel.amplitude**2 * np.eye(len(Z))
    cross = covariance(chosen.kernel, data.X, Z)
    # A little more on the diagonal makes it invertible, and moves the answer as little.
    K = cross @ np.linalg.solve(inner, cross.T) + 1e-7 * np.eye(len(data.X))
    f, _, evidence = exact_posterior(data, chosen, K, np.zeros(len(K)))
    fit = fit_posterior(data, chosen, BACKEND)
    assert_allclose(fit.mode.local.f, f, atol=1e-4)
    assert_allclose(fit.log_evidence, evidence, atol=1e-4)


def test_inducing_points_on_all_instances_change_nothing():
    data, chosen = some_data(), SETTINGS[0]
    full = fit_posterior(data, chosen, BACKEND)
    low = fit_posterior(data._replace(basis=Basis(data.X, inducing=True)), chosen, BACKEND)
    assert_allclose(low.log_evidence, full.log_evidence, atol=1e-4)
    offsets = np.array([0, 2, 5])
    new = np.random.default_rng(2).normal(size=(5, 2))
    moments = [Posterior.of(fit, data.X).bags(new, offsets, BACKEND) for fit in (full, low)]
    assert_allclose(moments[1].means, moments[0].means, atol=1e-3)
    assert_allclose(moments[1].variances, moments[0].variances, atol=1e-3)


def test_an_offset_far_above_the_amplitude_leaves_inducing_points_independent():
    """Climbing the evidence may come by such settings: beside the offset, the rest of a covariance is rounding."""
    data, extreme = some_data(n_bags=60, basis_every=2), Settings(Kernel(1e-3, 400.0, np.array([5.0])), 1.0)
    assert np.isfinite(fit_posterior(data, extreme, BACKEND).log_evidence)


@given(st.integers(0, 10_000), st.floats(0.3, 20), st.floats(0.1, 10), st.sampled_from([None, 2]))
@settings(max_examples=30)
def test_the_mode_is_found_from_zero(seed, amplitude, sharpness, basis_every):
    data = some_data(seed, n_bags=8, basis_every=basis_every)
    chosen = Settings(Kernel(amplitude, 1.0, np.array([0.8])), sharpness)
    mode = fit_posterior(data, chosen, BACKEND).mode
    gram = data.gram(chosen.kernel, BACKEND)
    # K (gradient - alpha) is the gradient of the posterior, in the coordinates of the process.
    uphill = times(gram, mode.local.gradient - mode.alpha)
    assert np.abs(uphill).max() < 1e-3 * max(1, np.abs(mode.local.f).max())
    assert_allclose(times(gram, mode.alpha), mode.local.f, atol=1e-6 * max(1, np.abs(mode.local.f).max()))


# ------------------------------------------------------------------ the exact curvature, and equal instances


def with_copies(seed=0, n_bags=10, basis_every=None):
    """Return bags where instances repeat each other, within bags and between them."""
    data = some_data(seed, n_bags)
    rng = np.random.default_rng(seed)
    X = data.X[rng.integers(0, len(data.X) // 3, len(data.X))]
    basis = Basis(X, inducing=False) if basis_every is None else Basis(np.unique(X, axis=0)[::basis_every], True)
    return data._replace(X=X, basis=basis)


@pytest.mark.parametrize("basis_every", [None, 2])
@pytest.mark.parametrize("spread", [0.3, 8.0])  # far from the mode the curvature is not that of a maximum
@pytest.mark.parametrize("dense", [False, True])
def test_solves_with_the_exact_curvature_are_those_of_dense_algebra(basis_every, spread, dense, monkeypatch):
    if dense:
        monkeypatch.setattr(curved, "_MAX_ITERATIONS", 1)
    rng = np.random.default_rng(0)
    for seed, chosen in enumerate(SETTINGS[:2]):
        data = with_copies(seed, basis_every=basis_every)
        gram = data.merged().gram(chosen.kernel, BACKEND)
        bags = LabelledBags(data.offsets, data.positive, chosen.sharpness)
        f = times(gram, spread * rng.normal(size=len(data.X)))
        local, before = bags.around(f), bags.around(0.9 * f)
        K = np.column_stack([times(gram, column) for column in np.eye(len(f))])
        values = rng.normal(size=len(f))
        expected = np.linalg.solve(np.eye(len(f)) + local.hessian_times(K), values)
        found = solve_curved(gram, local, surroundings(gram, before), values)
        assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


def test_nothing_is_solved_by_nothing():
    data = some_data()
    gram, bags = data.gram(SETTINGS[0].kernel, BACKEND), LabelledBags(data.offsets, data.positive, 1.0)
    local = bags.around(np.zeros(len(data.X)))
    assert_allclose(solve_curved(gram, local, surroundings(gram, local), np.zeros(len(data.X))), 0)


def test_rows_of_equal_instances():
    X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0], [0.0, 0.0], [0.0, 2.0]])
    for instances in (X, sp.csr_array(X)):
        rows, merging = merge_equal(instances)
        assert_allclose(rows, [0, 1, 3])
        assert_allclose(merging.which, [0, 1, 0, 2, 1])
        assert_allclose(merging.spread(np.array([5.0, 6.0, 7.0])), [5, 6, 5, 7, 6])
        assert_allclose(merging.collect(np.array([1.0, 2.0, 3.0, 4.0, 5.0])), [4, 7, 4])
        assert_allclose(merging.take(X[rows], 2, 5), X[2:5])
    assert merge_equal(X[[0, 1, 3]])[1] == Merging(None, 3)


@pytest.mark.parametrize("basis_every", [None, 2])
def test_one_row_for_equal_instances_changes_nothing(basis_every):
    data, chosen = with_copies(basis_every=basis_every), SETTINGS[0]
    merged = data.merged()
    assert len(merged.X) < len(data.X) == data.offsets[-1]
    apart, together = (fit_posterior(each, chosen, BACKEND) for each in (data, merged))
    assert_allclose(together.log_evidence, apart.log_evidence, atol=1e-7)
    assert_allclose(evidence_gradient(together), evidence_gradient(apart), atol=1e-5)
    new, offsets = np.random.default_rng(1).normal(size=(6, 2)), np.array([0, 1, 4, 6])
    moments = [Posterior.of(fit, fit.gram.basis).bags(new, offsets, BACKEND) for fit in (apart, together)]
    assert_allclose(moments[1], moments[0], atol=1e-6)


# ------------------------------------------------------------------ the evidence


@pytest.mark.parametrize("basis_every", [None, 2])
@pytest.mark.parametrize("chosen", SETTINGS)
@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_of_the_evidence(chosen, basis_every, seed):
    data = some_data(seed, basis_every=basis_every)
    fit = fit_posterior(data, chosen, BACKEND)
    free = np.isfinite(chosen.vector)

    def evidence(logarithms):
        vector = chosen.vector
        vector[free] = logarithms
        return fit_posterior(data, Settings.of(vector), BACKEND).log_evidence

    expected = differences(evidence, chosen.vector[free], step=1e-4)
    assert_allclose(evidence_gradient(fit)[free], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("basis_every", [None, 2])
def test_distances_that_are_kept_change_nothing(basis_every):
    data = some_data(basis_every=basis_every)
    for chosen in SETTINGS:  # the last has two length scales: distances are no help there
        apart, together = (fit_posterior(each, chosen, BACKEND) for each in (data, data.measured(BACKEND)))
        assert_allclose(together.log_evidence, apart.log_evidence, atol=1e-7)
        assert_allclose(evidence_gradient(together), evidence_gradient(apart), atol=1e-5)


def test_settings_and_their_logarithms():
    for chosen in SETTINGS:
        again = Settings.of(chosen.vector)
        assert_allclose(again.kernel.length_scales, chosen.kernel.length_scales)
        assert_allclose([*again.kernel[:2], again.sharpness], [*chosen.kernel[:2], chosen.sharpness])


@pytest.mark.parametrize("basis_every", [None, 3])
def test_maximising_the_evidence_ends_where_it_and_the_prior_are_flat(basis_every):
    data = some_data(3, n_bags=30, basis_every=basis_every)
    start = Settings(Kernel(1.0, 1.0, np.array([1.0])), 1.0)
    fit, n_steps = maximise_evidence(data, start, BACKEND, 100)
    assert n_steps > 1
    assert fit.log_evidence > fit_posterior(data, start, BACKEND).log_evidence
    # The prior of a logarithm is normal around its start with a deviation of 2.
    pulled_back = (fit.settings.vector - start.vector) / 4
    assert_allclose(evidence_gradient(fit), pulled_back, atol=0.02)


@pytest.mark.parametrize("seed", range(4))
def test_labels_that_mean_nothing_lead_to_no_extremes(seed):
    data = some_data(seed, n_bags=20)
    noise = data._replace(positive=np.random.default_rng(seed).permutation(data.positive))
    start = Settings(Kernel(3.0, 1.0, np.array([0.05])), 20.0)  # every instance on its own, and the sharpest decides
    fit, _ = maximise_evidence(noise, start, BACKEND, 100)
    assert np.abs(fit.settings.vector - start.vector).max() <= 6
    assert fit.log_evidence > -1.5 * 20 * np.log(2)  # about as good as even odds


# ------------------------------------------------------------------ prediction


@given(st.floats(-40, 40), st.floats(0, 400))
@settings(max_examples=40)
def test_log_odds_are_those_of_the_averaged_probability(mean, variance):
    found = BagMoments(np.array([mean]), np.array([variance])).log_odds[0]
    assert np.sign(np.round(found, 9)) == np.sign(np.round(mean, 9)) or abs(mean) < 1e-6
    deviation = np.sqrt(variance)
    weighed = quad(
        lambda z: expit(mean + deviation * z) * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi),
        -9,
        9,
        points=[np.clip(-mean / max(deviation, 1e-3), -9, 9)],
        limit=200,
    )[0]
    assert_allclose(expit(found), weighed, atol=1e-6)


def test_inducing_points_are_clusters_of_distinct_instances():
    X = np.repeat(np.arange(5.0)[:, None], 40, axis=0)
    generator = np.random.default_rng(0)
    basis = choose_basis(X, 10, BACKEND, generator)
    assert basis.inducing
    assert_allclose(basis.points, np.arange(5.0)[:, None])
    for enough in (None, 200, 1000):
        basis = choose_basis(X, enough, BACKEND, generator)
        assert not basis.inducing
        assert_allclose(basis.points, X)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(1, 60))
def test_thinned_bags_keep_their_share_and_at_least_one_instance(sizes, most):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    rows, new_offsets = thin_bags(offsets, most, np.random.default_rng(0))
    assert len(np.unique(rows)) == len(rows) == new_offsets[-1]
    bag_of = np.repeat(np.arange(len(sizes)), sizes)
    kept = np.bincount(bag_of[rows], minlength=len(sizes))
    assert_allclose(kept, np.diff(new_offsets))
    assert (np.diff(rows) > 0).all()
    assert (np.abs(kept - np.maximum(1, np.array(sizes) * min(1, most / offsets[-1]))) <= 0.5).all()
    everyone, same = thin_bags(offsets, None, np.random.default_rng(0))
    assert len(everyone) == offsets[-1]
    assert same is offsets


def test_with_more_bags_than_points_the_root_is_square_and_says_the_same():
    data, chosen = some_data(basis_every=4), SETTINGS[0]
    fit = fit_posterior(data, chosen, BACKEND)
    root, lifted = fit.around.root, fit.around.lifted
    assert lifted.shape[0] < lifted.shape[1]
    assert root.shape == (len(lifted), len(lifted))
    assert_allclose(root @ root.T, lifted @ fit.around.gain_times(lifted.T), atol=1e-9)
