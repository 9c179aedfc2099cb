"""``gmil report``, ``gmil compare`` and ``gmil paper all``: what they print, write and refuse."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import gmil
from gmil.cli.main import main
from gmil.paper import comparison


def call(*arguments):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


# ------------------------------------------------------------------ report


def test_report_writes_three_files_into_the_folder_and_prints_the_verdict(run_folder, tmp_path):
    result = call("report", run_folder, "--look", "none")
    assert result.exit_code == 0
    assert result.stdout.startswith("Bag statistics has the highest mean accuracy of the 2 methods measured here")
    assert {"report.html", "report.md", "report.json"} <= {path.name for path in run_folder.iterdir()}
    assert call("report", run_folder, "--look", "none").stdout == result.stdout  # its own JSON is no run


def test_report_writes_one_file_where_that_is_asked_for(run_folder, tmp_path):
    result = call("report", run_folder, "--look", "none", "-o", tmp_path / "mine.md")
    assert result.exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["mine.md"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{tmp}/nothing"], "There is no folder"),
        (["{tmp}"], "holds no results of a run"),
        (["{run}", "-o", "{tmp}/x.pdf"], "written as .html, .md or .json"),
        (["{run}", "--look", "trec9x"], "No model of 'trec9x' can be shown"),
    ],
)
def test_report_refuses_in_one_sentence(run_folder, tmp_path, arguments, words):
    result = call("report", *(a.format(tmp=tmp_path, run=run_folder) for a in arguments))
    assert result.exit_code in (1, 2)
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


# ------------------------------------------------------------------ compare


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Compare three methods on bags of a file, and again; return folder, file and both results."""
    folder = tmp_path_factory.mktemp("compare")
    file = folder / "mine.parquet"
    bags, y = gmil.make_bags(40, n_features=4, separation=5, random_state=3, return_X_y=True)
    gmil.write(file, bags, np.where(y == 1, "yes", "no"))
    arguments = [
        "compare",
        file,
        "-o",
        folder / "out",
        "--methods",
        "gmil,bag-statistics",
        "--folds",
        3,
        "--repeats",
        2,
    ]
    first = call(*arguments, "--jobs", 1, "--positive", "yes")
    rows = {path.name: path.stat().st_mtime_ns for path in (folder / "out" / "rows").iterdir()}
    again = call(*arguments, "--jobs", 1, "--positive", "yes")
    after = {path.name: path.stat().st_mtime_ns for path in (folder / "out" / "rows").iterdir()}
    return folder, first, again, rows == after


def test_compare_prints_methods_controls_and_the_verdict(compared):
    _, first, again, same_rows = compared
    assert first.exit_code == 0, first.stderr
    lines = first.stdout.splitlines()
    assert lines[0] == "Methods on mine.parquet: 2 x 3-fold, seed 0; per cent"
    assert {line.split("  ")[0] for line in lines[2:7]} == {
        "GMIL",
        "bag statistics",
        "majority class",
        "bag size alone",
        "noise features",
    }
    assert "has the highest accuracy of 2 methods, selected on these same bags: " in lines[7]
    assert "mine.parquet: 40 bags" in first.stderr
    assert again.stdout == first.stdout
    assert same_rows  # nothing was measured twice


def test_compare_writes_the_report_beginning_with_the_trust_checks(compared):
    folder, *_ = compared
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert (
        page.index('id="trust"') < page.index('id="accuracy"') < page.index('id="compare"') < page.index('id="model1"')
    )
    summary = json.loads((folder / "out" / "report.json").read_text())
    assert "bag size" in {finding["name"] for finding in summary["trust"]["findings"]}
    assert [look["title"] for look in summary["models"]] == ["Inside GMIL"]
    assert summary["models"][0]["positive"] == "yes"
    assert len(summary["tables"][0]["rows"]) == 5
    assert "verdict" not in summary["trust"]  # the page has one
    keys = {source["key"] for source in summary["sources"]}
    assert {row[1]["source"] for row in summary["tables"][0]["rows"]} <= keys
    assert (folder / "out" / "compare.csv").read_text().count("\n") == 6


def test_a_comparison_shows_held_out_predictions(compared):
    folder, *_ = compared
    compare, page = (json.loads((folder / "out" / f"{name}.json").read_text()) for name in ("compare", "report"))
    rows = {row["label"]: row["cells"]["mine.parquet"] for row in compare["rows"]}
    best = next(row["label"] for row in compare["rows"] if row["method"] == compare["best"])
    labels = list(dict.fromkeys([best, "GMIL"]))
    assert [found["title"] for found in page["assessments"]] == [f"Held-out predictions of {name}" for name in labels]
    for name, found in zip(labels, page["assessments"], strict=True):
        figures = {figure["key"]: figure for figure in found["figures"]}
        assert figures["accuracy_mean"]["value"] == rows[name]["accuracy"]
        assert figures["accuracy_mean"]["interval"] == rows[name]["interval"]
        assert figures["auc_mean"]["value"] == rows[name]["auc"]
        assert sum(map(sum, found["confusion"]["counts"])) == 2 * 40
    assert page["assessments"][0]["importance"]["groups"]
    assert page["warning"] == ""


@pytest.mark.slow
def test_three_classes_are_compared_with_matrix_and_curves(tmp_path, gaussian_bags):
    bags, y = gaussian_bags(n_bags=30, n_classes=3)
    gmil.write(tmp_path / "three.npz", bags, np.array(["a", "b", "c"])[y])
    arguments = ["--methods", "gmil", "--folds", 3, "--repeats", 1, "--jobs", 1, "-o", tmp_path / "out"]
    result = call("compare", tmp_path / "three.npz", *arguments)
    assert result.exit_code == 0, result.stderr
    (found,) = json.loads((tmp_path / "out" / "report.json").read_text())["assessments"]
    assert found["confusion"]["classes"] == ["a", "b", "c"]
    assert [curve["label"] for curve in found["curves"]] == ["a", "b", "c"]
    assert found["score_columns"] == ["probability of the prediction", "probability of the label"]
    assert found["importance"]["groups"]


def test_the_explorer_of_a_comparison_shows_the_predictions_of_the_run(compared):
    folder, *_ = compared
    found = json.loads((folder / "out" / "compare.json").read_text())
    (row,) = (row for row in found["rows"] if row["method"] == "gmil")
    table = pa.concat_tables(
        [pq.read_table(folder / "out" / "rows" / f"{job}.parquet") for job in row["cells"]["mine.parquet"]["jobs"]]
    )
    first = [fold for fold in table.to_pylist() if fold["repeat"] == 0]
    stored = {bag: label for fold in first for bag, label in zip(fold["bags"], fold["predictions"], strict=True)}
    (model,) = json.loads((folder / "out" / "report.json").read_text())["models"]
    assert {bag["number"]: bag["predicted"] for bag in model["explorer"]["bags"]} == stored
    assert model["text"].startswith("Predictions and decisions are held-out, from the run")


def test_a_report_of_a_comparison_notices_that_its_data_changed(compared, tmp_path):
    folder, *_ = compared
    found = json.loads((folder / "out" / "compare.json").read_text())
    found["data"]["fingerprint"] = "another"
    (tmp_path / "compare.json").write_text(json.dumps(found))
    (tmp_path / "rows").symlink_to(folder / "out" / "rows")
    result = call("report", tmp_path, "-o", tmp_path / "r.md")
    assert result.exit_code == 0
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert "is not what it was when the methods were compared" in text
    assert "Inside GMIL" not in text
    assert text.count("## Held-out predictions of") == 1  # those of the run are still there


@pytest.fixture(scope="module")
def patients(tmp_path_factory):
    """Write bags of patients, each with a mark of their own and one label; return the file and the patients."""
    folder = tmp_path_factory.mktemp("patients")
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(16), 4)
    y = rng.permutation(np.arange(16) % 2)[groups]
    instances = np.repeat(rng.normal(0, 3, (16, 4))[groups], 3, axis=0) + rng.normal(0, 0.1, (192, 4))
    info = pa.table({"patient": [f"p{g}" for g in np.repeat(groups, 3)], "row": np.arange(192)})
    gmil.write(folder / "patients.parquet", gmil.Bags(instances, np.arange(0, 193, 3), instance_info=info), y)
    return folder / "patients.parquet", np.array([f"p{g}" for g in groups])


def test_compare_leaves_out_whole_groups_and_says_so(patients, tmp_path):
    file, groups = patients
    shared = ["--methods", "gmil,citation-knn", "--folds", 4, "--repeats", 1, "--jobs", 1]
    result = call("compare", file, "--groups", "patient", *shared, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[0].endswith("per cent; whole groups (patient) left out")
    found = json.loads((tmp_path / "out" / "compare.json").read_text())
    for row in found["rows"]:
        for job in row["cells"]["patients.parquet"]["jobs"]:
            for fold in pq.read_table(tmp_path / "out" / "rows" / f"{job}.parquet").to_pylist():
                inside = set(groups[fold["bags"]])
                assert np.isin(groups, list(inside)).sum() == len(fold["bags"])
    page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "Folds are grouped (patient, 16 groups)" in page
    assert "whole groups (patient) left out" in page
    assert "Confidence intervals: bootstrap over groups, or Wilson where fewer than five groups are wrong" in page
    assert "Inside GMIL" in page  # the data could be read again
    names = {finding["name"] for finding in found["trust"]["findings"]}
    assert "instances in several groups" in names
    alone = call("compare", file, "--features", "features", *shared, "-o", tmp_path / "out")
    assert alone.exit_code == 0, alone.stderr
    without = json.loads((tmp_path / "out" / "compare.json").read_text())
    accuracy = {
        name: {row["method"]: row["mean"] for row in summary["rows"]}["citation-knn"]
        for name, summary in (("groups", found), ("bags", without))
    }
    assert [summary["resampled"] for summary in (found, without)] == ["groups", "bags"]
    # Without groups every patient is known already (and no row of the first run was taken).
    assert accuracy["bags"] > 0.9
    assert accuracy["groups"] < 0.75


@pytest.mark.parametrize(
    ("column", "words"),
    [("row", "must be one for all instances of a bag"), ("doctor", "doctor"), ("single", "at least 2 groups")],
)
def test_compare_refuses_groups_that_cannot_be(patients, tmp_path, column, words):
    bags, y = gmil.read(patients[0], info=("patient", "row"))
    info = bags.instance_info.append_column("single", pa.array(np.repeat(y, bags.sizes).astype(str)))
    gmil.write(tmp_path / "f.parquet", gmil.Bags(bags.instances, bags.offsets, instance_info=info), y)
    result = call("compare", tmp_path / "f.parquet", "--group", column, "--quick", "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.csv"], "There is no file 'nothing.csv'"),
        (["musk1", "--methods", "magic"], "There is no method 'magic'; the methods are"),
        (["musk1", "--repeats", "0"], "Invalid value for '--repeats'"),
        (["musk1", "--positive", "maybe"], "--positive maybe is not a label of the data"),
    ],
)
def test_compare_refuses(tmp_path, arguments, words):
    result = call("compare", *arguments, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert words in result.stderr
    assert not (tmp_path / "out").exists()


def test_compare_says_that_it_takes_fewer_folds_than_asked_for(tmp_path):
    bags, _ = gmil.make_bags(12, n_features=2, random_state=0, return_X_y=True)
    gmil.write(tmp_path / "few.csv", bags, np.arange(12) % 4 == 0)
    arguments = ["--methods", "gmil", "--folds", 5, "--repeats", 1, "--jobs", 1]
    result = call("compare", tmp_path / "few.csv", "-o", tmp_path / "out", *arguments)
    assert "1 x 3-fold" in result.stdout
    assert "* 3 folds and not 5: the rarest class has no more bags." in result.stdout


def test_compare_goes_on_where_every_method_fails(tmp_path, monkeypatch):
    def fail(*_):
        msg = "no solution"
        raise ValueError(msg)

    monkeypatch.setattr("gmil.paper.runs.execution._cross_validate", fail)
    bags, y = gmil.make_bags(20, n_features=2, random_state=0, return_X_y=True)
    gmil.write(tmp_path / "bags.parquet", bags, y)
    arguments = ["--methods", "gmil", "--folds", 2, "--repeats", 1, "--jobs", 1]
    result = call("compare", tmp_path / "bags.parquet", "-o", tmp_path / "out", *arguments)
    assert result.exit_code == 1
    assert "No method could be measured; the data check has " in result.stdout
    assert "failed: gmil: ValueError: no solution" in result.stderr
    assert (tmp_path / "out" / "report.html").exists()


def test_slow_methods_are_left_out_of_large_data_and_said_so():
    bags = gmil.Bags(np.zeros((12_000, 1), dtype=np.float32), np.arange(0, 12_001, 100))
    y = np.arange(120) % 2
    methods, notes = comparison.choose_methods(bags, y, None, quick=False)
    assert not {"mi-graph", "miles", "citation-knn"} & set(methods)
    assert {"gmil", "weighted-gmil", "nsk"} <= set(methods)
    assert any(note.startswith("mi-graph is left out: it is slow with more than 10000 instances") for note in notes)
    assert comparison.choose_methods(bags, y, ["miles"], quick=False) == (["miles"], [])


def test_methods_for_two_classes_are_left_out_of_three():
    bags, y = gmil.Bags.from_list([np.ones((2, 2))] * 9), np.arange(9) % 3
    methods, notes = comparison.choose_methods(bags, y, ["gmil", "dd"], quick=False)
    assert methods == ["gmil"]
    assert notes == ["dd is left out: it is for two classes only."]


def test_there_are_no_more_folds_than_bags_of_the_rarest_class():
    spec = comparison.comparison_spec("mine", [0] * 9 + [1] * 4, ["gmil"], repeats=1, folds=10, seed=0)
    assert spec.protocol.folds == 4
    with pytest.raises(gmil.GmilError, match="at least 2 bags to be compared on, but class 1 has a single bag"):
        comparison.comparison_spec("mine", [0, 0, 1], ["gmil"], repeats=1, folds=10, seed=0)


# ------------------------------------------------------------------ paper all


@pytest.mark.slow
def test_paper_all_runs_everything_and_writes_the_report(small_paper, tmp_path):
    out = tmp_path / "out"
    result = call("paper", "all", "--quick", "--jobs", 1, "--methods", "gmil", "--output", out)
    assert result.exit_code == 0, result.stderr
    names = {path.name for path in out.iterdir()}
    assert {"table1-quick.json", "table2-quick.json", "figure7-quick.json", "report.html", "report.md"} <= names
    summary = json.loads((out / "report.json").read_text())
    assert [table["key"] for table in summary["tables"]] == ["table1", "table1-reproduction", "table2"]
    assert summary["curves"]
    assert summary["models"][0]["title"] == "Inside GMIL on Musk2"


def test_paper_all_goes_on_after_a_failure_and_ends_with_one(small_paper, tmp_path, monkeypatch):
    from gmil.cli.paper import paper
    from gmil.paper.runs import jobs

    monkeypatch.delitem(paper.commands, "figure7")  # two are enough to see that it goes on
    monkeypatch.setattr(jobs, "paper_params", lambda _entry, _dataset: {"n_clusters": 10_000})
    out = tmp_path / "out"
    result = call("paper", "all", "--quick", "--jobs", 1, "--methods", "gmil", "--output", out)
    assert result.exit_code == 1
    assert "Something failed in table1" in result.stderr
    assert (out / "table2-quick.json").exists()
    assert "failed" in (out / "report.md").read_text(encoding="utf-8")
