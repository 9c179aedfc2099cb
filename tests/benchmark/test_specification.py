from __future__ import annotations

import pytest

from gmil.benchmark import Shelf, load_benchmark, parse_benchmark, run
from gmil.benchmark.cells import load_sets
from gmil.errors import FormatError, SpecificationError


def test_controls_are_methods_among_others(document):
    found = parse_benchmark(document, "toy")
    assert list(found.labels) == ["gmil", "bag-statistics", "majority", "bag-size-tree"]
    assert found.chose_defaults == ("easy",)
    assert (found.budget.once_minutes, found.budget.most_minutes) == (5, 30)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reference": "miles"}, "reference must be one of its methods, got 'miles'"),
        ({"controls": ["luck"]}, "there is no 'luck' for controls; there are majority"),
        ({"controls": "majority"}, "controls must be a list, got 'majority'"),
        ({"chose_defaults": ["fox"]}, "there is no 'fox' for chose_defaults; there are easy, hard, more"),
        ({"budget": {"minutes": 3}}, "there is no key 'minutes'; the keys are most_gib, most_minutes, once_minutes"),
        ({"budget": {"most_gib": 0}}, "most_gib in the budget must be a number above 0, got 0"),
        ({"sets": ["musk1"]}, "there is no key 'sets'; the keys are budget, chose_defaults, controls, datasets"),
        ({"referense": "gmil"}, r"there is no key 'referense'; .*Did you mean 'reference'\?"),
        ({"method": [{"name": "gmil", "lable": "G"}]}, "'lable'; the keys are columns, label, name, params, repeats"),
        ({"method": [{"name": "gmil"}, {"name": "gmil"}]}, "the method 'gmil' is there 2 times. Name it once"),
        ({"method": [{"name": "gmil", "params": {"c": 1}}]}, "gmil has no parameter 'c'; its parameters are"),
        ({"datasets": ["easy", "none", "hard", "more"]}, "there is no set 'none'"),
        ({"method": [{"name": "gmil"}, {"name": "gmil", "label": "again"}]}, "the method 'gmil' is there 2 times"),
        ({"method": [{"name": "gmli"}]}, r"toy: there is no method 'gmli'; there are abmil, .*Did you mean 'gmil'\?"),
        ({"method": [{"name": "nosuch"}]}, r"no method 'nosuch'; there are .*miles.*Your own: package\.module:Class"),
        ({"method": [{"name": "bag-regressor"}]}, "methods for two classes, but 'bag-regressor' is for regression"),
        ({"datasets": ["msuk1", "easy", "hard", "more"]}, r"no set 'msuk1'; there are musk1, .* you mean 'musk1'\?"),
        (
            {"datasets": ["set", "easy", "hard", "more"]},
            r"no set 'set'; .*\[files\.set\] .*make it: \[generated\.set\]",
        ),
        ({"method": 3}, "toy: method must be a list, got 3"),
        ({"method": [{"name": "gmil", "columns": [["default"]]}]}, r"columns in .* must be texts, got \['default'\]"),
        ({"controls": [["majority"]]}, r"there is no \['majority'\] for controls; there are majority"),
        ({"datasets": 3}, "toy: datasets must be a list, got 3"),
        ({"datasets": ["easy", "easy", "hard", "more"]}, "toy: the set 'easy' is there 2 times. Name it once"),
        ({"budget": {"most_gib": float("inf")}}, "most_gib in the budget must be a number above 0, got inf"),
        ({"quick": {"folds": 2}}, "toy: a benchmark has no 'quick': a method has the same setting on all sets"),
        (
            {"method": [{"name": "gmil", "per_dataset": {"easy": {}}}]},
            "toy, method gmil: a benchmark has no 'per_dataset'",
        ),
        ({"method": [{"name": "gmil", "from_paper": True}]}, "toy, method gmil: a benchmark has no 'from_paper'"),
        ({"method": [{"name": "gmil", "columns": ["paper"]}]}, "no column 'paper'; there are default, tuned"),
        ({"protocol": {"folds": 150}}, "toy: folds in the protocol must be at most 127, got 150"),
        ({"protocol": {"seed": 3_000_000_000}}, "toy: the seed in the protocol, and those of repeats, must be below"),
        ({"missing": "foo"}, "toy: missing must be one of error, median, drop, got 'foo'"),
    ],
)
def test_mistakes_are_named(document, change, message):
    with pytest.raises(SpecificationError, match=message):
        parse_benchmark({**document, **change}, "toy")


def test_some_methods_and_sets(toy):
    few = toy.restricted(["gmil"], ["hard"])
    assert [entry.name for entry in few.spec.methods] == ["gmil"]
    assert few.spec.datasets == ("hard",)
    with pytest.raises(SpecificationError, match="has no set 'fox'"):
        toy.restricted(None, ["fox"])


def test_a_file_that_is_no_toml_is_refused(tmp_path):
    path = tmp_path / "b.toml"
    path.write_text("datasets = [", encoding="utf-8")
    with pytest.raises(SpecificationError, match=r"b\.toml is not TOML"):
        load_benchmark(path)


def test_generated_sets_without_a_seed_are_the_same_every_time(document):
    del document["generated"]["easy"]["random_state"]
    toy = parse_benchmark(document, "toy").restricted(None, ["easy"])
    first, second = (load_sets(toy)[0]["easy"].fingerprint for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"maker": "x"}, 'The maker of easy must be "bags" or "slides", got \'x\''),
        ({"maker": ["bags"]}, r'The maker of easy must be "bags" or "slides", got \[\'bags\'\]'),
        ({"nosuch": 1}, r"\[generated\.easy\] has no key 'nosuch'; the keys are maker, n_bags, .*random_state\.$"),
        ({"maker": "slides", "n_bags": 3}, r"has no key 'n_bags'; the keys are maker, layout, n_slides"),
        (3, "generated.easy must be a table of parameters, got 3"),
    ],
)
def test_mistakes_in_generated_sets_are_named(document, how, message):
    document["generated"]["easy"] = how
    with pytest.raises(SpecificationError, match=message):
        parse_benchmark(document, "toy")


@pytest.mark.parametrize("how", [{"noise": [1]}, {"random_state": "x"}, {"maker": "slides", "n_slides": 3.5}])
def test_a_set_that_cannot_be_made_is_named(document, how):
    document["generated"]["easy"] = how
    with pytest.raises(SpecificationError, match=r"\[generated\.easy\] cannot be made: .*Correct its parameters"):
        load_sets(parse_benchmark(document, "toy"))


def test_a_set_that_is_known_may_be_elsewhere(document):
    document["datasets"].append("fox")
    assert parse_benchmark(document, "toy").spec.datasets[-1] == "fox"


def test_an_own_method_is_not_imported_by_a_file(document, tmp_path):
    document["method"].append({"name": "nomod.x:Cls", "columns": ["default"]})
    own = parse_benchmark(document, "toy")
    told = "nomod.x:Cls is not measured: a name in a file is not imported"
    (note,) = run(own.restricted(["majority", "nomod.x:Cls"], ["easy"]), output=tmp_path)
    assert note.startswith(told)
    assert note.endswith("--methods nomod.x:Cls.")
    assert [records.method for records in Shelf(tmp_path).methods()] == ["majority"]  # the others are measured
    with pytest.raises(SpecificationError, match=told):
        run(own.restricted(["nomod.x:Cls"], None), output=tmp_path)


def test_a_file_that_is_no_utf8_is_named(tmp_path):
    path = tmp_path / "b.toml"
    path.write_bytes('title = "Müller"'.encode("latin-1"))
    with pytest.raises(FormatError, match=r"b\.toml is no UTF-8 text: .*Save it as UTF-8"):
        load_benchmark(path)
