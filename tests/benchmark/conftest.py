"""A small benchmark on generated bags, measured once."""

from __future__ import annotations

import copy

import pytest

from gmil.benchmark import leaderboard, parse_benchmark, run, write_leaderboard

TOY = {
    "title": "Toy",
    "datasets": ["easy", "hard", "more"],
    "reference": "gmil",
    "chose_defaults": ["easy"],
    "controls": ["majority", "bag-size-tree"],
    "generated": {
        "easy": {"n_bags": 24, "n_features": 4, "random_state": 1},
        "hard": {"n_bags": 30, "n_features": 4, "separation": 1.0, "random_state": 2},
        "more": {"n_bags": 26, "n_features": 4, "separation": 2.0, "random_state": 3},
    },
    "protocol": {"folds": 3, "repeats": 2, "tuned_repeats": 1, "inner_folds": 2, "max_settings": 3},
    "method": [
        {"name": "gmil", "label": "GMIL"},
        {"name": "bag-statistics", "label": "bag statistics", "columns": ["default"]},
    ],
}


@pytest.fixture
def document():
    """Return the contents of a specification, to be changed at will."""
    return copy.deepcopy(TOY)


@pytest.fixture(scope="session")
def toy():
    """Return the benchmark."""
    return parse_benchmark(copy.deepcopy(TOY), "toy")


@pytest.fixture(scope="session")
def board(toy, tmp_path_factory):
    """Return the folder of its leaderboard."""
    folder = tmp_path_factory.mktemp("board")
    run(toy, output=folder)
    write_leaderboard(leaderboard(toy, folder), folder)
    return folder
