"""Everything that is published follows from the records; what does not is found."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from tests.toml_text import as_toml

from gmil.benchmark import Shelf, leaderboard, verify, write_leaderboard
from gmil.benchmark.records import MethodRecords, read_records, write_records
from gmil.cli.main import main
from gmil.errors import DatasetError, FormatError, MissingFileError


@pytest.fixture
def copied(board, tmp_path):
    return shutil.copytree(board, tmp_path / "board", ignore=shutil.ignore_patterns("rows"))


def gmil_records(folder):
    path = folder / "methods" / "gmil.parquet"
    return path, read_records(path)


def test_a_leaderboard_is_what_its_records_give(toy, board):
    wrong, n_figures = verify(toy, board)
    assert wrong == []
    assert n_figures > 300


def test_labels_that_are_not_on_record_are_those_of_the_data(toy, copied, monkeypatch):
    (copied / "sets.parquet").unlink()
    assert verify(toy, copied)[0] == []
    monkeypatch.setattr("gmil.benchmark.shelf.load_sets", lambda _: ({}, []))
    with pytest.raises(DatasetError, match="need the labels of easy, hard, more, which are not here"):
        verify(toy, copied)


def test_a_figure_that_was_changed_is_found(toy, copied):
    path = copied / "leaderboard.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    found["cells"][0]["auc"] += 0.01
    path.write_text(json.dumps(found), encoding="utf-8")
    wrong, _ = verify(toy, copied)
    assert len(wrong) == 1
    assert wrong[0].startswith("cells[0].auc: published 0.")


def test_a_decision_that_was_changed_is_found(toy, copied):
    path, records = gmil_records(copied)
    row = next(row for row in records.rows if row["dataset"] == "hard")
    row["predictions"] = Shelf(copied).sets()["hard"]["y"]  # all are right all at once
    write_records(path, records)  # with the right hash
    wrong, _ = verify(toy, copied)
    assert any("accuracy" in text for text in wrong)


def test_folds_that_are_not_those_of_the_seed_are_found(toy, copied):
    path, records = gmil_records(copied)
    records.rows[0]["folds"] = np.roll(records.rows[0]["folds"], 1)
    write_records(path, records)
    write_leaderboard(leaderboard(toy, copied), copied)
    wrong, _ = verify(toy, copied)
    assert wrong == ["gmil on easy, default, repeat 0: the folds are not those of its seed"]


def test_a_file_that_was_changed_by_hand_is_refused(copied):
    path, _ = gmil_records(copied)
    table = pq.read_table(path)
    at = table.schema.get_field_index("cpu_seconds")
    changed = table.set_column(at, "cpu_seconds", pq.read_table(path)["peak_bytes"])
    pq.write_table(changed, path)
    with pytest.raises(FormatError, match=r"gmil\.parquet is not that of its hash"):
        read_records(path)


@pytest.mark.parametrize("content", [b"", b"PAR1 nothing"])
def test_a_damaged_file_is_refused(copied, content):
    path, _ = gmil_records(copied)
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"gmil\.parquet cannot be read"):
        read_records(path)


def test_records_are_read_as_they_were_written(board, tmp_path):
    records = Shelf(board).methods()[-1]
    write_records(tmp_path / "again.parquet", records)
    again = read_records(tmp_path / "again.parquet")
    assert isinstance(again, MethodRecords)
    for one, other in zip(records.rows, again.rows, strict=True):
        for name, value in one.items():
            np.testing.assert_array_equal(other[name], value)


@pytest.mark.parametrize("command", ["show", "verify", "page"])
def test_nothing_is_measured_yet(document, tmp_path, command):
    spec = tmp_path / "toy.toml"
    spec.write_text(as_toml(document), encoding="utf-8")
    told = CliRunner().invoke(main, ["benchmark", command, str(spec)])
    assert told.exit_code != 0
    assert isinstance(told.exception, MissingFileError | SystemExit)
    text = f"{told.output} {told.exception}"
    assert "There are no figures yet" in text
    assert "gmil benchmark run SPEC" in text
    assert "damaged" not in text


def test_a_table_of_the_same_sets_is_not_shown_twice(document, board, tmp_path):
    spec = tmp_path / "toy.toml"
    spec.write_text(as_toml(document | {"chose_defaults": []}), encoding="utf-8")
    shown = CliRunner().invoke(main, ["benchmark", "show", str(spec), "-o", str(board)])
    assert "all sets" in shown.output
    assert "without the sets that chose a default" not in shown.output


def test_commands(toy, board, document, tmp_path, copied):
    spec = tmp_path / "toy.toml"
    spec.write_text(as_toml(document), encoding="utf-8")
    verified = CliRunner().invoke(main, ["benchmark", "verify", str(spec), "-o", str(board)])
    assert verified.exit_code == 0, verified.output
    assert "figures are those that the records give" in verified.output
    shown = CliRunner().invoke(main, ["benchmark", "show", str(spec), "-o", str(board)])
    assert shown.exit_code == 0, shown.output
    assert "without the sets that chose a default" in shown.output
    assert "15 cells are measured or empty with a reason; 0 not measured yet" in shown.output
    document["method"].append({"name": "miles", "columns": ["default"]})
    spec.write_text(as_toml(document), encoding="utf-8")
    shown = CliRunner().invoke(main, ["benchmark", "show", str(spec), "-o", str(board)])
    assert "15 cells are measured or empty with a reason; 3 not measured yet" in shown.output
    (copied / "leaderboard.json").write_text("{}", encoding="utf-8")
    wrong = CliRunner().invoke(main, ["benchmark", "verify", str(spec), "-o", str(copied)])
    assert wrong.exit_code == 1
