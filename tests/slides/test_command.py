"""Folders of slides on the command line, read in blocks, with patients."""

from __future__ import annotations

import csv
import itertools
import json
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from tests.slides.made import table

import gmil
from gmil.cli.main import main


def run(*arguments, code=0):
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output + done.stderr
    return done


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cohort") / "slides"
    run(
        "data", "make", "slides", "-o", folder, "--slides", 24, "--patches", 40, "--features", 16, "--tumour-share", 0.2
    )
    return folder


@pytest.fixture
def no_memory(monkeypatch):
    """Fail where slides are read into memory at once."""

    def load(_self):
        pytest.fail("all slides were read into memory")

    monkeypatch.setattr(gmil.LazyBags, "load", load)


COLUMNS = ("--bag", "slide_id", "--label", "label")


def test_cv_streams_slides_and_keeps_patients_together(made, no_memory):
    labels = made / "labels.csv"
    done = run("cv", made, "--labels", labels, *COLUMNS, "--group", "case_id", "--folds", 3, "--json")
    assert f"{made} is read as TRIDENT: 24 bags, 960 patches." in done.stderr
    row = json.loads(done.stdout)[0]
    with labels.open() as file:
        assert row["groups"] == len({line["case_id"] for line in csv.DictReader(file)})
    assert row["accuracy_mean"] > 0.5


def test_sites_are_kept_whole(made, no_memory):
    row = json.loads(run("cv", made, *COLUMNS, "--group", "site", "--folds", 2, "--json").stdout)[0]
    with (made / "labels.csv").open() as file:
        assert row["groups"] == len({line["site"] for line in csv.DictReader(file)})


def test_fit_predict_score_check_and_info(made, tmp_path, no_memory):
    model, out = tmp_path / "m.gmil", tmp_path / "p.csv"
    run("fit", made, *COLUMNS, "--group", "case_id", "-o", model)
    run("predict", model, made, "-o", out)
    assert len(out.read_text().splitlines()) == 25
    run("predict", model, made, "--instances", "-o", out)
    lines = out.read_text().splitlines()
    assert len(lines) == 961
    assert lines[0].replace('"', "") == "bag,instance,x,y,patch_size,unit,score"
    score = json.loads(run("score", model, made, *COLUMNS, "--group", "case_id", "--json").stdout)
    assert score["bags"] == 24
    assert json.loads(run("data", "info", made, *COLUMNS, "--json").stdout)["info columns"][:2] == ["x", "y"]


def test_patients_as_bags(made, no_memory):
    found = json.loads(run("data", "info", made, "--bag", "case_id", "--json").stdout)
    assert found["bags"] < 24
    assert found["instances"] == 960


def test_given_splits_are_the_folds(made, tmp_path):
    names = gmil.scan(made)[0].bag_ids.tolist()
    marks = table(tmp_path / "folds.csv", ["slide_id", "split"], *([name, i % 3] for i, name in enumerate(names)))
    row = json.loads(run("cv", made, *COLUMNS, "--splits", marks, "--json").stdout)[0]
    assert row["folds"] == 3
    done = run("cv", made, *COLUMNS, "--splits", marks, "--group", "case_id", "--json")
    assert "groups are trained on and tested" in done.stderr


def test_splits_that_clam_drew_again_and_again(made, tmp_path):
    names, folder, rng = gmil.scan(made)[0].bag_ids, tmp_path / "splits", np.random.default_rng(0)
    folder.mkdir()
    for number in range(3):
        order = rng.permutation(names).tolist()
        sides = itertools.zip_longest(order[:14], order[14:18], order[18:], fillvalue="")
        table(
            folder / f"splits_{number}.csv", ["", "train", "val", "test"], *([i, *row] for i, row in enumerate(sides))
        )
    row = json.loads(run("cv", made, *COLUMNS, "--splits", folder, "--json").stdout)[0]
    assert (row["folds"], row["repeats"]) == (1, 3)
    assert row["accuracy_std"] is not None
    assert "3 splits" in run("cv", made, *COLUMNS, "--splits", folder).stdout
    done = run("cv", made, *COLUMNS, "--splits", folder, "-o", tmp_path / "page.html", code=2)
    assert "do not test every bag once" in done.stderr


def test_errors_name_options(made, tmp_path):
    assert "Name another with --group." in run("cv", made, *COLUMNS, "--group", "who", code=2).stderr
    assert "--layout must be one of" in run("cv", made, "--layout", "qupath", code=2).stderr
    labels = table(tmp_path / "l.csv", ["slide_id", "msi"], ["CASE0000-dx1", 1])
    done = run("cv", made, "--labels", labels, "--label", "msi", "--bag", "slide_id", code=2)
    assert "differ in upper and lower case" in done.stderr
    (made / "x").mkdir(exist_ok=True)
    bare = tmp_path / "bare"
    gmil.make_slides(bare, n_slides=2, n_patches=5, n_features=4)
    (bare / "labels.csv").unlink()
    assert "Name a table of slides with --labels" in run("cv", bare, code=2).stderr


def test_tables_of_patients_and_of_slides(tmp_path, no_memory):
    made = gmil.make_slides(tmp_path / "s", layout="stamp", n_slides=12, n_patches=20, n_features=8, tumour_share=0.3)
    tables = [part for path in made.labels for part in ("--labels", path)]
    done = run("cv", made.folder, *tables, "--label", "label", "--group", "PATIENT", "--folds", 2, "--json")
    assert "is read as STAMP" in done.stderr


def test_scores_of_patches_are_measured_by_a_table_of_places(made, no_memory):
    asked = ("cv", made, *COLUMNS, "--folds", 2, "--instances")
    row = json.loads(run(*asked, made / "patch_labels.csv", "--json").stdout)[0]
    with (made / "patch_labels.csv").open() as file:
        assert row["instances"]["n_positive"] == sum(int(line["tumour"]) for line in csv.DictReader(file))
    done = run(*asked, made / "labels.csv", code=2)
    assert "must have the columns slide, x and y and one more" in done.output + done.stderr


def test_times_of_slides_with_events(made, tmp_path, no_memory):
    with (made / "labels.csv").open() as file:
        names = [line["slide_id"] for line in csv.DictReader(file)]
    rows = [[name, 1 + number * 7 % 24, "true" if number % 3 else "0"] for number, name in enumerate(names)]
    times = table(tmp_path / "times.csv", ["slide_id", "months", "died"], *rows)
    asked = ("cv", made, "--labels", times, "--bag", "slide_id", "--label", "months", "--folds", 2, "--json")
    row = json.loads(run(*asked, "--event", "died").stdout)[0]
    assert row["target"] == "survival"
    model = tmp_path / "times.gmil"
    run("fit", *asked[1:8], "--event", "died", "--set", "witness_model=False", "-o", model)
    assert "concordance" in run("score", model, made, "--labels", times).stdout  # the model knows the columns
    wrong = table(tmp_path / "wrong.csv", ["slide_id", "months", "died"], *([*row[:2], "dead"] for row in rows))
    done = run(*asked[:3], wrong, *asked[4:], "--event", "died", code=2)
    assert "--event must be 0 and 1, or true and false, got dead" in done.output + done.stderr


def test_check_finds_copies_of_a_slide_under_two_names(made, tmp_path):
    copied = shutil.copytree(made, tmp_path / "copied")
    first, second = sorted(copied.rglob("*.h5"))[:2]
    shutil.copy(first, second)
    findings = json.loads(run("check", copied, *COLUMNS, "--json").stdout)["findings"]
    found = next(each for each in findings if each["name"] == "identical bags")
    assert found["level"] == "warning"
    assert "2 bags hold the same instances as another bag" in found["text"]
