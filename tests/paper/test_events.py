"""Table 3 and Figure 9 on small generated videos."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.metrics import average_precision_score, roc_auc_score

import gmil
from gmil.cli.main import main
from gmil.datasets import make_med11
from gmil.model_selection.folds import fold_numbers
from gmil.paper import events
from gmil.paper.figures import figure9
from gmil.paper.tables import table3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("videos") / "med11"
    make_med11(path, n_bags=60, n_instances=300, n_features=10, n_events=3, witness_rate=0.3)
    return path


@pytest.fixture(scope="module")
def summary(folder, tmp_path_factory):
    data = events.load_videos(folder)
    return table3.measure_table3([data], output=tmp_path_factory.mktemp("out"))


def test_figures_are_those_of_scikit_learn(folder, summary):
    data = events.load_videos(folder)
    folds = fold_numbers(10, data.shown, None, 0)
    splits = [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(10)]
    bags = data.bags.load()
    y = (data.shown == "E002").astype(int)
    expected = gmil.cross_validate(
        gmil.WitnessSVM(kernel="linear", solver="liblinear", tune=True), bags, y, cv=splits, random_state=0
    ).decisions[0, 0]
    row = next(row for row in summary["rows"] if row["method"] == "mi-svm-witness")
    by_fold = [(y[folds == f], expected[folds == f]) for f in range(10)]
    assert row["cells"]["E002"]["auc"] == pytest.approx(np.mean([roc_auc_score(*pair) for pair in by_fold]))
    precision = np.mean([average_precision_score(*pair) for pair in by_fold])
    assert row["cells"]["E002"]["average_precision"] == pytest.approx(precision)
    recall = np.mean([(d > 0)[t == 1].mean() for t, d in by_fold])
    assert row["cells"]["E002"]["recall"] == pytest.approx(recall)


def test_no_repeats_are_refused(tmp_path):
    with pytest.raises(gmil.BagValidationError, match="repeats must be at least 1, got 0"):
        table3.measure_table3([], output=tmp_path, repeats=0)


def test_every_row_is_there_with_the_constant_beside_it(summary):
    found = [(row["dataset"], row["method"]) for row in summary["rows"]]
    assert found[:4] == [("med11", m) for m in ("gmil", "weighted-gmil", "mi-svm-witness", "constant")]
    assert found[4:] == [("med11 (real)", "mi-svm-witness"), ("med11 (real)", "gmil")]
    constant = summary["rows"][3]["cells"]["E001"]
    assert constant == {
        "auc": 0.5,
        "average_precision": pytest.approx(1 / 3),
        "balanced_accuracy": 0.5,
        "recall": 0.0,
        "accuracy": pytest.approx(2 / 3),
    }
    assert summary["rows"][5]["mean"]["accuracy"] == pytest.approx(0.6804)
    assert any("does not define its accuracy" in note for note in summary["notes"])


def test_what_was_measured_is_found_again(folder, tmp_path, monkeypatch):
    data = events.load_videos(folder)
    first = table3.measure_table3([data], output=tmp_path, only=["gmil"])
    monkeypatch.setattr(table3, "cross_validate", None)
    again = table3.measure_table3([data], output=tmp_path, only=["gmil"])
    assert again["rows"][0] == first["rows"][0]
    assert [f"table3/{path.name}" for path in (tmp_path / "table3").iterdir()] == first["rows"][0]["files"]
    with pytest.raises(TypeError):
        table3.measure_table3([data], output=tmp_path, only=["gmil"], seed=1)


def test_what_does_not_fit_is_said(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(events, "_BYTES_PER_NUMBER", 1 << 40)
    data = events.load_videos(folder)
    found = table3.measure_table3([data], output=tmp_path, only=["mi-svm-witness"])
    assert found["failures"][0]["failure"].startswith("not run: needs about")


def test_the_table_command_prints_and_writes(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("GMIL_DATA_HOME", str(tmp_path / "nothing"))
    arguments = ["paper", "table3", "--med11", folder, "--methods", "gmil", "--output", tmp_path / "out"]
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    assert "ucf-crime is left out" in done.stderr
    assert "always no" in done.stdout
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"table3", "table3.json", "table3.csv", "table3.svg"}
    assert json.loads((tmp_path / "out" / "table3.json").read_text())["protocol"]["folds"] == 10
    bad = CliRunner().invoke(main, ["paper", "table3", "--methods", "nothing"])
    assert bad.exit_code == 2
    assert "has no method 'nothing'" in bad.stderr


def test_times_are_measured_up_to_the_end_of_the_budget(folder, tmp_path, monkeypatch):
    asked = []

    def measured(name, source, n_bags, seed, limit):
        asked.append((name, n_bags))
        assert limit <= 30 * 0.5
        late = name == "mi-svm-witness" and n_bags > 20
        return {"reason": "the time limit was reached"} if late else {"seconds": float(n_bags), "cpu_seconds": 1.0}

    monkeypatch.setattr(figure9, "in_own_process", measured)
    found = figure9.measure_figure9(folder, minutes=0.5)
    gmil_curve, other = found["curves"]
    assert [point["bags"] for point in gmil_curve["points"]] == [6, 8, 15, 30, 60]
    assert gmil_curve["points"][-1]["instances"] == 300
    assert [point["bags"] for point in other["points"]] == [6, 8, 15]
    assert other["stopped"] == {"bags": 30, "reason": "the time limit was reached"}
    assert ("mi-svm-witness", 60) not in asked
    assert any("was not timed with 30 bags: the time limit was reached" in note for note in found["notes"])


def test_a_measurement_is_a_process_that_can_be_ended(folder):
    late = figure9.in_own_process("gmil", str(folder), 30, 0, limit=0.01)
    assert late == {"reason": "the time limit was reached"}
    found = figure9.learn_events("mi-svm-witness", str(folder), 20, 0)
    assert found["seconds"] > 0
    assert figure9.learn_events("gmil", str(folder), 20, 0)["seconds"] > 0


def test_a_choice_of_videos_keeps_the_shares_of_events(folder):
    data = events.load_videos(folder)
    some = data.some(30, seed=0)
    assert sorted(np.unique(some.shown, return_counts=True)[1]) == [10, 10, 10]
    assert not np.array_equal(data.some(30, seed=1).bags.bag_ids, some.bags.bag_ids)


@pytest.mark.slow
def test_the_figure_command_measures(folder, tmp_path):
    arguments = ["paper", "figure9", "--med11", folder, "--minutes", "2", "--output", tmp_path / "out"]
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"figure9.json", "figure9.csv", "figure9.svg"}
