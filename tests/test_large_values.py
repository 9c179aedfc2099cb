"""Values whose squares overflow are refused, with the cell, and everything below is decided without a warning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.base import is_classifier
from tests.estimators import seeded, small

import gmil
from gmil import Bags, BagValidationError, LazyBags, make_bags
from gmil.bags.finite import largest_value
from gmil.cli.main import main

CLASSIFIERS = [cls for _, cls in gmil.all_estimators() if is_classifier(cls())]
every_classifier = pytest.mark.parametrize("cls", CLASSIFIERS)
precision = pytest.mark.parametrize("dtype", [np.float32, np.float64])
# Instance 5 is the second one of bag 1.
PLACE = r"in bag 1( \(\w+\))?, instance 1, column 2"


@pytest.fixture(scope="module")
def problem():
    return make_bags(20, bag_size=4, n_features=3, separation=3, random_state=3, return_X_y=True)


def with_value(bags, times, dtype):
    """Return bags of which one value is so many times the largest that is allowed."""
    X = bags.instances.astype(dtype)
    X[5, 2] = times * largest_value(3, dtype)
    return Bags(X, bags.offsets)


@precision
@every_classifier
def test_one_value_too_large_is_named(cls, dtype, problem):
    bags, y = problem
    large = with_value(bags, -1.01, dtype)
    with pytest.raises(BagValidationError, match=rf"too large: -\S+ {PLACE} .*Rescale the column"):
        seeded(small(cls)).fit(large, y)
    model = seeded(small(cls)).fit(bags, y)
    with pytest.raises(BagValidationError, match=PLACE):
        model.predict(large)
    with pytest.raises(BagValidationError, match="in bag 5, instance 0, column 2"):
        model.predict(large.instances)


@precision
@every_classifier
def test_the_largest_value_that_is_allowed_overflows_nowhere(cls, dtype, problem):
    bags, y = problem
    ordinary = Bags(bags.instances.astype(dtype), bags.offsets)
    large = with_value(bags, 0.99, dtype)
    everywhere = Bags(ordinary.instances / np.abs(ordinary.instances).max() * large.instances[5, 2], bags.offsets)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for training, new in ((large, large), (everywhere, everywhere), (ordinary, large)):
            assert np.isfinite(seeded(small(cls)).fit(training, y).decision_function(new)).all()


def test_a_column_may_be_rescaled_before(problem):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    bags, y = problem
    large = with_value(bags, 100, np.float64)
    model = make_pipeline(gmil.PerInstance(FunctionTransformer(np.arcsinh)), gmil.GMIL(random_state=0))
    assert np.isfinite(model.fit(large, y).decision_function(large)).all()


@precision
@pytest.mark.parametrize("sample_size", [20, 1000])
@pytest.mark.parametrize("cls", [gmil.GMIL, gmil.GMILCV, gmil.WeightedGMIL])
def test_streamed_values_too_large_are_named(cls, sample_size, dtype, problem):
    bags, y = problem
    large = with_value(bags, 1.01, dtype)
    lazy = LazyBags.from_array(large.instances, large.offsets)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for model in (cls(random_state=0, sample_size=sample_size), cls(random_state=0, sample_size=sample_size)):
            with pytest.raises(BagValidationError, match=PLACE):
                model.fit(lazy, y)
        with pytest.raises(BagValidationError, match=PLACE):
            gmil.cross_validate(cls(sample_size=sample_size), lazy, y, cv=2)
        with pytest.raises(BagValidationError, match=PLACE):
            cls(random_state=0).fit(bags, y).predict(lazy)


@precision
def test_tensors_with_values_too_large_are_refused(dtype, problem):
    torch = pytest.importorskip("torch")
    bags, _ = problem
    for value in (with_value(bags, 1.01, dtype), with_value(bags, np.inf, dtype), with_value(bags, np.nan, dtype)):
        with pytest.raises(BagValidationError, match=PLACE):
            LazyBags.from_array(torch.tensor(value.instances), value.offsets)
    fine = with_value(bags, 0.99, dtype)
    assert len(LazyBags.from_array(torch.tensor(fine.instances), fine.offsets)) == 20


@pytest.mark.parametrize("command", ["cv", "fit"])
def test_commands_name_the_cell_and_warn_of_nothing(command, problem, tmp_path):
    bags, y = problem
    gmil.datasets.write(tmp_path / "bags.npz", with_value(bags, 1e3, np.float64), y)
    arguments = [command, str(tmp_path / "bags.npz"), "--method", "gmil"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        done = CliRunner().invoke(main, arguments + (["-o", str(tmp_path / "m.gmil")] if command == "fit" else []))
    assert done.exit_code == 2
    assert "too large" in done.stderr
    assert "instance 1, column 2" in done.stderr
