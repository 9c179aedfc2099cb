"""k-means around the kernels: seeding, batches of jobs, and scikit-learn as an oracle."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chisquare
from sklearn.cluster import KMeans

from gmil.engine import available_backends, gram_kmeans, gram_matrix, kmeans, kmeans_subsets, resolve
from gmil.engine.kmeans import SEEDINGS, Draws, Seeding, far_and_near, n_seeding_rows
from gmil.engine.reference import seed

PLAIN = SEEDINGS["plain-k-means++"]


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


@pytest.mark.parametrize("seeding", SEEDINGS.values(), ids=SEEDINGS)
def test_backends_agree(seeding):
    if len(available_backends()) == 1:
        pytest.skip("there is one backend only")
    X = blobs(900)
    runs = [
        kmeans(X, 6, backend=resolve(name), generator=np.random.default_rng(3), n_init=4, seeding=seeding)
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
        ((49_900, 499), 49_900),
        ((4999, 500), 4999),
        ((50_000, 500), 5000),
        ((5_000_000, 1000), 10_000),
        ((50_000, 1000, "all"), 50_000),
    ],
)
def test_number_of_seeding_rows(arguments, expected):
    assert n_seeding_rows(*arguments) == expected


def test_seeding_on_some_rows_costs_no_inertia(backend):
    X = blobs(3000, n_features=20, n_blobs=30)
    some, everything = (
        np.mean(
            [
                kmeans(X, 15, backend=backend, generator=np.random.default_rng(seed), seeding=seeding).inertia
                for seed in range(6)
            ]
        )
        for seeding in (Seeding("auto"), Seeding("all"))
    )
    assert some == pytest.approx(everything, rel=0.03)


# ------------------------------------------------------------------ many clusters


def test_rows_for_many_clusters_are_drawn_by_half_their_distance():
    n, n_clusters, seeds = 20_000, 500, range(8)
    squares = np.where(np.arange(n) < n // 2, 9.0, 1.0)
    chances = (1 / n + squares / squares.sum()) / 2
    ours = [far_and_near(squares, np.random.default_rng(s).standard_exponential(n), n_clusters) for s in seeds]
    one_by_one = [np.random.default_rng(s).choice(n, 10 * n_clusters, replace=False, p=chances) for s in seeds]
    for rows in ours:
        assert len(rows) == 10 * n_clusters
        assert (np.diff(rows) > 0).all()
    shares = [np.mean([(rows < n // 2).mean() for rows in drawn]) for drawn in (ours, one_by_one)]
    assert shares[0] == pytest.approx(shares[1], rel=0.02)
    assert shares[0] > 0.6


def test_equal_rows_have_equal_chances():
    waits = np.random.default_rng(0).standard_exponential(6000)
    rows = far_and_near(np.zeros(6000), waits, 500)
    assert_array_equal(rows, np.sort(np.argsort(waits)[:5000]))


def test_many_clusters_find_the_rows_that_lie_far_from_others():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 3)) * np.exp(rng.normal(size=(12_000, 1)))
    backend = resolve("auto")
    some, everything, equal = (
        kmeans(X, 500, backend=backend, generator=np.random.default_rng(1), seeding=seeding, max_iter=5).inertia
        for seeding in (Seeding(), Seeding("all"), Seeding(5000))
    )
    assert some < 1.1 * everything
    assert some < 0.9 * equal


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_backends_agree_on_many_clusters(kind):
    X = blobs(6000, n_features=4, n_blobs=40)
    starts = [
        kmeans(kind(X), 500, backend=resolve(name), generator=np.random.default_rng(3), max_iter=0).centers
        for name in available_backends()
    ]
    for start in starts[1:]:
        assert_allclose(starts[0], start)
    assert len(np.unique(starts[0], axis=0)) == 500


# ------------------------------------------------------------------ k-means++ as published


def chance_of_starts(X, weights=None):
    """Return the chance of every ordered triple of rows, by the definition of Arthur and Vassilvitskii, slowly."""
    weights = np.ones(len(X)) if weights is None else weights
    chances = {}
    for triple in itertools.permutations(range(len(X)), 3):
        chance = weights[triple[0]] / weights.sum()
        for i in (1, 2):
            squares = [w * min(((x - X[c]) ** 2).sum() for c in triple[:i]) for x, w in zip(X, weights, strict=True)]
            chance *= squares[triple[i]] / sum(squares)
        chances[triple] = chance
    return chances


def assert_drawn_as(triples, chances):
    """Compare how often triples were drawn with their chances; rare ones are one cell."""
    counts = dict.fromkeys(chances, 0)
    for triple in triples:
        counts[tuple(triple)] += 1  # a row that is drawn twice is no key
    found, expected = (np.array(list(values.values())) for values in (counts, chances))
    expected = expected * len(triples)
    rare = expected < 5
    found = np.append(found[~rare], found[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    assert chisquare(found, expected).pvalue > 0.001


SIX_ROWS = np.array([[0.0, 0.0], [0.5, 0.0], [0.0, 1.0], [3.0, 3.0], [3.5, 2.5], [-4.0, 1.0]])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_plain_starts_have_the_chances_of_the_definition(backend, dtype):
    draws = [Draws.make(6, 3, np.random.default_rng(seed), PLAIN) for seed in range(1200)]
    assert all(draw.rows is None and draw.uniforms.shape == (3, 1) for draw in draws)
    X = SIX_ROWS.astype(dtype)
    assert_drawn_as([backend.seed(X, 3, draw.uniforms) for draw in draws], chance_of_starts(SIX_ROWS))


def test_plain_starts_from_a_gram_matrix_have_the_chances_of_the_definition(backend):
    X = np.vstack([[[9.0, 9.0]], SIX_ROWS, [[-9.0, 9.0]]])
    members = np.tile(np.arange(8) % 7 > 0, (3000, 1))  # the first and the last row do not train
    uniforms = np.stack([np.random.default_rng(seed).random((3, 1)) for seed in range(3000)])
    chosen = backend.gram_seed(gram_matrix(X, backend=backend), members, uniforms)
    assert_drawn_as(chosen - 1, chance_of_starts(SIX_ROWS))


def test_plain_starts_of_weighted_rows_have_the_chances_of_the_definition():
    weights = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 0.25])
    uniforms = [np.random.default_rng(seed).random((3, 1)) for seed in range(3000)]
    chosen = [seed(SIX_ROWS, 3, own, weights) for own in uniforms]
    assert_drawn_as(chosen, chance_of_starts(SIX_ROWS, weights))


def test_greedy_starts_do_not_have_these_chances():
    draws = [Draws.make(6, 3, np.random.default_rng(seed), SEEDINGS["k-means++"]) for seed in range(3000)]
    triples = [resolve("numpy").seed(SIX_ROWS, 3, draw.uniforms) for draw in draws]
    with pytest.raises(AssertionError):
        assert_drawn_as(triples, chance_of_starts(SIX_ROWS))


def test_plain_seeding_looks_at_all_rows(backend):
    X = blobs(2000)
    X[-1] += 1e6  # a row that a sample would most often miss
    found = kmeans(X, 2, backend=backend, generator=np.random.default_rng(0), seeding=PLAIN, max_iter=1)
    assert np.bincount(found.labels).min() == 1


def test_sparse_and_dense_agree(backend):
    rng = np.random.default_rng(0)
    dense = rng.integers(0, 3, size=(80, 10)) * rng.random(10)  # whole numbers would have ties
    runs = [kmeans(X, 4, backend=backend, generator=np.random.default_rng(1)) for X in (dense, sp.csr_array(dense))]
    assert runs[0].inertia == pytest.approx(runs[1].inertia)


@pytest.mark.parametrize("seeding", SEEDINGS.values(), ids=SEEDINGS)
@pytest.mark.parametrize("n_init", [1, 3])
@pytest.mark.parametrize("n_clusters", [1, 4, 25])
def test_batches_give_what_each_job_gives_alone(backend, n_clusters, n_init, seeding):
    X = blobs(300)
    members = folds(len(X))
    options = {"backend": backend, "n_init": n_init, "seeding": seeding}
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
