"""Estimators compared in Python: missing values, groups, failures, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gmil
from gmil.errors import BagValidationError


def with_gaps(bags):
    """Return bags where instances 0, 7, 14, ... lack a value."""
    X = bags.instances.copy()
    X[::7, 1] = np.nan
    return bags.with_instances(X)


@pytest.mark.parametrize("strategy", ["median", "drop"])
def test_a_comparison_with_missing_values_is_that_of_the_command(run, gaussian_bags, tmp_path, strategy):
    made, y = gaussian_bags(n_bags=16)
    bags = with_gaps(made)
    gmil.write(tmp_path / "bags.npz", bags, y)
    protocol = ("--folds", 4, "--repeats", 1, "--seed", 3, "--jobs", 1, "--missing", strategy)
    out = tmp_path / "run"
    assert run("compare", tmp_path / "bags.npz", "--methods", "bag-statistics", *protocol, "-o", out).exit_code == 0
    told = json.loads((out / "compare.json").read_text())["rows"]
    methods = {"bag-statistics": gmil.make_pipeline(gmil.Impute(strategy), gmil.BagStatistics())}
    found = gmil.compare(methods, bags, y, cv=4, repeats=1, random_state=3)
    assert [row["method"] for row in found.rows] == [row["method"] for row in told]
    cells = [next(iter(row["cells"].values())) for row in told]
    assert [(row["accuracy"], row["auc"]) for row in found.rows] == [(cell["accuracy"], cell["auc"]) for cell in cells]


def test_methods_that_treat_missing_values_in_their_own_ways_have_controls_too(gaussian_bags):
    bags, y = gaussian_bags(n_bags=12)
    methods = {name: gmil.make_pipeline(gmil.Impute(name), gmil.BagStatistics()) for name in ("median", "drop")}
    found = gmil.compare(methods, with_gaps(bags), y, cv=3, repeats=1)
    assert len(found.rows) > len(methods)
    assert all(row["accuracy"] is not None for row in found.rows)


def test_a_comparison_names_the_methods_that_take_no_missing_values(gaussian_bags):
    bags, y = gaussian_bags(n_bags=12)
    methods = {"behind": gmil.make_pipeline(gmil.Impute(), gmil.GMIL(2)), "alone": gmil.GMIL(2)}
    with pytest.raises(
        BagValidationError, match=r"X contains NaN: .* take no missing values: alone\. Put gmil\.Impute"
    ):
        gmil.compare(methods, with_gaps(bags), y, cv=3, repeats=1)
    infinite = bags.with_instances(np.where(bags.instances == bags.instances.max(), np.inf, bags.instances))
    with pytest.raises(BagValidationError, match="X contains infinity"):
        gmil.compare({"behind": methods["behind"]}, infinite, y, cv=3, repeats=1)


def test_a_comparison_does_not_depend_on_processes(gaussian_bags):
    bags, y = gaussian_bags(n_bags=12)
    methods = {"one": gmil.BagStatistics(), "two": gmil.GMIL(4)}
    alone, together = (gmil.compare(methods, bags, y, cv=2, repeats=1, n_processes=n) for n in (1, 2))
    assert alone.results == together.results


def test_a_comparison_tells_of_few_bags(gaussian_bags):
    bags, y = gaussian_bags(n_bags=12)
    alone = gmil.compare({"one": gmil.BagStatistics()}, bags, y, repeats=1)
    assert "6 folds and not 10: the rarest class has no more bags." in alone.summary["notes"]
    assert str(alone).splitlines()[0].startswith(alone.best)
    assert list(alone.to_pandas()["method"]) == [row["method"] for row in alone.rows]


def test_a_method_that_fails_is_told_beside_the_others(gaussian_bags):
    bags, y = gaussian_bags(n_bags=12)
    found = gmil.compare({"bad": gmil.GMIL(n_clusters=-1), "good": gmil.BagStatistics()}, bags, y, cv=3, repeats=1)
    assert set(found.results) == {"good", "majority", "bag-size", "noise"}
    (row,) = (row for row in found.rows if row["method"] == "bad")
    assert row["accuracy"] is None
    assert "n_clusters" in row["failure"]
    assert "failed: " in str(found)
    assert gmil.compare({"bad": gmil.GMIL(n_clusters=-1)}, bags, y, cv=3, repeats=1).best is None


def test_groups_stay_together(gaussian_bags):
    bags, y = gaussian_bags(n_bags=16)
    groups = np.arange(16) // 4
    found = gmil.compare({"one": gmil.BagStatistics()}, bags, y, cv=4, repeats=1, groups=groups)
    folds = found.results["one"].folds[0].reshape(4, 4)
    assert (folds == folds[:, :1]).all()
    assert found.summary["resampled"] == "groups"


@pytest.mark.parametrize(
    ("estimators", "message"),
    [
        ({}, "must be a dict of names and estimators"),
        ([gmil.GMIL()], "must be a dict of names and estimators"),
        ({"one": gmil.GMIL}, "'one' is the class"),
        ({"one": "gmil"}, "'one' is 'gmil'"),
        ({"majority": gmil.GMIL()}, "not those of the controls"),
    ],
)
def test_what_is_no_estimator_is_refused(gaussian_bags, estimators, message):
    with pytest.raises(BagValidationError, match=f"estimators .*{message}"):
        gmil.compare(estimators, *gaussian_bags())
