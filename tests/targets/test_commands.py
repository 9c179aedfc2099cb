"""Commands on values, grades and times: which kind they take and say, tables, models, pages."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import gmil


def frame_of(made, **columns):
    frame = pd.DataFrame(made.bags.instances, columns=[f"x{i}" for i in range(made.bags.n_features)])
    owners = made.bags.segment_ids
    return frame.assign(bag=[f"b{i}" for i in owners], **{name: value[owners] for name, value in columns.items()})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("targets")
    options = {"n_features": 3, "bag_size": (2, 4), "witness_rate": 0.5, "random_state": 0}
    values = gmil.make_bags(50, target="regression", **options)
    grades = gmil.make_bags(50, target="ordinal", n_classes=3, **options)
    times = gmil.make_bags(60, target="survival", **options)
    frame_of(values, label=values.y, patient=np.arange(50) // 2).to_csv(folder / "values.csv", index=False)
    frame_of(grades, label=grades.y).to_csv(folder / "grades.csv", index=False)
    frame_of(times, label=times.y["time"], died=times.y["event"].astype(int)).to_csv(folder / "times.csv", index=False)
    return folder


QUICK = ("--folds", 3, "--set", "scales=['standard']", "--set", "witness_model=False")


def test_values_are_taken_as_such_and_it_is_said_why(run, files):
    found = run("cv", files / "values.csv", *QUICK, "--json")
    assert "values.csv: regression, because the label has fractions; weighted-gmil-regressor." in found.stderr
    (row,) = json.loads(found.stdout)
    assert row["target"] == "regression"
    assert row["method"] == "weighted-gmil-regressor"
    low, high = row["r2_interval"]
    assert low <= row["r2"] <= high
    assert row["mae"] <= row["rmse"]
    printed = run("cv", files / "values.csv", *QUICK, "--group", "patient").stdout
    assert "R²" in printed
    assert "of whole groups" in printed


def test_the_page_of_values(run, files, tmp_path):
    run("cv", files / "values.csv", *QUICK, "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for part in ("Predicted against true", "Residuals", "R², variance explained", "b17: true"):
        assert part in page
    run("cv", files / "values.csv", *QUICK, "-o", tmp_path / "page.json")
    content = json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))
    assert len(content["sections"][0]["bags"]) == 50
    run("cv", files / "values.csv", *QUICK, "-o", tmp_path / "page.md")
    assert "| R², variance explained |" in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_times_need_an_event_column(run, files, tmp_path):
    options = ("--event", "died", "--label", "label", *QUICK)
    found = run("cv", files / "times.csv", *options, "-o", tmp_path / "page.html")
    assert "survival, because the label has an event and a time" in found.stderr
    assert "concordance" in found.stdout
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for part in ("Kaplan-Meier curves of risk groups", "log-rank test, p = ", "Calibration"):
        assert part in page
    refused = run("cv", files / "times.csv", "--target", "survival", *QUICK)
    assert refused.exit_code != 0
    assert "name the column with --event" in refused.stderr


def test_grades_are_asked_for(run, files):
    assert "accuracy" in run("cv", files / "grades.csv", *QUICK).stdout
    found = run("cv", files / "grades.csv", "--target", "ordinal", *QUICK)
    assert "quadratic kappa" in found.stdout
    (row,) = json.loads(run("cv", files / "grades.csv", "--target", "ordinal", *QUICK, "--json").stdout)
    assert -1 <= row["quadratic_kappa_interval"][0] <= row["quadratic_kappa"] <= row["quadratic_kappa_interval"][1] <= 1
    wrong = run("cv", files / "grades.csv", "--target", "regression", "--method", "weighted-gmil-ordinal")
    assert "--target regression is not what weighted-gmil-ordinal predicts: ordinal" in wrong.stderr
    mixed = run("cv", files / "grades.csv", files / "values.csv", *QUICK)
    assert "targets of different kinds" in mixed.stderr


@pytest.mark.parametrize(
    ("name", "options", "columns", "measure"),
    [
        ("values.csv", ("--exclude", "patient"), ["bag", "prediction", "low_90", "high_90"], "R², variance explained"),
        ("times.csv", ("--event", "died"), ["bag", "risk", "median_time"], "concordance (Harrell)"),
        pytest.param(
            "grades.csv",
            ("--target", "ordinal"),
            ["bag", "prediction", "decision_0"],
            "quadratic kappa",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_fit_predict_score_and_report(run, files, tmp_path, name, options, columns, measure):
    model, data = tmp_path / "model.gmil", files / name
    assert run("fit", data, "-o", model, *QUICK[2:], *options).exit_code == 0
    run("predict", model, data, "-o", tmp_path / "found.csv")
    found = pd.read_csv(tmp_path / "found.csv")
    assert list(found.columns)[: len(columns)] == columns
    run("predict", model, data, "--instances", "-o", tmp_path / "instances.csv")
    assert any(column.startswith("score") for column in pd.read_csv(tmp_path / "instances.csv").columns)
    assert measure in run("score", model, data, *options).stdout
    assert json.loads(run("score", model, data, *options, "--json").stdout)["bags"] == len(found)
    assert run("report", model, data, *options, "-o", tmp_path / "page.html", "--importance", 0).exit_code == 0
    assert "<svg" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "options", "measure", "best"),
    [
        ("values.csv", ("--exclude", "patient"), "R²", "regressor"),
        pytest.param("times.csv", ("--event", "died"), "concordance", "", marks=pytest.mark.slow),
        pytest.param("grades.csv", ("--target", "ordinal"), "quadratic kappa", "gmil", marks=pytest.mark.slow),
    ],
)
def test_compare_and_check(run, files, tmp_path, name, options, measure, best):
    found = run("compare", files / name, "--quick", "--folds", 3, *options, "-o", tmp_path)
    assert found.exit_code == 0
    assert measure in found.stdout
    assert "bag-size" in found.stdout
    summary = json.loads((tmp_path / "compare.json").read_text(encoding="utf-8"))
    assert best in summary["best"]
    assert (tmp_path / "report.html").exists()
    wrong = run("compare", files / name, "--methods", "vlad", *options, "-o", tmp_path)
    assert wrong.exit_code != 0


def test_a_comparison_of_values_that_was_stopped_goes_on(run, files, tmp_path, monkeypatch):
    options = ("--methods", "bag-regressor", "--folds", 3, "--repeats", 2, "--exclude", "patient", "-o", tmp_path)
    whole = run("compare", files / "values.csv", *options)
    assert "were taken from" not in whole.stderr
    first = json.loads((tmp_path / "compare.json").read_text(encoding="utf-8"))
    parts = sorted((tmp_path / "rows").glob("*.npz"))
    assert len(parts) == 2 * len(first["rows"])
    parts[0].unlink()
    parts[1].write_bytes(parts[1].read_bytes()[:100])
    again = run("compare", files / "values.csv", *options)
    assert f"{len(parts) - 2} finished cross-validations were taken from" in again.stderr
    assert f"{parts[1].name} was damaged, and its work was done again." in again.stderr
    assert json.loads((tmp_path / "compare.json").read_text(encoding="utf-8"))["rows"] == first["rows"]
    monkeypatch.setattr("gmil.paper.target_store.cross_validate", None)  # nothing is left to do
    assert run("compare", files / "values.csv", *options).exit_code == 0


@pytest.mark.slow
def test_check_of_values_and_times(run, files):
    for name, options in (("values.csv", ("--exclude", "patient")), ("times.csv", ("--event", "died"))):
        found = json.loads(run("check", files / name, *options, "--json").stdout)
        assert "better than chance" in found["verdict"]
        assert {finding["name"] for finding in found["findings"]} >= {"shuffled targets", "instances against bag size"}
