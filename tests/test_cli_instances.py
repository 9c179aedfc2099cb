"""``--instances``: labels of instances on the command line."""

from __future__ import annotations

import contextlib
import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.utils import Bunch

import gmil
from gmil import datasets
from gmil.checks.controls import CONTROLS
from gmil.cli.main import main

CV = ("--method", "gmil", "--set", "n_clusters=5", "--folds", 3)


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def made():
    return gmil.make_bags(30, n_features=3, separation=3, random_state=1)


@pytest.fixture
def written(made, tmp_path):
    """Return what writes the bags with labels of instances under a name."""

    def write(suffix, name="y_instance"):
        path = tmp_path / f"bags{suffix}"
        bags = gmil.Bags(made.bags.instances, made.bags.offsets, instance_info={name: made.instance_y})
        is_like_a_feature = suffix == ".csv" and name != "y_instance"
        with pytest.warns(gmil.errors.ColumnWarning) if is_like_a_feature else contextlib.nullcontext():
            gmil.write(path, bags, made.y)
        return path

    return write


def expected(made):
    return gmil.cross_validate(gmil.GMIL(5), made.bags, made.y, cv=3, instance_y=made.instance_y)


@pytest.mark.parametrize(
    ("suffix", "name"),
    [(".npz", None), (".mat", None), (".csv", "kind"), (".parquet", "kind"), (".npz", "y_instance")],
)
def test_labels_come_from_a_column_which_is_no_feature(run, written, made, suffix, name):
    path = written(suffix, name or "y_instance")
    result = run("cv", path, *CV, "--json", "--instances", *([name] if name else []))
    [found] = json.loads(result.stdout)
    figures = expected(made).instances.figures()
    if suffix != ".parquet":  # which keeps float32
        assert found["instances"] == json.loads(json.dumps(figures))
    assert found["instances"]["auc"] == pytest.approx(figures["auc"], abs=0.01)
    assert found["instances"]["n_known"] == made.bags.n_instances
    assert found["instances"]["n_positive"] == made.instance_y.sum()


def test_the_figures_stand_below_the_usual_line(run, written, made):
    path = written(".npz")
    lines = run("cv", path, *CV, "--instances").stdout.splitlines()
    assert len(lines) == 6
    assert lines[:3][-1].split()[:2] == ["bags.npz", "gmil"]
    figures = expected(made).instances.figures()
    counts = f"{made.bags.n_instances} of bags.npz, {made.instance_y.sum()} of them witnesses"
    assert lines[3] == f"Instances of held-out bags that have a label: {counts}"
    shown = [f"{figures[name]:.3f}" for name in ("auc", "average_precision", "auc_within")]
    assert lines[5].split()[2::4] == shown
    assert len(run("cv", path, *CV).stdout.splitlines()) == 3
    assert json.loads(run("cv", path, *CV, "--json").stdout)[0]["instances"] is None


def test_blocks_carry_the_labels_along(run, written, made):
    [found] = json.loads(run("cv", written(".parquet"), *CV, "--json", "--stream", "--instances").stdout)
    assert found["instances"]["n_known"] == made.bags.n_instances


def test_data_sets_by_name_have_their_own_labels(run, made, monkeypatch):
    known = np.where(made.y.repeat(made.bags.sizes), made.instance_y, -1)
    bunch = Bunch(bags=made.bags, y=made.y, instance_y=known, groups=None)
    monkeypatch.setattr(
        datasets, "load", lambda name: bunch if name == "ucf-crime" else Bunch(**{**bunch, "instance_y": None})
    )
    [found] = json.loads(run("cv", "ucf-crime", *CV, "--json", "--instances").stdout)
    assert found["instances"]["n_known"] == (bunch.instance_y >= 0).sum()
    refused = run("cv", "musk1", *CV, "--instances")
    assert refused.exit_code == 2
    assert "The data set musk1 has no labels of instances." in refused.stderr
    assert "has no labels of instances that are called 'kind'" in run("cv", "ucf-crime", "--instances", "kind").stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--instances", "other"], "array 'other' is not there; the arrays are .* Name another with --instances"),
        (["--instances", "X"], "--instances X names no column about instances, or one of the features"),
    ],
)
def test_bad_input_is_one_sentence(run, written, arguments, sentence):
    result = run("cv", written(".npz"), "--folds", 3, *arguments)
    assert result.exit_code == 2
    assert re.search(sentence, result.stderr)
    assert len(result.stderr.splitlines()) == 1


# ------------------------------------------------------------------ compare


@pytest.fixture(scope="module")
def compared(made, tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    info = {"kind": made.instance_y}
    gmil.write(folder / "bags.npz", gmil.Bags(made.bags.instances, made.bags.offsets, instance_info=info), made.y)
    given = ["--methods", "gmil,single-instance", "--folds", 3, "--repeats", 1, "--jobs", 1, "-o", folder / "out"]
    arguments = ["compare", folder / "bags.npz", *given, "--instances", "kind"]
    first, again = (CliRunner().invoke(main, list(map(str, arguments))) for _ in range(2))
    assert first.exit_code == 0, first.output
    assert again.stdout == first.stdout
    return folder / "out", first.stdout


def test_compare_measures_scores_of_instances_from_its_store(compared, made):
    folder, printed = compared
    found = json.loads((folder / "compare.json").read_text())
    figures = {row["method"]: row["cells"]["bags.npz"]["instances"] for row in found["rows"]}
    for name, estimator in (("gmil", gmil.GMIL()), ("single-instance", gmil.SingleInstance())):
        expected = gmil.cross_validate(estimator, made.bags, made.y, cv=3, instance_y=made.instance_y)
        assert figures[name] == json.loads(json.dumps(expected.instances.figures()))
        assert f"{expected.instances.auc_within():.3f}" in printed
    assert {name for name, figure in figures.items() if figure is None} == set(CONTROLS)
    assert found["data"]["instances"] == "kind"


def test_compare_quotes_which_method_is_for_where(compared):
    _, printed = compared
    told = [line for line in printed.splitlines() if ", for where: AUC of instances" in line]
    assert len(told) == 2
    assert "weighted-gmil" not in printed  # it was not compared


def test_the_files_of_a_comparison_carry_the_figures(compared):
    folder, _ = compared
    header, *lines = (folder / "compare.csv").read_text().splitlines()
    assert header.endswith("instance_auc_within,instance_auc_within_low,instance_auc_within_high")
    assert sum(not line.endswith(",,,") for line in lines) == 2  # the controls score no instances
    page = (folder / "report.md").read_text(encoding="utf-8")
    assert "AUC of instances within bags" in page
    assert "Inside GMIL" in page  # the data could be read again: the labels of instances are no feature


@pytest.mark.slow
def test_several_classes_are_compared_too(run, tmp_path):
    made = gmil.make_bags(24, n_features=3, separation=4, n_classes=3, random_state=1)
    path = tmp_path / "bags.npz"
    gmil.write(path, gmil.Bags(made.bags.instances, made.bags.offsets, instance_info={"k": made.instance_y}), made.y)
    given = ["--methods", "gmil", "--folds", 3, "--repeats", 1, "--jobs", 1, "-o", tmp_path / "out"]
    result = run("compare", path, *given, "--instances", "k")
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "out" / "compare.json").read_text())
    [figures] = [row["cells"]["bags.npz"]["instances"] for row in found["rows"] if row["method"] == "gmil"]
    expected = gmil.cross_validate(gmil.GMIL(), made.bags, made.y, cv=3, instance_y=made.instance_y)
    assert figures["auc"] == pytest.approx(expected.instances.auc())
