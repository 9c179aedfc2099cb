"""k-means around the kernels: seeding on some rows, batches of jobs, and scikit-learn as an oracle."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans

from gmil.engine import available_backends, gram_kmeans, gram_matrix, kmeans, kmeans_subsets, resolve
from gmil.engine.kmeans import n_seeding_rows


@pytest.fixture(params=["numpy", "native", "torch"])
def backend(request):
    """Return each backend that can run here."""
    if request.param not in available_backends():
        pytest.skip(f"{request.param} cannot run here")
    return resolve(request.param)


def blobs(n_instances=400, n_features=12, n_blobs=8, seed=0):
    rng = np.random.default_rng(seed)
    centers = 3 * rng.normal(size=(n_blobs, n_features))
    return centers[rng.integers(n_blobs, size=n_instances)] + rng.normal(size=(n_instances, n_features))


def folds(n_instances, n_folds=5, seed=0):
    fold = np.random.default_rng(seed).permutation(n_instances) % n_folds
    return np.stack([fold != number for number in range(n_folds)])


def generators(n_jobs):
    return [np.random.default_rng(number) for number in range(n_jobs)]


@pytest.mark.parametrize("seed", range(4))
def test_the_partition_is_that_of_scikit_learn(backend, seed):
    X = blobs(seed=seed)
    start = X[np.random.default_rng(seed).choice(len(X), 8, replace=False)]
    ours = kmeans(X, 8, backend=backend, generator=np.random.default_rng(0), init=start)
    theirs = KMeans(8, init=start, n_init=1, tol=0, algorithm="lloyd").fit(X)
    assert_array_equal(ours.labels, theirs.labels_)
    assert_allclose(ours.centers, theirs.cluster_centers_, atol=1e-9)
    assert ours.inertia == pytest.approx(theirs.inertia_)


def test_backends_agree():
    if len(available_backends()) == 1:
        pytest.skip("there is one backend only")
    X = blobs(900)
    runs = [
        kmeans(X, 6, backend=resolve(name), generator=np.random.default_rng(3), n_init=4)
        for name in available_backends()
    ]
    for run in runs[1:]:
        assert_array_equal(runs[0].labels, run.labels)
        assert_allclose(runs[0].centers, run.centers, atol=1e-9)


def test_restarts_keep_the_best(backend):
    X = blobs()
    few, many = (
        kmeans(X, 8, backend=backend, generator=np.random.default_rng(0), n_init=n_init).inertia for n_init in (1, 12)
    )
    assert many <= few


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((100, 10), 100),
        ((1000, 10), 1000),
        ((1001, 10), 400),
        ((39_999, 10), 400),
        ((40_000, 10), 4000),
        ((401, 10, "all"), 401),
        ((401, 10, 50), 50),
        ((401, 10, 5), 10),
        ((401, 10, 5000), 401),
    ],
)
def test_number_of_seeding_rows(arguments, expected):
    assert n_seeding_rows(*arguments) == expected


def test_seeding_on_some_rows_costs_no_inertia(backend):
    X = blobs(3000, n_features=20, n_blobs=30)
    some, everything = (
        np.mean(
            [
                kmeans(X, 15, backend=backend, generator=np.random.default_rng(seed), seeding_rows=seeding_rows).inertia
                for seed in range(6)
            ]
        )
        for seeding_rows in ("auto", "all")
    )
    assert some == pytest.approx(everything, rel=0.03)


def test_sparse_and_dense_agree(backend):
    rng = np.random.default_rng(0)
    dense = rng.integers(0, 3, size=(80, 10)) * rng.random(10)  # whole numbers would have ties
    runs = [kmeans(X, 4, backend=backend, generator=np.random.default_rng(1)) for X in (dense, sp.csr_array(dense))]
    assert runs[0].inertia == pytest.approx(runs[1].inertia)


@pytest.mark.parametrize("n_init", [1, 3])
@pytest.mark.parametrize("n_clusters", [1, 4, 25])
def test_batches_give_what_each_job_gives_alone(backend, n_clusters, n_init):
    X = blobs(300)
    members = folds(len(X))
    options = {"backend": backend, "n_init": n_init}
    alone = [
        kmeans(X[rows], n_clusters, generator=generator, **options)
        for rows, generator in zip(members, generators(5), strict=True)
    ]
    together = kmeans_subsets(X, members, n_clusters, generators=generators(5), **options)
    gram = gram_matrix(X, backend=backend)
    found = gram_kmeans(gram, members, n_clusters, generators=generators(5), **options)
    for job, rows in enumerate(members):
        assert_array_equal(together[job].labels, alone[job].labels)
        assert_array_equal(together[job].centers, alone[job].centers)
        assert_allclose(found.inertia[job], alone[job].inertia)
        to_centers = backend.sq_distances(X, alone[job].centers)
        assert_array_equal(found.labels[job, rows], alone[job].labels)
        assert_array_equal(found.labels[job], to_centers.argmin(axis=1))
        assert_allclose(found.sq_distances[job], to_centers, atol=1e-9)
