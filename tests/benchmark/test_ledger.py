"""What cells will cost is known from other cells; those that are hopeless are not begun."""

from __future__ import annotations

import dataclasses
import shutil

import pytest

from gmil.benchmark import Shelf, parse_benchmark, run
from gmil.benchmark import runner as running
from gmil.benchmark.cells import identity, load_sets, plan
from gmil.benchmark.ledger import Ledger
from gmil.benchmark.shelf import Known
from gmil.paper.runs.store import Store


def known_of(*seconds):
    """Return as on record what the first k-folds of cells cost, from pairs of both."""
    firsts = [(cell, cell.jobs[0], value) for cell, value in seconds]
    return {
        identity(job): Known(value, job.code, cell.case.method, (job.dataset, job.data, job.folds), cell.setting)
        for cell, job, value in firsts
    }


@pytest.mark.parametrize(
    ("seconds", "reason"),
    [
        (900.0, "about 105 CPU minutes a k-fold: by default it takes 900 s, and tuned it is fitted 21 times, not 3"),
        (float("inf"), "the default setting has no result"),
    ],
)
def test_a_tuned_cell_is_not_begun_where_the_default_costs_too_much(toy, tmp_path, monkeypatch, seconds, reason):
    few = toy.restricted(["gmil"], ["easy"])
    sets, _ = load_sets(few)
    default, tuned = plan(few, sets)
    known = known_of((default, seconds))
    begun = []
    monkeypatch.setattr(Shelf, "known", lambda _: known)
    monkeypatch.setattr(Shelf, "take", lambda *_: None)
    monkeypatch.setattr(running, "measure_cell", lambda cell, *_: begun.append(cell.setting))
    run(few, output=tmp_path, repeats=1)
    assert set(Store(tmp_path).read(tuned.jobs[0].hash, 3)["reason"].to_pylist()) == {reason}
    assert begun == []
    known.update(known_of((default, 700.0)))  # a forecast is rough: it may be within 30
    shutil.rmtree(tmp_path / "rows")
    run(few, output=tmp_path, repeats=1)
    assert begun == ["tuned"]


@pytest.fixture
def four_sets(document):
    """Return the cells of GMIL on four sets, by set and setting."""
    document["generated"]["last"] = {"n_bags": 20, "n_features": 4, "random_state": 4}
    document["datasets"].append("last")
    benchmark = parse_benchmark(document, "toy").restricted(["gmil"], None)
    return {(c.case.dataset, c.setting): c for c in plan(benchmark, load_sets(benchmark)[0])}


def ledger_of(cells, seconds, folder, asked_for=None):
    """Return a ledger of which nothing is known but seconds, by set and setting."""
    known = known_of(*((cells[key], value) for key, value in seconds.items()))
    return Ledger(Store(folder), known, list(cells.values()) if asked_for is None else asked_for)


def test_other_sets_tell_what_tuning_costs(four_sets, tmp_path):
    seconds = {
        **{(name, "default"): 10.0 for name in ("easy", "hard", "more")},
        ("easy", "tuned"): 20.0,
        ("hard", "tuned"): 40.0,
        ("last", "default"): 100.0,
    }
    tuned = four_sets["last", "tuned"]
    few = ledger_of(four_sets, seconds, tmp_path)
    assert few.expected_seconds(tuned) == 100 * 21 / 3  # two sets are not enough: by the number of fits
    enough = ledger_of(four_sets, {**seconds, ("more", "tuned"): 30.0}, tmp_path)
    assert enough.expected_seconds(tuned) == 300.0
    assert enough.expected_seconds(four_sets["last", "default"]) == 100.0
    assert enough.why_hopeless(tuned) is None


def test_sets_that_are_not_asked_for_tell_it_too(four_sets, tmp_path):
    seconds = {(name, "default"): 1.0 for name in ("easy", "hard", "more")}
    seconds |= {(name, "tuned"): 2.0 for name in ("easy", "hard", "more")}
    seconds["last", "default"] = 900.0
    asked_for = [four_sets["last", "default"], four_sets["last", "tuned"]]
    ledger = ledger_of(four_sets, seconds, tmp_path, asked_for)
    assert ledger.expected_seconds(four_sets["last", "tuned"]) == 1800.0
    assert ledger.why_hopeless(four_sets["last", "tuned"]) is None  # by the number of fits it would be


def test_what_was_measured_by_another_plan_tells_nothing(four_sets, tmp_path):
    others = [Known(1.0, "code", "gmil", (name, "data", 3), "default") for name in ("easy", "hard", "more")]
    others += [Known(900.0, "code", "gmil", (name, "data", 10), "tuned") for name in ("easy", "hard", "more")]
    known = {**known_of((four_sets["last", "default"], 1.0)), **dict(enumerate(others))}
    ledger = Ledger(Store(tmp_path), known, list(four_sets.values()))
    assert ledger.expected_seconds(four_sets["last", "tuned"]) < 900.0


def test_a_set_without_a_result_tells_nothing(four_sets, tmp_path):
    seconds = {(name, setting): 10.0 for name in ("easy", "hard", "more") for setting in ("default", "tuned")}
    seconds |= {("more", "tuned"): float("inf"), ("last", "default"): 1.0}
    assert ledger_of(four_sets, seconds, tmp_path).expected_seconds(four_sets["last", "tuned"]) == 7.0


def test_a_tuned_cell_is_hopeless_by_what_tuning_costs_on_other_sets(four_sets, tmp_path):
    seconds = {(name, "default"): 1.0 for name in ("easy", "hard", "more")}
    seconds |= {(name, "tuned"): 60.0 for name in ("easy", "hard", "more")}
    ledger = ledger_of(four_sets, {**seconds, ("last", "default"): 91.0}, tmp_path)
    assert ledger.why_hopeless(four_sets["last", "tuned"]) == (
        "about 91 CPU minutes a k-fold: by default it takes 91 s, and tuned 60 times as long, in the median of 3 other "
        "sets"
    )
    ledger = ledger_of(four_sets, {**seconds, ("last", "default"): 89.0}, tmp_path)
    assert ledger.why_hopeless(four_sets["last", "tuned"]) is None


def test_a_cell_with_a_result_is_not_given_up_for_a_forecast(document, tmp_path):
    """One repeat of two is known: it says more of the cost than the default setting does."""
    document["protocol"]["tuned_repeats"] = 2
    benchmark = parse_benchmark(document, "toy").restricted(["gmil"], ["easy"])
    default, tuned = plan(benchmark, load_sets(benchmark)[0])
    known = known_of((default, 9000.0))
    assert Ledger(Store(tmp_path), known, [default, tuned]).why_hopeless(tuned) is not None
    known[identity(tuned.jobs[0])] = Known(6.0, "code", "gmil", ("easy", tuned.jobs[0].data, 3), "tuned")
    rest = dataclasses.replace(tuned, jobs=tuned.jobs[1:])
    assert Ledger(Store(tmp_path), known, [default, tuned]).why_hopeless(rest) is None
