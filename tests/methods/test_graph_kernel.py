"""`GraphKernelSVM`: neighbours, edges, the kernels between graphs, and the two names on the command line."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import SVC
from sklearn.utils._param_validation import InvalidParameterError

import gmil
from gmil import Bags, BagValidationError, GraphKernelSVM, base
from gmil.engine import rbf, reference, resolve
from gmil.engine.rbf import own_rbf_sums
from gmil.methods.kernels import graph_kernel, graph_training
from gmil.methods.kernels.graph_training import (
    all_nodes,
    clique_nodes,
    edge_features,
    graph_edges,
    neighbours,
    within_bags,
)
from gmil.methods.svm.gram import Gram

BACKEND = resolve("auto", 1)
few = settings(max_examples=20)
both_graphs = pytest.mark.parametrize("graphs", ["implicit", "explicit"])


@st.composite
def some_bags(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    return Bags.from_list([rng.normal(size=(size, 2)) for size in sizes])


def distances_of(bag):
    return np.sqrt(((bag[:, None] - bag) ** 2).sum(axis=2))


# ------------------------------------------------------------------ the definitions, as loops


def slow_weights(bag):
    n, apart = len(bag), distances_of(bag)
    if n == 1:
        return np.ones(1)
    mean = np.mean([apart[i, j] for i in range(n) for j in range(n) if i < j])
    return np.array([1 / sum(i == j or apart[i, j] < mean * (1 - 1e-9) for j in range(n)) for i in range(n)])


def slow_edges(bag):
    n, apart = len(bag), distances_of(bag)
    mean = np.mean([apart[i, j] for i in range(n) for j in range(i)] or [0])
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if apart[i, j] < mean * (1 - 1e-9)]
    found = []
    for i, j in edges:
        ends = []
        for end in (i, j):
            at_end = [edge for edge in edges if end in edge]
            ends.append([len(at_end) / len(edges), 1 / apart[i, j] / sum(1 / apart[edge] for edge in at_end)])
        found.append(np.concatenate(sorted(ends)))
    return np.array(found).reshape(-1, 4)


def slow_sums(points, weights, gamma):
    """Return weighted sums of the RBF kernel over all pairs of points of two bags."""
    sums = np.zeros((len(points), len(points)))
    for i, (a, u) in enumerate(zip(points, weights, strict=True)):
        for j, (b, v) in enumerate(zip(points, weights, strict=True)):
            for x, p in zip(a, u, strict=True):
                for z, q in zip(b, v, strict=True):
                    sums[i, j] += p * q * np.exp(-gamma * ((x - z) ** 2).sum())
    return sums


def slow_cliques(bags, gamma):
    return slow_sums(bags, [slow_weights(bag) for bag in bags], gamma)


def slow_graphs(bags, gamma, edge_gamma):
    """Return the sums over nodes and over edges of MIGraph."""
    edges = [slow_edges(bag) for bag in bags]
    ones = [[np.ones(len(points)) for points in all_points] for all_points in (bags, edges)]
    return slow_sums(bags, ones[0], gamma), slow_sums(edges, ones[1], edge_gamma)


def slow_normalized(kernel):
    own = np.diag(kernel)
    return np.array(
        [
            [k / np.sqrt(a * b) if a * b else 0 for k, b in zip(row, own, strict=True)]
            for row, a in zip(kernel, own, strict=True)
        ]
    )


@few
@given(some_bags())
def test_the_kernel_of_mi_graph_is_its_definition(bags):
    nodes = clique_nodes(bags.instances, bags.offsets, BACKEND)
    slow = slow_cliques(list(bags), 0.5)
    assert_allclose(BACKEND.rbf_sums(nodes, nodes, [0.5, 2.0])[0], slow, atol=1e-10)
    assert_allclose(own_rbf_sums(nodes, 0.5, BACKEND), np.diag(slow), atol=1e-10)


@few
@given(some_bags())
def test_the_kernel_of_explicit_graphs_is_its_definition(bags):
    nodes = all_nodes(bags.instances, bags.offsets)
    edges, n_thinned = graph_edges(within_bags(bags.instances, bags.offsets, BACKEND), None)
    by_nodes, by_edges = slow_graphs(list(bags), 0.5, 1.5)
    assert_allclose(BACKEND.rbf_sums(nodes, nodes, [0.5])[0], by_nodes, atol=1e-9)
    assert_allclose(BACKEND.rbf_sums(edges, edges, [1.5])[0], by_edges, atol=1e-9)
    assert n_thinned == 0


@few
@given(some_bags())
def test_kernels_do_not_depend_on_blocks_or_on_sparsity(bags):
    nodes = clique_nodes(bags.instances, bags.offsets, BACKEND)
    whole = BACKEND.rbf_sums(nodes, nodes, [0.5])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rbf, "_BLOCK_ROWS", 3)
        assert_allclose(reference.rbf_sums(nodes, nodes, [0.5]), whole, atol=1e-12)
        sparse = clique_nodes(sp.csr_array(bags.instances), bags.offsets, BACKEND)
        assert_allclose(BACKEND.rbf_sums(sparse, sparse, [0.5]), whole, atol=1e-12)


# ------------------------------------------------------------------ by hand


def test_two_of_three_are_neighbours():
    # Distances 1, 9 and 10 with the mean 20/3.
    bag = np.array([[0.0], [1.0], [10.0]])
    apart = next(within_bags(bag, np.array([0, 3]), BACKEND))
    assert_array_equal(neighbours(apart), [[False, True, False], [True, False, False], [False, False, False]])
    assert_allclose(clique_nodes(bag, np.array([0, 3]), BACKEND).weights, [0.5, 0.5, 1])
    features, lengths = edge_features(apart)
    assert_allclose(features, [[1, 1, 1, 1]])
    assert_allclose(lengths, [1])


def test_a_path_of_two_edges():
    # Distances 1, 2 and 3; below the mean 2 is one pair only. With 1, 1.5 and 2.5 (mean 5/3) there are two edges.
    features, _ = edge_features(distances_of(np.array([[0.0], [1.0], [2.5]])))
    share = (1 / 1) / (1 / 1 + 1 / 1.5)
    assert_allclose(features, [[0.5, 1, 1, share], [0.5, 1, 1, 1 - share]])


def test_equal_distances_make_no_neighbours_and_equal_instances_no_infinity():
    corners = np.eye(3)
    assert not neighbours(distances_of(corners)).any()
    assert not neighbours(np.zeros((4, 4))).any()
    features, lengths = edge_features(distances_of(np.array([[0.0], [0.0], [1.0], [5.0]])))
    assert np.isfinite(features).all()
    assert lengths.min() == 0


def test_identical_bags_have_the_kernel_one():
    bags = Bags.from_list([[[0.0], [1.0]], [[1.0], [0.0]], [[5.0]]])
    nodes = clique_nodes(bags.instances, bags.offsets, BACKEND)
    kernel = graph_training.graph_kernel(BACKEND.rbf_sums(nodes, nodes, [1.0])[0], np.zeros((3, 3)), "each")
    assert_allclose(np.diag(kernel), 1)
    assert_allclose(kernel[0, 1], 1)


def test_edges_are_thinned_evenly_and_make_up_for_the_others(caplog):
    rng = np.random.default_rng(0)
    large, small = rng.normal(size=(40, 2)), rng.normal(size=(3, 2))
    bags = Bags.from_list([large, small])
    everything, _ = graph_edges(within_bags(bags.instances, bags.offsets, BACKEND), None)
    edges, n_thinned = graph_edges(within_bags(bags.instances, bags.offsets, BACKEND), 50)
    assert n_thinned == 1
    assert_array_equal(np.diff(edges.offsets)[0], 50)
    assert_allclose(edges.weights[:50].sum(), np.diff(everything.offsets)[0])
    whole = BACKEND.rbf_sums(everything, everything, [1.0])[0]
    assert_allclose(BACKEND.rbf_sums(edges, edges, [1.0])[0], whole, rtol=0.05)
    with caplog.at_level(logging.INFO, logger=graph_kernel.__name__):
        model = GraphKernelSVM("explicit", max_edges=50).fit(bags, [0, 1])
    assert model.n_thinned_bags_ == 1
    assert "1 of 2 bags have more edges than max_edges=50" in caplog.text


# ------------------------------------------------------------------ the class


@pytest.mark.parametrize(("graphs", "normalize"), [("implicit", "each"), ("explicit", "each"), ("explicit", "sum")])
def test_decisions_are_those_of_a_machine_on_the_kernel(graphs, normalize, gaussian_bags):
    bags, y = gaussian_bags(n_bags=14, sizes=(1, 5))
    model = GraphKernelSVM(graphs, gamma=0.3, edge_gamma=2.0, C=5.0, scale=None, normalize=normalize)
    model.fit(bags[:10], y[:10])
    if graphs == "implicit":
        kernel = slow_normalized(slow_cliques(list(bags), 0.3))
    else:
        sums = slow_graphs(list(bags), 0.3, 2.0)
        kernel = slow_normalized(sum(sums)) if normalize == "sum" else sum(map(slow_normalized, sums))
    expected = SVC(C=5.0, kernel="precomputed").fit(kernel[:10, :10], y[:10]).decision_function(kernel[10:, :10])
    assert_allclose(model.decision_function(bags[10:]), expected, atol=1e-3)


@both_graphs
def test_bags_and_instances_may_come_in_any_order(graphs, gaussian_bags):
    bags, y = gaussian_bags(n_bags=30, sizes=(5, 12))
    model = GraphKernelSVM(graphs, max_edges=10, random_state=0).fit(bags[:20], y[:20])
    decisions = model.decision_function(bags)
    turned = Bags.from_list([bag[::-1] for bag in bags])
    assert_allclose(model.decision_function(turned), decisions, atol=1e-9)
    assert_allclose(model.decision_function(bags[::-1]), decisions[::-1], atol=1e-9)
    assert_allclose(model.decision_function(bags[3:4]), decisions[3:4], atol=1e-9)


@both_graphs
def test_saved_sparse_and_single_precision_models_decide_alike(graphs, gaussian_bags, tmp_path):
    bags, y = gaussian_bags(n_bags=30, all_witnesses=True)
    sparse = Bags(sp.csr_array(bags.instances), bags.offsets)
    single = bags.with_instances(bags.instances.astype(np.float32))
    model = GraphKernelSVM(graphs, random_state=0).fit(sparse, y)
    model.save(tmp_path / "model.gmil")
    loaded = gmil.load(tmp_path / "model.gmil")
    assert_array_equal(loaded.decision_function(sparse), model.decision_function(sparse))
    for X in (bags, sparse, single):
        assert GraphKernelSVM(graphs, random_state=0).fit(X, y).score(X, y) == 1


@both_graphs
def test_bags_of_one_instance_have_no_edges(graphs, gaussian_bags):
    bags, y = gaussian_bags(sizes=(1, 1))
    model = GraphKernelSVM(graphs).fit(bags, y)
    assert model.score(bags, y) > 0.9
    assert model.support_edges_.shape == (0, 4)


def test_both_names_are_on_the_command_line():
    assert base.methods()["mi-graph"]().graphs == "implicit"
    assert base.methods()["mi-graph-explicit"]().graphs == "explicit"


@both_graphs
def test_tuning_sees_training_labels_only(graphs, gaussian_bags, monkeypatch):
    bags, y = gaussian_bags()
    trained_on = []
    real = Gram.solve
    monkeypatch.setattr(Gram, "solve", lambda self, p, *rest: trained_on.append(len(p)) or real(self, p, *rest))
    model = GraphKernelSVM(graphs, tune=True, random_state=0).fit(bags, y, groups=np.arange(len(y)) // 2)
    # Nine settings on twice five folds leave bags out; the last machine is trained on all.
    assert len(trained_on) == 9 * 10 + 1
    assert max(trained_on[:-1]) < trained_on[-1] == len(bags)
    assert model.C_ in (1.0, 10.0, 100.0)


def test_bad_input_is_refused(gaussian_bags):
    bags, y = gaussian_bags(n_bags=6)
    with pytest.raises(InvalidParameterError, match="'graphs' parameter of GraphKernelSVM must be"):
        GraphKernelSVM("none").fit(bags, y)
    with pytest.raises(InvalidParameterError, match="'max_edges' parameter"):
        GraphKernelSVM(max_edges=0).fit(bags, y)
    with pytest.raises(BagValidationError, match=r"each of the 6 bags, got shape \(1,\)"):
        GraphKernelSVM().fit(bags, y, groups=[1])


@pytest.mark.slow
@both_graphs
def test_musk1(graphs):
    bags, y = gmil.load_musk1(return_X_y=True)
    least = {"implicit": 0.82, "explicit": 0.76}[graphs]
    assert gmil.cross_validate(GraphKernelSVM(graphs), bags, y, repeats=2).accuracy() > least
