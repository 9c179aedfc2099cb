"""WeightedGMIL in PyTorch: as on the processor, within what docs/guide/gpu.md states; no row of an instance moves.

Stated accuracy: one fitted model decides with another backend within 2e-3 of the largest decision, two fits with
different backends within 0.05 of it.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.torch_devices import TORCH_BACKENDS, figures_of_benchmark

import gmil
from gmil.engine import reference, resolve
from gmil.weighted.model import fit_candidate
from gmil.weighted.noisy_or import fit_noisy_or

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'gmil[torch]'")
kernels = import_module("gmil.engine.torch.kernels")
ridge = import_module("gmil.weighted.on_device.ridge")

ONE_MODEL, TWO_FITS = 2e-3, 0.05
FEW = {"n_centers": 25, "random_state": 0}


@pytest.fixture(params=TORCH_BACKENDS)
def backend(request):
    """Return the name of the backend on every device."""
    return request.param


def make(n_bags=36, sizes=(4, 20), n_classes=2, dtype=np.float32, seed=0):
    bags, y = gmil.make_bags(
        n_bags, n_features=6, bag_size=sizes, n_classes=n_classes, random_state=seed, return_X_y=True
    )
    return gmil.Bags(bags.instances.astype(dtype), bags.offsets), y


def resident(bags, backend):
    X = torch.from_numpy(bags.instances.copy()).to(resolve(backend).device)
    return gmil.LazyBags.from_array(X, bags.offsets)


def assert_close(found, expected, tolerance):
    assert found.shape == expected.shape
    assert_array_equal(np.isnan(found), np.isnan(expected))
    assert np.nanmax(np.abs(found - expected)) <= tolerance * np.nanmax(np.abs(expected))


@pytest.fixture
def stays(monkeypatch):
    """Refuse to take to the host whatever has as many rows as there are instances."""
    from gmil.engine.torch import tensors

    to_host = tensors.to_host

    def guarded(tensor):
        assert tensor.ndim == 0 or tensor.shape[0] < 300, tensor.shape
        return to_host(tensor)

    def read(self, rows):
        raise AssertionError(rows)

    for module in ("gmil.engine.torch.tensors", "gmil.weighted.on_device.noisy_or", "gmil.weighted.on_device.ridge"):
        monkeypatch.setattr(f"{module}.to_host", guarded)
    monkeypatch.setattr("gmil.engine.torch.backend.to_host", guarded)
    monkeypatch.setattr("gmil.scale.resident.TensorSource.as_array", read)


SETTINGS = [
    {},
    {"sample_size": 200},
    *({"scales": [scale]} for scale in (None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "rank")),
    {"views": ["range"], "sample_size": 150},
    {"views": ["moments"]},
    {"views": ["nearest"], "sample_size": 150, "scales": ["l2", "rank"]},
    {"centers": "k-means", "scales": ["standard", "rank"]},
    {"centers": "ranked", "scales": ["standard"], "n_centers": 10},
    {"vote": "linear"},
    {"witness_model": False, "class_weight": "balanced"},
    {"max_bags": 20, "n_points": 15},
    {"sample_size": 150, "max_bags": 20, "n_points": 15},
    {"n_centers": 350, "scales": ["standard", "minmax"], "sample_size": 400},
]


class TestDecisions:
    @pytest.mark.parametrize("changes", SETTINGS, ids=str)
    def test_are_those_of_the_processor(self, backend, changes):
        bags, y = make()
        setting = {**FEW, **changes}
        known = gmil.WeightedGMIL(**setting, backend="numpy").fit(bags, y)
        expected = known.decision_function(bags)
        known.set_params(backend=backend)
        for given in (bags, resident(bags, backend)):
            assert_close(known.decision_function(given), expected, ONE_MODEL)
            fitted = gmil.WeightedGMIL(**setting, backend=backend).fit(given, y)
            assert_close(fitted.decision_function(given), expected, TWO_FITS)
            assert_close(fitted.left_out_decisions_, known.left_out_decisions_, TWO_FITS)
            assert fitted.familiar_distance_ == pytest.approx(known.familiar_distance_, rel=1e-3)
            assert_array_equal(fitted.unfamiliar(bags), known.unfamiliar(bags))

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_of_several_classes_and_labels(self, backend, dtype):
        bags, y = make(45, n_classes=3, dtype=dtype)
        for labels in (y, np.stack([y == 0, y >= 1], axis=1).astype(int)):
            models = [
                gmil.WeightedGMIL(**FEW, sample_size=200, backend=name).fit(bags, labels) for name in ("numpy", backend)
            ]
            expected, found = (model.decision_function(bags) for model in models)
            assert_close(found, expected, TWO_FITS)
            assert (models[0].predict(bags) == models[1].predict(bags)).mean() >= 0.95

    @pytest.mark.parametrize("changes", [{}, {"sample_size": 200}], ids=str)
    def test_where_groups_are_left_out(self, backend, changes):
        bags, y = make()
        groups = np.arange(len(bags)) // 3
        one, other = (
            gmil.WeightedGMIL(**FEW, **changes, backend=name).fit(bags, y, groups=groups) for name in ("numpy", backend)
        )
        assert_close(other.decision_function(bags), one.decision_function(bags), TWO_FITS)

    def test_with_features_that_are_far_from_zero_and_constant_ones(self, backend):
        bags, y = make()
        X = bags.instances.astype(np.float64) + 10.0 ** np.arange(6)
        X[:, 2] = np.repeat(np.arange(len(bags)), bags.sizes)
        X[:, 3] = 7.25
        bags = gmil.Bags(X, bags.offsets)
        for changes in ({}, {"sample_size": 200}):
            one, other = (gmil.WeightedGMIL(**FEW, **changes, backend=b).fit(bags, y) for b in ("numpy", backend))
            assert_close(other.decision_function(bags), one.decision_function(bags), TWO_FITS)

    def test_of_sparse_bags_are_left_to_the_reference(self, backend):
        import scipy.sparse as sp

        bags, y = make()
        sparse = gmil.Bags(sp.csr_array(np.where(bags.instances > 0, bags.instances, 0)), bags.offsets)
        one, other = (gmil.WeightedGMIL(**FEW, backend=name).fit(sparse, y) for name in ("numpy", backend))
        assert_close(other.decision_function(sparse), one.decision_function(sparse), TWO_FITS)

    @pytest.mark.parametrize("kind", ["witness", "effect", "alone"])
    def test_about_instances(self, backend, kind):
        bags, y = make()
        model = gmil.WeightedGMIL(**FEW, backend="numpy").fit(bags, y)
        expected = model.score_instances(bags, kind)
        model.set_params(backend=backend)
        for given in (bags, resident(bags, backend)):
            assert_close(model.score_instances(given, kind), expected, 5e-3)


class TestResident:
    @pytest.mark.usefixtures("stays")
    @pytest.mark.parametrize("changes", [{}, {"sample_size": 330}], ids=str)
    def test_nothing_with_a_row_an_instance_leaves_the_device(self, backend, changes):
        bags, y = make(40, sizes=(10, 20))
        assert bags.n_instances > 500
        there = resident(bags, backend)
        model = gmil.WeightedGMIL(**FEW, **changes, backend=backend).fit(there, y)
        assert model.decision_function(there[::-2]).shape == (20,)
        gmil.cross_validate(model, there, y, cv=2)

    @pytest.mark.parametrize("changes", [{}, {"sample_size": 200}], ids=str)
    def test_a_cross_validation_is_that_of_the_processor(self, backend, changes):
        bags, y = make()
        expected = gmil.cross_validate(gmil.WeightedGMIL(**FEW, **changes, backend="numpy"), bags, y, cv=3, repeats=2)
        for given in (bags, resident(bags, backend)):
            found = gmil.cross_validate(gmil.WeightedGMIL(**FEW, **changes, backend=backend), given, y, cv=3, repeats=2)
            assert_close(found.decisions, expected.decisions, TWO_FITS)

    def test_bags_in_any_order_and_longer_than_a_block(self, backend, monkeypatch):
        bags, y = make()
        there = resident(bags, backend)
        model = gmil.WeightedGMIL(**FEW, sample_size=200, backend=backend).fit(there, y)
        expected = model.decision_function(there)
        order = np.random.default_rng(0).permutation(len(bags))
        monkeypatch.setattr("gmil.scale.resident._ENTRIES_OF_A_BLOCK", {"cpu": 700, "cuda": 700})
        assert_allclose(model.decision_function(there), expected, rtol=1e-4, atol=1e-4)
        assert_allclose(model.decision_function(there[order]), expected[order], rtol=1e-4, atol=1e-4)
        assert_allclose(model.decision_function(there[[3, 3, 1]]), expected[[3, 3, 1]], rtol=1e-4, atol=1e-4)

    def test_bags_on_disk_go_to_the_device_block_by_block(self, backend, tmp_path):
        bags, y = make()
        gmil.write(tmp_path / "bags.parquet", bags, y)
        lazy, _ = gmil.scan(tmp_path / "bags.parquet")
        one, other = (gmil.WeightedGMIL(**FEW, sample_size=200, backend=b).fit(lazy, y) for b in ("numpy", backend))
        assert_close(other.decision_function(lazy), one.decision_function(bags), TWO_FITS)

    def test_a_fitted_model_is_made_of_arrays(self, backend):
        bags, y = make()
        model = gmil.WeightedGMIL(**FEW, backend=backend).fit(bags, y)
        for part in (*model.views_, *model.spaces_, *model.witnesses_["scorers"]):
            assert not any(isinstance(value, torch.Tensor) for value in part.values())


class TestKernels:
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_reductions_of_tensors_are_those_of_the_reference(self, backend, dtype):
        rng, engine = np.random.default_rng(0), resolve(backend)
        sizes = np.concatenate([[1, 64, 65, 200], rng.integers(1, 90, size=20)])
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        values = (rng.normal(size=(offsets[-1], 5)) + 100).astype(dtype)
        there = torch.from_numpy(values).to(engine.device)
        for name in ("bag_min", "bag_max", "bag_mean", "bag_deviation"):
            found = getattr(engine, name)(there, offsets)
            assert isinstance(found, torch.Tensor)
            assert_allclose(found.cpu().numpy(), getattr(reference, name)(values, offsets), rtol=1e-5)
        found = engine.bag_moments(there, offsets).cpu().numpy()
        tolerance = 1e-5 if dtype == "float32" else 1e-12
        assert_allclose(found, reference.bag_moments(values, offsets), rtol=tolerance, atol=tolerance)

    def test_an_outlier_in_front_does_not_hide_the_others(self, backend):
        values = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)
        values[0] = 3000
        offsets = np.array([0, 400])
        found = resolve(backend).bag_moments(torch.from_numpy(values).to(resolve(backend).device), offsets)
        assert_allclose(found.cpu(), reference.bag_moments(values, offsets), rtol=1e-4)

    def test_equal_instances_have_no_deviation(self, backend):
        values = torch.full((300, 2), 0.1, device=resolve(backend).device)
        found = resolve(backend).bag_moments(values, np.array([0, 100, 300])).cpu().numpy()
        assert_array_equal(found[:, 2], 0)
        assert_array_equal(found[:, 1], np.float32(0.1))

    @pytest.mark.parametrize("n_values", [50, 3000])
    def test_ranks_of_tensors(self, backend, n_values):
        from gmil.transform.scaling import rank_knots

        X = np.random.default_rng(0).integers(0, 40, size=(n_values, 3)).astype(np.float32)
        there = torch.from_numpy(X).to(resolve(backend).device)
        knots = rank_knots(X)
        assert_array_equal(rank_knots(there), knots)
        assert_allclose(resolve(backend).column_ranks(there, knots).cpu(), reference.column_ranks(X, knots), rtol=1e-6)


class TestNoisyOr:
    def test_all_choices_and_problems_at_once(self, backend):
        bags, y = make(60, seed=3)
        positive = np.stack([y == 1, np.arange(60) % 3 == 0, np.zeros(60, dtype=bool)], axis=1)
        weights = np.random.default_rng(0).uniform(0.5, 2, 60)
        inside = [np.arange(60) % 4 != 0, np.ones(60, dtype=bool)]
        features = torch.from_numpy(bags.instances).to(resolve(backend).device)
        found = fit_noisy_or(features, bags.offsets, inside, positive, weights)
        expected = fit_noisy_or(bags.instances, bags.offsets, inside, positive, weights)
        for ours, theirs in zip(found, expected, strict=True):
            assert_array_equal(ours[0][:, 2], 0)
            assert_allclose(np.vstack(ours), np.vstack(theirs), atol=0.02)


class TestRidge:
    def test_many_views_at_once_are_those_one_by_one(self, backend, monkeypatch):
        rng = np.random.default_rng(16)  # no two penalties are nearly as good, so that rounding cannot choose
        targets = rng.choice([-1.0, 1.0], (30, 2))
        weights = rng.uniform(0.5, 2, 30)
        told = rng.normal(size=(30, 4)) + targets[:, :1]
        tables = [told.astype(np.float32), np.ones((30, 2), dtype=np.float32)]
        views = [(i, "range", table, kernel) for i, table in enumerate(tables) for kernel in ("laplacian", "gaussian")]
        folds = [np.arange(30) % 3 == fold for fold in range(3)]
        for entries in (1 << 20, 1):
            monkeypatch.setattr(ridge, "_ENTRIES_AT_ONCE", entries)
            found = ridge.fit_candidates(views, targets, weights, resolve(backend), folds)
            for view, one in zip(views, found, strict=True):
                expected = fit_candidate(*view, targets, weights, None, resolve("numpy"), folds)
                assert_allclose(one.view.low, expected.view.low, rtol=1e-5)
                assert_allclose(one.view.high, expected.view.high, rtol=1e-5)
                assert one.view.width == pytest.approx(expected.view.width, rel=1e-5)
                assert_allclose(one.left_out, expected.left_out, atol=2e-3)
                if view[0] == 1:
                    continue  # where all bags are alike, every penalty is as good
                assert_allclose(one.unseen, expected.unseen, atol=5e-3)
                assert_allclose(one.penalties, expected.penalties)
                assert_allclose(one.view.coefficients, expected.view.coefficients, atol=2e-3)
                assert_allclose(one.intercepts, expected.intercepts, atol=2e-3)


@pytest.mark.slow
def test_the_benchmark_runs_anywhere(tmp_path):
    sizes = "--instances 3000 --bags 24 --features 8 --events 2 --folds 2 --checked 16 --repeats 1 --brief --probe"
    found = figures_of_benchmark("gpu_weighted.py", sizes, tmp_path)
    assert found["check"]["sample_size=auto"]["one model, largest difference of decisions"] <= ONE_MODEL
    assert found["check"]["sample_size=auto"]["two fits, largest difference of decisions"] <= TWO_FITS
    assert found["stages of a fit"]["fit_on_device"][1] == 3
