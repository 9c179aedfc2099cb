"""What is learnt from bags on disk is what is learnt from the same bags in memory."""

from __future__ import annotations

import numpy as np
import pytest

import gmil
from gmil.engine import distances, resolve
from gmil.errors import BagValidationError
from gmil.greedy.bag_tables import measure_bags
from gmil.greedy.clustering import Clustering
from gmil.transform.scaling import summarize_columns
from gmil.transform.space import fit_scaling

ATTRIBUTES = ("positive_counts_", "negative_counts_", "positive_bins_", "negative_bins_")
# Distances to centres are taken around the mean of other centres than in memory, and round otherwise.
CLOSE = {"rtol": 2e-4, "atol": 2e-5}


def assert_same_model(one, other):
    for name in ATTRIBUTES:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    np.testing.assert_allclose(one.cluster_centers_, other.cluster_centers_, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(one.slope_, other.slope_, rtol=1e-3)
    if one.threshold_ is not None:
        np.testing.assert_allclose(one.threshold_, other.threshold_, rtol=1e-4)


def assert_same_answers(one, other, bags, lazy):
    np.testing.assert_allclose(one.decision_function(bags), other.decision_function(lazy), **CLOSE)
    np.testing.assert_allclose(one.predict_proba(bags), other.predict_proba(lazy), rtol=1e-3, atol=1e-4)
    assert np.array_equal(one.predict(bags), other.predict(lazy))
    np.testing.assert_allclose(one.score_instances(bags), other.score_instances(lazy), **CLOSE)


SETTINGS = [
    {},
    {"n_clusters": 8, "n_positive": 2, "n_negative": 0},
    {"n_clusters": 8, "n_positive": 2, "n_negative": 0, "threshold": "variance"},
    {"n_clusters": 8, "n_positive": 2, "n_negative": 0, "threshold": "best", "scale": "minmax"},
    {"scale": "standard", "counting": "bags", "epsilon": "negatives"},
    {"scale": "standard+l2", "overlap": "exclude"},
    {"scale": "global", "distance": "center-mean"},
    {"scale": "l2", "distance": "hausdorff"},
    {"distance": "mean", "n_negative": 0},
    {"rule": "vote"},
    {"init": "plain-k-means++"},
    {"sampling": "bags", "instance_weight": "bags", "centers": "medoid"},
    {"sampling": "classes", "clustering": "spectral", "n_clusters": 6},
    {"clustering": "kernel", "n_clusters": 6},
]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_gmil_learns_the_same(stored, setting):
    bags, lazy, y = stored
    setting = {"sample_size": 200, "random_state": 3, **setting}
    one, other = gmil.GMIL(**setting).fit(bags, y), gmil.GMIL(**setting).fit(lazy, y)
    assert_same_model(one, other)
    assert_same_answers(one, other, bags[::-2], lazy[::-2])


def test_gmil_learns_the_same_from_every_source(store, tmp_path, kind, labelled):
    bags, y = labelled
    lazy, labels = store(tmp_path, kind, bags, y)
    one = gmil.GMIL(10, sample_size=300, random_state=0).fit(bags, y)
    other = gmil.GMIL(10, sample_size=300, random_state=0).fit(lazy, labels)
    assert_same_model(one, other)
    assert_same_answers(one, other, bags, lazy)


def test_several_classes_share_one_pass(store, make_labelled, tmp_path):
    bags, y = make_labelled(n_classes=4, n_bags=60)
    lazy, _ = store(tmp_path, "parquet", bags, y)
    one, other = (gmil.GMIL(12, sample_size=300, random_state=1).fit(b, y) for b in (bags, lazy))
    assert_same_model(one, other)
    assert_same_answers(one, other, bags, lazy)


def test_threads_and_blocks_change_nothing(stored, monkeypatch):
    _, lazy, y = stored
    one = gmil.GMIL(10, sample_size=200, n_jobs=1, random_state=0).fit(lazy, y)
    monkeypatch.setattr("gmil.scale.lazy._BYTES_OF_A_BLOCK", 100)
    other = gmil.GMIL(10, sample_size=200, n_jobs=3, random_state=0).fit(lazy, y)
    for name in (*ATTRIBUTES, "cluster_centers_"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert np.array_equal(one.decision_function(lazy), other.decision_function(lazy))


@pytest.mark.parametrize(
    "setting",
    [{"n_components": 2}, {"metric": "mahalanobis"}, {"density": "gaussian"}, {"sample_size": None}],
    ids=str,
)
def test_what_needs_memory_is_refused(stored, setting):
    _, lazy, y = stored
    with pytest.raises(BagValidationError, match=f"{next(iter(setting))}=.* needs all instances in memory"):
        gmil.GMIL(**setting).fit(lazy, y)


def test_new_bags_must_have_the_same_features(stored):
    bags, lazy, y = stored
    model = gmil.GMIL().fit(bags.with_instances(bags.instances[:, :3]), y)
    with pytest.raises(BagValidationError, match="X has 5 features, but GMIL is expecting 3"):
        model.predict(lazy)


# ------------------------------------------------------------------ cross-validation


def assert_same_validation(one, other):
    assert np.array_equal(one.folds, other.folds)
    assert one.decisions.shape == other.decisions.shape
    np.testing.assert_allclose(one.decisions, other.decisions, **CLOSE)
    near_tie = np.abs(one.decisions).min(axis=-1) < 1e-4 if one.decisions.ndim == 4 else np.abs(one.decisions) < 1e-4
    assert np.array_equal(one.predictions[~near_tie], other.predictions[~near_tie])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_cross_validation_is_the_same(store, make_labelled, tmp_path, n_classes):
    bags, y = make_labelled(n_classes=n_classes, n_bags=60)
    lazy, _ = store(tmp_path, "parquet", bags, y)
    grid = [
        {"n_clusters": [6, 12], "n_positive": [1, 3], "n_negative": [0, 2], "scale": [None, "l2", "standard"]},
        {"n_clusters": [9], "epsilon": [0.01, "negatives"], "counting": ["instances", "bags"], "scale": ["minmax"]},
    ]
    how = {"cv": 3, "repeats": 2, "param_grid": grid, "random_state": 5}
    estimator = gmil.GMIL(sample_size=200)
    one = gmil.cross_validate(estimator, bags, y, **how)
    other = gmil.cross_validate(estimator, lazy, y, **how)
    assert_same_validation(one, other)


def test_cross_validation_of_a_whole_grid_reads_the_data_three_times(stored):
    _, lazy, y = stored
    passes = []
    watched = lazy.watched(lambda done, total: passes.append(done == total))
    grid = {"n_clusters": [5, 10, 15], "n_positive": [1, 2, 3], "scale": [None, "standard", "minmax"]}
    gmil.cross_validate(gmil.GMIL(sample_size=100), watched, y, cv=5, repeats=2, param_grid=grid)
    # The first row for the summary of columns, the summary, the sample, the measurements.
    assert sum(passes) <= 4


def test_folds_by_hand_are_those_of_cross_validate(stored):
    bags, lazy, y = stored
    model = gmil.GMIL(8, distance="mean", sample_size=150)  # not batched: fold by fold
    one = gmil.cross_validate(model, bags, y, cv=3)
    other = gmil.cross_validate(model, lazy, y, cv=3)
    assert_same_validation(one, other)


# ------------------------------------------------------------------ the tables themselves


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tables_are_those_of_brute_force(make_labelled, backend, dtype):
    bags, _ = make_labelled(n_bags=12)
    X = bags.instances.astype(dtype)
    X[5] = X[40]
    lazy = gmil.LazyBags.from_array(X, bags.offsets)
    engine = resolve(backend, 1)
    spaces = [fit_scaling(None, "l2"), fit_scaling(None, None), fit_scaling(None, "l2")]
    centers = [s.apply(X)[i : i + 20 : 3 + i] for i, s in enumerate(spaces)]  # instances lie on them
    found = measure_bags(lazy, [Clustering(s, c) for s, c in zip(spaces, centers, strict=True)], engine)
    for space, center, table in zip(spaces, centers, found, strict=True):
        to_centers = distances(space.apply(X), center, engine)
        for bag, (start, stop) in enumerate(zip(bags.offsets[:-1], bags.offsets[1:], strict=True)):
            inside = to_centers[start:stop]
            counts = np.bincount(inside.argmin(axis=1), minlength=len(center))
            assert np.array_equal(table.histograms[bag], counts)
            np.testing.assert_allclose(np.sqrt(table.sq_minima[bag]), inside.min(axis=0), rtol=1e-5, atol=1e-6)
            assert np.array_equal(table.sq_minima[bag] == 0, inside.min(axis=0) == 0)


def test_summaries_of_columns_keep_their_digits(make_labelled):
    bags, _ = make_labelled()
    X = bags.instances.astype(np.float64) + 1e6
    X[:, 2] = 7.0
    lazy = gmil.LazyBags.from_array(X, bags.offsets)
    training = [np.arange(len(bags)) % 3 != i for i in range(3)]
    for inside, found in zip(training, summarize_columns(lazy, training, resolve("auto", 2)), strict=True):
        rows = X[np.repeat(inside, bags.sizes)]
        np.testing.assert_allclose(found.mean, rows.mean(axis=0), rtol=1e-14)
        np.testing.assert_allclose(found.variance, rows.var(axis=0), rtol=1e-9)
        assert np.array_equal(found.low, rows.min(axis=0))
        assert np.array_equal(found.high, rows.max(axis=0))
