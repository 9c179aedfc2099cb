"""Experiments as data: what is read, and what is refused with which words."""

from __future__ import annotations

import dataclasses

import pytest

from gmil import GMIL, base
from gmil.errors import SpecificationError
from gmil.paper import Protocol, load_spec, parse_spec, published, spec_names
from gmil.paper.runs.jobs import known_methods, make_estimator
from gmil.paper.tables.grids import expand_grid, settings_of


@pytest.mark.parametrize("name", spec_names())
def test_every_shipped_experiment_is_read_and_has_a_quick_variant(name):
    spec = load_spec(name)
    quick = spec.quickly()
    assert quick.is_quick
    assert quick.protocol.repeats <= spec.protocol.repeats
    assert spec.protocol.folds == 10
    assert spec.protocol.seed == quick.protocol.seed  # the rows of a quick run serve the full one


def test_table1_lists_every_method_that_the_paper_prints():
    names = {method.name for method in load_spec("table1").methods}
    assert names >= {row["method"] for row in published()["accuracy"]}


def test_figure7_has_the_epsilon_and_the_start_of_the_paper():
    literal = GMIL.from_paper("musk2")
    for sweep in load_spec("figure7").sweeps:
        assert (sweep.params["epsilon"], sweep.params["init"]) == (literal.epsilon, literal.init)


def test_table2_lists_every_method_that_the_paper_times():
    assert {m.name for m in load_spec("table2").methods} >= {row["method"] for row in published()["seconds"]}


@pytest.mark.parametrize(
    ("path", "key", "value", "words"),
    [
        ((), "dataset", ["musk1"], "toy: there is no key 'dataset'; .* Did you mean 'datasets'"),
        ((), "datasets", "musk1", "toy: datasets must be a list, got 'musk1'"),
        ((), "datasets", [1], "datasets in toy must be texts, got 1"),
        (("protocol",), "fold", 3, r"toy, \[protocol\]: there is no key 'fold'"),
        (("protocol",), "folds", 1, "folds in the protocol must be a whole number of at least 2, got 1"),
        (("protocol",), "repeats", True, "repeats must be a whole number, got True"),
        (("protocol",), "max_settings", 31, "max_settings is at most 30"),
        (("method", 0), "parms", {}, "toy, method gmil: there is no key 'parms'; .* Did you mean 'params'"),
        (("method", 0), "repeats", 0, "toy, method gmil: repeats must be at least 1, got 0"),
        (("method", 0), "variant", 1, "toy, method gmil: variant must be text, got 1"),
        (("method", 0), "quick", 1, "toy, method gmil: quick must be true or false, got 1"),
        ((), "quick", True, "toy: quick must be a table, got True"),
        (("method", 0), "columns", ["papr"], "there is no column 'papr'; the columns are paper, tuned"),
        (("method", 0), "per_dataset", {"easy": 3}, "per_dataset.easy must be a table of parameters, got 3"),
        (("method", 0), "per_dataset", {"tiger": {}}, "gmil names the data set 'tiger', which is not in datasets"),
        ((), "method", [{"label": "x"}], "method .: the key 'name' is missing"),
        ((), "method", [{"name": "x"}, {"name": "x"}], "the method 'x' is there 2 times"),
        (
            (),
            "method",
            [{"name": "x", "label": "A"}, {"name": "y", "label": "A"}],
            "the method 'A' is there 2 times. The labels must differ",
        ),
        ((), "method", ["gmil"], r"every method must be a table, \[\[method\]\], got 'gmil'"),
        ((), "quick", {"folds": 0}, "folds in the protocol must be"),
        ((), "generated", {"other": {}}, r"\[generated\] names the data set 'other'"),
        ((), "sweep", [{"name": "paper", "method": "gmil", "parameter": "a", "values": [], "datasets": []}],
         "'paper' is a column of methods"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(toy_document, path, key, value, words):
    place = toy_document
    for step in path:
        place = place[step]
    place[key] = value
    with pytest.raises(SpecificationError, match=words):
        parse_spec(toy_document, "toy")


def test_an_experiment_that_is_not_there_is_refused():
    with pytest.raises(SpecificationError, match="There is no experiment 'table9'; there are figure7, table1, table2"):
        load_spec("table9")


def test_a_file_that_is_not_toml_is_refused(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("datasets = [")
    with pytest.raises(SpecificationError, match=r"mine\.toml is not TOML"):
        load_spec(path)


def test_a_file_is_read_and_none_is_none(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('datasets = ["musk1"]\n[[method]]\nname = "gmil"\nparams = { scale = "none" }\n')
    spec = load_spec(path)
    assert (spec.name, spec.datasets, spec.methods[0].params) == ("mine", ("musk1",), {"scale": None})


def test_restricting_keeps_the_asked_methods_and_refuses_others(toy):
    assert [m.name for m in toy.restricted(["not-there"]).methods] == ["not-there"]
    with pytest.raises(SpecificationError, match="toy has no method 'emdd'; it has gmil, not-there"):
        toy.restricted(["emdd"])


def test_a_quick_run_leaves_slow_methods_to_their_published_figures(toy_document):
    toy_document["method"][1]["quick"] = False
    spec = parse_spec(toy_document, "toy")
    assert [m.columns for m in spec.methods] == [("paper", "tuned")] * 2
    assert [m.columns for m in spec.quickly().methods] == [("paper", "tuned"), ()]


def test_repeats_asked_for_hold_for_tuned_methods_too(toy):
    assert toy.protocol.repeats_of("tuned") == 1
    assert toy.repeated(7).protocol.repeats_of("tuned") == 1


def test_specifications_are_frozen(toy):
    with pytest.raises(dataclasses.FrozenInstanceError):
        toy.name = "other"
    assert Protocol() == Protocol()


def test_no_grid_has_more_than_thirty_settings_after_thinning_and_each_is_valid():
    every = settings_of("gmil", most=30, seed=0)
    assert 20 <= len(every) <= 30
    known = base.methods()["gmil"]().get_params()
    assert all(set(setting) <= set(known) for setting in every)
    assert len({tuple(sorted(s.items(), key=str)) for s in every}) == len(every)


def test_thinning_goes_by_seed_and_keeps_the_order():
    every = settings_of("gmil", most=30, seed=0)
    some = settings_of("gmil", most=5, seed=3)
    assert some == settings_of("gmil", most=5, seed=3)
    assert [every.index(s) for s in some] == sorted(every.index(s) for s in some)
    assert some != settings_of("gmil", most=5, seed=4)


def test_a_method_without_grid_is_refused_by_name():
    with pytest.raises(SpecificationError, match="no grid for the method 'nothing'"):
        settings_of("nothing", most=30, seed=0)


def test_the_first_name_of_a_grid_varies_slowest():
    assert [tuple(s.values()) for s in expand_grid([{"a": [1, 2], "b": [3, 4]}])] == [(1, 3), (1, 4), (2, 3), (2, 4)]


def test_a_method_may_stand_in_a_table_under_several_labels(toy_document):
    toy_document["method"].append({"name": "gmil", "label": "GMIL, small", "params": {"n_clusters": 3}})
    spec = parse_spec(toy_document, "toy")
    assert [m.label for m in spec.first_entries()] == ["GMIL", "Nothing"]
    assert [m.label for m in spec.restricted(["gmil"]).methods] == ["GMIL", "GMIL, small"]


@pytest.mark.parametrize("name", ["table1", "table2"])
def test_the_tables_measure_every_rival_of_the_paper_that_there_is(name):
    entries = load_spec(name).methods
    assert {m.name for m in entries} >= {"mi-svm-instance", "mi-svm-witness", "mica", "annealed-svm", "ppmm", "gp-mil"}
    assert all(m.name in known_methods() for m in entries)
    for entry in entries:
        make_estimator(entry.name, entry.params)  # parameters that there are not are refused
