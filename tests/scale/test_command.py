"""The command reads folders, and what it is told to, in blocks."""

from __future__ import annotations

import functools
import json

import numpy as np
import pyarrow.csv as pacsv
import pytest
from click.testing import CliRunner

import gmil
from gmil.cli import console, inputs
from gmil.cli.main import main
from gmil.scale import LazyBags


def run(*arguments):
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def folder(store, labelled, tmp_path):
    path = tmp_path / "bags"
    path.mkdir()
    store(path, "files", *labelled)
    return path


@pytest.fixture
def file(store, labelled, tmp_path):
    store(tmp_path, "parquet", *labelled)
    return tmp_path / "bags.parquet"


def figures(*arguments):
    row = json.loads(run("cv", *arguments, "--folds", 3, "--json"))[0]
    return {name: value for name, value in row.items() if "seconds" not in name and name != "dataset"}


@pytest.mark.parametrize("method", ["gmil", "gmil-cv", "weighted-gmil", "citation-knn"])
def test_cross_validation_gives_the_same_figures(folder, file, method):
    settings = ["--set", "param_grid={'n_clusters': [5, 9]}"] if method == "gmil-cv" else []
    wanted = figures(file, "--method", method, *settings)
    assert figures(file, "--method", method, "--stream", *settings) == wanted
    assert figures(folder, "--method", method, *settings) == wanted


def test_fit_and_predict(folder, file, tmp_path):
    tables = []
    for number, data in enumerate((folder, file)):
        model, output = tmp_path / f"{number}.gmil", tmp_path / f"{number}.csv"
        run("fit", data, "--method", "gmil", "-o", model)
        run("predict", model, data, "-o", output)
        run("predict", model, data, "--instances", "-o", tmp_path / f"{number}-instances.csv")
        tables.append([pacsv.read_csv(output), pacsv.read_csv(tmp_path / f"{number}-instances.csv")])
    for one, other in zip(*tables, strict=True):
        assert one.column_names == other.column_names
        for name in one.column_names:
            a, b = one.column(name).to_numpy(), other.column(name).to_numpy()
            assert np.allclose(a, b, atol=1e-4) if a.dtype.kind == "f" else np.array_equal(a, b)


def test_large_files_are_read_in_blocks(file, monkeypatch):
    assert not isinstance(inputs.Reader().read(str(file)).bags, LazyBags)
    monkeypatch.setattr(inputs, "_SMALLEST_LARGE_FILE", 1)
    monkeypatch.setattr(inputs, "LARGE", 100)
    assert isinstance(inputs.Reader().read(str(file)).bags, LazyBags)


def test_a_cluster_that_is_not_there_is_one_sentence(file, monkeypatch):
    from gmil.scale.dask import connect

    monkeypatch.setattr("gmil.scale.dask.connect", functools.partial(connect, timeout="0.3s"))
    done = CliRunner().invoke(main, ["cv", str(file), "--method", "gmil", "--dask", "tcp://127.0.0.1:1"])
    assert done.exit_code == 2
    assert "No Dask scheduler answers at tcp://127.0.0.1:1" in done.output


def test_information_about_a_folder(folder):
    assert json.loads(run("data", "info", folder, "--json"))["bags"] == 40


def test_progress_has_a_rate_and_the_time_left(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    bags = gmil.Bags(np.zeros((3, 1000), dtype=np.float32), [0, 3])
    with console.StreamProgress("data", bags) as progress:
        for second in range(0, 60, 4):
            now[0] = float(second)
            progress(second * 1000, 60_000)
        now[0] = 64.0
        progress(1000, 60_000)
        now[0] = 84.0
        progress(21_000, 60_000)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "data, pass 1: 64 of 240 MB read, 4 MB/s, about 44 s left"
    assert lines[-1].startswith("data, pass 2: 84 of 240 MB read, 4 MB/s")
