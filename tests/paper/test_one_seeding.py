"""One scheme of folds and seeds: ``gmil cv``, ``gmil.cross_validate`` and ``gmil paper`` give the same figures."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import gmil
from gmil.cli.main import main
from gmil.paper import parse_spec, run

CASES = {
    "gmil": {"n_clusters": 5},
    "weighted-gmil": {},
    "emdd": {"n_start_bags": 2},
    "mi-vlad": {},
    "mi-fv": {},
    "stk": {"tune": True},
    "mi-svm-witness": {"tune": True},
}


@pytest.fixture(scope="module")
def bags():
    """Return bags on which seeds of estimators make a difference, in the precision of a Parquet file."""
    made, y = gmil.make_bags(30, n_features=4, separation=1.5, random_state=3, return_X_y=True)
    return made.with_instances(made.instances.astype(np.float32)), y


@pytest.mark.parametrize(
    "method",
    [pytest.param(name, marks=pytest.mark.slow) if name in ("emdd", "mi-svm-witness") else name for name in CASES],
)
def test_the_commands_and_the_function_give_the_same_figure(method, bags, tmp_path):
    entry = {"name": method, "columns": ["paper"], "params": CASES[method]}
    document = {"datasets": ["mine"], "protocol": {"folds": 3, "repeats": 2, "seed": 5}, "method": [entry]}
    measured = run(parse_spec(document, "table1"), output=tmp_path / "out", data={"mine": bags})
    found = measured.cross_validation("mine", method, "paper")

    gmil.write(tmp_path / "mine.parquet", *bags)
    settings = [part for name, value in CASES[method].items() for part in ("--set", f"{name}={value}")]
    command = ["cv", str(tmp_path / "mine.parquet"), "--method", method, "--json", *settings]
    result = CliRunner().invoke(main, [*command, "--folds", "3", "--repeats", "2", "--seed", "5"])
    assert result.exit_code == 0, result.stderr
    (row,) = json.loads(result.stdout)
    assert row["accuracy_mean"] == pytest.approx(found.accuracy(), abs=1e-12)
    assert row["auc_mean"] == pytest.approx(found.auc(), abs=1e-12)

    estimator = gmil.base.methods()[method](**CASES[method])
    expected = gmil.cross_validate(estimator, *bags, cv=3, repeats=2, random_state=5)
    np.testing.assert_array_equal(found.folds, expected.folds)
    np.testing.assert_allclose(found.decisions, expected.decisions, atol=1e-9)


@pytest.mark.slow
def test_a_tuned_row_is_the_method_that_tunes_itself(bags, tmp_path):
    document = {
        "datasets": ["mine"],
        "protocol": {"folds": 2, "repeats": 1, "seed": 5},
        "method": [{"name": "ppmm", "columns": ["tuned"]}],
    }
    found = run(parse_spec(document, "table1"), output=tmp_path, data={"mine": bags})
    expected = gmil.cross_validate(gmil.PPMM(tune=True), *bags, cv=2, repeats=1, random_state=5)
    assert found.accuracy("mine", "ppmm", "tuned") == pytest.approx(expected.accuracy(), abs=1e-12)
