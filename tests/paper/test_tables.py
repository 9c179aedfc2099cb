"""Tables and figures: one summary each, complete, honest, and traceable to rows."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import gmil
from gmil.paper import load_spec, measure, parse_spec, published_accuracy, published_seconds, run
from gmil.paper.figures import figure7
from gmil.paper.runs import output
from gmil.paper.statistics import compare
from gmil.paper.tables import table1, table2
from gmil.reporting.plots.paper import draw_figure7, draw_table1, draw_table2


@pytest.fixture(scope="module")
def musk(tmp_path_factory):
    """Table 1 with one method and two columns on Musk1 and a generated set, in a folder."""
    folder = tmp_path_factory.mktemp("musk")
    document = {
        "datasets": ["musk1"],
        "controls": True,
        "protocol": {"folds": 10, "repeats": 2, "tuned_repeats": 1, "inner_folds": 2, "max_settings": 2},
        "method": [
            {"name": "gmil", "label": "GMIL", "from_paper": True},
            {"name": "apr", "label": "APR", "columns": []},
            {"name": "dd", "label": "DD", "columns": []},
        ],
    }
    return folder, run(parse_spec(document, "table1"), output=folder)


def test_table1_has_the_columns_apart_and_controls_as_rows(musk):
    _, results = musk
    rows = table1.summarize(results)["rows"]
    found = [(row["method"], row["column"]) for row in rows]
    assert found == [
        ("gmil", "paper"), ("gmil", "tuned"), ("gmil", "printed"), ("apr", "printed"), ("dd", "printed"),
        ("dd", "corrected"), ("majority", "control"), ("bag-size", "control"), ("noise", "control"),
    ]  # fmt: skip
    printed = {row["method"]: row["cells"]["musk1"]["accuracy"] for row in rows if row["column"] == "printed"}
    assert printed == {name: published_accuracy(name, "musk1") / 100 for name in ("gmil", "apr", "dd")}


def test_a_row_says_whose_setting_it_is(tmp_path):
    document = {
        "datasets": ["toy"],
        "generated": {"toy": {"n_bags": 12, "n_features": 2, "random_state": 1}},
        "protocol": {"folds": 2, "repeats": 1},
        "method": [
            {"name": "stk", "columns": ["paper"]},
            {"name": "stk", "label": "its own choice", "columns": ["paper"], "params": {"tune": True}},
            {"name": "stk", "label": "printed", "columns": ["paper"], "params": {"C": 3.0}},
        ],
    }
    rows = table1.summarize(run(parse_spec(document, "table1"), output=tmp_path))["rows"]
    assert [row["title"] for row in rows] == ["default setting", "tuned by itself", "paper setting"]


def test_table1_leads_to_rows(musk):
    folder, results = musk
    summary = table1.summarize(results)
    cell = summary["rows"][0]["cells"]["musk1"]
    assert cell["accuracy"] == results.accuracy("musk1", "gmil", "paper")
    assert cell["interval"][0] < cell["accuracy"] < cell["interval"][1]
    assert len(cell["jobs"]) == cell["repeats"] == 2
    assert all((folder / "rows" / f"{job}.parquet").exists() for job in cell["jobs"])


def test_table1_compares_with_gmil_in_the_same_column(musk):
    _, results = musk
    rows = {(row["method"], row["column"]): row for row in table1.summarize(results)["rows"]}
    found = rows["majority", "control"]["cells"]["musk1"]["against_gmil"]
    expected = compare(
        results.fold_accuracies("musk1", "majority", "paper"),
        results.fold_accuracies("musk1", "gmil", "paper"),
        n_bags=92,
    )
    assert (found["difference"], found["verdict"]) == (expected.difference, expected.verdict)
    assert rows["gmil", "paper"]["cells"]["musk1"]["against_gmil"] is None
    assert rows["gmil", "tuned"]["tune_seconds"] > 0


def test_table1_ranks_where_there_is_something_to_rank(musk):
    _, results = musk
    ranks = {(row["method"], row["column"]): row["average_rank"] for row in table1.summarize(results)["rows"]}
    assert ranks["apr", "printed"] == 1
    assert ranks["gmil", "printed"] == 3
    assert ranks["gmil", "paper"] is None
    assert ranks["majority", "control"] is None


def test_the_published_ranks_are_those_of_the_nine_complete_rows():
    names = ["emdd", "mi-svm-instance", "mica", "annealed-svm", "ppmm", "mi-graph", "mi-crf", "gp-mil", "gmil"]
    datasets = load_spec("table1").datasets
    rows = list(table1._published_rows(load_spec("table1"), datasets))
    table1.add_ranks([row for row in rows if row["column"] == "printed"], datasets, "accuracy")
    ranks = {row["method"]: row["average_rank"] for row in rows if row["average_rank"] is not None}
    assert sorted(ranks) == sorted(names)
    assert min(ranks, key=ranks.get) == "gp-mil"


def test_table1_says_set_by_set_how_many_cross_validations_reach_the_published_figure(musk):
    _, results = musk
    summary = table1.summarize(results)
    (cell,) = summary["reproduction"]
    each = results.fold_accuracies("musk1", "gmil", "paper").mean(axis=1)
    assert (cell["dataset"], cell["repeats"], cell["published"]) == ("musk1", 2, 0.85)
    assert (cell["accuracy"], cell["best"]) == (pytest.approx(each.mean()), each.max())
    assert cell["reached"] == np.mean(each > 0.8495)
    assert summary["notes"][0].startswith("Musk1, the paper's GMIL as printed: ")
    assert "of 2 whole cross-validations, of which none reaches the published 85.0 %." in summary["notes"][0]
    assert any("states no scaling" in note for note in summary["notes"])
    assert any("published figures only: " in note for note in summary["notes"])


def test_a_row_that_is_not_the_named_method_says_so(tmp_path, toy_document):
    toy_document["method"][0] |= {"variant": "with six clusters", "columns": ["paper"]}
    spec = parse_spec(toy_document, "toy")
    summary = table1.summarize(run(spec, output=tmp_path))
    variants = {row["column"]: row["variant"] for row in summary["rows"] if row["method"] == "gmil"}
    assert variants == {"paper": "with six clusters", "printed": ""}  # what was published is the method itself
    assert table1.flat_rows(summary)[0]["variant"] == "with six clusters"
    assert table2.summarize(spec, measure(spec.repeated(1), output=tmp_path))["rows"][0]["variant"]


@pytest.mark.parametrize("name", ["table1", "table2"])
def test_the_variants_among_the_rivals_are_named(name):
    variants = {entry.label: entry.variant for entry in load_spec(name).methods}
    assert all(variants[label] for label in ("DD", "EM-DD", "PPMM kernel", "GP-MIL"))
    assert variants["GMIL"] == ""
    assert name == "table2" or variants["AL-SVM"]


def test_the_corel_figures_of_mi_svm_are_those_of_the_kernel_that_is_measured():
    assert gmil.InstanceSVM().kernel == "rbf"
    for dataset, figure in {"musk2": 83.6, "elephant": 80.0, "fox": 57.9, "tiger": 78.9}.items():
        assert published_accuracy("mi-svm-instance", dataset, corrected=True) == figure


def test_summaries_are_json_and_csv(musk, tmp_path):
    _, results = musk
    summary = table1.summarize(results)
    output.write_json({**summary, "gap": float("nan")}, tmp_path / "t.json")
    read = json.loads((tmp_path / "t.json").read_text())
    assert read["gap"] is None
    assert read["rows"][0]["cells"] == summary["rows"][0]["cells"]
    output.write_csv(table1.flat_rows(summary), tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 9
    assert float(lines[0]["accuracy"]) == summary["rows"][0]["cells"]["musk1"]["accuracy"]
    assert lines[0]["jobs"].split() == summary["rows"][0]["cells"]["musk1"]["jobs"]


def test_table1_is_drawn_the_same_twice(musk, tmp_path):
    _, results = musk
    summary = table1.summarize(results)
    (svg,) = draw_table1(summary, tmp_path / "t")
    text = svg.read_text()
    assert "Musk1" in text
    assert "majority class" in text
    assert draw_table1(summary, tmp_path / "u")[0].read_text() == text


def test_a_failed_cell_has_its_reason_and_no_figure(tmp_path, toy_document):
    toy_document["method"][0]["per_dataset"] = {"hard": {"n_clusters": 10_000}}
    toy_document["method"][0]["columns"] = ["paper"]
    summary = table1.summarize(run(parse_spec(toy_document, "toy"), output=tmp_path))
    cells = summary["rows"][0]["cells"]
    assert cells["hard"]["accuracy"] is None
    assert "n_clusters=10000" in cells["hard"]["failure"]
    assert summary["rows"][0]["mean"] is None
    assert len(summary["failures"]) == 3
    assert draw_table1(summary, tmp_path / "t")


def test_entries_of_one_method_are_told_apart_by_their_labels(toy_document, tmp_path):
    shared = {"name": "gmil", "columns": ["paper"]}
    toy_document["method"] = [
        {**shared, "label": "GMIL", "params": {"n_clusters": 6}},
        {**shared, "label": "two centres", "params": {"n_clusters": 2, "n_positive": 1}},
    ]
    spec = parse_spec(toy_document, "toy")
    results = run(spec, output=tmp_path)
    first, second = (row for row in table1.summarize(results)["rows"] if row["column"] == "paper")
    assert (first["label"], second["label"]) == ("GMIL", "two centres")
    for row in (first, second):
        assert row["cells"]["easy"]["accuracy"] == results.accuracy("easy", "gmil", "paper", row["label"])
    assert not set(first["cells"]["easy"]["jobs"]) & set(second["cells"]["easy"]["jobs"])
    assert first["cells"]["easy"]["against_gmil"] is None
    assert second["cells"]["easy"]["against_gmil"]["difference"] == pytest.approx(
        second["cells"]["easy"]["accuracy"] - first["cells"]["easy"]["accuracy"]
    )
    timings = measure(spec, output=tmp_path)
    rows = table2.summarize(spec, timings)["rows"]
    assert [row["cells"]["hard"]["rounds"] for row in rows] == [3, 3]
    assert rows[0]["cells"]["hard"]["seconds"] == timings.median("hard", "gmil", "paper", "GMIL")
    assert rows[0]["cells"]["hard"]["seconds"] != rows[1]["cells"]["hard"]["seconds"]


def test_published_figures_stand_with_the_first_entry_of_a_method():
    spec = load_spec("table1")
    rows = list(table1._published_rows(spec, spec.datasets))
    assert [row["label"] for row in rows if row["method"] == "annealed-svm"] == ["MI-SVM + DA"]


@pytest.fixture
def timed_document(toy_document):
    toy_document["protocol"] = {"folds": 3, "repeats": 2}
    toy_document["method"] = [
        {"name": "gmil", "label": "GMIL", "columns": ["paper"], "params": {"n_clusters": 5}},
        {"name": "dd", "label": "DD", "columns": []},
    ]
    return toy_document


def test_times_are_measured_in_turn_and_anew(timed_document, tmp_path):
    spec = parse_spec(timed_document, "table2")
    first, second = measure(spec, output=tmp_path), measure(spec, output=tmp_path)
    assert first.file != second.file
    assert len(list((tmp_path / "timings").iterdir())) == 2
    turns = [(row["round"], row["dataset"]) for row in first.rows]
    assert [round_ for round_, _ in turns] == [0, 0, 1, 1]
    assert len(set(turns)) == 4
    assert all(row["threads"] == 1 and row["seconds"] > 0 for row in first.rows)
    assert all(0 < row["cpu_seconds"] <= row["seconds"] + 0.05 for row in first.rows + second.rows)
    assert first.median("easy", "gmil", "paper") != second.median("easy", "gmil", "paper")


def test_table2_has_ratios_and_published_seconds(timed_document, tmp_path):
    timed_document["datasets"] = ["musk1"]
    del timed_document["generated"]
    spec = parse_spec(timed_document, "table2")
    summary = table2.summarize(spec, measure(spec, output=tmp_path))
    ours, dd = (row["cells"]["musk1"] for row in summary["rows"])
    assert (ours["ratio"], ours["published_ratio"], ours["published"]) == (1, 1, 1.7)
    assert (dd["seconds"], dd["published"], dd["gave_up"]) == (None, 1725.9, False)
    assert dd["published_ratio"] == pytest.approx(1725.9 / 1.7)
    assert published_seconds("dd", "musk2") == (3600, True)
    assert (tmp_path / summary["rows_file"]).exists()
    assert "1 thread" in summary["notes"][0]
    assert draw_table2(summary, tmp_path / "t")
    assert len(table2.flat_rows(summary)) == 2


def test_a_method_that_fails_while_timed_is_tried_once_and_named(timed_document, tmp_path):
    timed_document["method"][0]["params"] = {"n_clusters": 10_000}
    spec = parse_spec(timed_document, "table2")
    timings = measure(spec, output=tmp_path)
    assert [row["status"] for row in timings.rows] == ["failed", "failed"]
    summary = table2.summarize(spec, timings)
    assert summary["rows"][0]["cells"]["easy"]["failure"].startswith("BagValidationError")
    assert len(summary["failures"]) == 2


def test_figure7_has_curves_with_spread_and_times(toy_document, tmp_path):
    toy_document["method"] = []
    shared = {"method": "gmil", "datasets": ["easy"]}
    toy_document["sweep"] = [
        {"name": "clusters", "title": "K", "parameter": "n_clusters", "values": [4, 8], "timed": True, **shared},
        {"name": "negative", "parameter": "n_negative", "values": [0, 2], **shared},
        {"name": "sample", "parameter": "sample_size", "values": [50, "none"], "timed": True, **shared},
    ]
    spec = parse_spec(toy_document, "figure7")
    summary = figure7.summarize(run(spec, output=tmp_path), measure(spec.repeated(1), output=tmp_path))
    curves = {curve["name"]: curve["points"] for curve in summary["curves"]}
    assert [point["value"] for point in curves["sample"]] == [50, None]
    point = curves["clusters"][0]
    assert point["least"] <= point["accuracy"] <= point["largest"]
    assert (point["seeds"], len(point["jobs"])) == (3, 3)
    assert point["seconds"] > 0
    assert curves["negative"][0]["seconds"] is None
    assert set(summary["controls"]["easy"]) == {"majority", "bag-size", "noise"}
    assert [line["value"] for line in figure7.flat_rows(summary)][-1] == "all"
    (svg,) = draw_figure7(summary, tmp_path / "f")
    assert "accuracy, %" in svg.read_text()
