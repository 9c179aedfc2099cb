"""Missing values on the command line: found, filled or dropped inside folds, kept in models, and in pages."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

import gmil


@pytest.fixture
def gappy(tmp_path):
    """A CSV file of thirty bags with gaps in two columns, never in the first instance of a bag."""
    bunch = gmil.make_bags(30, n_features=4, random_state=1)
    rows = bunch.bags.instances.copy()
    later = np.setdiff1d(np.arange(bunch.bags.n_instances), bunch.bags.offsets)
    rows[later[::5], 1] = rows[later[::7], 3] = np.nan
    frame = pd.DataFrame(rows, columns=list("abcd"))
    frame.insert(0, "label", np.repeat(bunch.y, bunch.bags.sizes))
    frame.insert(0, "bag", [f"m{i}" for i in bunch.bags.segment_ids])
    frame.to_csv(tmp_path / "gappy.csv", index=False)
    bags = gmil.Bags(rows, bunch.bags.offsets, feature_names=list("abcd"))
    return tmp_path / "gappy.csv", bags, bunch.y


def test_without_a_word_about_them_they_are_an_error_that_names_the_option(run, gappy, tmp_path):
    path, *_ = gappy
    for command in (["cv", path], ["fit", path, "-o", tmp_path / "m.gmil"], ["compare", path, "-o", tmp_path / "run"]):
        result = run(*command)
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1
        assert "X contains NaN: in bag 0 (m0), instance 1, column 1 (b)" in result.stderr
        assert "Fill them with --missing median, or leave out such instances with --missing drop." in result.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("missing", ["median", "drop"])
def test_cv_fills_inside_the_folds(run, gappy, missing):
    path, bags, y = gappy
    result = run("cv", path, "--missing", missing, "--method", "gmil", "--folds", 3, "--json")
    [found] = json.loads(result.stdout)
    model = gmil.make_pipeline(gmil.Impute(missing), gmil.GMIL())
    expected = gmil.cross_validate(model, bags, y, cv=3)
    assert found["accuracy_mean"] == expected.accuracy()
    assert (found["missing"], found["method"], found["params"]["n_clusters"]) == (missing, "gmil", "auto")
    assert f"missing values: {missing}" in run("cv", path, "--missing", missing, "--folds", 3).stdout


def test_a_model_keeps_its_medians_and_predict_uses_them(run, gappy, tmp_path):
    path, bags, y = gappy
    assert run("fit", path, "--missing", "median", "--method", "gmil", "-o", tmp_path / "m.gmil").exit_code == 0
    new = pd.read_csv(path).head(3).assign(a=np.nan)  # there was no gap in training
    new.to_csv(tmp_path / "new.csv", index=False)
    result = run("predict", tmp_path / "m.gmil", tmp_path / "new.csv")
    [row] = csv.DictReader(io.StringIO(result.stdout))
    model = gmil.make_pipeline(gmil.Impute(), gmil.GMIL(random_state=0)).fit(bags, y)
    medians = np.nanmedian(bags.instances, axis=0)
    filled = np.where(np.isnan(new[list("abcd")]), medians, new[list("abcd")])
    assert new["bag"].unique().tolist() == ["m0"]
    assert float(row["decision"]) == model[-1].decision_function([filled])[0]


def test_a_model_without_medians_says_how_to_get_one(run, gappy, tmp_path):
    path, bags, y = gappy
    gmil.GMIL(random_state=0).fit(bags.with_instances(np.nan_to_num(bags.instances)), y).save(tmp_path / "m.gmil")
    result = run("predict", tmp_path / "m.gmil", path)
    assert result.exit_code == 2
    assert "Fill or drop them, or fit the model with --missing median, which fills them." in result.stderr


def test_dropped_instances_have_an_empty_score(run, gappy, tmp_path):
    path, bags, _ = gappy
    run("fit", path, "--missing", "drop", "--method", "gmil", "-o", tmp_path / "m.gmil")
    result = run("predict", tmp_path / "m.gmil", path, "--instances")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(rows) == bags.n_instances
    assert [row["score"] == "" for row in rows] == np.isnan(bags.instances).any(axis=1).tolist()


def test_groups_reach_the_method_behind_the_step(run, gappy, tmp_path):
    path, bags, y = gappy
    frame = pd.read_csv(path)
    groups = np.arange(30) // 3
    frame.assign(patient=[f"p{int(name[1:]) // 3}" for name in frame["bag"]]).to_csv(tmp_path / "g.csv", index=False)
    run("fit", tmp_path / "g.csv", "--group", "patient", "--missing", "median", "-o", tmp_path / "m.gmil")
    expected = gmil.make_pipeline(gmil.Impute(), gmil.WeightedGMIL(random_state=0)).fit(bags, y, groups=groups)
    np.testing.assert_array_equal(
        gmil.load(tmp_path / "m.gmil").decision_function(bags), expected.decision_function(bags)
    )


def test_a_bag_without_a_complete_instance_is_named(run, tmp_path):
    (tmp_path / "gap.csv").write_text("bag,label,f\na,0,1\nb,0,\nc,1,3\nd,1,4\n")
    result = run("fit", tmp_path / "gap.csv", "--missing", "drop", "-o", tmp_path / "m.gmil")
    assert result.exit_code == 2
    assert "these bags have no others: bag 1 (b). Fill the gaps with --missing median" in result.stderr


def test_an_empty_column_is_left_out_with_one_note(run, gappy, tmp_path):
    path, *_ = gappy
    frame = pd.read_csv(path).assign(e=np.nan)
    frame.to_csv(tmp_path / "empty.csv", index=False)
    result = run("cv", tmp_path / "empty.csv", "--missing", "median", "--folds", 3)
    assert result.exit_code == 0
    assert result.stderr.count("Left out, without a value in training: column 4 (e).") == 1


def test_check_counts_cells_by_column_and_answers_everything(run, gappy):
    path, bags, _ = gappy
    result = run("check", path, "--json")
    found = json.loads(result.stdout)
    findings = {finding["name"]: finding for finding in found["findings"]}
    counts = np.isnan(bags.instances).sum(axis=0)
    assert f"b {counts[1]}, d {counts[3]}" in findings["missing values"]["text"]
    assert {"constant features", "identical bags", "bag size", "shuffled labels"} <= set(findings)
    assert "not assessable" not in found["verdict"]


def test_compare_fills_for_all_methods_and_shows_models(run, gappy, tmp_path):
    path, *_ = gappy
    arguments = ["--methods", "gmil,BagStatistics", "--repeats", 1, "--folds", 3, "--jobs", 1, "-o", tmp_path / "run"]
    result = run("compare", path, "--missing", "drop", *arguments)
    assert result.exit_code == 0, result.stderr
    summary = json.loads((tmp_path / "run/compare.json").read_text())
    assert not summary["failures"]
    assert {"gmil", "bag-statistics", "noise"} <= {row["method"] for row in summary["rows"]}
    page = (tmp_path / "run/report.html").read_text()
    assert "cannot be shown" not in page
    assert "Inside GMIL" in page


def test_pages_number_instances_as_they_were_given(gappy):
    _, bags, y = gappy
    model = gmil.make_pipeline(gmil.Impute("drop"), gmil.GMIL(random_state=0)).fit(bags, y)
    explorer = gmil.report(model, bags, y).summary.models[0].explorer
    place = explorer.columns.index("instance")
    for number, bag in enumerate(bags):
        shown = sorted(row[place] for row in explorer.bags[number].rows)
        assert shown == np.flatnonzero(~np.isnan(bag).any(axis=1)).tolist()
