"""Bags whose instances are a tensor: the same results as in memory, with and without the backend that stays there."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier
from tests.estimators import seeded, small
from tests.torch_devices import TORCH_BACKENDS, figures_of_benchmark

import gmil
from gmil.cli.main import main
from gmil.engine import resolve
from gmil.errors import BackendUnavailableError, BagValidationError

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'gmil[torch]'")

CLASSIFIERS = [kind for _, kind in gmil.all_estimators() if is_classifier(kind())]
WITH_BACKEND = [kind for kind in CLASSIFIERS if "backend" in kind().get_params(deep=False)]


@pytest.fixture(params=TORCH_BACKENDS)
def backend(request):
    """Return the name of the backend on every device."""
    return request.param


@pytest.fixture
def stays(monkeypatch):
    """Refuse to read blocks of a tensor: everything has to happen on the device."""

    def read(self, part, rows):
        raise AssertionError(part)

    monkeypatch.setattr("gmil.scale.resident.TensorSource.read", read)


def make(n_bags=50, seed=0, sizes=(40, 160), dtype=np.float64):
    bags, y = gmil.make_bags(n_bags, n_features=12, bag_size=sizes, random_state=seed, return_X_y=True)
    return gmil.Bags(bags.instances.astype(dtype), bags.offsets), y


def resident(bags, backend):
    X = torch.from_numpy(bags.instances.copy()).to(resolve(backend).device)
    return gmil.LazyBags.from_array(X, bags.offsets)


def model(backend, **changes):
    return gmil.GMIL(
        **{"n_clusters": 15, "n_positive": 3, "n_negative": 4, "sample_size": 900, **changes}, backend=backend
    )


def several_labels(y):
    return np.stack([y, np.roll(y, 3), 1 - y], axis=1)


class TestCrossValidation:
    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"n_init": 3},
            {"init": "plain-k-means++"},
            {"scale": "l2"},
            {"scale": "standard+l2"},
            {"n_negative": "auto", "threshold": "variance", "counting": "bags"},
            {"max_iter": 3, "sample_size": 100_000},
        ],
    )
    def test_decides_as_the_reference_does(self, backend, changes):
        bags, y = make()
        y = several_labels(y)
        expected = gmil.cross_validate(model("numpy", **changes), bags, y, cv=5)
        for given in (bags, resident(bags, backend)):
            found = gmil.cross_validate(model(backend, **changes), given, y, cv=5)
            assert isinstance(found.decisions, np.ndarray)
            assert_allclose(found.decisions, expected.decisions, atol=1e-9)
            assert_array_equal(found.predictions, expected.predictions)

    def test_single_precision_is_close(self, backend):
        bags, y = make(dtype=np.float32)
        expected = gmil.cross_validate(model("numpy"), bags, y, cv=5)
        found = gmil.cross_validate(model(backend), resident(bags, backend), y, cv=5)
        assert found.decisions.dtype == expected.decisions.dtype
        assert_allclose(found.decisions, expected.decisions, atol=1e-4)

    @pytest.mark.usefixtures("stays")
    def test_settings_of_several_sizes_share_one_pass(self, backend):
        bags, y = make()
        inits = ["k-means++", "plain-k-means++"]
        grid = {"n_clusters": [8, 15], "n_positive": [2, 3], "random_state": [0], "init": inits}
        expected = gmil.cross_validate(model("numpy"), bags, y, cv=3, param_grid=grid)
        found = gmil.cross_validate(model(backend), resident(bags, backend), y, cv=3, param_grid=grid)
        assert_allclose(found.decisions, expected.decisions, atol=1e-9)

    @pytest.mark.usefixtures("stays")
    def test_given_centres(self, backend):
        bags, y = make()
        init = bags.instances[::300][:15]
        expected = gmil.cross_validate(model("numpy", init=init), bags, y, cv=3)
        found = gmil.cross_validate(model(backend, init=init), resident(bags, backend), y, cv=3)
        assert_allclose(found.decisions, expected.decisions, atol=1e-9)

    @pytest.mark.parametrize("changes", [{"centers": "medoid"}, {"instance_weight": "bags"}, {"clustering": "kernel"}])
    def test_what_needs_the_host_is_read_in_blocks(self, backend, changes):
        bags, y = make(30)
        expected = gmil.cross_validate(model("numpy", **changes), bags, y, cv=3)
        found = gmil.cross_validate(model(backend, **changes), resident(bags, backend), y, cv=3)
        assert_allclose(found.decisions, expected.decisions, atol=1e-7)

    @pytest.mark.usefixtures("stays")
    def test_a_bag_longer_than_a_chunk_is_one_bag(self, backend, monkeypatch):
        bags, y = make()
        X = np.vstack([bags.instances, np.repeat(bags.instances[:1], 500, axis=0)])
        long = gmil.Bags(X, np.append(bags.offsets, len(X)))
        y = np.append(y, y[0])
        expected = gmil.cross_validate(model("numpy"), long, y, cv=3)
        monkeypatch.setattr("gmil.engine.torch.kernels._ENTRIES_AT_ONCE", {"cpu": 9000, "cuda": 9000})
        found = gmil.cross_validate(model(backend), resident(long, backend), y, cv=3)
        assert_allclose(found.decisions, expected.decisions, atol=1e-9)

    def test_small_data_goes_through_the_gram_matrix(self, backend):
        bags, y = make(20, sizes=(5, 20))
        expected = gmil.cross_validate(model("numpy", sample_size=None), bags, y, cv=4)
        found = gmil.cross_validate(model(backend, sample_size=None), bags, y, cv=4)
        assert_allclose(found.decisions, expected.decisions, atol=1e-9)

    @pytest.mark.usefixtures("stays")
    def test_an_instance_on_a_centre_of_both_codebooks_is_a_tie(self, backend):
        generator = np.random.default_rng(0)
        points = generator.normal(size=(12, 6)) + 5
        X = points[generator.integers(12, size=4000)]
        bags, y = gmil.Bags(X, np.arange(0, 4001, 40)), np.arange(100) % 2
        changes = {"n_clusters": 12, "n_positive": 12, "n_negative": 12, "sample_size": 1000}
        found = gmil.cross_validate(model(backend, **changes), resident(bags, backend), y, cv=4)
        assert_array_equal(found.decisions, 0)


class TestFit:
    def test_some_of_the_bags_are_fitted_and_others_judged(self, backend):
        bags, y = make()
        there = resident(bags, backend)
        train = np.random.default_rng(0).permutation(50)[:35]
        expected = model("numpy", random_state=0).fit(bags[train], y[train])
        found = model(backend, random_state=0).fit(there[train], y[train])
        assert isinstance(found.cluster_centers_, np.ndarray)
        assert_allclose(found.cluster_centers_, expected.cluster_centers_, atol=1e-10)
        assert_array_equal(found.positive_counts_, expected.positive_counts_)
        assert_array_equal(found.positive_bins_, expected.positive_bins_)
        assert_allclose(found.decision_function(there[:20]), expected.decision_function(bags[:20]), atol=1e-10)
        assert_allclose(found.score_instances(there[3:9]), expected.score_instances(bags[3:9]), atol=1e-10)

    @pytest.mark.parametrize("kind", WITH_BACKEND)
    def test_every_estimator_takes_the_backend(self, backend, gaussian_bags, kind):
        estimator = seeded(small(kind))
        bags, y = gaussian_bags(30, sizes=(2, 6))
        decisions = []
        for chosen in ("numpy", backend):
            fitted = estimator.set_params(backend=chosen).fit(bags, y)
            decisions.append((fitted.predict(bags), fitted.decision_function(bags)))
            assert not any(isinstance(value, torch.Tensor) for value in vars(fitted).values())
        assert_allclose(decisions[1][1], decisions[0][1], rtol=1e-3, atol=1e-4)
        assert (decisions[1][0] == decisions[0][0]).mean() >= 0.95

    def test_other_backends_read_the_tensor_in_blocks(self, backend):
        bags, y = make()
        expected = model("numpy", random_state=0).fit(bags, y)
        found = model("auto", random_state=0).fit(resident(bags, backend), y)
        assert_array_equal(found.positive_counts_, expected.positive_counts_)


class TestTensors:
    def test_they_load_and_read_like_arrays(self, backend):
        bags, _ = make()
        there = resident(bags, backend)
        assert there.dtype == np.float64
        assert_array_equal(there.load().instances, bags.instances)
        assert_array_equal(there[4], bags[4])
        assert_array_equal(there[10:].take([5, 3]), bags[10:].instances[[5, 3]])

    def test_a_value_that_is_no_number_is_refused_with_its_bag(self, backend):
        bags, _ = make()
        X = bags.instances.copy()
        X[bags.offsets[7] + 2, 3] = np.nan
        with pytest.raises(BagValidationError, match="NaN: in bag 7, instance 2, column 3"):
            resident(gmil.Bags(X, bags.offsets), backend)

    @pytest.mark.parametrize("wrong", [lambda: torch.zeros(4, 2).half(), lambda: torch.zeros(4, 2, 1)])
    def test_other_tensors_are_refused(self, wrong):
        with pytest.raises(BagValidationError, match="X must be a matrix in single or double precision"):
            gmil.LazyBags.from_array(wrong(), [0, 4])


_ALONE = """
import builtins, sys
import numpy as np, torch, sklearn.model_selection
absent = ("narwhals", "rich", "Cython", "skops", "jinja2", "matplotlib", "pandas", "polars", "dask", "distributed")
found = builtins.__import__

def without(name, globals=None, *rest, **more):
    # scikit-learn may need some of these itself; gmil has to do without.
    if (globals or {}).get("__name__", "").startswith("gmil") and name.partition(".")[0] in absent:
        raise ImportError(name)
    return found(name, globals, *rest, **more)

builtins.__import__ = without
sys.modules["gmil.engine.native._kernels"] = None
import gmil
bags, y = gmil.make_bags(30, n_features=5, bag_size=(100, 200), random_state=0, return_X_y=True)
there = gmil.LazyBags.from_array(torch.from_numpy(bags.instances.copy()), bags.offsets)
model = gmil.GMIL(10, 2, 3, sample_size=500, backend="torch")
both = [gmil.cross_validate(model, given, np.stack([y, 1 - y], axis=1), cv=3).decisions for given in (bags, there)]
assert np.allclose(*both, rtol=1e-4)  # a GPU adds in any order
print(gmil.engine.resolve("auto").name, gmil.engine.resolve("torch").name)
"""


def test_nothing_but_scikit_learn_and_pytorch_is_needed():
    run = subprocess.run([sys.executable, "-c", _ALONE], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["numpy", "torch"]


@pytest.mark.slow
def test_the_benchmark_runs_anywhere(tmp_path):
    sizes = "--instances 3000 --bags 40 --features 20 --sample 400 --clusters 10 --repeats 1 --folds 3 --events 2"
    found = figures_of_benchmark("gpu.py", sizes, tmp_path)
    assert found["check"]["float32"]["rows_counted_in_another_bin"] <= 2
    assert found["whole"]["float32"]["median_s"] > 0


def test_doctor_shows_pytorch_and_its_device():
    found = json.loads(CliRunner().invoke(main, ["doctor", "--json"]).stdout)
    assert found["torch"]["version"] == torch.__version__
    assert found["torch"]["device"].startswith(("cpu", "cuda"))
    assert "torch" in found["backends"]


def test_a_gpu_that_is_not_there_is_named():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    bags, y = make(20)
    with pytest.raises(BackendUnavailableError, match="PyTorch sees no GPU"):
        gmil.cross_validate(model("torch:cuda"), bags, y, cv=2)
