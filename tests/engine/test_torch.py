"""Every kernel in PyTorch against the reference; on a GPU too where there is one.

Stated accuracy: squared distances are within 1e-9 (double) or 1e-4 (single precision) of the largest squared norm of
the data around its mean; in double precision labels, seeds and iterations are those of the reference.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from tests.kernel_problems import (
    Problem,
    assert_alike,
    assert_nearest,
    assert_same_end,
    bag_offsets,
    exact_squares,
    problems,
    random_jobs,
)
from tests.torch_devices import TORCH_BACKENDS

from gmil.engine import reference, resolve
from gmil.engine.rbf import Points

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'gmil[torch]'")
clustering = pytest.importorskip("gmil.engine.torch.clustering")
backend = None


@pytest.fixture(params=TORCH_BACKENDS, autouse=True, scope="module")
def device(request):
    """Run every test on every device."""
    global backend
    backend = resolve(request.param)


class TestDistances:
    @settings(max_examples=40)
    @given(problems())
    def test_are_those_of_the_reference(self, problem):
        X, centers = problem.instances(), problem.centers()
        found, tolerance = backend.sq_distances(X, centers), problem.tolerance(centers)
        assert found.dtype == X.dtype
        assert_allclose(found, reference.sq_distances(X, centers), rtol=0, atol=tolerance)
        assert_allclose(found, exact_squares(X, centers), rtol=0, atol=tolerance)

    @settings(max_examples=40)
    @given(problems())
    def test_the_nearest_centre_is_found(self, problem):
        X, centers = problem.instances(), problem.centers()
        labels, squares, sums, counts = backend.assign_sums(X, centers)
        assert labels.dtype == np.int32
        assert_nearest(problem, X, centers, labels, squares)
        if not problem.has_ties and problem.dtype == "float64":
            assert_array_equal(labels, reference.assign(X, centers)[0])
        expected = reference.cluster_sums(X, labels, len(centers))
        assert_array_equal(sums, expected[0])
        assert_array_equal(counts, expected[1])

    def test_the_first_of_equal_centres_wins(self):
        X = np.random.default_rng(0).normal(size=(100, 5))
        assert set(backend.assign(X, np.repeat(X[:9], 3, axis=0))[0] % 3) == {0}

    def test_blocks_of_rows_are_put_together(self, monkeypatch):
        monkeypatch.setattr("gmil.engine.torch.kernels._ENTRIES_AT_ONCE", {"cpu": 200, "cuda": 200})
        problem = Problem(0, 100, 11, 7, "float64", "gaussian", 1.0, 0.0)
        X, centers = problem.instances(), problem.centers()
        assert_allclose(backend.sq_distances(X, centers), exact_squares(X, centers), rtol=1e-10)
        assert_array_equal(backend.assign(X, centers)[0], reference.assign(X, centers)[0])
        ours, theirs = backend.lloyd(X, centers, 300), reference.lloyd(X, centers, 300)
        assert_array_equal(ours.labels, theirs.labels)
        assert_allclose(ours.centers, theirs.centers, atol=1e-12)

    def test_sums_of_differences_and_ranks(self):
        rng = np.random.default_rng(0)
        for dtype, tolerance in (("float32", 1e-5), ("float64", 1e-12)):
            X, Y = (rng.integers(-4, 5, size=(n, 7)).astype(dtype) + rng.random(1).astype(dtype) for n in (30, 20))
            assert_alike(backend.l1_distances(X, Y), reference.l1_distances(X, Y), rtol=tolerance)
            knots = np.sort(Y.T, axis=1)
            assert_alike(backend.column_ranks(X, knots), reference.column_ranks(X, knots), rtol=1e-6)
            assert_alike(backend.column_ranks(Y, knots), reference.column_ranks(Y, knots), rtol=1e-6)

    def test_sums_of_kernels(self):
        rng = np.random.default_rng(0)
        left, right = (Points(rng.normal(size=(n, 5)), rng.random(n), np.array([0, 4, 4, n])) for n in (30, 20))
        for other in (right, left):
            expected = reference.rbf_sums(left, other, [0.1, 0.4])
            assert_allclose(backend.rbf_sums(left, other, [0.1, 0.4]), expected, rtol=1e-10)

    def test_no_instances_give_no_distances(self):
        assert backend.sq_distances(np.empty((0, 3)), np.ones((2, 3))).shape == (0, 2)
        assert len(backend.assign(np.empty((0, 3)), np.ones((2, 3)))[0]) == 0


class TestKMeans:
    @settings(max_examples=40)
    @given(problems(kinds=("gaussian",), dtypes=("float64",)), st.sampled_from([0, 1, 7, 8, 9, 300]))
    def test_starts_and_ends_where_the_reference_does(self, problem, max_iter):
        X, centers = problem.instances(), problem.centers()
        starts = backend.seed(X, problem.n_clusters, problem.uniforms())
        assert_array_equal(starts, reference.seed(X, problem.n_clusters, problem.uniforms()))
        ours, theirs = backend.lloyd(X, centers, max_iter), reference.lloyd(X, centers, max_iter)
        assert_same_end(problem, ours, theirs)

    @settings(max_examples=40)
    @given(problems())
    def test_ends_at_a_fixed_point(self, problem):
        X, start = problem.instances(), problem.centers()
        found = backend.lloyd(X, start, 300)
        assert found.centers.dtype == X.dtype
        assert_nearest(problem, X, found.centers, found.labels)
        noise = len(X) * problem.tolerance(start)
        assert found.inertia <= exact_squares(X, start).min(axis=1).sum() * (1 + 1e-5) + noise
        rows = backend.seed(X, problem.n_clusters, problem.uniforms())
        assert ((rows >= 0) & (rows < len(X))).all()

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_many_iterations(self, dtype):
        X = np.random.default_rng(0).normal(size=(2000, 40)).astype(dtype)
        ours, theirs = backend.lloyd(X, X[:12], 300), reference.lloyd(X, X[:12], 300)
        assert theirs.n_iter > 20
        if dtype == "float64":
            assert_array_equal(ours.labels, theirs.labels)
            assert ours.n_iter == theirs.n_iter
        assert_allclose(ours.inertia, theirs.inertia, rtol=1e-9 if dtype == "float64" else 2e-3)

    def test_empty_clusters_take_the_farthest_rows(self):
        X = np.random.default_rng(1).normal(size=(300, 33))
        start = X[[0, 0, 0, 1, 1, 2, 3, 4]]
        for centers in (start, np.vstack([start, np.full((2, 33), 1e3)])):
            ours, theirs = backend.lloyd(X, centers, 300), reference.lloyd(X, centers, 300)
            assert_array_equal(ours.labels, theirs.labels)
            assert ours.n_iter == theirs.n_iter

    def test_fewer_distinct_rows_than_clusters(self):
        X = np.repeat([[0.1, 7.0], [5.0, -3.0], [2.0, 2.0]], 20, axis=0)
        found = backend.lloyd(X, X[[0, 0, 20, 21, 40, 59]], 300)
        assert found.inertia == pytest.approx(0, abs=1e-8)
        assert found.n_iter < 300

    @pytest.mark.parametrize("name", ["older", "newer"])
    def test_tf32_is_not_used_for_centres(self, monkeypatch, name):
        seen, settings, original = [], torch.backends.cuda.matmul, clustering.lloyd
        if name == "newer" and not hasattr(settings, "fp32_precision"):
            pytest.skip("this PyTorch has one name for the setting")

        def lloyd(*arguments):
            seen.append(torch.get_float32_matmul_precision())
            return original(*arguments)

        monkeypatch.setattr(clustering, "lloyd", lloyd)
        try:
            if name == "newer":
                settings.fp32_precision = "tf32"
            else:
                torch.set_float32_matmul_precision("high")
            backend.lloyd(np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32)[:2], 3)
            after = settings.fp32_precision if name == "newer" else torch.get_float32_matmul_precision()
            assert after == ("tf32" if name == "newer" else "high")
        finally:
            torch.set_float32_matmul_precision("highest")
        assert seen == ["highest"]

    def test_tf32_is_not_used_before_the_last_of_several_threads_is_done(self):
        try:
            torch.set_float32_matmul_precision("high")
            first, second = clustering.full_precision(), clustering.full_precision()
            first.__enter__()
            second.__enter__()
            first.__exit__(None, None, None)
            assert torch.get_float32_matmul_precision() == "highest"
            second.__exit__(None, None, None)
            assert torch.get_float32_matmul_precision() == "high"
        finally:
            torch.set_float32_matmul_precision("highest")


class TestGram:
    @settings(max_examples=30)
    @given(problems(kinds=("gaussian",), dtypes=("float64",)), st.integers(1, 5), st.booleans())
    def test_starts_and_ends_where_the_reference_does(self, problem, n_jobs, repeat_starts):
        gram = reference.gram_matrix(problem.instances())
        assert_allclose(backend.gram_matrix(problem.instances()), gram, rtol=0, atol=1e-9 * abs(gram).max() + 1e-30)
        members = random_jobs(problem.seed, len(gram), n_jobs)
        rng = np.random.default_rng(problem.seed)
        uniforms = rng.random((n_jobs, problem.n_clusters, 3))
        starts = reference.gram_seed(gram, members, uniforms)
        assert_array_equal(backend.gram_seed(gram, members, uniforms), starts)
        if repeat_starts:
            starts = rng.integers(len(gram), size=starts.shape)
        for max_iter in (0, 300):
            ours, theirs = (one.gram_lloyd(gram, members, starts, max_iter) for one in (backend, reference))
            tolerance = problem.tolerance()
            assert_array_equal(ours.n_iter, theirs.n_iter)
            assert_allclose(ours.sq_distances, theirs.sq_distances, rtol=0, atol=tolerance)
            assert_allclose(ours.inertia, theirs.inertia, rtol=0, atol=len(gram) * tolerance)

    def test_more_clusters_than_members(self):
        gram = reference.gram_matrix(np.random.default_rng(0).normal(size=(200, 6)))
        members = np.zeros((2, 200), dtype=bool)
        members[0, [3, 50, 120]] = members[1, [7, 8, 199]] = True
        ours, theirs = (one.gram_lloyd(gram, members, np.full((2, 6), 3), 300) for one in (backend, reference))
        assert_array_equal(ours.n_iter, theirs.n_iter)
        assert_allclose(ours.sq_distances, theirs.sq_distances, atol=1e-9)


class TestBags:
    @settings(max_examples=40)
    @given(bag_offsets(), st.integers(0, 40), st.sampled_from(["float32", "float64"]), st.integers(0, 99))
    def test_reductions_are_those_of_the_reference(self, offsets, n_columns, dtype, seed):
        rng = np.random.default_rng(seed)
        shape = (offsets[-1], n_columns) if n_columns else offsets[-1]
        for values in (rng.normal(size=shape).astype(dtype), rng.integers(3, size=shape).astype(dtype)):
            for name in ("bag_min", "bag_max"):
                found = getattr(backend, name)(values, offsets)
                assert_array_equal(found, getattr(reference, name)(values, offsets), strict=True)
            for name in ("bag_mean", "bag_deviation"):
                found, expected = (getattr(one, name)(values, offsets) for one in (backend, reference))
                assert_alike(found, expected, rtol=1e-6, atol=1e-7)
            pairs = zip(backend.bag_two_min(values, offsets), reference.bag_two_min(values, offsets), strict=True)
            for found, expected in pairs:
                assert_array_equal(found, expected, strict=True)

    @settings(max_examples=20)
    @given(bag_offsets(), st.integers(1, 6), st.integers(0, 99))
    def test_histograms_are_those_of_the_reference(self, offsets, n_bins, seed):
        rng = np.random.default_rng(seed)
        labels = rng.integers(n_bins, size=offsets[-1]).astype(np.int32)
        classes = rng.integers(3, size=len(offsets) - 1)
        for name, arguments in (("bag_histograms", ()), ("class_histograms", (classes, 3))):
            found, expected = (getattr(one, name)(labels, offsets, *arguments, n_bins) for one in (backend, reference))
            assert_array_equal(found, expected, strict=True)

    def test_a_value_that_is_no_number_wins(self):
        values = np.random.default_rng(0).normal(size=(40, 3))
        values[[0, 15, 39], 0] = np.nan
        offsets = np.array([0, 10, 20, 30, 40])
        for name in ("bag_min", "bag_max"):
            assert_array_equal(getattr(backend, name)(values, offsets), getattr(reference, name)(values, offsets))


class TestInputs:
    def test_read_only_and_strided_arrays(self):
        X = np.random.default_rng(0).normal(size=(60, 14))
        X.flags.writeable = False
        offsets = np.arange(0, 61, 6)
        for view in (X, X[:, ::2], X[::-1], np.asfortranarray(X)):
            before = view.copy()
            assert_allclose(backend.sq_distances(view, view[:4]), exact_squares(view, view[:4]), atol=1e-12)
            assert_array_equal(backend.lloyd(view, view[:4], 50).labels, reference.lloyd(view, view[:4], 50).labels)
            assert_array_equal(backend.bag_min(view, offsets), reference.bag_min(view, offsets))
            backend.bag_two_min(view, offsets)
            assert_array_equal(view, before)

    def test_sparse_instances_and_other_types_are_left_to_the_reference(self):
        dense = np.random.default_rng(0).integers(0, 3, size=(40, 6)).astype(float)
        X = sp.csr_array(dense)
        assert_allclose(backend.sq_distances(X, dense[:3]), reference.sq_distances(dense, dense[:3]), atol=1e-9)
        assert_array_equal(backend.assign_sums(X, dense[:3])[0], reference.assign(X, dense[:3])[0])
        assert backend.lloyd(X, dense[:3], 20).inertia == reference.lloyd(X, dense[:3], 20).inertia
        uniforms = np.random.default_rng(0).random((3, 3))
        assert_array_equal(backend.seed(X, 3, uniforms), reference.seed(X, 3, uniforms))
        assert_array_equal(backend.gram_matrix(X), reference.gram_matrix(X))
        whole, offsets = np.arange(12).reshape(6, 2), np.array([0, 2, 6])
        for name in ("bag_min", "bag_max", "bag_mean", "bag_deviation"):
            found, expected = (getattr(one, name)(whole, offsets) for one in (backend, reference))
            assert_array_equal(found, expected, strict=True)
        assert_array_equal(backend.bag_two_min(whole.astype(np.float16), offsets).second, [[2, 3], [6, 7]])
