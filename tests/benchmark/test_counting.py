"""Rows on record count where the specification asks for them; those of other plans stay, and do not count."""

from __future__ import annotations

import copy
import shutil

import pytest
from click.testing import CliRunner
from tests.toml_text import as_toml

from gmil.benchmark import Shelf, leaderboard, parse_benchmark, run, verify, write_leaderboard
from gmil.benchmark.counting import counted
from gmil.benchmark.leaderboard import present_leaderboard
from gmil.cli.main import main

SMALL = {
    "datasets": ["set"],
    "reference": "stk",
    "generated": {"set": {"n_bags": 24, "n_features": 4, "separation": 1.0, "random_state": 1}},
    "protocol": {"folds": 3, "repeats": 2},
    "method": [{"name": "stk", "columns": ["default"]}, {"name": "nsk", "columns": ["default"]}],
}
PARAMS = {"name": "stk", "columns": ["default"], "params": {"C": 100.0}}
EDITS = {
    "folds": {"protocol": {"folds": 4, "repeats": 2}},
    "seed": {"protocol": {"folds": 3, "repeats": 2, "seed": 7}},
    "repeats": {"protocol": {"folds": 3, "repeats": 1}},
    "params": {"method": [PARAMS, SMALL["method"][1]]},
    "data": {"generated": {"set": {**SMALL["generated"]["set"], "random_state": 5}}},
    "methods": {"method": SMALL["method"][:1]},
}
N_OTHERS = {"folds": 4, "seed": 4, "repeats": 2, "params": 2, "data": 4, "methods": 2}


def measured(document, folder):
    benchmark = parse_benchmark(copy.deepcopy(document), "small")
    run(benchmark, output=folder)
    write_leaderboard(leaderboard(benchmark, folder), folder)
    return benchmark


def figures(found):
    return [(c["method"], c["set"], c["repeats"], c["auc"], c["accuracy"], c["jobs"]) for c in found["cells"]]


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """Return a folder that was measured before the specification was edited."""
    folder = tmp_path_factory.mktemp("before")
    measured(SMALL, folder)
    return folder


@pytest.mark.parametrize("edit", EDITS)
def test_figures_are_those_of_a_fresh_folder(before, tmp_path, edit):
    folder = shutil.copytree(before, tmp_path / "edited")
    old = {row["identity"] for one in Shelf(folder).methods() for row in one.rows}
    edited = parse_benchmark(copy.deepcopy(SMALL | EDITS[edit]), "small")
    assert verify(edited, folder)[0] != []  # what was published is of the plan before
    measured(SMALL | EDITS[edit], folder)
    measured(SMALL | EDITS[edit], tmp_path / "fresh")
    assert figures(leaderboard(edited, folder)) == figures(leaderboard(edited, tmp_path / "fresh"))
    assert verify(edited, folder)[0] == []
    of = counted(edited, folder)
    assert of.n_others == N_OTHERS[edit]
    assert of.notes()[0].startswith(f"{N_OTHERS[edit]} rows of another plan")
    assert old <= {row["identity"] for one in Shelf(folder).methods() for row in one.rows}  # nothing is lost


def test_what_is_asked_for_again_counts_again(before, tmp_path):
    folder = shutil.copytree(before, tmp_path / "edited")
    measured(SMALL | EDITS["data"], folder)
    again = measured(SMALL, folder)
    assert figures(leaderboard(again, folder)) == figures(leaderboard(again, before))
    assert counted(again, before).notes() == []


@pytest.mark.parametrize("command", ["show", "page"])
def test_what_is_shown_is_of_the_specification_as_it_is(before, tmp_path, command):
    folder, spec = shutil.copytree(before, tmp_path / "edited"), tmp_path / "small.toml"
    spec.write_text(as_toml(SMALL | EDITS["methods"]), encoding="utf-8")
    done = CliRunner().invoke(main, ["benchmark", command, str(spec), "-o", str(folder)])
    assert done.exit_code == 0, done.output
    text = done.output if command == "show" else (folder / "index.html").read_text(encoding="utf-8")
    assert "stk" in text
    assert "nsk" not in text


def test_a_run_tells_of_rows_of_another_plan(before, tmp_path):
    folder, spec = shutil.copytree(before, tmp_path / "edited"), tmp_path / "small.toml"
    spec.write_text(as_toml(SMALL | EDITS["methods"]), encoding="utf-8")
    done = CliRunner().invoke(main, ["benchmark", "run", str(spec), "-o", str(folder)])
    assert "2 rows of another plan" in " ".join(done.output.split())


def test_a_leaderboard_is_shown_where_its_data_is_not(before, monkeypatch):
    monkeypatch.setattr("gmil.benchmark.shelf.load_sets", lambda _: ({}, []))
    benchmark = parse_benchmark(copy.deepcopy(SMALL), "small")
    of = counted(benchmark, before)
    assert (of.absent, of.n_others) == (("set",), 0)
    seeded = parse_benchmark(copy.deepcopy(SMALL | EDITS["seed"]), "small")
    assert counted(seeded, before).n_others == 4


def test_who_has_not_all_data_measures_records_and_sees_what_was_published(before, tmp_path, monkeypatch):
    folder, spec = shutil.copytree(before, tmp_path / "edited"), tmp_path / "small.toml"
    (folder / "sets.parquet").unlink()
    spec.write_text(as_toml(SMALL), encoding="utf-8")
    published = (folder / "leaderboard.json").read_text(encoding="utf-8")
    monkeypatch.setattr("gmil.benchmark.shelf.load_sets", lambda _: ({}, []))
    monkeypatch.setattr(Shelf, "take", lambda *_: None)  # which would find the labels of the set that is made here
    done = CliRunner().invoke(main, ["benchmark", "run", str(spec), "-o", str(folder)])
    assert done.exit_code == 0, done.output
    assert "leaderboard.json is as it was. Figures need the labels of set" in " ".join(done.output.split())
    assert (folder / "leaderboard.json").read_text(encoding="utf-8") == published
    shown = CliRunner().invoke(main, ["benchmark", "show", str(spec), "-o", str(folder)])
    assert shown.exit_code == 0, shown.output
    assert "stk" in shown.output


def test_what_is_not_measured_goes_by_the_specification_as_it_is(before, tmp_path):
    folder = shutil.copytree(before, tmp_path / "edited")
    tuned = [{"name": "stk", "columns": ["default", "tuned"]}, SMALL["method"][1]]
    more = parse_benchmark(copy.deepcopy(SMALL | {"method": tuned}), "small")
    assert present_leaderboard(more, folder)["not_measured"] == [{"method": "stk", "setting": "tuned", "n_sets": 1}]
    often = parse_benchmark(copy.deepcopy(SMALL | {"protocol": {"folds": 3, "repeats": 3}}), "small")
    assert present_leaderboard(often, folder)["not_repeated"] == 2
