"""Every compiled kernel against the reference, on every instruction set that runs here."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

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
from tests.simd import simd_level  # noqa: F401 (every test runs with it)

from gmil.engine import reference
from gmil.engine.rbf import Points

native = pytest.importorskip("gmil.engine.native.backend", exc_type=ImportError)


def backend(n_threads=1):
    return native.NativeBackend(n_threads)


class TestDistances:
    @settings(max_examples=60)
    @given(problems())
    def test_are_those_of_the_reference(self, problem):
        X, centers = problem.instances(), problem.centers()
        found, tolerance = backend().sq_distances(X, centers), problem.tolerance(centers)
        assert found.dtype == X.dtype
        assert_allclose(found, reference.sq_distances(X, centers), rtol=0, atol=tolerance)
        assert_allclose(found, exact_squares(X, centers), rtol=0, atol=tolerance)

    @pytest.mark.parametrize("n_features", [511, 512, 513, 1100])
    def test_are_summed_over_all_features_of_long_rows(self, n_features):
        problem = Problem(0, 50, n_features, 11, "float64", "gaussian", 1.0, 0.0)
        X, centers = problem.instances(), problem.centers()
        assert_allclose(backend().sq_distances(X, centers), exact_squares(X, centers), rtol=1e-12)

    def test_squares_of_very_long_rows_are_not_lost_in_their_sum(self):
        centers = np.array([[0.1], [-0.1]], dtype=np.float32).repeat(100_000, axis=1)
        X = centers.copy()
        X[:, :1000] += np.float32(0.01)
        exact = exact_squares(X, centers)
        assert_allclose(backend().sq_distances(X, centers), exact, rtol=0, atol=4e-6 * exact.max())
        assert_allclose(backend().assign(X, centers)[1], exact.min(axis=1), rtol=0, atol=4e-6 * exact.max())

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("n_centers", [1, 3, 8, 17, 63, 203])
    def test_of_sparse_rows_are_those_of_the_reference(self, n_centers, dtype):
        rng = np.random.default_rng(n_centers)
        dense = rng.random((150, 40)) * (rng.random((150, 40)) < 0.1)
        dense[7:9] = 0
        rows = sp.csr_array(dense.astype(dtype))
        given = [rng.normal(size=shape).astype(dtype) for shape in ((40, n_centers), (2, n_centers), (150, 2))]
        expected = reference.sparse_sq_distances(rows, *given)
        assert 0 < np.count_nonzero(expected) < expected.size
        for n_threads in (1, 2):
            found = backend(n_threads).sparse_sq_distances(rows, *given)
            assert_alike(found, expected, rtol=1e-5, atol=1e-5)
        nothing = backend().sparse_sq_distances(sp.csr_array((150, 40), dtype=dtype), *given)
        assert_array_equal(nothing, reference.sparse_sq_distances(sp.csr_array((150, 40), dtype=dtype), *given))

    def test_of_sparse_rows_that_are_damaged_are_refused(self):
        rows, ones = sp.csr_array(np.eye(3)), np.ones((3, 2))
        given = ones, np.ones((2, 2)), ones
        for part, wrong in (("indices", 3), ("indices", -1), ("indptr", 4)):
            damaged = rows.copy()
            getattr(damaged, part)[2] = wrong
            with pytest.raises(ValueError, match=r"Row [12] has numbers in columns that are not there"):
                backend().sparse_sq_distances(damaged, *given)
        with pytest.raises(ValueError, match="terms does not fit"):
            backend().sparse_sq_distances(rows, ones, ones, ones)

    def test_no_instances_give_no_distances(self):
        assert backend().sq_distances(np.empty((0, 3)), np.ones((2, 3))).shape == (0, 2)
        labels, nearest = backend().assign(np.empty((0, 3)), np.ones((2, 3)))
        assert len(labels) == len(nearest) == 0


class TestAssign:
    @settings(max_examples=60)
    @given(problems())
    def test_finds_the_nearest_centre(self, problem):
        X, centers = problem.instances(), problem.centers()
        labels, squares = backend().assign(X, centers)
        assert_nearest(problem, X, centers, labels, squares)
        if not problem.has_ties and problem.dtype == "float64":
            assert_array_equal(labels, reference.assign(X, centers)[0])

    @settings(max_examples=30)
    @given(problems())
    def test_sums_are_exactly_those_of_the_labels(self, problem):
        X, centers = problem.instances(), problem.centers()
        labels, squares, sums, counts = backend().assign_sums(X, centers)
        assert_array_equal(labels, backend().assign(X, centers)[0])
        assert_array_equal(squares, backend().assign(X, centers)[1])
        expected = reference.cluster_sums(X, labels, len(centers))
        assert_array_equal(sums, expected[0])
        assert_array_equal(counts, expected[1])

    def test_the_first_of_equal_centres_wins(self):
        X = np.random.default_rng(0).normal(size=(100, 5))
        centers = np.repeat(X[:9], 3, axis=0)
        assert set(backend().assign(X, centers)[0] % 3) == {0}


class TestSeed:
    @settings(max_examples=60)
    @given(problems(kinds=("gaussian",), dtypes=("float64",)))
    def test_chooses_the_rows_of_the_reference(self, problem):
        X, uniforms = problem.instances(), problem.uniforms()
        expected = reference.seed(X, problem.n_clusters, uniforms)
        assert_array_equal(backend().seed(X, problem.n_clusters, uniforms), expected)

    @settings(max_examples=30)
    @given(problems())
    def test_chooses_as_well_as_the_reference(self, problem):
        X, k = problem.instances(), problem.n_clusters
        ours, theirs = (one.seed(X, k, problem.uniforms()) for one in (backend(), reference))
        assert ours.min() >= 0
        assert ours.max() < len(X)
        if problem.kind == "zeros":
            return
        totals = [exact_squares(X, X[rows]).min(axis=1).sum() for rows in (ours, theirs)]
        noise = len(X) * problem.tolerance()
        assert totals[0] <= 2 * totals[1] + noise


class TestLloyd:
    @settings(max_examples=60)
    @given(problems(kinds=("gaussian",), dtypes=("float64",)), st.sampled_from([0, 1, 2, 300]))
    def test_ends_where_the_reference_ends(self, problem, max_iter):
        X, centers = problem.instances(), problem.centers()
        ours, theirs = backend().lloyd(X, centers, max_iter), reference.lloyd(X, centers, max_iter)
        assert_same_end(problem, ours, theirs)

    @settings(max_examples=80)
    @given(problems())
    def test_ends_at_a_fixed_point(self, problem):
        X, start = problem.instances(), problem.centers()
        found = backend().lloyd(X, start, 300)
        assert found.n_iter <= 300
        assert_nearest(problem, X, found.centers, found.labels)
        own = exact_squares(X, found.centers)[np.arange(len(X)), found.labels]
        noise = len(X) * problem.tolerance(start)
        assert_allclose(found.inertia, own.sum(), rtol=1e-5, atol=noise)
        assert found.inertia <= exact_squares(X, start).min(axis=1).sum() * (1 + 1e-5) + noise
        if found.n_iter < 300:
            means = reference.cluster_means(X, found.labels, found.centers)
            assert np.square(means - found.centers).sum(axis=1).max() <= problem.tolerance(start)

    @pytest.mark.parametrize(("n", "d", "k"), [(3000, 40, 12), (1500, 300, 40), (400, 130, 60), (900, 2, 90)])
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_bounds_change_nothing_over_many_iterations(self, n, d, k, dtype):
        X = np.random.default_rng(0).normal(size=(n, d)).astype(dtype)
        X[: n // 2] *= 3
        ours, theirs = backend().lloyd(X, X[:k], 300), reference.lloyd(X, X[:k], 300)
        if dtype == "float64":
            assert_array_equal(ours.labels, theirs.labels)
            assert ours.n_iter == theirs.n_iter
        assert_allclose(ours.inertia, theirs.inertia, rtol=1e-9 if dtype == "float64" else 2e-3)

    @pytest.mark.parametrize("n_features", [2, 33, 300])
    def test_empty_clusters_take_the_farthest_rows(self, n_features):
        X = np.random.default_rng(1).normal(size=(300, n_features))
        start = X[[0, 0, 0, 1, 1, 2, 3, 4]]
        far = np.vstack([start, np.full((2, n_features), 1e3)])
        for centers in (start, far):
            ours, theirs = backend().lloyd(X, centers, 300), reference.lloyd(X, centers, 300)
            assert_array_equal(ours.labels, theirs.labels)
            assert len(set(ours.labels)) == len(centers)
            assert ours.n_iter == theirs.n_iter

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_fewer_distinct_rows_than_clusters(self, dtype):
        X = np.repeat([[0.1, 7.0], [5.0, -3.0], [2.0, 2.0]], 20, axis=0).astype(dtype)
        found = backend().lloyd(X, X[[0, 0, 20, 21, 40, 59]], 300)
        assert found.inertia == pytest.approx(0, abs=1e-8)
        assert found.n_iter < 300

    def test_data_far_from_the_origin(self):
        X = np.random.default_rng(0).normal(size=(500, 20))
        near = backend().lloyd(X, X[:8], 300)
        far = backend().lloyd(X + 2.0**20, X[:8] + 2.0**20, 300)
        assert_array_equal(near.labels, far.labels)

    @pytest.mark.parametrize("starts", [[0, 8, 1e6], [1e6], [1e6, 2e6]])
    def test_a_start_far_from_the_data_costs_no_precision(self, starts):
        X = np.repeat([0.0, 8.0, 16.0], 50)[:, None] + np.random.default_rng(0).normal(size=(150, 4))
        X, starts = X.astype(np.float32), np.repeat(np.array(starts, dtype=np.float32)[:, None], 4, axis=1)
        found, expected = backend().lloyd(X, starts, 100), reference.lloyd(X.astype(float), starts.astype(float), 100)
        assert_array_equal(found.labels, expected.labels)
        assert_allclose(found.centers, expected.centers, atol=1e-4)
        assert found.inertia == pytest.approx(expected.inertia, rel=1e-5)

    def test_values_that_are_no_numbers_end_too(self):
        X = np.full((60, 5), np.nan)
        assert backend().lloyd(X, X[:3], 20).n_iter <= 20
        assert backend().seed(X, 3, np.full((3, 3), 0.5)).max() < 60


class TestGram:
    @settings(max_examples=40)
    @given(problems())
    def test_matrix_is_that_of_the_reference(self, problem):
        found = backend().gram_matrix(problem.instances())
        assert_array_equal(found, found.T)
        expected = reference.gram_matrix(problem.instances())
        assert_allclose(found, expected, rtol=0, atol=1e-9 * problem.scale**2 + 1e-9 * abs(expected).max())

    @settings(max_examples=50)
    @given(problems(kinds=("gaussian",), dtypes=("float64",)), st.integers(1, 5))
    def test_seeds_like_the_reference(self, problem, n_jobs):
        gram = reference.gram_matrix(problem.instances())
        members = random_jobs(problem.seed, len(gram), n_jobs)
        uniforms = np.random.default_rng(problem.seed).random((n_jobs, problem.n_clusters, 3))
        found = backend().gram_seed(gram, members, uniforms)
        assert members[np.arange(n_jobs)[:, None], found].all()
        assert_array_equal(found, reference.gram_seed(gram, members, uniforms))

    @settings(max_examples=60)
    @given(problems(kinds=("gaussian",), dtypes=("float64",)), st.sampled_from([0, 1, 300]), st.booleans())
    def test_ends_where_the_reference_ends(self, problem, max_iter, repeat_starts):
        gram = reference.gram_matrix(problem.instances())
        members = random_jobs(problem.seed, len(gram), 3)
        starts = np.random.default_rng(problem.seed).integers(len(gram), size=(3, problem.n_clusters))
        if not repeat_starts:
            starts = np.tile(np.arange(problem.n_clusters), (3, 1))
        ours, theirs = (one.gram_lloyd(gram, members, starts, max_iter) for one in (backend(), reference))
        tolerance = problem.tolerance()
        assert_array_equal(ours.n_iter, theirs.n_iter)
        assert_allclose(ours.sq_distances, theirs.sq_distances, rtol=0, atol=tolerance)
        assert_allclose(ours.inertia, theirs.inertia, rtol=0, atol=len(gram) * tolerance)
        own = np.take_along_axis(theirs.sq_distances, ours.labels[..., None], axis=2)[..., 0]
        assert (own <= theirs.sq_distances.min(axis=2) + tolerance).all()

    @settings(max_examples=30)
    @given(problems())
    def test_ties_and_duplicates_end_too(self, problem):
        gram = reference.gram_matrix(problem.instances())
        members = random_jobs(problem.seed, len(gram), 2)
        starts = np.random.default_rng(problem.seed).integers(len(gram), size=(2, problem.n_clusters))
        found = backend().gram_lloyd(gram, members, starts, 300)
        assert (found.sq_distances >= 0).all()
        assert ((found.labels >= 0) & (found.labels < problem.n_clusters)).all()

    def test_more_clusters_than_members(self):
        gram = reference.gram_matrix(np.random.default_rng(0).normal(size=(200, 6)))
        members = np.zeros((2, 200), dtype=bool)
        members[0, [3, 50, 120]] = members[1, [7, 8, 199]] = True
        starts = np.full((2, 6), 3)
        ours, theirs = (one.gram_lloyd(gram, members, starts, 300) for one in (backend(), reference))
        assert_array_equal(ours.n_iter, theirs.n_iter)
        assert_allclose(ours.sq_distances, theirs.sq_distances, atol=1e-9)
        assert_allclose(ours.inertia, 0, atol=1e-9)


class TestColumns:
    @settings(max_examples=60)
    @given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40), st.sampled_from(["float32", "float64"]))
    def test_sums_of_differences_are_those_of_the_reference(self, n_rows, n_others, n_columns, dtype):
        rng = np.random.default_rng(n_rows + n_others)
        X, Y = (rng.normal(size=(n, n_columns)).astype(dtype) for n in (n_rows, n_others))
        tolerance = 1e-4 if dtype == "float32" else 1e-12
        assert_alike(backend().l1_distances(X, Y), reference.l1_distances(X, Y), rtol=tolerance)
        with_itself = backend().l1_distances(X, X)
        assert_alike(with_itself, reference.l1_distances(X, X), rtol=tolerance)
        assert_array_equal(with_itself, with_itself.T)

    @settings(max_examples=60)
    @given(st.integers(1, 300), st.integers(1, 40), st.integers(1, 50), st.sampled_from(["float32", "float64"]))
    def test_ranks_are_those_of_the_reference(self, n_rows, n_columns, n_knots, dtype):
        rng = np.random.default_rng(n_rows + n_knots)
        for draw in (lambda shape: rng.normal(size=shape), lambda shape: rng.integers(4, size=shape)):
            X, knots = draw((n_rows, n_columns)).astype(dtype), draw((n_columns, n_knots)).astype(dtype)
            knots.sort(axis=1)
            found = backend().column_ranks(X, knots)
            assert_alike(found, reference.column_ranks(X, knots), rtol=1e-6)

    def test_arrays_that_do_not_fit_are_refused(self):
        with pytest.raises(ValueError, match="Y does not fit"):
            backend().l1_distances(np.zeros((2, 3)), np.zeros((2, 4)))
        with pytest.raises(ValueError, match="knots does not fit"):
            backend().column_ranks(np.zeros((2, 3)), np.zeros((4, 5)))


class TestBags:
    @settings(max_examples=60)
    @given(bag_offsets(), st.integers(0, 40), st.sampled_from(["float32", "float64"]), st.integers(0, 99))
    def test_reductions_are_those_of_the_reference(self, offsets, n_columns, dtype, seed):
        rng = np.random.default_rng(seed)
        shape = (offsets[-1], n_columns) if n_columns else offsets[-1]
        for values in (rng.normal(size=shape).astype(dtype), rng.integers(3, size=shape).astype(dtype)):
            for name in ("bag_min", "bag_max"):
                found = getattr(backend(), name)(values, offsets)
                assert_array_equal(found, getattr(reference, name)(values, offsets), strict=True)
            mean = backend().bag_mean(values, offsets)
            assert_alike(mean, reference.bag_mean(values, offsets), rtol=1e-6, atol=1e-7)
            deviation = backend().bag_deviation(values, offsets)
            assert_alike(deviation, reference.bag_deviation(values, offsets), rtol=1e-6, atol=1e-7)
            if n_columns:
                moments = backend().bag_moments(values + 1e6, offsets)
                assert_alike(moments, reference.bag_moments(values + 1e6, offsets), rtol=1e-12, atol=1e-12)
            pairs = zip(backend().bag_two_min(values, offsets), reference.bag_two_min(values, offsets), strict=True)
            for found, expected in pairs:
                assert_array_equal(found, expected, strict=True)

    def test_moments_by_hand(self):
        values, offsets = np.array([[1e9 + 1, 0.1], [1e9 + 3, 0.1], [5.0, 7.0]]), np.array([0, 2, 3])
        for engine in (backend(), reference):
            found = engine.bag_moments(values, offsets)
            assert found.tolist() == [[[2, 2], [1e9 + 2, 0.1], [2, 0]], [[1, 1], [5, 7], [0, 0]]]

    @pytest.mark.parametrize("n_columns", [1, 3, 8, 20])
    def test_a_value_that_is_no_number_wins(self, n_columns):
        values = np.random.default_rng(0).normal(size=(40, n_columns))
        values[[0, 15, 39], 0] = np.nan
        offsets = np.array([0, 10, 20, 30, 40])
        for name in ("bag_min", "bag_max"):
            assert_array_equal(getattr(backend(), name)(values, offsets), getattr(reference, name)(values, offsets))

    @settings(max_examples=30)
    @given(bag_offsets(), st.integers(1, 6), st.integers(0, 99))
    def test_histograms_are_those_of_the_reference(self, offsets, n_bins, seed):
        rng = np.random.default_rng(seed)
        labels = rng.integers(n_bins, size=offsets[-1]).astype(np.int32)
        classes = rng.integers(3, size=len(offsets) - 1)
        expected = reference.bag_histograms(labels, offsets, n_bins)
        assert_array_equal(backend().bag_histograms(labels, offsets, n_bins), expected)
        expected = reference.class_histograms(labels, offsets, classes, 3, n_bins)
        assert_array_equal(backend().class_histograms(labels, offsets, classes, 3, n_bins), expected)


@st.composite
def weighted_bags(draw, n_features):
    """Draw bags of weighted points; some may be empty, all too."""
    sizes = draw(st.lists(st.integers(0, 40), min_size=1, max_size=60))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Points(rng.normal(size=(offsets[-1], n_features)), rng.normal(size=offsets[-1]), offsets)


class TestRbfSums:
    @settings(max_examples=40)
    @given(st.data(), st.integers(1, 40))
    def test_are_those_of_the_reference(self, data, n_features):
        left, right = (data.draw(weighted_bags(n_features)) for _ in range(2))
        gammas = [width / n_features for width in (0.25, 1.0, 4.0, 16.0, 48.0, 1.3, 2.6, 0.0)]
        for other in (right, left):
            found, expected = (one.rbf_sums(left, other, gammas) for one in (backend(), reference))
            assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
            assert_array_equal(backend(3).rbf_sums(left, other, gammas), found)

    def test_of_bags_with_themselves_are_symmetric(self):
        points = Points(np.random.default_rng(0).normal(size=(900, 7)), np.ones(900), np.arange(0, 901, 9))
        found = backend().rbf_sums(points, points, [0.1])[0]
        assert_array_equal(found, found.T)
        assert_allclose(found, backend().rbf_sums(points, Points(*points), [0.1])[0], rtol=1e-13)

    def test_by_hand(self):
        left = Points(np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 2.0, 1.0]), np.array([0, 2, 2, 3]))
        right = Points(np.array([[0.0], [100.0]]), np.array([1.0, 5.0]), np.array([0, 1, 2]))
        expected = [[1 + 2 * np.exp(-0.5), 0], [0, 0], [np.exp(-4.5), 0]]
        for engine in (backend(), reference):
            assert_allclose(engine.rbf_sums(left, right, [0.5])[0], expected, rtol=1e-15, atol=1e-300)

    @pytest.mark.parametrize("gamma", [1e-9, 0.01, 1.0, 50.0])
    def test_every_value_is_as_exact_as_that_of_the_library(self, gamma):
        roots = np.sqrt(np.linspace(0, 700 / gamma, 5001))
        points = Points(roots[:, None], np.ones(5001), np.arange(5002))
        origin = Points(np.zeros((1, 1)), np.ones(1), np.array([0, 1]))
        assert_allclose(backend().rbf_sums(points, origin, [gamma])[0, :, 0], np.exp(-gamma * roots**2), rtol=5e-13)

    def test_numbers_that_are_none_stay_none(self):
        points = Points(np.array([[0.0], [np.nan]]), np.ones(2), np.arange(3))
        origin = Points(np.zeros((1, 1)), np.ones(1), np.array([0, 1]))
        assert_array_equal(backend().rbf_sums(points, origin, [1.0])[0, :, 0], [1, np.nan])

    def test_sparse_points_and_no_features(self):
        points = Points(np.random.default_rng(0).normal(size=(30, 5)), np.ones(30), np.arange(0, 31, 3))
        sparse = points._replace(features=sp.csr_array(points.features))
        expected = backend().rbf_sums(points, points, [0.3])
        assert_allclose(backend().rbf_sums(sparse, sparse, [0.3]), expected, rtol=1e-12)
        nothing = points._replace(features=np.empty((30, 0)))
        assert_array_equal(backend().rbf_sums(nothing, nothing, [0.3]), np.full((1, 10, 10), 9.0))

    def test_arrays_that_do_not_fit_are_refused(self):
        points = Points(np.zeros((4, 3)), np.ones(4), np.array([0, 2, 4]))
        for other, what in (
            (points._replace(features=np.zeros((4, 2))), "right"),
            (points._replace(weights=np.ones(3)), "weights"),
            (points._replace(offsets=np.array([0, 2])), "offsets"),
        ):
            with pytest.raises(ValueError, match=f"{what} does not fit"):
                backend().rbf_sums(points, other, [1.0])


class TestThreads:
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_results_do_not_depend_on_their_number(self, dtype):
        X = np.random.default_rng(0).normal(size=(4000, 96)).astype(dtype)
        offsets = np.arange(0, 4001, 5)
        uniforms = np.random.default_rng(1).random((24, 5))

        def everything(n_threads):
            one = backend(n_threads)
            starts = one.seed(X, 24, uniforms)
            clusters = one.lloyd(X, X[starts], 300)
            return [
                one.sq_distances(X, X[:24]),
                *one.assign_sums(X, X[:24]),
                starts,
                *clusters,
                one.bag_min(X, offsets),
                one.bag_mean(X, offsets),
                one.bag_deviation(X, offsets),
                one.l1_distances(X[:300], X[:300]),
                one.column_ranks(X, np.sort(X[:99].T, axis=1)),
                *one.bag_two_min(X, offsets),
            ]

        expected = everything(1)
        for n_threads in (2, 3):
            for found, wanted in zip(everything(n_threads), expected, strict=True):
                assert_array_equal(found, wanted)

    def test_jobs_do_not_depend_on_their_number(self):
        gram = reference.gram_matrix(np.random.default_rng(0).normal(size=(300, 10)))
        members = random_jobs(0, 300, 25)
        uniforms = np.random.default_rng(0).random((25, 12, 4))

        def everything(n_threads):
            starts = backend(n_threads).gram_seed(gram, members, uniforms)
            return starts, *backend(n_threads).gram_lloyd(gram, members, starts, 300)

        expected = everything(1)
        for n_threads in (2, 3):
            for found, wanted in zip(everything(n_threads), expected, strict=True):
                assert_array_equal(found, wanted)
        assert_array_equal(backend(3).gram_matrix(gram), backend(1).gram_matrix(gram))

    def test_kernels_run_side_by_side(self):
        X = np.random.default_rng(0).normal(size=(2000, 64))
        expected = backend().lloyd(X, X[:20], 300)
        with ThreadPoolExecutor(3) as pool:
            for found in pool.map(lambda n: backend(n).lloyd(X, X[:20], 300), [1, 2, 3, 2, 1]):
                assert_array_equal(found.labels, expected.labels)
                assert_array_equal(found.centers, expected.centers)


class TestInputs:
    def test_read_only_and_strided_arrays(self):
        X = np.random.default_rng(0).normal(size=(60, 14))
        X.flags.writeable = False
        offsets = np.arange(0, 61, 6)
        for view in (X, X[:, ::2], X[::-1], np.asfortranarray(X)):
            centers = view[:4]
            assert_allclose(backend().sq_distances(view, centers), exact_squares(view, centers), atol=1e-12)
            assert_array_equal(backend().lloyd(view, centers, 50).labels, reference.lloyd(view, centers, 50).labels)
            assert_array_equal(backend().bag_min(view, offsets), reference.bag_min(view, offsets))

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_kernels_are_given_aligned_numbers(self, dtype, monkeypatch):
        """A compiler may take it for granted that they are; a file with an odd header has them elsewhere."""
        seen = []
        kernels = {name: getattr(native._kernels, name) for name in ("sq_distances", "lloyd", "bag_reduce")}
        for name, kernel in kernels.items():
            monkeypatch.setattr(native._kernels, name, lambda X, *rest, k=kernel: (seen.append(X), k(X, *rest))[1])
        aligned = np.random.default_rng(0).normal(size=(20, 5)).astype(dtype)
        odd = np.frombuffer(b"!" + aligned.tobytes(), dtype=dtype, offset=1).reshape(aligned.shape)
        assert not odd.flags.aligned
        assert_array_equal(backend().sq_distances(odd, odd[:3]), backend().sq_distances(aligned, aligned[:3]))
        assert_array_equal(backend().lloyd(odd, odd[:3], 9).labels, backend().lloyd(aligned, aligned[:3], 9).labels)
        assert_array_equal(backend().bag_mean(odd, [0, 9, 20]), backend().bag_mean(aligned, [0, 9, 20]))
        assert len(seen) == 6
        assert all(X.flags.aligned for X in seen)

    def test_no_bags_at_all(self):
        none = np.empty((0, 3))
        assert backend().bag_min(none, np.array([0])).shape == (0, 3)
        assert backend().bag_two_min(none, np.array([0])).where.shape == (0, 3)

    def test_start_and_data_are_left_alone(self):
        X = np.random.default_rng(0).normal(size=(50, 3))
        start = X[:4].copy()
        backend().lloyd(X, start, 50)
        assert_array_equal(start, X[:4])

    def test_sparse_instances_and_other_types_are_left_to_the_reference(self):
        dense = np.random.default_rng(0).integers(0, 3, size=(40, 6)).astype(float)
        X = sp.csr_array(dense)
        assert_allclose(backend().sq_distances(X, dense[:3]), reference.sq_distances(dense, dense[:3]), atol=1e-9)
        assert_array_equal(backend().assign(X, dense[:3])[0], reference.assign(X, dense[:3])[0])
        assert backend().lloyd(X, dense[:3], 20).inertia == reference.lloyd(X, dense[:3], 20).inertia
        whole = np.arange(12).reshape(6, 2)
        assert_array_equal(backend().bag_max(whole, np.array([0, 2, 6])), [[2, 3], [10, 11]])

    @pytest.mark.parametrize(
        "call",
        [
            lambda: backend().sq_distances(np.ones((3, 2)), np.ones((3, 4))),
            lambda: backend().assign(np.ones((3, 2)), np.ones((0, 2))),
            lambda: backend().lloyd(np.ones((3, 2)), np.ones((1, 3)), 5),
            lambda: backend().seed(np.ones((3, 2)), 3, np.ones((2, 2))),
            lambda: backend().gram_seed(np.eye(3), np.ones((2, 4), bool), np.ones((2, 1, 1))),
            lambda: backend().gram_lloyd(np.eye(3), np.ones((1, 3), bool), np.array([[0, 3]]), 5),
        ],
    )
    def test_arrays_that_do_not_fit_are_refused(self, call):
        with pytest.raises(ValueError, match="does not fit"):
            call()

    def test_bags_and_labels_are_checked(self):
        values = np.ones((4, 2))
        with pytest.raises(ValueError, match="Bag 1 runs from row 2 to row 2 of 4"):
            backend().bag_min(values, np.array([0, 2, 2, 4]))
        with pytest.raises(ValueError, match="Bag 0 runs from row 0 to row 5 of 4"):
            backend().bag_mean(values, np.array([0, 5]))
        with pytest.raises(ValueError, match="Row 2 has label 7"):
            backend().bag_histograms(np.array([0, 1, 7]), np.array([0, 3]), 3)
        with pytest.raises(ValueError, match="Job 1 has no member"):
            backend().gram_seed(np.eye(3), np.array([[True] * 3, [False] * 3]), np.ones((2, 1, 1)))
        with pytest.raises(ValueError, match="classes"):
            backend().class_histograms(np.zeros(3, int), np.array([0, 3]), np.array([2]), 2, 1)
