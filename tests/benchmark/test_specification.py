from __future__ import annotations

import pytest

from gmil.benchmark import load_benchmark, parse_benchmark
from gmil.benchmark.cells import load_sets
from gmil.errors import SpecificationError


def test_controls_are_methods_among_others(document):
    found = parse_benchmark(document, "toy")
    assert list(found.labels) == ["gmil", "bag-statistics", "not-there", "majority", "bag-size-tree"]
    assert found.chose_defaults == ("easy",)
    assert (found.budget.once_minutes, found.budget.most_minutes) == (5, 30)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reference": "miles"}, "reference must be one of its methods, got 'miles'"),
        ({"controls": ["luck"]}, "there is no 'luck' for controls; there are majority"),
        ({"controls": "majority"}, "controls must be a list, got 'majority'"),
        ({"chose_defaults": ["fox"]}, "there is no 'fox' for chose_defaults; there are easy, hard, more"),
        ({"budget": {"minutes": 3}}, "there is no key 'minutes'; the keys are once_minutes, most_minutes, most_gib"),
        ({"budget": {"most_gib": 0}}, "most_gib in the budget must be a number above 0, got 0"),
        ({"sets": ["musk1"]}, "there is no key 'sets'; the keys are .*datasets"),
        ({"method": [{"name": "gmil"}, {"name": "gmil", "label": "again"}]}, "the method 'gmil' is there 2 times"),
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
