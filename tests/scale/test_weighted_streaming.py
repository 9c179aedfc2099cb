"""WeightedGMIL from bags on disk: the same as in memory, with the choice on a sample or on everything."""

from __future__ import annotations

import numpy as np
import pytest

import gmil

CLOSE = {"rtol": 1e-4, "atol": 1e-4}  # single precision: scalings and distances round differently block by block
SMALL = {"scales": ["standard", "l2", "minmax+l2"], "n_centers": 20}


def assert_same(one, other, bags, lazy):
    np.testing.assert_allclose(one.decision_function(bags), other.decision_function(lazy), **CLOSE)
    np.testing.assert_allclose(one.familiar_distance_, other.familiar_distance_, rtol=1e-3)
    assert [entry["kind"] for entry in one.view_weights_] == [entry["kind"] for entry in other.view_weights_]
    for a, b in zip(one.view_weights_, other.view_weights_, strict=True):
        np.testing.assert_allclose(a["weights"], b["weights"], atol=1e-2)


@pytest.mark.parametrize(
    "setting",
    [
        {},
        SMALL,
        {**SMALL, "sample_size": 150},
        {"sample_size": 150, "scales": ["rank", "minmax"], "centers": "k-means", "n_centers": 10},
        {**SMALL, "sample_size": 200, "max_bags": 25, "n_points": 10},
        {"sample_size": 200, "vote": "linear", "n_centers": 10},
    ],
    ids=str,
)
def test_it_learns_the_same(stored, setting):
    bags, lazy, y = stored
    one = gmil.WeightedGMIL(**setting, random_state=0).fit(bags, y)
    other = gmil.WeightedGMIL(**setting, random_state=0).fit(lazy, y)
    assert_same(one, other, bags, lazy)
    assert np.array_equal(one.predict(bags[::-3]), other.predict(lazy[::-3]))
    assert np.array_equal(one.unfamiliar(bags), other.unfamiliar(lazy))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_that_are_far_from_zero_lose_no_digits(make_labelled, dtype):
    bags, y = make_labelled()
    shifts = 10.0 ** np.arange(4 if dtype == np.float32 else 6)[: bags.n_features]
    X = bags.instances.astype(dtype)
    X[:, : len(shifts)] += shifts
    bags, lazy = gmil.Bags(X, bags.offsets), gmil.LazyBags.from_array(X, bags.offsets)
    for scales in ("auto", [None], ["l2"]):
        model = gmil.WeightedGMIL(scales=scales, n_centers=20, random_state=0).fit(bags, y)
        # As they are, features are taken in single precision, which has two digits left here.
        np.testing.assert_allclose(model.decision_function(lazy), model.decision_function(bags), rtol=1e-2, atol=1e-2)


def test_half_precision_in_memory_is_widened_block_by_block(make_labelled, monkeypatch):
    bags, y = make_labelled()
    narrow = bags.instances.astype(np.float16)
    monkeypatch.setattr("gmil.scale.passes._BYTES_OF_A_PART", narrow.nbytes // 8)
    widened: list[int] = []
    as_array = gmil.scale.passes.ArraySource.as_array
    monkeypatch.setattr(
        gmil.scale.passes.ArraySource, "as_array", lambda self, X: widened.append(len(X)) or as_array(self, X)
    )
    lazy, model = gmil.LazyBags.from_array(narrow, bags.offsets), gmil.WeightedGMIL(sample_size=100, random_state=0)
    found = model.fit(lazy, y).decision_function(lazy)
    assert max(widened) <= len(narrow) / 7
    same = gmil.Bags(narrow, bags.offsets)
    np.testing.assert_allclose(model.fit(same, y).decision_function(same), found, **CLOSE)


def test_without_a_sample_size_streamed_bags_are_thinned_to_one(stored, monkeypatch):
    bags, lazy, y = stored
    monkeypatch.setattr("gmil.weighted.streaming.SAMPLE_SIZE", 200)
    assert bags.n_instances > 200
    streamed = gmil.WeightedGMIL(random_state=0).fit(lazy, y).decision_function(bags)
    same = gmil.WeightedGMIL(sample_size=200, random_state=0).fit(bags, y).decision_function(bags)
    np.testing.assert_allclose(streamed, same, **CLOSE)
    everything = gmil.WeightedGMIL(random_state=0).fit(bags, y).decision_function(bags)
    assert np.corrcoef(streamed, everything)[0, 1] > 0.9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_that_are_constant_in_every_bag_do_not_part_streamed_from_memory(make_labelled, dtype):
    bags, y = make_labelled()
    rng = np.random.default_rng(0)
    by_bag = np.repeat(rng.normal(size=(len(bags), 3)) * [1, 1e-3, 1e3] + [0.1, 5, 1e6], bags.sizes, axis=0)
    X = np.hstack([bags.instances, by_bag]).astype(dtype)
    bags, lazy = gmil.Bags(X, bags.offsets), gmil.LazyBags.from_array(X, bags.offsets)
    for sample_size in (150, "auto"):
        model = gmil.WeightedGMIL(sample_size=sample_size, random_state=0)
        one = gmil.cross_validate(model, bags, y, cv=3)
        other = gmil.cross_validate(model, lazy, y, cv=3)
        np.testing.assert_allclose(one.decisions, other.decisions, **CLOSE)


def test_where_the_sample_speaks_for_no_view_every_bag_has_the_share_of_its_class(make_labelled, monkeypatch):
    bags, _ = make_labelled(n_bags=40)
    monkeypatch.setattr("gmil.weighted.weighing.ridge_weights", lambda left_out, *_: np.zeros(left_out.shape[1]))
    model = gmil.WeightedGMIL(sample_size=100, witness_model=False, random_state=0).fit(bags, np.arange(40) % 4 == 0)
    assert model.views_ == []
    np.testing.assert_allclose(model.predict_proba(bags)[:, 1], 0.25, atol=0.03)
    # The shares of four fifths of the bags.
    np.testing.assert_allclose(model.left_out_decisions_, model.decision_function(bags), atol=0.15)


@pytest.mark.parametrize("kind", ["effect", "alone"])
def test_instances_get_the_same_scores(stored, kind):
    bags, lazy, y = stored
    model = gmil.WeightedGMIL(**SMALL, random_state=0).fit(bags, y)
    found = model.score_instances(lazy[[5, 2]], kind)
    np.testing.assert_allclose(found, model.score_instances(bags[[5, 2]], kind), **CLOSE)


def test_whole_bags_are_looked_at_even_where_the_sample_is_thin(store, make_labelled, tmp_path):
    bags, y = make_labelled(n_bags=120, sizes=(30, 60), separation=10.0)
    lazy, _ = store(tmp_path, "parquet", bags, y, row_group_size=500)
    model = gmil.WeightedGMIL(sample_size=500, random_state=0).fit(lazy[:80], y[:80])
    assert model.score(lazy[80:], y[80:]) > 0.85
    assert "rank" not in {entry["scale"] for entry in model.view_weights_}


@pytest.mark.parametrize("sample_size", ["auto", 200])
def test_cross_validation_serves_all_folds_in_one_pass(stored, sample_size):
    bags, lazy, y = stored
    passes = []
    watched = lazy.watched(lambda done, total: passes.append(done == total))
    model = gmil.WeightedGMIL(**SMALL, sample_size=sample_size)
    other = gmil.cross_validate(model, watched, y, cv=3)
    assert sum(passes) == 2
    one = gmil.cross_validate(model, bags, y, cv=3)
    np.testing.assert_allclose(one.decisions, other.decisions, rtol=1e-4, atol=1e-4)
    assert np.array_equal(one.predictions, other.predictions)


def test_several_labels_and_classes(store, make_labelled, tmp_path):
    bags, y = make_labelled(n_classes=3, n_bags=45)
    lazy, _ = store(tmp_path, "npy", bags, y)
    indicator = (y[:, None] == np.arange(3)).astype(int)
    model = gmil.WeightedGMIL(**SMALL, sample_size=300)
    for labels in (y, indicator):
        one = gmil.cross_validate(model, bags, labels, cv=3)
        other = gmil.cross_validate(model, lazy, labels, cv=3)
        assert one.decisions.shape == other.decisions.shape == (1, 1, 45, 3)
        np.testing.assert_allclose(one.decisions, other.decisions, rtol=1e-4, atol=1e-4)


def test_gmilcv_learns_the_same(stored):
    bags, lazy, y = stored
    grid = {"scale": [None, "standard"], "n_clusters": [5, 10], "n_positive": [1, 2], "n_negative": [0, 2]}
    model = gmil.GMILCV(grid, cv=3, sample_size=200, random_state=0)
    one, other = (gmil.GMILCV(**model.get_params()).fit(b, y) for b in (bags, lazy))
    assert one.best_params_ == other.best_params_
    np.testing.assert_allclose(one.cv_results_["accuracy"], other.cv_results_["accuracy"])
    np.testing.assert_allclose(one.decision_function(bags), other.decision_function(lazy), rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(one.score_instances(bags), other.score_instances(lazy), rtol=2e-4, atol=2e-5)
    assert gmil.cross_validate(model, lazy, y, cv=3).accuracy() == gmil.cross_validate(model, bags, y, cv=3).accuracy()


def test_gmilcv_chooses_the_same_with_its_own_grid(stored):
    bags, lazy, y = stored
    one = gmil.GMILCV(cv=2, sample_size=300, random_state=0).fit(bags, y)
    other = gmil.GMILCV(cv=2, sample_size=300, random_state=0).fit(lazy, y)
    assert one.best_params_ == other.best_params_
