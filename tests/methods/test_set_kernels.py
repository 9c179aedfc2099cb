"""`SetKernelSVM`, its kernels between bags and the choice of settings inside the training bags."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import gmil
from gmil import Bags, BagValidationError, SetKernelSVM, base
from gmil.engine import available_backends, rbf, resolve
from gmil.methods.kernels import bag_kernels
from gmil.methods.kernels.bag_kernels import InstanceKernel, mean_kernels, median_gamma, own_kernels
from gmil.methods.kernels.set_kernels import fit_machine
from gmil.methods.shared.sparse_parts import from_parts, to_parts
from gmil.methods.shared.tuning import Tuning
from gmil.model_selection.folds import inner_folds
from gmil.transform.vectors import base as vectors_base
from gmil.transform.vectors.summaries import summarize

RBF = InstanceKernel("rbf", 0.7)
KERNELS = [RBF, InstanceKernel("poly", 0.5, 3, 2.0), InstanceKernel("linear")]


@pytest.fixture(params=available_backends())
def backend(request):
    return resolve(request.param, 1)


def value(kernel, x, z):
    """Return the kernel of two instances, as its definition says."""
    if kernel.name == "rbf":
        return np.exp(-kernel.gamma * sum((a - b) ** 2 for a, b in zip(x, z, strict=True)))
    product = sum(a * b for a, b in zip(x, z, strict=True))
    return product if kernel.name == "linear" else (kernel.gamma * product + kernel.coef0) ** kernel.degree


def slow_mean_kernel(left, right, kernel):
    return np.array([[np.mean([[value(kernel, x, z) for z in b] for x in a]) for b in right] for a in left])


@st.composite
def some_bags(draw, n_features=2):
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    return Bags.from_list([rng.integers(-3, 4, size=(size, n_features)).astype(float) for size in sizes])


# ------------------------------------------------------------------ kernels


def test_the_kernel_of_two_small_bags_on_paper(backend):
    bags = Bags.from_list([[[0.0]], [[0.0], [1.0]]])
    kernel = InstanceKernel("rbf", 1.0)
    found = mean_kernels(bags.instances, bags.offsets, bags.instances, bags.offsets, [kernel], backend)[0]
    across = (1 + np.exp(-1)) / 2
    assert_allclose(found, [[1, across], [across, (2 + 2 * np.exp(-1)) / 4]])
    assert_allclose(own_kernels(bags.instances, bags.offsets, kernel, backend), found.diagonal())


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@given(left=some_bags(), right=some_bags(), block=st.integers(1, 7), sparse=st.booleans())
@settings(max_examples=25)
def test_kernels_are_means_over_pairs_whatever_the_blocks(kernel, left, right, block, sparse):
    backend = resolve("auto", 1)
    X, Z = left.instances, right.instances
    if sparse:
        X, Z = sp.csr_array(X), sp.csr_array(Z)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bag_kernels, "_BLOCK_ROWS", block)
        patch.setattr(rbf, "_BLOCK_ROWS", block)
        across = mean_kernels(X, left.offsets, Z, right.offsets, [kernel], backend)[0]
        within = mean_kernels(X, left.offsets, X, left.offsets, [kernel], backend)[0]
        own = own_kernels(X, left.offsets, kernel, backend)
    assert_allclose(across, slow_mean_kernel(left, right, kernel), atol=1e-10)
    assert_allclose(within, slow_mean_kernel(left, left, kernel), atol=1e-10)
    assert_allclose(own, within.diagonal(), atol=1e-10)


def test_several_widths_share_their_distances(backend):
    bags = Bags.from_list([[[0.0], [2.0]], [[1.0]]])
    kernels = [InstanceKernel("rbf", gamma) for gamma in (0.1, 1.0)]
    together = mean_kernels(bags.instances, bags.offsets, bags.instances, bags.offsets, kernels, backend)
    for kernel, found in zip(kernels, together, strict=True):
        assert_allclose(found, slow_mean_kernel(bags, bags, kernel))


def test_the_median_rule(backend):
    points = np.array([[0.0], [1.0], [3.0]])  # squared distances 1, 4, 9
    assert median_gamma(points, backend, np.random.default_rng(0)) == pytest.approx(1 / 4)
    assert median_gamma(sp.csr_array(points), backend, np.random.default_rng(0)) == pytest.approx(1 / 4)
    assert median_gamma(np.ones((3, 1)), backend, np.random.default_rng(0)) == 1


def test_the_median_of_many_instances_is_taken_over_some():
    X = np.random.default_rng(0).normal(size=(3000, 3))
    backend = resolve("auto", 1)
    drawn = [median_gamma(X, backend, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert_allclose(drawn[0], drawn[2], rtol=0.1)


# ------------------------------------------------------------------ statistics


def test_statistics_on_paper(backend):
    bags = Bags.from_list([[[1.0, 5.0], [3.0, 5.0]], [[2.0, 0.0]]])
    found = summarize(bags.instances, bags.offsets, ("min", "mean", "max", "sd"), backend)
    assert_allclose(found, [[1, 5, 2, 5, 3, 5, 1, 0], [2, 0, 2, 0, 2, 0, 0, 0]])


@given(bags=some_bags(), entries=st.integers(1, 12), sparse=st.booleans())
@settings(max_examples=25)
def test_statistics_do_not_depend_on_blocks(bags, entries, sparse):
    X = sp.csr_array(bags.instances) if sparse else bags.instances
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors_base, "_BLOCK_ENTRIES", entries)
        found = summarize(X, bags.offsets, ("sd", "max", "min", "mean"), resolve("auto", 1))
    expected = [np.concatenate([bag.std(axis=0), bag.max(axis=0), bag.min(axis=0), bag.mean(axis=0)]) for bag in bags]
    assert_allclose(found, expected, atol=1e-12)


def test_the_deviation_of_large_numbers_is_not_rounding(backend):
    bags = Bags.from_list([[[1e9], [1e9 + 2]]])
    assert_allclose(summarize(bags.instances, bags.offsets, ("sd",), backend), [[1]])


# ------------------------------------------------------------------ machines


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.usefixtures("exact_machines")
def test_machines_decide_as_scikit_learn(n_classes):
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(30, 4)), np.arange(30) % n_classes
    kernel = points @ points.T
    found = fit_machine(kernel, labels, np.full(len(kernel), 2.0))
    machine = SVC(C=2.0, kernel="precomputed", tol=1e-9)
    oracle = (machine if n_classes == 2 else OneVsRestClassifier(machine)).fit(kernel, labels)
    decisions = kernel[:, found.support] @ found.weights + found.intercepts
    assert_allclose(
        np.squeeze(decisions), oracle.decision_function(kernel), atol=1e-5
    )  # it has kernels in single precision


def test_two_bags_on_paper():
    # Means -1 and 1, a linear kernel: the widest margin is f(x) = x.
    model = SetKernelSVM(instance_kernel="linear", normalization="size", scale=None, tune=False)
    model.fit([[[-2.0], [0.0]], [[1.0]]], [0, 1])
    assert_allclose(model.decision_function([[[3.0], [1.0]], [[-1.0]], [[0.0]]]), [2, -1, 0], atol=1e-6)
    assert_array_equal(model.predict([[[3.0], [1.0]], [[-1.0]]]), [1, 0])


@pytest.mark.usefixtures("exact_machines")
def test_statistic_kernel_is_a_machine_on_minima_and_maxima(gaussian_bags):
    bags, y = gaussian_bags()
    model = SetKernelSVM("stk", gamma=0.3, scale=None, tune=False).fit(bags, y)
    rows = np.array([np.concatenate([bag.min(axis=0), bag.max(axis=0)]) for bag in bags])
    oracle = SVC(C=10, gamma=0.3, tol=1e-9).fit(rows, y)
    assert_allclose(model.decision_function(bags), oracle.decision_function(rows), atol=1e-6)


def test_degree_and_constant_reach_the_kernel(gaussian_bags):
    bags, y = gaussian_bags()
    linear = SetKernelSVM(instance_kernel="linear", tune=False).fit(bags, y).decision_function(bags)
    first, second, moved = (
        SetKernelSVM(instance_kernel="poly", gamma=1.0, degree=degree, coef0=constant, tune=False).fit(bags, y)
        for degree, constant in [(1, 0.0), (2, 0.0), (2, 3.0)]
    )
    assert_allclose(first.decision_function(bags), linear, atol=1e-3)
    assert not np.allclose(second.decision_function(bags), linear, atol=0.01)
    assert not np.allclose(second.decision_function(bags), moved.decision_function(bags), atol=0.01)


@pytest.mark.parametrize("instance_kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("normalization", ["length", "size"])
def test_decisions_are_those_of_the_kernel_matrix(gaussian_bags, instance_kernel, normalization):
    bags, y = gaussian_bags()
    new, _ = gaussian_bags(n_bags=6, seed=1)
    model = SetKernelSVM(
        instance_kernel=instance_kernel, normalization=normalization, gamma=0.1, scale=None, tune=False
    ).fit(bags, y)
    kernel = InstanceKernel(instance_kernel, 0.1)
    within, across = slow_mean_kernel(bags, bags, kernel), slow_mean_kernel(new, bags, kernel)
    if normalization == "length":
        lengths = np.sqrt(within.diagonal())
        own = np.sqrt([slow_mean_kernel([bag], [bag], kernel)[0, 0] for bag in new])
        within, across = within / np.outer(lengths, lengths), across / np.outer(own, lengths)
    oracle = SVC(C=10, kernel="precomputed").fit(within, y)
    # The solver stops at a tolerance, so the last digits of the two kernels decide the last digits of the weights.
    assert_allclose(model.decision_function(new), oracle.decision_function(across), atol=1e-2)


DEVIATIONS = "Deviations count every bag once, so that scale='standard' makes weights inexact."


@pytest.mark.filterwarnings("ignore:The labels are strings:UserWarning")
@parametrize_with_checks(
    [base.methods()["stk"]()],
    expected_failed_checks=lambda _: {
        f"check_sample_weight_equivalence_on_{kind}_data": DEVIATIONS for kind in ("dense", "sparse")
    },
)
def test_scikit_learn_accepts_the_statistic_kernel(estimator, check):
    check(estimator)


def test_the_command_line_knows_both_names():
    methods = base.methods()
    assert methods["nsk"]().kernel == "nsk"
    assert methods["stk"]().kernel == "stk"
    assert methods["stk"](C=3).C == 3


# ------------------------------------------------------------------ tuning


def test_inner_folds_test_every_bag_once_and_train_on_all_classes():
    labels = np.array([0] * 9 + [1] * 4 + [2] * 3)
    folds = inner_folds(labels, 5, np.random.default_rng(0))
    assert len(folds) == 3  # no more than the smallest class has bags
    assert_array_equal(np.sum(folds, axis=0), np.ones(16))
    assert all(set(labels[~test]) == {0, 1, 2} for test in folds)
    assert inner_folds(np.array([0, 0, 1]), 5, np.random.default_rng(0)) == []


def test_the_best_setting_is_chosen_and_of_equals_the_first():
    labels = np.array([0, 1, 0, 1])
    folds = [np.array([True, True, False, False]), np.array([False, False, True, True])]
    truth = np.where(labels, 1.0, -1.0)
    signs = {"wrong": -1, "right": 1, "also right": 2}
    tuning = Tuning(labels, np.ones(4), folds, np.random.default_rng(0))
    assert tuning.choose(signs, "untuned", lambda setting, test: signs[setting] * truth[test]) == "right"
    assert tuning.choose([], "untuned", lambda _, test: truth[test]) == "untuned"
    assert tuning._replace(folds=[]).choose(signs, "untuned", lambda _, test: truth[test]) == "untuned"


def test_tuning_chooses_among_multiples(gaussian_bags):
    bags, y = gaussian_bags()
    model = SetKernelSVM(gamma=2.0, C=5.0, random_state=0).fit(bags, y)
    assert model.gamma_ in (0.5, 2.0, 8.0, 32.0)
    assert model.C_ in (0.5, 5.0, 50.0)
    # One positive bag leaves nothing to choose by.
    alone = SetKernelSVM(gamma=2.0, C=5.0).fit(bags[:3], [0, 1, 0])
    assert (alone.gamma_, alone.C_) == (2.0, 5.0)


def test_tuning_finds_a_width_that_the_start_misses():
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(4, 2)) * (1 + label) for label in np.arange(40) % 2]
    y = np.arange(40) % 2
    tuned = SetKernelSVM(gamma=0.002, scale=None, random_state=0).fit(bags, y)
    fixed = SetKernelSVM(gamma=0.002, scale=None, tune=False).fit(bags, y)
    assert tuned.gamma_ > 0.002
    assert tuned.score(bags, y) > fixed.score(bags, y)


# ------------------------------------------------------------------ manners


def test_only_support_bags_are_kept(gaussian_bags):
    bags, y = gaussian_bags(all_witnesses=True)
    model = SetKernelSVM(random_state=0).fit(bags, y)
    assert 0 < len(model.support_) < len(bags)
    assert len(model.support_instances_) == bags[model.support_].n_instances


def test_models_of_sparse_bags_are_saved_and_loaded(gaussian_bags, tmp_path):
    bags, y = gaussian_bags()
    sparse = Bags(sp.csr_array(np.where(bags.instances > 0, bags.instances, 0)), bags.offsets)
    model = SetKernelSVM(random_state=0).fit(sparse, y)
    model.save(tmp_path / "model.gmil")
    assert_array_equal(gmil.load(tmp_path / "model.gmil").decision_function(sparse), model.decision_function(sparse))


def test_parts_are_put_together_again():
    X = sp.csr_array(np.eye(3, 5))
    assert_array_equal(from_parts(to_parts(X)).toarray(), X.toarray())
    assert from_parts(to_parts(np.eye(2))) is not None


def test_the_positive_class_can_be_chosen(gaussian_bags):
    bags, y = gaussian_bags()
    plain = SetKernelSVM(random_state=0).fit(bags, y)
    turned = SetKernelSVM(pos_label=0, random_state=0).fit(bags, y)
    clear = np.abs(plain.decision_function(bags)) > 1e-2
    assert_array_equal(turned.predict(bags)[clear], plain.predict(bags)[clear])
    assert_allclose(turned.decision_function(bags), plain.decision_function(bags), atol=1e-2)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "rbf"}, "'kernel' parameter of SetKernelSVM must be a str among"),
        ({"gamma": 0.0}, "'gamma' parameter"),
        ({"C": -1.0}, "'C' parameter"),
        ({"scale": "log"}, "'scale' parameter"),
        ({"pos_label": 7}, "pos_label=7 is not a class of y"),
    ],
)
def test_bad_parameters_are_refused(gaussian_bags, parameters, message):
    with pytest.raises(ValueError, match=message):
        SetKernelSVM(**parameters).fit(*gaussian_bags())


def test_a_positive_class_of_three_is_refused(gaussian_bags):
    bags, y = gaussian_bags(n_classes=3)
    with pytest.raises(BagValidationError, match="pos_label=1 names the positive class of two, but y has 3"):
        SetKernelSVM(pos_label=1).fit(bags, y)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "least"), [("nsk", 0.80), ("stk", 0.86)])
def test_accuracy_on_musk1(method, least):
    bags, y = gmil.load_musk1(return_X_y=True)
    assert gmil.cross_validate(base.methods()[method](), bags, y, repeats=2).accuracy() > least
