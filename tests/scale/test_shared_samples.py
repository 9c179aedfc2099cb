"""Folds that draw their samples from one pool: as if each drew alone, and none from its test bags."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gmil
from gmil.engine import resolve
from gmil.fold_work import Fold, FoldWork
from gmil.weighted import streaming
from gmil.weighted.samples import draw_samples

MOST = 300


@pytest.fixture
def labelled_data(make_labelled):
    """Return bags of several sizes and their labels."""
    return make_labelled(n_bags=30, sizes=(5, 40))


def plans_of(bags, y, n_folds=5, seed=0, **setting):
    """Return a plan for every fold, as a cross-validation makes them."""
    model = gmil.WeightedGMIL(**{"sample_size": MOST, "n_centers": 15, "backend": "numpy", **setting})
    fold_of = np.arange(len(y)) % n_folds
    folds = [Fold(fold_of != fold, seed + fold) for fold in range(n_folds)]
    work = FoldWork([{}], lazy(bags), y, folds)
    return [streaming._plan(model, {}, fold, work, work.bags) for fold in folds]


def lazy(bags):
    return gmil.LazyBags.from_array(bags.instances, bags.offsets)


class TestDrawing:
    def test_no_fold_draws_from_its_test_bags(self, labelled_data):
        bags, y = labelled_data
        plans = plans_of(bags, y)
        for plan, sample in zip(plans, draw_samples(plans, lazy(bags)), strict=True):
            drawn = bags.segment_ids[sample.rows]
            assert plan.training[drawn].all()
            assert_array_equal(drawn, np.repeat(np.flatnonzero(plan.training)[sample.chosen], np.diff(sample.offsets)))
            assert (np.diff(sample.rows) > 0).all()

    def test_a_fold_takes_as_many_of_every_bag_as_alone(self, labelled_data):
        bags, y = labelled_data
        plans = plans_of(bags, y)
        for plan, sample in zip(plans, draw_samples(plans, lazy(bags)), strict=True):
            (alone,) = draw_samples([plan], lazy(bags))
            assert_array_equal(sample.offsets, alone.offsets)
            assert_array_equal(sample.chosen, alone.chosen)
            assert_array_equal(np.sort(sample.order), np.arange(len(sample.rows)))

    def test_folds_have_most_instances_and_centres_in_common(self, labelled_data):
        bags, y = labelled_data
        samples = draw_samples(plans_of(bags, y), lazy(bags))
        together = np.unique(np.concatenate([sample.rows for sample in samples]))
        assert len(together) <= 1.4 * MOST  # 5 / 4 and rounding
        centers = np.unique(np.concatenate([sample.rows[sample.order[:20]] for sample in samples]))
        assert len(centers) <= 40

    @pytest.mark.parametrize("what", ["instances", "centres"])
    def test_every_instance_of_a_training_bag_is_as_likely_as_when_a_fold_draws_alone(self, what, labelled_data):
        bags, y = labelled_data
        together, alone = np.zeros((2, bags.n_instances))
        repeats = 200
        for seed in range(repeats):
            plans = plans_of(bags, y, seed=10 * seed, n_folds=3)
            own = draw_samples(plans, lazy(bags))[1]
            rows = own.rows if what == "instances" else own.rows[own.order[:30]]
            together[rows] += 1
            (other,) = draw_samples([plans_of(bags, y, seed=10 * seed + 5, n_folds=3)[1]], lazy(bags))
            rows = other.rows
            if what == "centres":
                rows = other.rows[np.random.default_rng(seed).choice(len(other.rows), 30, replace=False)]
            alone[rows] += 1
        training = np.repeat(plans[1].training, bags.sizes)
        assert_array_equal(together[~training], 0)
        expected = (together + alone)[training] / 2
        # Two binomial counts of one chance differ by a variance of twice that of each.
        chance = expected / repeats
        spread = np.sqrt(np.maximum(2 * repeats * chance * (1 - chance), 1e-9))
        apart = (together - alone)[training]
        assert (np.abs(apart) <= 5 * spread + 1e-6).all()
        varied = chance < 1 - 1e-9
        assert 0.8 < np.mean(np.square(apart[varied] / spread[varied])) < 1.25

    def test_every_repeat_has_a_pool_of_its_own(self):
        fold_of = np.arange(12) % 3
        folds = [Fold(fold_of != fold, fold) for fold in range(3)]
        assert streaming._repeats([*folds, *folds, folds[2], folds[0]]) == [0, 0, 0, 1, 1, 1, 2, 2]


def arrays_in(value):
    """Yield all numbers of nested parts."""
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value, key=str)]
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from arrays_in(part)
    elif isinstance(value, (np.ndarray, float)):
        yield np.asarray(value)


class TestLeaks:
    @pytest.mark.parametrize("backend", ["numpy", "torch:cpu"])
    @pytest.mark.parametrize("how", ["thinned", "whole"])
    def test_what_test_bags_hold_changes_nothing_of_a_fold(self, labelled_data, backend, how):
        if backend != "numpy":
            pytest.importorskip("torch")
        bags, y = labelled_data
        sample_size = MOST if how == "thinned" else 10_000
        setting = {"backend": backend, "sample_size": sample_size, "scales": ["standard", "l2", "minmax+l2"]}
        plan = plans_of(bags, y, **setting)[2]
        poisoned = bags.instances.copy()
        poisoned[np.repeat(~plan.training, bags.sizes)] = 1e12 * np.arange(1, 1 + bags.n_features)
        fitted = []
        for X in (bags.instances, poisoned):
            plans = plans_of(bags, y, **setting)
            own = gmil.Bags(X, bags.offsets)
            fitted.append(streaming.fit_and_decide(plans, streaming.as_lazy(own, resolve(backend)))[2])
        clean, found = ([*arrays_in(one.fitting.as_plain()), *arrays_in(one.fitting[2:])] for one in fitted)
        assert len(clean) == len(found) > 20
        for one, other in zip(clean, found, strict=True):
            # Under "l2" the product with the centres of all folds rounds by other centres beside it.
            assert_allclose(other, one, rtol=1e-4, atol=1e-4)
        for one, other in zip(fitted[0].fitting.spaces, fitted[1].fitting.spaces, strict=True):
            assert_array_equal(one.centers, other.centers)
        inside = plan.training
        assert_allclose(fitted[1].decisions[inside], fitted[0].decisions[inside], rtol=1e-4, atol=1e-4)
        assert not np.allclose(fitted[1].decisions[~inside], fitted[0].decisions[~inside])

    def test_in_memory_and_from_disk_folds_draw_the_same(self, labelled_data):
        bags, y = labelled_data
        model = gmil.WeightedGMIL(sample_size=MOST, n_centers=15)
        one = gmil.cross_validate(model, bags, y, cv=3, repeats=2)
        other = gmil.cross_validate(model, lazy(bags), y, cv=3, repeats=2)
        assert_allclose(other.decisions, one.decisions, rtol=1e-4, atol=1e-4)


class TestManyInstancesInMemory:
    def test_choices_are_made_on_a_sample(self, labelled_data, monkeypatch):
        bags, y = labelled_data
        monkeypatch.setattr(streaming, "MOST_IN_MEMORY", bags.n_instances - 1)
        monkeypatch.setattr(streaming, "SAMPLE_SIZE", 250)
        found = gmil.WeightedGMIL(random_state=0).fit(bags, y).decision_function(bags)
        expected = gmil.WeightedGMIL(sample_size=250, random_state=0).fit(bags, y).decision_function(bags)
        assert_array_equal(found, expected)
        monkeypatch.setattr(streaming, "MOST_IN_MEMORY", bags.n_instances)
        everything = gmil.WeightedGMIL(random_state=0).fit(bags, y).decision_function(bags)
        assert not np.array_equal(everything, found)

    def test_a_bag_much_larger_than_all_others_leaves_them_in_the_sample(self):
        rng = np.random.default_rng(0)
        sizes = np.array([20_000, *rng.integers(10, 30, size=40)])
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        bags = gmil.Bags(rng.normal(size=(offsets[-1], 3)).astype(np.float32), offsets)
        y = np.arange(41) % 2
        (sample,) = draw_samples(plans_of(bags, y, n_folds=1_000, sample_size=1000)[50:51], lazy(bags))
        drawn = np.diff(sample.offsets)
        assert len(sample.rows) <= 1000
        assert drawn[0] <= 400  # as many as twenty bags
        assert drawn[1:].min() >= 8


class TestManyBags:
    @pytest.mark.parametrize("form", ["memory", "lazy"])
    def test_a_fit_learns_from_a_sample_of_them(self, make_labelled, monkeypatch, form):
        bags, y = make_labelled(n_bags=300, sizes=(1, 4))
        for module in ("streaming", "stacked"):
            monkeypatch.setattr(f"gmil.weighted.{module}.MOST_BAGS", 200)
        given = bags if form == "memory" else lazy(bags)
        model = gmil.WeightedGMIL(max_bags=100, n_points=40, n_centers=20, random_state=0).fit(given, y)
        known = np.isfinite(model.left_out_decisions_)
        assert known.sum() == 100
        assert (y[known] == 1).mean() == pytest.approx((y == 1).mean(), abs=0.02)
        assert model.score(given, y) > 0.8
        found = gmil.cross_validate(model, given, y, cv=3)
        assert found.auc() > 0.8
