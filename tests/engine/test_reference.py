"""The rules that only the reference states: empty clusters, ties, what a bag of one gives."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gmil.engine import available_backends, distances, reference, resolve


def test_empty_clusters_take_the_farthest_rows_in_order():
    labels = np.array([0, 0, 0, 2])
    nearest = np.array([1.0, 5.0, 3.0, 9.0])
    assert_array_equal(reference.fill_empty_clusters(labels, nearest, 4), [0, 1, 3, 2])


def test_rows_at_their_centre_are_never_moved():
    labels = np.array([0, 0, 0])
    assert_array_equal(reference.fill_empty_clusters(labels, np.zeros(3), 3), labels)


def test_mutual_neighbours_are_a_tie_that_the_first_wins():
    # Rows 1 and 2 each leave the same total: what one loses at itself it gains at the other.
    X = np.array([[0.0], [10.0], [10.5], [0.1]])
    first = reference.seed(X, 2, np.array([[0.0, 0.0], [0.3, 0.9]]))
    second = reference.seed(X, 2, np.array([[0.0, 0.0], [0.9, 0.3]]))
    assert_array_equal(first, [0, 1])
    assert_array_equal(second, [0, 2])


def test_two_smallest_of_every_bag():
    values = np.array([3.0, 1.0, 1.0, 7.0, 5.0, 6.0])
    found = reference.bag_two_min(values, np.array([0, 3, 4, 6]))
    assert_array_equal(found.smallest, [1, 7, 5])
    assert_array_equal(found.where, [1, 3, 4])
    assert_array_equal(found.second, [1, np.inf, 6])


def test_class_histograms_are_sums_of_bag_histograms():
    rng = np.random.default_rng(0)
    labels, offsets, classes = rng.integers(5, size=30), np.array([0, 4, 11, 30]), np.array([1, 0, 1])
    by_bag = reference.bag_histograms(labels, offsets, 5)
    by_class = reference.class_histograms(labels, offsets, classes, 2, 5)
    assert_array_equal(by_class, [by_bag[1], by_bag[0] + by_bag[2]])


@pytest.mark.parametrize("n_clusters", [1, 3, 20])
def test_products_alone_give_the_clusters_of_the_features(n_clusters):
    X = np.random.default_rng(0).normal(size=(60, 4))
    members = np.ones((1, 60), dtype=bool)
    starts = np.arange(n_clusters)[None]
    found = reference.gram_lloyd(reference.gram_matrix(X), members, starts, 300)
    direct = reference.lloyd(X, X[:n_clusters], 300)
    assert_array_equal(found.labels[0], direct.labels)
    assert found.n_iter[0] == direct.n_iter
    assert found.inertia[0] == pytest.approx(direct.inertia)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of overflow
@pytest.mark.parametrize("backend", available_backends())
def test_what_is_too_far_apart_for_its_precision_is_not_at_distance_zero(backend):
    X = np.array([[1e20, 0], [-1e20, 0], [0, 1]], dtype=np.float32)
    expected = np.where(np.eye(3), 0, np.inf)
    assert_array_equal(distances(X, X, resolve(backend)), expected)
