"""Runs: the same twice, with any number of processes, after failures, over damaged files, two at a time."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import gmil
from gmil import registry
from gmil.errors import DatasetError
from gmil.paper import load_spec, parse_spec, run
from gmil.paper.runs.store import DamagedPartError, Store
from gmil.safety.temporaries import make_temporary


def test_the_same_spec_and_seed_give_the_same_rows_twice(toy, toy_results, tmp_path, stable):
    assert stable(run(toy, output=tmp_path / "again")) == stable(toy_results)
    assert len(stable(toy_results)) == 2 * (3 * 3 + 3 + 1) * 3


@pytest.mark.slow
def test_the_result_does_not_depend_on_the_number_of_processes(toy, toy_results, tmp_path, stable):
    assert stable(run(toy, output=tmp_path / "again", jobs=2)) == stable(toy_results)


def test_rows_agree_with_cross_validate(toy, toy_results):
    bags, y = gmil.make_bags(**toy.generated["easy"], return_X_y=True)
    for repeat, accuracies in enumerate(toy_results.fold_accuracies("easy", "gmil", "paper")):
        expected = gmil.cross_validate(gmil.GMIL(n_clusters=6), bags, y, cv=3, random_state=repeat)
        assert accuracies.tolist() == expected.fold_accuracies()[0, 0].tolist()
    found = toy_results.cross_validation("easy", "gmil", "paper")
    assert found.accuracy() == toy_results.accuracy("easy", "gmil", "paper")
    assert 0 <= found.auc() <= 1
    assert found.y.tolist() == [str(label) for label in y]


def test_a_row_says_where_it_comes_from(toy_results):
    rows = toy_results.rows("easy", "gmil", "tuned")
    assert [row["fold"] for row in rows] == [0, 1, 2]
    row = rows[0]
    assert (row["spec"], row["label"], row["seed"], row["status"]) == ("toy", "GMIL", 0, "ok")
    assert '"n_clusters":' in row["chosen"]
    assert row["tune_seconds"] > 0
    assert row["fit_seconds"] > 0
    assert '"numpy"' in row["versions"]
    assert '"backend"' in row["machine"]
    assert sorted(bag for r in rows for bag in r["bags"]) == list(range(24))


def test_nothing_is_measured_twice(toy, toy_results, tmp_path):
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "rows").iterdir()}
    steps = []
    run(toy, output=tmp_path, progress=lambda *step: steps.append(step))
    assert steps == []
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "rows").iterdir()} == times


def test_a_longer_run_does_only_what_is_new(toy, toy_results, tmp_path):
    steps = []
    run(toy.repeated(4).restricted(["gmil"]), output=tmp_path, progress=lambda *step: steps.append(step))
    new_folds = 2 * (4 * 1 * 3)  # per set: a method and three controls once more, tuned as often as before
    assert steps[-1] == (new_folds, new_folds)


def test_other_experiments_find_the_same_rows_under_their_own_names(toy_document, toy_results, tmp_path):
    toy_document["method"][0]["label"] = "another label"
    steps = []
    results = run(parse_spec(toy_document, "renamed"), output=tmp_path, progress=lambda *s: steps.append(s))
    assert steps == []
    row = results.rows("easy", "gmil", "paper")[0]
    assert (row["spec"], row["label"]) == ("renamed", "another label")


def test_a_fit_that_fails_is_rows_with_the_reason(toy, toy_document, tmp_path):
    toy_document["method"][0]["per_dataset"]["hard"]["n_clusters"] = 10_000
    results = run(parse_spec(toy_document, "toy"), output=tmp_path)
    rows = results.rows("hard", "gmil", "paper")
    assert {row["status"] for row in rows} == {"failed"}
    assert len(rows) == 9
    assert rows[0]["reason"].startswith("BagValidationError: n_clusters=10000 is above")
    assert "\n" not in rows[0]["reason"]
    assert results.accuracy("hard", "gmil", "paper") is None
    assert results.failure("hard", "gmil", "paper") == rows[0]["reason"]
    assert results.accuracy("easy", "gmil", "paper") is not None
    assert {failure["dataset"] for failure in results.failures()} == {"hard"}


class Flaky(ClassifierMixin, BaseEstimator):
    """Fails while ``broken`` is true."""

    broken = True

    def fit(self, X, y):  # noqa: ARG002
        if Flaky.broken:
            msg = "out of\norder"
            raise RuntimeError(msg)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_what_failed_is_done_again_only_when_asked(toy_document, tmp_path, monkeypatch):
    monkeypatch.setitem(registry._methods, "flaky", Flaky)
    monkeypatch.setattr(Flaky, "broken", True)
    toy_document |= {"method": [{"name": "flaky", "columns": ["paper"]}], "controls": False}
    spec = parse_spec(toy_document, "toy")
    assert run(spec, output=tmp_path).failure("easy", "flaky", "paper") == "RuntimeError: out of order"
    monkeypatch.setattr(Flaky, "broken", False)
    assert run(spec, output=tmp_path).failure("easy", "flaky", "paper") is not None
    again = run(spec, output=tmp_path, retry_failed=True)
    assert again.failures() == []
    assert again.accuracy("easy", "flaky", "paper") == 0.5
    assert np.isnan(again.cross_validation("easy", "flaky", "paper").decisions).all()


@pytest.mark.parametrize("damage", ["cut", "bytes", "swapped", "empty"])
def test_a_damaged_part_is_named_and_done_again(toy, toy_results, tmp_path, stable, damage):
    jobs = toy_results.jobs("easy", "gmil", "paper")
    path = tmp_path / "rows" / f"{jobs[1]}.parquet"
    whole = path.read_bytes()
    middle = len(whole) // 3
    other = (tmp_path / "rows" / f"{jobs[0]}.parquet").read_bytes()
    path.write_bytes(
        {
            "cut": whole[:middle],
            "bytes": whole[:40] + bytes(b ^ 255 for b in whole[40:80]) + whole[80:],
            "swapped": other,
            "empty": b"",
        }[damage]
    )
    with pytest.raises(DamagedPartError, match=path.name):
        Store(tmp_path).read(jobs[1], 3)
    after = run(toy, output=tmp_path)
    assert [note for note in after.notes if path.name in note and "damaged" in note]
    assert stable(after) == stable(toy_results)


def test_half_written_files_are_ignored_and_removed(toy, toy_results, tmp_path, stable):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    target = Store(tmp_path).path(toy_results.jobs("easy", "gmil", "paper")[0])
    own = make_temporary(target)
    half = own.rename(own.with_name(own.name.replace(f"-{os.getpid()}-", f"-{gone.pid}-")))
    half.write_bytes(b"PAR1 and then the power went")
    assert stable(run(toy, output=tmp_path)) == stable(toy_results)
    assert not half.exists()


def test_cleaning_leaves_a_living_writer_alone(toy_results, tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    job = toy_results.jobs("easy", "gmil", "paper")[0]
    store, write, removed = Store(tmp_path / "other"), pq.write_table, []

    def write_then_clean(table, path, **options):
        write(table, path, **options)
        removed.append(Store(tmp_path / "other").clean())

    monkeypatch.setattr(pq, "write_table", write_then_clean)
    store.write(job, toy_results.table.slice(0, 0))
    assert removed == [0]
    assert store.path(job).exists()


def test_two_runs_at_the_same_time_do_not_break_the_store(toy_document, tmp_path, stable):
    toy_document["controls"] = False
    spec = parse_spec(toy_document, "toy")
    code = (
        "import json, sys; from gmil.paper import parse_spec, run;"
        "run(parse_spec(json.loads(sys.argv[1]), 'toy'), output=sys.argv[2])"
    )
    import json

    command = [sys.executable, "-c", code, json.dumps(toy_document), str(tmp_path / "both")]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    assert [(process.communicate()[1], process.returncode) for process in both] == [(b"", 0)] * 2
    steps = []
    shared = run(spec, output=tmp_path / "both", progress=lambda *step: steps.append(step))
    assert steps == []
    assert stable(shared) == stable(run(spec, output=tmp_path / "alone"))
    assert not list((tmp_path / "both" / "rows").glob(".*"))


def test_bags_that_are_passed_in_are_used(tmp_path):
    bags, y = gmil.make_bags(20, random_state=5, return_X_y=True)
    labels = np.where(y == 1, "sick", "well")
    document = {
        "datasets": ["mine"],
        "protocol": {"folds": 2, "repeats": 1},
        "method": [{"name": "gmil", "columns": ["paper"], "params": {"n_clusters": 5, "pos_label": "sick"}}],
    }
    found = run(parse_spec(document, "mine"), output=tmp_path, data={"mine": (bags, labels)})
    result = found.cross_validation("mine", "gmil", "paper")
    assert set(result.y) == {"sick", "well"}
    assert result.positive_label == "sick"


@pytest.mark.parametrize("positive", [9, 10])
def test_decisions_are_about_the_second_class_in_the_order_of_texts(tmp_path, positive):
    bags, y = gmil.make_bags(20, random_state=5, return_X_y=True)
    labels = 9 + y  # as texts, 10 comes before 9
    method = {"name": "gmil", "columns": ["paper"], "params": {"n_clusters": 5, "pos_label": positive}}
    document = {"datasets": ["mine"], "protocol": {"folds": 2, "repeats": 1}, "method": [method]}
    found = run(parse_spec(document, "mine"), output=tmp_path, data={"mine": (bags, labels)})
    result = found.cross_validation("mine", "gmil", "paper")
    assert result.positive_label == str(positive)
    clear = result.decisions != 0
    assert np.array_equal(result.predictions[clear] == "9", result.decisions[clear] > 0)


def test_three_classes_keep_their_decisions(tmp_path):
    bags, y = gmil.make_bags(30, n_classes=3, random_state=5, return_X_y=True)
    document = {
        "datasets": ["three"],
        "controls": True,
        "protocol": {"folds": 2, "repeats": 2},
        "method": [{"name": "gmil", "columns": ["paper"], "params": {"n_clusters": 6}}],
    }
    results = run(parse_spec(document, "three"), output=tmp_path, data={"three": (bags, y)})
    assert results.failures() == []
    expected = gmil.cross_validate(gmil.GMIL(n_clusters=6), bags, y, cv=2, random_state=1)
    found = results.cross_validation("three", "gmil", "paper")
    np.testing.assert_array_equal(found.decisions[0, 1], expected.decisions[0, 0])


def test_numbers_that_sort_otherwise_as_texts_keep_their_decisions(tmp_path):
    bags, y = gmil.make_bags(30, n_classes=3, random_state=5, return_X_y=True)
    y = np.array([9, 10, -1])[y]
    document = {
        "datasets": ["three"],
        "protocol": {"folds": 2, "repeats": 1},
        "method": [{"name": "gmil", "columns": ["paper"], "params": {"n_clusters": 6}}],
    }
    results = run(parse_spec(document, "three"), output=tmp_path, data={"three": (bags, y)})
    expected = gmil.cross_validate(gmil.GMIL(n_clusters=6), bags, y, cv=2)
    found = results.cross_validation("three", "gmil", "paper")
    np.testing.assert_allclose(found.fold_aucs(), expected.fold_aucs())
    assert found.one_vs_rest("10").auc() == expected.one_vs_rest(10).auc()


def test_several_cells_are_not_mixed(tmp_path, toy_document):
    toy_document |= {"method": [], "controls": False}
    toy_document["sweep"] = [
        {"name": "k", "method": "gmil", "parameter": "n_clusters", "values": [4, 5], "datasets": ["easy"], "repeats": 1}
    ]
    results = run(parse_spec(toy_document, "toy"), output=tmp_path)
    with pytest.raises(ValueError, match=r"has several cells in 'k'\. Name one by its label"):
        results.accuracy("easy", "gmil", "k")
    assert results.fold_accuracies("easy", "gmil", "k", "n_clusters=4").shape == (1, 3)
    assert results.to_pandas().shape[0] == results.table.num_rows


@pytest.fixture
def without_data(tmp_path, monkeypatch):
    """No data but what is bundled, and no network."""
    monkeypatch.setenv("GMIL_DATA_HOME", str(tmp_path / "none"))

    def refuse(*_args, **_options):
        msg = "no network"
        raise DatasetError(msg)

    monkeypatch.setattr("gmil.datasets.download.download", refuse)


def test_a_quick_run_leaves_out_data_that_is_not_here_and_says_so(without_data, tmp_path):
    from gmil.paper.runs.data import load_datasets

    datasets, notes = load_datasets(load_spec("table1").quickly())
    assert list(datasets) == ["musk1", "musk2"]
    assert [note.split()[0] for note in notes] == ["elephant", "fox", "tiger"]


def test_a_full_run_needs_its_data_but_for_what_is_optional(without_data):
    from gmil.paper.runs.data import load_datasets

    with pytest.raises(DatasetError, match="no network"):
        load_datasets(load_spec("table1"))
    datasets, notes = load_datasets(load_spec("figure7"))
    assert list(datasets) == ["musk2"]
    assert "ucf-crime" in notes[0]


def test_nothing_at_all_to_measure_is_an_error(without_data):
    from gmil.paper.runs.data import load_datasets

    spec = dataclasses.replace(load_spec("table1").quickly(), datasets=("fox", "tiger"))
    with pytest.raises(DatasetError, match="None of the data sets of table1 is here: fox, tiger"):
        load_datasets(spec)


@pytest.fixture
def many(toy_document):
    """GMIL with many repeats, which the other methods do not have."""
    toy_document["datasets"], toy_document["generated"] = ["easy"], {"easy": toy_document["generated"]["easy"]}
    entry = {"name": "gmil", "label": "GMIL", "params": {"n_clusters": 3}, "repeats": 130}
    toy_document["method"] = [entry, {"name": "stk", "columns": ["paper"]}]
    return parse_spec(toy_document, "toy")


def test_many_repeats_are_few_files_and_the_same_rows(many, tmp_path):
    results = run(many, output=tmp_path)
    assert len(results.jobs("easy", "gmil", "paper")) == 12  # ten alone, then 100 and 20
    assert results.fold_accuracies("easy", "stk", "paper").shape == (3, 3)
    assert results.fold_accuracies("easy", "gmil", "tuned").shape == (1, 3)
    rows = results.rows("easy", "gmil", "paper")
    numbers = [(row["repeat"], row["seed"], row["fold"]) for row in rows]
    assert numbers == [(r, r, f) for r in range(130) for f in range(3)]
    bags, y = gmil.make_bags(**many.generated["easy"], return_X_y=True)
    expected = gmil.cross_validate(gmil.GMIL(3), bags, y, cv=3, repeats=130)
    found = results.cross_validation("easy", "gmil", "paper")
    np.testing.assert_array_equal(found.fold_accuracies(), expected.fold_accuracies())
    np.testing.assert_array_equal(found.decisions, expected.decisions)


@pytest.mark.slow
def test_a_quick_run_repeats_nothing_often_and_its_rows_serve_the_full_one(many, tmp_path):
    quick = dataclasses.replace(many, quick={"repeats": 2}).quickly()
    first = run(quick, output=tmp_path)
    assert first.fold_accuracies("easy", "gmil", "paper").shape == (2, 3)
    assert set(first.jobs("easy", "gmil", "paper")) <= set(run(many, output=tmp_path).jobs("easy", "gmil", "paper"))


def test_a_file_that_lacks_a_repeat_is_damaged(many, tmp_path):
    import pyarrow.parquet as pq

    results = run(many, output=tmp_path)
    job = results.jobs("easy", "gmil", "paper")[-1]
    path = tmp_path / "rows" / f"{job}.parquet"
    pq.write_table(pq.read_table(path)[:-3], path)
    assert any("is damaged" in note for note in run(many, output=tmp_path).notes)
