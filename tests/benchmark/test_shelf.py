"""What is put on record stays, whole and exact: after kills, beside other runs, and for methods of one's own."""

from __future__ import annotations

import copy
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
from tests.benchmark.test_counting import SMALL, measured
from tests.benchmark.test_runner import NoWatch

from gmil import cross_validate, own_methods
from gmil.benchmark import Shelf, leaderboard, parse_benchmark, run, verify, write_leaderboard
from gmil.benchmark import runner as running
from gmil.benchmark.cells import load_sets, plan
from gmil.benchmark.counting import counted
from gmil.benchmark.records import MethodRecords, read_records, write_records
from gmil.methods.baselines.statistics import BagStatistics
from gmil.paper.runs.store import Store
from gmil.parameters import parameters
from gmil.safety.locking import locked
from gmil.safety.temporaries import make_temporary


class Far(BagStatistics):
    """Decisions that differ by less than single precision can say."""

    def decision_function(self, X):
        return super().decision_function(X) + 1e9


@parameters
class OtherDefault(Far):
    """The same class after its author has changed a default."""

    statistics: tuple = ("mean",)


class Endless(BagStatistics):
    """Decisions that are infinite."""

    def decision_function(self, X):
        return np.where(super().decision_function(X) > 0, np.inf, -1.0)


@pytest.fixture
def own(monkeypatch):
    """Return a benchmark of own methods, which are measured in this process."""

    def measure(cell, output, retry_failed=False, *_):
        running.do_jobs(cell, Store(output), NoWatch(1.0), retry_failed)

    monkeypatch.setattr(running, "measure_cell", measure)
    monkeypatch.setattr(own_methods, "_own", {"mine:Far": Far, "mine:Endless": Endless})

    def made(*names, params=None, **changes):
        methods = [{"name": name, "columns": ["default"], "params": params or {}} for name in names]
        stk = SMALL["method"][0]
        return parse_benchmark(copy.deepcopy(SMALL | {"method": [stk, *methods]} | changes), "small")

    return made


def measure_and_write(benchmark, folder):
    run(benchmark, output=folder)
    found = leaderboard(benchmark, folder)
    write_leaderboard(found, folder)
    return {cell["method"]: cell for cell in found["cells"]}


def test_figures_do_not_lose_to_single_precision(own, tmp_path):
    benchmark = own("mine:Far")
    cells = measure_and_write(benchmark, tmp_path)
    data = load_sets(benchmark)[0]["set"]
    aucs = [cross_validate(Far(), data.bags, data.y, cv=3, random_state=seed).auc() for seed in (0, 1)]
    assert cells["mine:Far"]["auc"] == pytest.approx(np.mean(aucs), abs=1e-9)
    assert verify(benchmark, tmp_path)[0] == []
    before = read_records(Shelf(tmp_path).path("mine:Far"))
    write_records(tmp_path / "again.parquet", before)
    np.testing.assert_array_equal(
        read_records(tmp_path / "again.parquet").rows[0]["decisions"], before.rows[0]["decisions"]
    )


@pytest.mark.parametrize(("values", "kept"), [([0.1, 0.2, 0.3], np.float32), ([1e9, 1e9 + 1], float), ([1e39], float)])
def test_only_what_needs_it_is_in_double_precision(board, tmp_path, values, kept):
    row = dict(read_records(Shelf(board).path("gmil")).rows[0], decisions=np.array(values))
    write_records(tmp_path / "one.parquet", MethodRecords("gmil", "GMIL", [row]))
    found = read_records(tmp_path / "one.parquet").rows[0]["decisions"]
    assert found.dtype == kept
    np.testing.assert_array_equal(found, np.array(values).astype(kept))


def test_infinite_decisions_empty_one_cell_alone(own, tmp_path):
    cells = measure_and_write(own("mine:Endless"), tmp_path)
    assert "decisions must be finite numbers, but" in cells["mine:Endless"]["reason"]
    assert cells["stk"]["auc"] is not None


def test_what_a_killed_run_left_half_written_does_no_harm(tmp_path):
    benchmark = measured(SMALL, tmp_path)
    path = Shelf(tmp_path).path("stk")
    script = (
        f"from pathlib import Path; from gmil.safety.temporaries import make_temporary as m; m(Path({str(path)!r}))"
    )
    subprocess.run([sys.executable, "-c", script], check=True)  # the process is gone, and its file is there
    left = [p for p in path.parent.iterdir() if p.name.startswith(".")]
    assert len(left) == 1
    assert verify(benchmark, tmp_path)[0] == []
    run(benchmark, output=tmp_path)
    assert not left[0].exists()


def test_what_another_run_is_writing_is_not_read(tmp_path):
    measured(SMALL, tmp_path)
    before = len(Shelf(tmp_path).methods())
    temporary = make_temporary(Shelf(tmp_path).path("stk"))
    assert len(Shelf(tmp_path).methods()) == before
    temporary.unlink()


def test_two_runs_lose_nothing_of_each_other(tmp_path):
    benchmark = measured(SMALL, tmp_path)
    store, shelf = Store(tmp_path), Shelf(tmp_path)
    cells, sets = plan(benchmark, load_sets(benchmark)[0]), load_sets(benchmark)[0]
    shutil.rmtree(tmp_path / "methods")
    writer = threading.Thread(target=shelf.take, args=(benchmark, cells, sets, store))
    with locked(store.folder):  # another run is putting its rows on record
        writer.start()
        writer.join(0.5)
        assert writer.is_alive()
        assert not (tmp_path / "methods").exists()
    writer.join(30)
    assert len(shelf.methods()) == 2


def test_rows_of_an_own_method_count_by_what_was_asked(own, tmp_path, monkeypatch):
    measure_and_write(own("mine:Far", params={"statistics": ["mean"]}), tmp_path)
    now = own("mine:Far")
    cells = measure_and_write(now, tmp_path)
    monkeypatch.setattr(own_methods, "_own", {})  # who shows and verifies need not have it
    assert counted(now, tmp_path).n_others == 2
    assert leaderboard(now, tmp_path)["cells"] == list(cells.values())
    assert verify(now, tmp_path)[0] == []


def test_records_of_earlier_versions_count_by_their_parameters(own, tmp_path, monkeypatch):
    benchmark = own("mine:Far", params={"statistics": ["mean"]})
    measure_and_write(benchmark, tmp_path)
    path = Shelf(tmp_path).path("mine:Far")
    records = read_records(path)
    rows = [{name: value for name, value in row.items() if name != "asked"} for row in records.rows]
    write_records(path, MethodRecords(records.method, records.label, rows))
    monkeypatch.setattr(own_methods, "_own", {})
    assert verify(benchmark, tmp_path)[0] == []
    assert counted(own("mine:Far", params={"statistics": ["max"]}), tmp_path).n_others == 2


def test_a_look_at_another_plan_takes_nothing_from_this_one(own, tmp_path, monkeypatch):
    benchmark = own("mine:Far")
    before = measure_and_write(benchmark, tmp_path)
    run(own("mine:Far", protocol={"folds": 4, "repeats": 1}), output=tmp_path)
    monkeypatch.setattr(own_methods, "_own", {})
    assert leaderboard(benchmark, tmp_path)["cells"] == list(before.values())


def test_own_methods_count_where_values_are_imputed(own, tmp_path, monkeypatch):
    benchmark = own("mine:Far", missing="median")
    measure_and_write(benchmark, tmp_path)
    monkeypatch.setattr(own_methods, "_own", {})
    assert verify(benchmark, tmp_path)[0] == []
    assert leaderboard(benchmark, tmp_path)["not_measured"] == []


def test_other_words_for_the_same_parameters_count_too(own, tmp_path, monkeypatch):
    measure_and_write(own("mine:Far"), tmp_path)
    said = own("mine:Far", params={"scale": BagStatistics().scale})
    run(said, output=tmp_path)  # nothing is missing
    monkeypatch.setattr(own_methods, "_own", {})
    assert counted(said, tmp_path).n_others == 0


def test_a_reason_of_before_is_not_that_of_the_next_failure(own, tmp_path):
    benchmark = own("mine:Endless")
    measure_and_write(benchmark, tmp_path)
    cell = next(c for c in plan(benchmark, load_sets(benchmark)[0]) if c.case.method == "mine:Endless")
    store = Store(tmp_path)
    assert store.read(cell.jobs[0].hash, 3) is not None

    class Stopped(NoWatch):
        def restart(self):
            raise SystemExit(9)

    with pytest.raises(SystemExit):
        running.do_jobs(cell, store, Stopped(1.0), True)
    assert store.read(cell.jobs[0].hash, 3) is None  # so that who sees the process end gives it the reason


@pytest.mark.parametrize("repeats", [1, 2])
def test_rows_of_other_defaults_of_a_class_do_not_count(own, tmp_path, monkeypatch, repeats):
    """The specification is the same, but the class has another default now; old rows are not mixed with new ones."""
    benchmark = own("mine:Far")
    measure_and_write(benchmark, tmp_path)
    monkeypatch.setattr(own_methods, "_own", {"mine:Far": OtherDefault})
    run(benchmark, output=tmp_path, repeats=repeats)
    cells = leaderboard(benchmark, tmp_path)["cells"]
    monkeypatch.setattr(own_methods, "_own", {})
    assert leaderboard(benchmark, tmp_path)["cells"] == cells
    assert next(cell["repeats"] for cell in cells if cell["method"] == "mine:Far") == repeats
    assert counted(benchmark, tmp_path).n_others == 2


def test_infinite_scores_of_instances_empty_one_cell_alone(board, toy):
    cell = next(c for c in plan(toy, load_sets(toy)[0]) if (c.case.method, c.case.dataset) == ("gmil", "hard"))
    table = Store(board).read(cell.jobs[0].hash, 3)
    scores = [[0.5, np.inf], [0.1], None]
    at = table.schema.get_field_index("instance_scores")
    odd = table.set_column(at, table.schema.field(at), [scores])
    failed = running._finite(cell.jobs[0], odd)
    assert set(failed["reason"].to_pylist()) == {"scores of instances must be finite numbers, but 1 of 3 are not"}
    assert running._finite(cell.jobs[0], table) is table
