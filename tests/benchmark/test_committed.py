"""The leaderboard of the repository is what its records give, and so is everything that is made of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sklearn
from sklearn.utils.fixes import parse_version
from tools import leaderboard_tables as tables

from gmil.benchmark import load_benchmark, read_leaderboard, verify
from gmil.benchmark.decisions import decision_table, packaged
from gmil.benchmark.page import page
from gmil.benchmark.where import where_table
from gmil.datasets import dataset_names
from gmil.errors import DatasetError

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "benchmarks" / "leaderboard.toml"


@pytest.fixture(scope="module")
def benchmark_of_all():
    if not SPEC.exists():
        pytest.skip("benchmarks/ is in the repository only")
    return load_benchmark(SPEC)


def test_the_specification_asks_for_every_set_of_classes(benchmark_of_all):
    spec = benchmark_of_all.spec
    assert set(spec.datasets) - set(dataset_names()) == {"slides"}
    assert len(spec.datasets) >= 31
    assert spec.protocol.repeats == 5
    assert spec.protocol.folds == 10


def test_every_figure_is_recomputed(benchmark_of_all):
    try:
        wrong, n_figures = verify(benchmark_of_all, SPEC.with_suffix(""))
    except DatasetError as error:
        pytest.skip(str(error))
    is_old = parse_version(sklearn.__version__) < parse_version("1.9")
    if is_old and wrong and all(text.endswith("the folds are not those of its seed") for text in wrong):
        pytest.skip("older versions of scikit-learn draw other folds of groups")
    assert wrong == []
    assert n_figures > 100


def test_page_and_decisions_are_those_of_the_leaderboard(benchmark_of_all):
    found = read_leaderboard(SPEC.with_suffix(""))
    assert (ROOT / "docs" / "_static" / "leaderboard.html").read_text(encoding="utf-8") == page(found)
    assert packaged("kinds") == json.loads(json.dumps(decision_table(found)))
    assert packaged("where") == json.loads(json.dumps(where_table(found)))


def test_tables_of_the_docs_are_those_of_the_leaderboard(benchmark_of_all):
    found = tables.read_leaderboard(tables.RECORDS)
    for path in tables.PAGES:
        text = path.read_text(encoding="utf-8")
        assert "<!-- table " in text
        assert tables.with_tables(text, found) == text, "make tables"


@pytest.mark.parametrize("name", tables.TABLES)
def test_every_table_stands_on_a_page(name):
    pages = [path.read_text(encoding="utf-8") for path in tables.PAGES]
    assert sum(text.count(f"<!-- table {name} -->") for text in pages) == 1
