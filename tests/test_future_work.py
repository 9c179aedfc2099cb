"""The paper's future work: each parameter on data where it must win over plain k-means, and what it computes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.covariance import LedoitWolf
from sklearn.utils import get_tags

import gmil
from gmil import GMIL, GMILCV, Bags, BagValidationError, cross_validate
from gmil.bags import parts
from gmil.engine import kmeans, resolve
from gmil.engine.kmeans import Seeding
from gmil.engine.reference import cluster_means, seed
from gmil.greedy import soft_counts
from gmil.transform import embedding, space

NEW = {
    "mahalanobis": {"metric": "mahalanobis"},
    "bags": {"instance_weight": "bags"},
    "spectral": {"clustering": "spectral"},
    "kernel": {"clustering": "kernel"},
    "gaussian": {"density": "gaussian"},
    "all": {"metric": "mahalanobis", "instance_weight": "bags", "clustering": "kernel", "density": "gaussian"},
}
every_new = pytest.mark.parametrize("new", NEW.values(), ids=NEW)


class FoldByFold(GMIL):
    """A subclass may do anything, so its folds are never worked on together."""


# ------------------------------------------------------------------ data


def planted(background, witness, n_bags=60, sizes=(6, 12), share=0.25, seed=0):
    """Return bags of background; in every second one a share of the instances are witnesses."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_bags) % 2
    bags = [background(rng, rng.integers(*sizes)) for _ in y]
    for bag, label in zip(bags, y, strict=True):
        if label:
            n = max(1, round(share * len(bag)))
            bag[:n] = witness(rng, n)
    return Bags.from_list(bags), y


def around(place, spread):
    return lambda rng, n: rng.normal(place, spread, size=(n, 2))


def ring(radius, noise=0.15):
    def draw(rng, n):
        angle = rng.uniform(0, 2 * np.pi, n)
        return np.column_stack([np.cos(angle), np.sin(angle)]) * radius + rng.normal(0, noise, (n, 2))

    return draw


def moon(upper, noise=0.08):
    def draw(rng, n):
        angle = rng.uniform(0, np.pi, n)
        points = np.column_stack([np.cos(angle), np.sin(angle)])
        return (points if upper else [1, 0.5] - points) + rng.normal(0, noise, (n, 2))

    return draw


def slanted(along, across):
    """Draw points whose spread along the diagonal hides everything that happens across it."""
    to_plane = np.array([[20.0, 20.0], [-0.25, 0.25]])
    return lambda rng, n: np.column_stack([rng.normal(0, along, n), rng.normal(across, 1, n)]) @ to_plane


def heavy_tails(rng, n):
    return rng.standard_t(1, size=(n, 2))


def few_large_bags(seed=0):
    """Return small bags with a concept, eight of them drowned in three hundred instances far from everything."""
    bags, y = planted(around(0, 0.4), around([3, 0], 0.4), n_bags=40, sizes=(3, 6), seed=seed)
    rng = np.random.default_rng(seed + 99)
    bags = bags.to_list()
    bags[:8] = [np.vstack([bag, rng.uniform([40, -20], [80, 20], (300, 2))]) for bag in bags[:8]]
    return Bags.from_list(bags), y


def accuracy(data, *sizes, **parameters):
    """Return the accuracy in five folds, over three sets of bags."""
    estimator = GMIL(*sizes, **parameters)
    return np.mean([cross_validate(estimator, *data(seed), cv=5, random_state=seed).accuracy() for seed in range(3)])


@pytest.fixture(scope="module")
def small():
    return gmil.make_bags(40, n_features=3, bag_size=(3, 7), separation=6, random_state=5, return_X_y=True)


# ------------------------------------------------------------------ where each must win


def test_mahalanobis_sees_across_a_long_diagonal():
    def data(seed):
        return planted(slanted(1, 0), slanted(0.3, 6), seed=seed)

    assert accuracy(data, 8, 1, 0, metric="mahalanobis") > 0.9
    assert accuracy(data, 8, 1, 0) < 0.7
    assert accuracy(data, 8, 1, 0, scale="standard") < 0.7  # the features are correlated, not badly scaled


def test_bags_of_equal_weight_keep_centers_for_small_bags():
    assert accuracy(few_large_bags, 20, 1, 0, epsilon="negatives", instance_weight="bags") > 0.9
    assert accuracy(few_large_bags, 20, 1, 0, epsilon="negatives") < 0.7


@pytest.mark.parametrize(
    ("background", "witness", "n_clusters"),
    [(ring(3), ring(1), 3), (moon(upper=True), moon(upper=False), 4)],
    ids=["rings", "moons"],
)
def test_spectral_clusters_need_not_be_round(background, witness, n_clusters):
    def data(seed):
        return planted(background, witness, seed=seed)

    setting = {"epsilon": "negatives", "n_init": 3}
    assert accuracy(data, n_clusters, 1, 0, clustering="spectral", **setting) > 0.95
    assert accuracy(data, n_clusters, 1, 0, **setting) < 0.7


def test_kernel_k_means_wastes_no_center_on_outliers():
    def data(seed):
        return planted(heavy_tails, around(3, 0.3), seed=seed)

    assert accuracy(data, 6, 1, 0, epsilon="negatives", clustering="kernel") > 0.85
    assert accuracy(data, 6, 1, 0, epsilon="negatives") < 0.7


def test_kernel_k_means_parts_a_disc_from_the_ring_around_it():
    def data(seed):
        return planted(ring(3), around(0, 0.4), n_bags=40, sizes=(8, 14), share=0.4, seed=seed)

    setting = {"epsilon": "negatives", "n_init": 10}
    assert accuracy(data, 3, 1, 0, clustering="kernel", **setting) > 0.9
    assert accuracy(data, 3, 1, 0, **setting) < 0.8


def test_a_smooth_density_is_not_fooled_by_bins_with_few_instances():
    def data(seed):
        return planted(around(0, 1), around([3.5, 0], 0.5), share=0.1, seed=seed)

    assert accuracy(data, 120, 4, 0, epsilon=1e-6, density="gaussian") > 0.8
    assert accuracy(data, 120, 4, 0, epsilon=1e-6) < 0.7


# ------------------------------------------------------------------ Mahalanobis


def test_distances_after_whitening_are_those_of_mahalanobis():
    X = np.random.default_rng(0).normal(size=(50, 4)) @ np.diag([1, 10, 0.1, 3]) + 5
    mapped = X @ space.whitening_map(X)
    inverse = np.linalg.inv(LedoitWolf().fit(X).covariance_)
    assert_allclose(cdist(mapped, mapped), cdist(X, X, "mahalanobis", VI=inverse), rtol=1e-6, atol=1e-8)
    assert_array_equal(space.whitening_map(np.ones((5, 3))), np.eye(3))


def test_mahalanobis_with_fewer_instances_than_features_and_constant_ones(gaussian_bags):
    bags, y = gaussian_bags(n_bags=6, n_features=40, sizes=(2, 2))
    instances = np.array(bags.instances)
    instances[:, 3] = 7
    model = GMIL(3, metric="mahalanobis", random_state=0).fit(bags.with_instances(instances), y)
    assert np.isfinite(model.decision_function(bags)).all()


def test_mahalanobis_refuses_sparse_bags_unless_they_are_projected(small):
    bags, y = small
    sparse = Bags(sp.csr_array(bags.instances), bags.offsets)
    with pytest.raises(BagValidationError, match="metric='mahalanobis' needs dense instances"):
        GMIL(5, metric="mahalanobis").fit(sparse, y)
    projected = GMIL(5, metric="mahalanobis", n_components=2, random_state=0).fit(sparse, y)
    assert projected.cluster_centers_.shape == (5, 2)
    dense = GMIL(5, metric="mahalanobis", random_state=0).fit(bags, y)
    assert_allclose(dense.decision_function(sparse), dense.decision_function(bags), atol=1e-9)


def test_given_centers_are_whitened_too(small):
    bags, y = small
    model = GMIL(init=bags.instances[:4], metric="mahalanobis").fit(bags, y)
    whitened = bags.with_instances(bags.instances @ space.whitening_map(bags.instances))
    by_hand = GMIL(init=whitened.instances[:4]).fit(whitened, y)
    assert_allclose(model.cluster_centers_, by_hand.cluster_centers_, atol=1e-12)
    assert_allclose(model.decision_function(bags), by_hand.decision_function(whitened), atol=1e-9)


# ------------------------------------------------------------------ weights


@pytest.mark.parametrize("backend", ["numpy", "auto"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_a_weight_is_a_number_of_copies(backend, container):
    rng = np.random.default_rng(1)
    X, weights = rng.normal(size=(40, 3)), rng.integers(1, 5, size=40)
    how = {"backend": resolve(backend), "generator": rng, "init": X[:4]}
    found = kmeans(container(X), 4, weights=weights.astype(float), **how)
    copied = kmeans(np.repeat(X, weights, axis=0), 4, **how)
    assert_allclose(found.centers, copied.centers, atol=1e-12)
    assert_array_equal(np.repeat(found.labels, weights), copied.labels)
    assert found.inertia == pytest.approx(copied.inertia)


def test_equal_weights_give_the_clusters_of_plain_k_means():
    X = np.random.default_rng(2).normal(size=(90, 2))
    for state in range(5):
        one, other = (np.random.default_rng(state) for _ in range(2))
        plain = kmeans(X, 6, backend=resolve("numpy"), generator=one, n_init=3, seeding=Seeding("all"))
        found = kmeans(X, 6, weights=np.full(90, 0.25), backend=resolve("numpy"), generator=other, n_init=3)
        assert_allclose(found.centers, plain.centers, atol=1e-12)


def test_weighted_seeding_draws_in_proportion_to_weight_and_distance():
    X = np.array([[0.0], [1.0], [3.0]])
    weights = np.array([1.0, 2.0, 1.0])
    firsts = [seed(X, 1, np.array([[u]]), weights)[0] for u in (0.0, 0.3, 0.7, 0.8)]
    assert firsts == [0, 1, 1, 2]
    # From 0, row 1 has the chance 2 * 1 and row 2 the chance 1 * 9, of eleven.
    seconds = [seed(X, 2, np.array([[0.0], [u]]), weights)[1] for u in (1.9 / 11, 2.1 / 11)]
    assert seconds == [1, 2]


def test_weighted_means_and_clusters_without_instances():
    X = np.array([[0.0], [4.0], [9.0]])
    means = cluster_means(X, np.array([0, 0, 1]), np.array([[7.0], [7.0], [7.0]]), np.array([3.0, 1.0, 1.0]))
    assert means.ravel().tolist() == [1.0, 9.0, 7.0]


def test_every_bag_of_a_sample_weighs_the_same():
    bags = Bags.from_list([np.zeros((500, 1)), np.full((4, 1), 8.0), np.full((4, 1), 16.0)])
    model = GMIL(1, instance_weight="bags", random_state=0).fit(bags, [0, 1, 1])
    assert model.cluster_centers_[0, 0] == pytest.approx((0 + 8 + 16) / 3)
    sampled = GMIL(1, instance_weight="bags", sample_size=300, sampling="bags", random_state=0).fit(bags, [0, 1, 1])
    assert sampled.cluster_centers_[0, 0] == pytest.approx((0 + 8 + 16) / 3)


# ------------------------------------------------------------------ spectral and kernel


def kernel_distances(X, members, width):
    """Return distances between images under a Gaussian kernel and the means of those of ``members``."""

    def kernel(one, other):
        return np.exp(-cdist(one, other, "sqeuclidean") / (2 * width**2))

    columns = [1 - 2 * kernel(X, group).mean(axis=1) + kernel(group, group).mean() for group in members]
    return np.sqrt(np.maximum(np.column_stack(columns), 0))


def test_kernel_distances_are_exact_for_new_instances_too(small):
    bags, y = small
    model = GMIL(5, clustering="kernel", random_state=0).fit(bags, y)
    X = bags.instances
    width = np.median(cdist(X, X)[np.triu_indices(len(X), 1)]) / 2
    assert model.space_.embedding.widths[0] == pytest.approx(width)
    labels = resolve().assign(model.space_.apply(X), model.cluster_centers_)[0]
    members = [X[labels == k] for k in range(5)]
    new = np.vstack([X[:5] + 0.3, [[100.0, 0, 0]]])  # far away, it is as far from every image as can be
    found = cdist(model.space_.apply(new), model.cluster_centers_)
    assert_allclose(found, kernel_distances(new, members, width), atol=1e-6)
    assert_allclose(cdist(model.space_.apply(X), model.cluster_centers_).argmin(axis=1), labels)


def test_spectral_coordinates_of_a_landmark_are_those_of_the_eigenvectors():
    X, _ = planted(ring(3), ring(1))
    X = X.instances[:200]
    made = embedding.spectral_embedding(X, 4)
    widths = np.sort(cdist(X, X), axis=1)[:, 6]
    affinity = np.exp(-cdist(X, X, "sqeuclidean") / np.outer(widths, widths))
    walk = affinity / affinity.sum(axis=1, keepdims=True)
    steps = walk @ made.projection
    # Eigenvectors of the walk: one step of it stretches each by its eigenvalue.
    values = (steps * made.projection).sum(axis=0) / (made.projection**2).sum(axis=0)
    assert_allclose(steps, values * made.projection, atol=1e-8)
    assert values.max() == pytest.approx(1)
    assert_allclose(made.apply(X), steps / np.linalg.norm(steps, axis=1, keepdims=True), atol=1e-8)


@pytest.mark.parametrize("clustering", ["spectral", "kernel"])
def test_clusters_are_learnt_from_a_bounded_sample(small, clustering, monkeypatch):
    bags, y = small
    monkeypatch.setattr("gmil.greedy.settings.MOST_LANDMARKS", 30)
    model = GMIL(4, clustering=clustering, random_state=0).fit(bags, y)
    assert model.space_.embedding.landmarks.shape == (30, 3)
    assert model.positive_counts_.sum() + model.negative_counts_.sum() == bags.n_instances
    with pytest.raises(BagValidationError, match="n_clusters=31 is above the number of instances to cluster, 30"):
        GMIL(31, clustering=clustering).fit(bags, y)


@pytest.mark.parametrize("clustering", ["spectral", "kernel"])
@pytest.mark.parametrize("weight", ["instances", "bags"])
def test_maps_go_with_every_other_parameter(small, clustering, weight):
    bags, y = small
    sparse = Bags(sp.csr_array(bags.instances), bags.offsets)
    how = {"clustering": clustering, "instance_weight": weight, "random_state": 0}
    dense = GMIL(6, **how).fit(bags, y)
    assert_allclose(GMIL(6, **how).fit(sparse, y).decision_function(sparse), dense.decision_function(bags), atol=1e-6)
    for change in ({"centers": "medoid"}, {"scale": "standard"}, {"init": bags.instances[:6]}, {"n_components": 2}):
        model = GMIL(n_positive=2, **how, **change).fit(bags, y)
        assert np.isfinite(model.decision_function(bags)).all()
    single = bags.with_instances(bags.instances.astype(np.float32))
    assert GMIL(6, **how).fit(single, y).cluster_centers_.dtype == np.float32


@pytest.mark.parametrize("clustering", ["spectral", "kernel"])
@pytest.mark.parametrize("weight", ["instances", "bags"])
def test_copies_of_few_instances_are_no_trouble(clustering, weight):
    bags = Bags.from_list([np.zeros((9, 2)), np.zeros((8, 2)), np.ones((9, 2)), np.ones((3, 2))])
    model = GMIL(4, 1, 0, clustering=clustering, instance_weight=weight, random_state=0).fit(bags, [0, 0, 1, 1])
    assert model.predict(bags).tolist() == [0, 0, 1, 1]
    same = GMIL(2, clustering=clustering, instance_weight=weight).fit(np.zeros((4, 2)), [0, 0, 1, 1])
    assert np.isfinite(same.decision_function(np.zeros((1, 2)))).all()


def test_medoids_under_a_kernel_are_instances(small):
    bags, y = small
    model = GMIL(5, clustering="kernel", centers="medoid", random_state=0).fit(bags, y)
    nearest = cdist(model.space_.apply(bags.instances), model.cluster_centers_).min(axis=0)
    assert_allclose(nearest, 0, atol=1e-6)


# ------------------------------------------------------------------ smooth density


def test_smooth_counts():
    bags = Bags.from_list([[[0.0], [10.0]], [[0.0], [12.0], [12.0]], [[0.0], [20.0]], [[19.0], [20.0]]])
    how = {"init": [[0.0], [10.0], [20.0]], "max_iter": 1, "density": "gaussian", "n_positive": 1, "n_negative": 1}
    y = [1, 1, 0, 0]
    model = GMIL(**how).fit(bags, y)
    to_centers = np.abs(bags.instances - model.cluster_centers_.ravel())
    assert model.bandwidth_ == pytest.approx(np.median(to_centers.min(axis=1)))
    nearness = np.exp(-(to_centers**2) / (2 * model.bandwidth_**2))
    by_bag = np.split(nearness, bags.offsets[1:-1])
    expected = {
        "instances": [part.sum(axis=0) for part in by_bag],
        "bags": [part.max(axis=0) for part in by_bag],
        "bag-mass": [part.mean(axis=0) for part in by_bag],
    }
    for counting, votes in expected.items():
        counted = GMIL(counting=counting, **how).fit(bags, y)
        assert_allclose(counted.positive_counts_, votes[0] + votes[1])
        assert_allclose(counted.negative_counts_, votes[2] + votes[3])
    assert GMIL(5, random_state=0).fit(bags, y).bandwidth_ is None


def test_a_narrow_kernel_is_the_histogram():
    to_centers = np.array([[0.0, 5.0], [0.1, 5.0], [5.0, 0.0]])
    offsets, numpy = np.array([0, 2, 3]), resolve("numpy")
    assert soft_counts.bag_votes(to_centers, offsets, 0.0, "instances", numpy).tolist() == [[1, 0], [0, 1]]
    narrow = soft_counts.bag_votes(to_centers, offsets, 0.5, "instances", numpy)
    assert_allclose(narrow, [[2, 0], [0, 1]], atol=0.03)


def test_positive_bags_far_from_every_center_count_nothing_and_break_nothing():
    bags = Bags.from_list([np.zeros((30, 1)), np.full((30, 1), 1e-3), [[1e6]]])
    model = GMIL(2, 1, 1, init=[[0.0], [1e-3]], max_iter=1, density="gaussian").fit(bags, [0, 0, 1])
    assert np.isfinite(model.bin_scores_).all()


def test_blocks_of_bags_change_nothing(small, monkeypatch):
    bags, y = small
    whole = GMIL(6, density="gaussian", random_state=0).fit(bags, y)
    monkeypatch.setattr(parts, "_INSTANCES_AT_ONCE", 10)
    assert len(parts.blocks_of_bags(bags.offsets)) > 5
    pieces = GMIL(6, density="gaussian", random_state=0).fit(bags, y)
    assert_allclose(pieces.positive_counts_, whole.positive_counts_)


# ------------------------------------------------------------------ what all of them share


def test_the_defaults_are_those_of_the_paper():
    defaults = {"metric": "euclidean", "clustering": "k-means", "instance_weight": "instances", "density": "histogram"}
    parameters = GMIL.from_paper("musk1").get_params()
    assert {name: parameters[name] for name in defaults} == defaults


@pytest.mark.parametrize("name", ["metric", "clustering", "instance_weight", "density"])
def test_wrong_values_are_refused(small, name):
    with pytest.raises(ValueError, match=f"'{name}' parameter of GMIL must be .* Got 'x'"):
        GMIL(**{name: "x"}).fit(*small)


def test_the_tag_tells_whether_sparse_bags_are_taken():
    assert get_tags(GMIL()).input_tags.sparse
    assert not get_tags(GMIL(metric="mahalanobis")).input_tags.sparse
    assert get_tags(GMIL(metric="mahalanobis", n_components=2)).input_tags.sparse


@every_new
def test_models_are_cloned_saved_and_repeated(small, new, tmp_path):
    bags, y = small
    model = GMIL(6, random_state=3, **new).fit(bags, y)
    decisions = model.decision_function(bags)
    assert_array_equal(clone(model).fit(bags, y).decision_function(bags), decisions)
    assert_array_equal(model.fit(bags, y).decision_function(bags), decisions)
    model.save(tmp_path / "model.gmil")
    loaded = gmil.load(tmp_path / "model.gmil")
    assert_array_equal(loaded.decision_function(bags), decisions)
    assert_array_equal(loaded.score_instances(bags), model.score_instances(bags))
    assert loaded.explain(bags[0]).margin == pytest.approx(decisions[0])
    # Refitting without the parameter forgets what it left behind.
    plain = GMIL(6, random_state=3).fit(bags, y).decision_function(bags)
    refitted = model.set_params(**{name: GMIL().get_params()[name] for name in new}).fit(bags, y)
    assert_array_equal(refitted.decision_function(bags), plain)


@every_new
@pytest.mark.parametrize("n_classes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_folds_together_are_folds_one_by_one(small, new, n_classes):
    bags, y = small
    y = y if n_classes == 2 else np.where(np.arange(40) < 14, 2, y)
    grid = {"n_clusters": [4, "auto"], "counting": ["instances", "bags", "bag-mass"], "n_negative": [0, 2]}
    together = cross_validate(GMIL(**new), bags, y, cv=3, param_grid=grid)
    apart = cross_validate(FoldByFold(**new), bags, y, cv=3, param_grid=grid)
    assert_allclose(together.decisions, apart.decisions, atol=1e-7)


def test_new_parameters_are_told_apart_in_one_search(small):
    bags, y = small
    grid = [{**{name: [value] for name, value in new.items()}, "n_clusters": [5]} for new in ({}, *NEW.values())]
    together = cross_validate(GMIL(), bags, y, cv=3, param_grid=grid)
    apart = cross_validate(FoldByFold(), bags, y, cv=3, param_grid=grid)
    assert_allclose(together.decisions, apart.decisions, atol=1e-7)
    assert len(np.unique(together.decisions.round(6), axis=0)) == len(grid)


def test_gmilcv_tunes_them():
    bags, y = planted(slanted(1, 0), slanted(0.3, 6))
    grid = {"n_clusters": [8], "n_positive": [1], "n_negative": [0], "metric": ["euclidean", "mahalanobis"]}
    grid |= {"density": ["histogram", "gaussian"], "clustering": ["k-means", "kernel"]}
    model = GMILCV(grid, cv=3, random_state=0).fit(bags, y)
    assert model.best_params_["metric"] == "mahalanobis"
    assert model.score(*planted(slanted(1, 0), slanted(0.3, 6), seed=1)) > 0.9
