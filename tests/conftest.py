"""Bags that several test modules share."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, settings
from tests.browser import chromium, visit  # noqa: F401  fixtures

import gmil
from gmil import Bags
from gmil.engine import why_not
from gmil.target_checks import outcomes_of

# A busy machine is no failure.
patient = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=20, **patient)
settings.register_profile("thorough", max_examples=100, **patient)  # of make test-all
settings.load_profile("quick")


SEEN_BY_OTHER_CHECKS = (
    "check_classifiers_train(readonly_memmap=True",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
)
"""scikit-learn's checks that repeat another one: memory maps and sparse bags have quicker tests of their own."""


LONG_EXAMPLES = ("methods/deep/attention.py::gmil", "methods/deep/pooled.py::gmil", "methods/deep/trans_mil.py::gmil")
"""Examples in docstrings that train a network; the page of the networks has one that is run each time."""
LONG = ("tests/scale/test_dask.py", "tests/paper/test_killed.py", "tests/test_fuzz.py")
"""They begin: the last test of a process should not be a long one."""


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items):
    """Mark tests before they are chosen by their marks; begin with the long ones, after all are shuffled."""
    for item in items:
        if any(part in item.nodeid for part in (*SEEN_BY_OTHER_CHECKS, *LONG_EXAMPLES)):
            item.add_marker(pytest.mark.slow)
    _skip_networks(items)
    yield
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


def _skip_networks(items):
    """Skip what needs PyTorch where it is not installed."""
    if why_not("torch") is None:
        return
    networks = {name for name, cls in gmil.all_estimators() if "epochs" in cls().get_params()}
    for item in items:
        given = getattr(item, "callspec", None)
        names = {word for value in given.params.values() for word in _names_in(value)} if given else set()
        is_example = any(place in item.nodeid for place in ("methods/deep/", "methods.deep.", "[methods/deep]"))
        if names & networks or is_example:
            item.add_marker(pytest.mark.skip(reason="PyTorch is not installed: pip install 'gmil[torch]'"))


def _names_in(value):
    """Return what a parameter of a test may be called: the class of a model, a class, or the start of a text."""
    if isinstance(value, str):
        return {value, value.partition("-")[0]}
    return {getattr(value, "__name__", ""), type(value).__name__}


def make_gaussian_bags(n_bags=24, n_classes=2, n_features=3, sizes=(2, 6), seed=0, all_witnesses=False):
    """Return float64 bags and labels; one instance of a bag of class c > 0, or all, lie 6 away along axis c - 1.

    The numbers are exact in float32, so that both precisions see the same bags.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n_bags) % n_classes
    bags = []
    for label in y:
        bag = rng.normal(size=(rng.integers(*sizes, endpoint=True), n_features))
        if label:
            bag[slice(None) if all_witnesses else rng.integers(len(bag)), label - 1] += 6
        bags.append(bag.astype(np.float32).astype(np.float64))
    return Bags.from_list(bags), y


def target_for(estimator, y):
    """Return labels as an estimator takes them: events and times for survival, earlier where the label is larger."""
    if getattr(estimator, "_target", None) != "survival":
        return y
    y = np.asarray(y, dtype=float)
    return outcomes_of(np.ones(len(y), dtype=bool), 1 + y.max() - y + 0.01 * np.arange(len(y)))


@pytest.fixture(scope="session")
def gaussian_bags():
    """Return the maker of bags and labels."""
    return make_gaussian_bags


@pytest.fixture
def run():
    """Run the command in this process; the result has ``stdout``, ``stderr`` and ``exit_code``."""

    from gmil.cli.main import main  # here: most tests need no commands

    def call(*arguments):
        result = CliRunner().invoke(main, [str(a) for a in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return call


@pytest.fixture
def exact_machines(monkeypatch):
    """Let the solver of support vector machines stop much later: what is left then is no matter of its tolerance."""
    monkeypatch.setattr("gmil.engine.margins.TOLERANCE", 1e-9)


@pytest.fixture
def crowded_bags():
    """Return the maker of bags whose few hard negative instances are lost among many easy ones.

    Witnesses lie at 1, most instances at -3, and one of every negative bag at 0. Where all negative instances together
    cost what all witnesses cost, one at 0 costs too little to be kept negative.
    """

    def make(seed=0, *, n_bags=24, n_easy=200, positive_size=4):
        rng = np.random.default_rng(seed)
        y = np.arange(n_bags) % 2
        bags = [rng.normal([-3.0, 0.0], 0.1, size=(positive_size if positive else n_easy, 2)) for positive in y]
        for bag, positive in zip(bags, y, strict=True):
            bag[0] = rng.normal([positive, 0.0], 0.1)
        return Bags.from_list(bags), y

    return make


@pytest.fixture
def rich_bags():
    """Return four bags with ids, names and one info column that is the number of the row."""
    instances = np.arange(20.0).reshape(10, 2)
    return Bags(
        instances,
        [0, 3, 4, 8, 10],
        bag_ids=["a", "b", "c", "d"],
        feature_names=["width", "height"],
        instance_info={"row": np.arange(10)},
    )


@pytest.fixture
def small_paper(monkeypatch, tmp_path):
    """Make the experiments of ``gmil paper --quick`` small, on bundled data."""
    from gmil.paper import load_spec

    monkeypatch.setenv("GMIL_DATA_HOME", str(tmp_path / "nothing"))

    def small(name):
        spec = load_spec(name)
        quick = {**spec.quick, "repeats": 1, "max_settings": 2, "inner_folds": 2}
        sweeps = tuple(dataclasses.replace(s, quick_values=s.values[:1]) for s in spec.sweeps)
        datasets = ("musk1", "elephant") if name != "figure7" else spec.datasets
        return dataclasses.replace(spec, datasets=datasets, quick=quick, sweeps=sweeps)

    monkeypatch.setattr("gmil.paper.load_spec", small)
