"""A small experiment on generated bags, and rows without what differs from run to run."""

from __future__ import annotations

import copy
import shutil

import pytest

from gmil.paper import parse_spec, run

TOY = {
    "title": "Toy",
    "datasets": ["easy", "hard"],
    "controls": True,
    "generated": {
        "easy": {"n_bags": 24, "n_features": 4, "random_state": 1},
        "hard": {"n_bags": 30, "n_features": 4, "separation": 1.0, "random_state": 2},
    },
    "protocol": {"folds": 3, "repeats": 3, "tuned_repeats": 1, "inner_folds": 2, "max_settings": 3},
    "method": [
        {"name": "gmil", "label": "GMIL", "params": {"n_clusters": 6}, "per_dataset": {"hard": {"n_clusters": 9}}},
        {"name": "not-there", "label": "Nothing"},
    ],
}
VARYING = ["fit_seconds", "predict_seconds", "tune_seconds", "finished_at"]


@pytest.fixture
def toy_document():
    """Return the contents of a specification, to be changed at will."""
    return copy.deepcopy(TOY)


@pytest.fixture
def toy(toy_document):
    """Return the experiment."""
    return parse_spec(toy_document, "toy")


@pytest.fixture
def stable():
    """Return what two runs of the same must agree on."""

    def rows(results):
        return results.table.drop_columns(VARYING).to_pylist()

    return rows


@pytest.fixture(scope="session")
def toy_folder(tmp_path_factory):
    """Run the experiment once; return where its rows are."""
    folder = tmp_path_factory.mktemp("toy")
    run(parse_spec(TOY, "toy"), output=folder)
    return folder


@pytest.fixture
def toy_results(toy, toy_folder, tmp_path):
    """Return the results of the experiment, whose rows are in ``tmp_path``."""
    shutil.copytree(toy_folder, tmp_path, dirs_exist_ok=True)
    return run(toy, output=tmp_path)
