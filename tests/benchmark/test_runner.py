"""Cells are measured in processes of their own; what is done stays, what costs too much is empty with its reason."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time

import numpy as np
import pyarrow.parquet as pq
import pytest

from gmil import cross_validate
from gmil.benchmark import Budget, Shelf, leaderboard, parse_benchmark, run
from gmil.benchmark import runner as running
from gmil.benchmark.cells import identity, load_sets, plan
from gmil.benchmark.ledger import Ledger
from gmil.benchmark.shelf import Known
from gmil.benchmark.watching import (
    ABANDONED,
    OVER_FORECAST,
    OVER_MEMORY,
    OVER_TIME,
    Cost,
    Watch,
    exceeded,
    is_interrupted,
    reason_of,
)
from gmil.checks.controls import BagSizeTree, ShuffledLabels
from gmil.datasets import make_bags
from gmil.errors import ClusterError
from gmil.greedy import GMIL
from gmil.paper.runs.store import Store


class NoWatch:
    """Costs what it is told."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __call__(self, _budget, _n_in_turn):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def restart(self):
        pass

    def see(self, _done, _total):
        pass

    def cost(self):
        return Cost(self.seconds, None, 5.0)


def a_cell(toy, method="gmil", name="easy"):
    sets, _ = load_sets(toy)
    return next(c for c in plan(toy, sets) if (c.case.method, c.case.dataset, c.setting) == (method, name, "default"))


def test_records_are_those_of_cross_validate(toy, board):
    (rows,) = [r.cells()[("hard", "default")] for r in Shelf(board).methods() if r.method == "gmil"]
    data = make_bags(n_bags=30, n_features=4, separation=1.0, random_state=2)
    for repeat, row in enumerate(rows):
        again = cross_validate(GMIL(n_jobs=1), data.bags, data.y, cv=3, random_state=repeat, n_jobs=1)
        np.testing.assert_array_equal(row["folds"], again.folds[0])
        np.testing.assert_array_equal(row["predictions"], again.predictions[0, 0])
        np.testing.assert_array_equal(row["decisions"], again.decisions[0, 0].astype(np.float32))
        assert row["cpu_seconds"] > 0
        assert row["seed"] == repeat
    assert len(rows) == 2


def test_small_sets_and_defaults_come_first(toy):
    sets, _ = load_sets(toy)
    cells = plan(toy, sets)
    assert [c.setting for c in cells] == ["default"] * 12 + ["tuned"] * 3
    sizes = [c.data.bags.n_instances * c.data.bags.n_features for c in cells[:12]]
    assert sizes == sorted(sizes)


def test_new_defaults_come_first_then_what_is_cheap_by_its_default(toy, tmp_path, monkeypatch):
    few = toy.restricted(["gmil"], ["easy", "hard", "more"])
    cells = {(c.case.dataset, c.setting): c for c in plan(few, load_sets(few)[0])}
    seconds = {"easy": 8.0, "hard": 2.0}  # nothing is known of the third
    known = {
        identity(job): Known(s, job.code, "gmil", (name, job.data, job.folds), "default")
        for name, s in seconds.items()
        for job in cells[name, "default"].jobs
    }
    monkeypatch.setattr(Shelf, "known", lambda _: known)
    monkeypatch.setattr(Shelf, "take", lambda *_: None)
    begun = []
    monkeypatch.setattr(running, "measure_cell", lambda cell, *_: begun.append((cell.case.dataset, cell.setting)))
    run(few, output=tmp_path)
    assert begun == [("more", "default"), ("hard", "tuned"), ("easy", "tuned"), ("more", "tuned")]


def test_what_is_done_is_not_done_again(toy, board, tmp_path, monkeypatch):
    folder = shutil.copytree(board, tmp_path / "board")
    shutil.rmtree(folder / "rows")  # only what is committed
    monkeypatch.setattr(running, "measure_cell", lambda *_: pytest.fail("it is on record"))
    before = {path: path.read_bytes() for path in folder.rglob("*.parquet")}
    run(toy, output=folder)
    assert {path: path.read_bytes() for path in folder.rglob("*.parquet")} == before


def test_other_code_is_measured_again_where_it_is_asked_for(toy, board, tmp_path, monkeypatch):
    folder = shutil.copytree(board, tmp_path / "board")
    shutil.rmtree(folder / "rows")
    asked = []
    monkeypatch.setattr(running, "measure_cell", lambda cell, *_: asked.append(str(cell)))
    monkeypatch.setattr("gmil.paper.runs.jobs.code_fingerprint", lambda *_, **__: "other")
    run(toy, output=folder)
    assert asked == []
    run(toy, output=folder, changed=True)
    assert len(asked) == 15


def test_no_cell_is_begun_after_the_time(toy, tmp_path, monkeypatch):
    begun = []

    def slow(cell, *_):
        begun.append(cell)
        time.sleep(0.05)

    monkeypatch.setattr(running, "measure_cell", slow)
    run(toy, output=tmp_path, minutes=0.04 / 60)
    assert len(begun) == 1


def test_repeats_may_be_done_later(toy, tmp_path):
    few = toy.restricted(["majority"], ["easy"])
    for repeats, wanted in ((1, [0]), (None, [0, 1])):
        run(few, output=tmp_path, repeats=repeats)
        (records,) = Shelf(tmp_path).methods()
        assert [row["repeat"] for row in records.rows] == wanted
        assert leaderboard(few, tmp_path)["not_repeated"] == 2 - len(wanted)


def test_repeats_on_record_are_not_measured_again(toy, tmp_path):
    """As after a clone, which has records and no rows."""
    few = toy.restricted(["bag-size-tree"], ["easy"])
    run(few, output=tmp_path, repeats=1)
    (before,) = Shelf(tmp_path).methods()
    shutil.rmtree(tmp_path / "rows")
    run(few, output=tmp_path)
    (after,) = Shelf(tmp_path).methods()
    assert len(list((tmp_path / "rows").glob("*.parquet"))) == 1
    assert [row["repeat"] for row in after.rows] == [0, 1]
    assert after.rows[0]["finished_at"] == before.rows[0]["finished_at"]


def test_many_repeats_have_a_record_each(document, tmp_path):
    document["protocol"]["repeats"] = 12
    few = parse_benchmark(document, "toy").restricted(["bag-size-tree"], ["easy"])
    run(few, output=tmp_path)
    (records,) = Shelf(tmp_path).methods()
    assert [(row["repeat"], row["seed"]) for row in records.rows] == [(i, i) for i in range(12)]
    data = load_sets(few)[0]["easy"]
    last = cross_validate(BagSizeTree(), data.bags, data.y, cv=3, random_state=11)
    np.testing.assert_array_equal(records.rows[-1]["folds"], last.folds[0])
    np.testing.assert_array_equal(records.rows[-1]["predictions"], last.predictions[0, 0])
    assert leaderboard(few, tmp_path)["not_repeated"] == 0


def test_a_long_cell_runs_once(toy, tmp_path):
    cell = a_cell(toy)
    running.do_jobs(cell, Store(tmp_path), NoWatch(301.0))
    assert len(list((tmp_path / "rows").iterdir())) == 1
    assert Ledger(Store(tmp_path), {}, [cell]).is_done(cell)
    running.do_jobs(a_cell(toy, name="hard"), Store(tmp_path), NoWatch(299.0))
    assert len(list((tmp_path / "rows").iterdir())) == 3
    seconds = [sum(pq.read_table(path)["cpu_seconds"].to_pylist()) for path in (tmp_path / "rows").iterdir()]
    assert sorted(seconds) == pytest.approx([299.0, 299.0, 301.0])


def test_a_cell_above_its_budget_is_empty_with_its_reason(toy, tmp_path):
    sets, _ = load_sets(toy)
    few = toy.restricted(["gmil"], ["easy"])
    cell = plan(few, {"easy": sets["easy"]})[0]
    costly = type(cell)(cell.case, cell.data, cell.jobs, Budget(most_minutes=1e-9))
    running.measure_cell(costly, tmp_path)
    table = Store(tmp_path).read(cell.jobs[0].hash, 3)
    assert set(table["status"].to_pylist()) == {"failed"}
    assert set(table["reason"].to_pylist()) == {"more than 1e-09 CPU minutes a k-fold"}
    assert Ledger(Store(tmp_path), {}, [costly]).is_done(costly)
    assert not Ledger(Store(tmp_path), {}, [costly], retry_failed=True).is_done(costly)


def a_slow_cell(document):
    document["generated"]["easy"]["n_bags"] = 3000
    document["method"] = [{"name": "gmil"}, {"name": "weighted-gmil", "columns": ["default"]}]
    slow = parse_benchmark(document, "slow").restricted(["weighted-gmil"], ["easy"])
    return slow, plan(slow, load_sets(slow)[0])[0]


def the_process():
    """Return the process of a cell, once there is one."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for process in multiprocessing.active_children():
            if process.name == "gmil-cell":
                return process
        time.sleep(0.01)
    return pytest.fail("no cell was begun")


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such signals")
@pytest.mark.parametrize("seconds", [0, 1.5])  # while the process begins, and while it measures
def test_an_interrupted_cell_stays_missing(document, tmp_path, capfd, monkeypatch, seconds):
    # A server of processes that another test has started would begin them with Ctrl-C let in.
    monkeypatch.setattr(running, "_context", lambda: multiprocessing.get_context("spawn"))
    _, cell = a_slow_cell(document)
    thread = threading.Thread(target=running.measure_cell, args=(cell, tmp_path))
    thread.start()
    process = the_process()
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGINT)
    thread.join(60)
    assert list((tmp_path / "rows").glob("*")) == []
    assert capfd.readouterr().err == ""


def test_a_run_that_is_interrupted_ends_its_cells(document, tmp_path, monkeypatch):
    slow, _ = a_slow_cell(document)

    def interrupted(_futures):
        the_process()
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "as_completed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(slow, output=tmp_path)
    assert [p for p in multiprocessing.active_children() if p.name == "gmil-cell"] == []
    assert Shelf(tmp_path).methods() == []


@pytest.mark.parametrize(("code", "is_one"), [(ABANDONED, True), (-15, True), (-9, False), (1, False), (0, False)])
def test_what_is_an_interruption(code, is_one):
    assert is_interrupted(code) == is_one


@pytest.mark.parametrize(
    ("cost", "code"),
    [(Cost(61.0, None, None), OVER_TIME), (Cost(59.0, None, 2e9), OVER_MEMORY), (Cost(59.0, 1e9, 1e9), None)],
)
def test_what_is_too_much(cost, code):
    assert exceeded(cost, Budget(most_minutes=1, most_gib=1)) == code


def test_a_cell_whose_first_folds_cost_too_much_is_not_finished(toy, tmp_path, monkeypatch):
    ends, watch = [], Watch(Budget(most_minutes=1))
    monkeypatch.setattr("gmil.benchmark.watching.os._exit", ends.append)
    costs = iter([40.0, 45.0, 65.0])  # the first fold has work that all share
    monkeypatch.setattr(watch, "cost", lambda: Cost(next(costs), None, None))
    watch.see(1, 10)
    watch.see(2, 10)
    assert ends == []  # 85 seconds: a forecast is rough
    watch.see(3, 10)
    assert ends == [OVER_FORECAST]
    assert reason_of(OVER_FORECAST, Budget()) == "more than 30 CPU minutes a k-fold, by its first folds"


def test_folds_in_turn_make_a_forecast_surer(monkeypatch):
    ends, watch = [], Watch(Budget(most_minutes=1), 10)
    monkeypatch.setattr("gmil.benchmark.watching.os._exit", ends.append)
    costs = iter([8.0, 14.0, 20.0, 28.0])  # 80, 70, 67 and 70 seconds
    monkeypatch.setattr(watch, "cost", lambda: Cost(next(costs), None, None))
    for done, expected in ((1, []), (2, []), (3, []), (4, [OVER_FORECAST])):
        watch.see(done, 10)
        assert ends == expected


@pytest.mark.parametrize(
    ("n_in_turn", "seconds", "done", "code"),
    [(10, 9.1, 0, OVER_FORECAST), (10, 8.9, 0, None), (10, 8.9, 1, None), (0, 59.0, 0, None)],
)
def test_a_first_fold_that_tells_that_all_cost_too_much_is_not_finished(n_in_turn, seconds, done, code, monkeypatch):
    watch = Watch(Budget(most_minutes=1), n_in_turn)
    monkeypatch.setattr(watch, "cost", lambda: Cost(seconds, None, None))
    if done:
        watch.see(done, 10)
    assert watch._exceeded() == code


def test_folds_are_counted_while_a_cell_is_measured(toy, tmp_path):
    class Counting(NoWatch):
        def see(self, done, total):
            seen.append((done, total))

    seen = []
    running.do_jobs(a_cell(toy, "bag-statistics"), Store(tmp_path), Counting(301.0))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_reasons_name_the_limit():
    assert reason_of(OVER_MEMORY, Budget(most_gib=2)) == "more than 2 GiB of memory"
    assert "ended with -9" in reason_of(-9, Budget())


class Client:
    """A cluster of one worker: the task of a cell is what ``task`` makes of it."""

    def __init__(self, task):
        self.task = task

    def nthreads(self):
        return {"worker": 1}

    def submit(self, function, cell, pure):
        assert not pure
        return self.task(function, cell)


class Task:
    """Of a cluster: ended with a value or an error, or never."""

    def __init__(self, function, cell, error=None, ends=True):
        self.value, self.error, self.ends, self.cancelled = function and function(cell), error, ends, False

    def done(self):
        return self.ends

    def result(self):
        if self.error is not None:
            raise self.error
        return self.value

    def cancel(self):
        self.cancelled = True


def test_rows_of_a_cluster_are_kept(toy, tmp_path):
    run(toy.restricted(["majority"], ["easy"]), output=tmp_path, client=Client(Task))
    (records,) = Shelf(tmp_path).methods()
    assert [row["repeat"] for row in records.rows] == [0, 1]


def test_what_a_cluster_lacks_is_named(toy, tmp_path):
    client = Client(lambda _, cell: Task(None, cell, error=RuntimeError("No module named 'mine'")))
    message = "did not measure majority on easy, default: No module named 'mine'. .*set PYTHONPATH"
    with pytest.raises(ClusterError, match=message):
        run(toy.restricted(["majority"], ["easy"]), output=tmp_path, client=client)


def test_a_run_that_is_interrupted_does_not_wait_for_a_cluster(toy, tmp_path, monkeypatch):
    tasks = []

    def begin(_, cell):
        tasks.append(Task(None, cell, ends=False))
        return tasks[-1]

    def interrupted(_futures):
        while not tasks:
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "as_completed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(toy.restricted(["majority"], ["easy"]), output=tmp_path, client=Client(begin))
    until = time.monotonic() + 10
    while not tasks[0].cancelled and time.monotonic() < until:
        time.sleep(0.01)
    assert tasks[0].cancelled


def test_a_tree_finds_what_sizes_give_away():
    rng = np.random.default_rng(0)
    sizes = rng.integers(5, 40, size=80)
    data = make_bags(80, bag_size=5, random_state=0)
    bags = type(data.bags).from_list([rng.normal(size=(n, 2)) for n in sizes])
    y = ((sizes > 15) & (sizes < 25)).astype(int)
    assert cross_validate(BagSizeTree(), bags, y, cv=5, random_state=0).accuracy() > 0.9
    assert 0.2 < cross_validate(ShuffledLabels(), data.bags, data.y, cv=4, random_state=0).accuracy() < 0.8
