"""Own methods: named as package.module:Class or offered by a plugin, beside gmil's, and never imported by a file."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import textwrap

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import gmil
from gmil import own_methods
from gmil.errors import MethodFailedError
from gmil.paper import parse_spec
from gmil.paper import run as run_spec
from gmil.paper.comparison import choose_methods
from gmil.paper.runs.fingerprints import code_fingerprint

MODULE = """
    import numpy as np
    from sklearn.base import BaseEstimator
    from sklearn.linear_model import LogisticRegression

    class Largest(BaseEstimator):
        '''The largest instance of every bag.'''

        def __init__(self, C=1.0):
            self.C = C

        def fit(self, X, y):
            self.model_ = LogisticRegression(C=self.C).fit([bag.max(axis=0) for bag in X], y)
            self.classes_ = self.model_.classes_
            return self

        def predict(self, X):
            return self.model_.predict([bag.max(axis=0) for bag in X])

        def predict_proba(self, X):
            return self.model_.predict_proba([bag.max(axis=0) for bag in X])

        def score_instances(self, X):
            return self.model_.decision_function(X.instances)

    def strict():
        return Largest(C=0.01)

    class Unfit(BaseEstimator):
        def predict(self, X):
            return np.zeros(len(X))

    class Plain:
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.zeros(len(X))

    class Needy(Largest):
        def __init__(self, C):
            self.C = C

    class Deep(Largest):
        def predict(self, X):
            return LogisticRegression().fit(np.ones((3, 1)), [0, 0, 0])

    class Short(Largest):
        def predict(self, X):
            return np.zeros(len(X) + 1)

    class Unsure(Largest):
        def decision_function(self, X):
            return np.full(len(X), np.nan)

    class Failing(Largest):
        def fit(self, X, y):
            raise RuntimeError("no luck today")
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module of a name that no other test uses into the current directory, and return the name."""
    name = f"own_{re.sub(r'[^a-z0-9]', '_', tmp_path.name.lower())}"
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(MODULE), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(own_methods, "_own", {})
    yield name
    sys.modules.pop(name, None)


@pytest.fixture
def data(tmp_path, gaussian_bags):
    bags, y = gaussian_bags(n_bags=24)
    bags = gmil.Bags(bags.instances, bags.offsets, instance_info={"y_instance": (bags.instances > 4).any(axis=1) * 1})
    gmil.write(tmp_path / "bags.parquet", bags, y)
    return tmp_path / "bags.parquet"


def installed(monkeypatch, **plugins):
    """Let packages offer methods."""
    points = [importlib.metadata.EntryPoint(name, value, own_methods.GROUP) for name, value in plugins.items()]

    def entry_points(**wanted):
        found = [p for p in points if p.group == wanted["group"] and wanted.get("name", p.name) == p.name]
        return importlib.metadata.EntryPoints(found)

    monkeypatch.setattr(own_methods, "entry_points", entry_points)


# -------------------------------------------------------------------------------- the commands


def test_cv_runs_a_class_with_its_parameters(run, module, data):
    found = run("cv", data, "--method", f"{module}:Largest", "--set", "C=0.5", "--folds", 4, "--instances", "--json")
    assert found.exit_code == 0, found.stderr
    (row,) = json.loads(found.stdout)
    bags, y = gmil.read(data)
    expected = gmil.cross_validate(sys.modules[module].Largest(C=0.5), bags, y, cv=4)
    assert (row["method"], row["params"]) == (f"{module}:Largest", {"C": 0.5})
    assert row["accuracy_mean"] == expected.accuracy() > 0.8
    assert row["auc_mean"] == expected.auc()
    assert row["instances"]["auc"] > 0.8


def test_compare_stores_and_reports_it_like_ours(run, module, data, tmp_path):
    names = f"bag-statistics,{module}:Largest,{module}:strict"
    arguments = ("compare", data, "--methods", names, "--folds", 3, "--repeats", 1, "--jobs", 1, "-o", "run")
    found = run(*arguments)
    assert found.exit_code == 0, found.stderr
    summary = json.loads((tmp_path / "run/compare.json").read_text())
    labels = {row["method"]: row["label"] for row in summary["rows"] if row["column"] == "paper"}
    assert labels == {
        "bag-statistics": labels["bag-statistics"], f"{module}:Largest": "Largest", f"{module}:strict": "strict"
    }  # fmt: skip
    assert "Largest" in (tmp_path / "run/report.md").read_text()
    rows = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "run/rows").iterdir()}
    assert run(*arguments).exit_code == 0
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "run/rows").iterdir()} == rows


def test_table1_takes_it(run, module, small_paper, tmp_path):
    options = ("--quick", "--jobs", 1, "--output", "run")
    found = run("paper", "table1", "--methods", f"{module}:Largest", *options)
    assert found.exit_code == 0, found.stderr
    rows = json.loads((tmp_path / "run/table1-quick.json").read_text())["rows"]
    (row,) = (row for row in rows if row["method"] == f"{module}:Largest")
    assert (row["label"], row["title"], row["column"]) == ("Largest", "default setting", "paper")
    assert row["cells"]["musk1"]["accuracy"] > 0.5
    refused = run("paper", "figure7", "--methods", f"{module}:Largest", *options)
    assert refused.exit_code == 2
    assert "figure7 has no method" in refused.stderr


def test_methods_tells_its_parameters(run, module):
    found = run("methods", f"{module}:Largest")
    assert found.stdout.startswith(f"{module}:Largest: The largest instance of every bag.\nIn Python {module}.Largest;")
    assert re.search(r"^C +1\.0", found.stdout, re.MULTILINE)


@pytest.mark.slow
def test_worker_processes_of_the_gmil_command_find_the_module(module, data):
    script = "from gmil.cli.main import main; main()"
    command = [sys.executable, "-P", "-c", script, "cv", str(data), "--method", f"{module}:Largest"]
    found = subprocess.run(
        [*command, "--folds", "3", "--jobs", "2", "--json"], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p.endswith("src"))},
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)[0]["accuracy_mean"] > 0.8


@pytest.mark.slow
def test_a_fit_that_fails_is_a_failure_of_that_method_alone(run, module, data):
    names = f"bag-statistics,{module}:Failing"
    found = run("compare", data, "--methods", names, "--folds", 3, "--repeats", 1, "--jobs", 1, "-o", "run")
    assert found.exit_code == 1
    assert "RuntimeError: no luck today" in found.stderr
    assert "failed" in found.stdout


def test_cv_tells_what_a_method_raises_and_where(run, module, data):
    found = run("cv", data, "--method", f"{module}:Failing", "--folds", 3)
    assert found.exit_code == 1
    told = f"gmil: The method '{module}:Failing' failed: RuntimeError: no luck today \\({module}.py, line \\d+\\).\n"
    assert re.fullmatch(told, found.stderr)


def test_the_place_of_a_failure_is_a_line_of_the_method_and_not_of_a_library(run, module, data, tmp_path):
    found = run("cv", data, "--method", f"{module}:Deep", "--folds", 3)
    lines = (tmp_path / f"{module}.py").read_text().splitlines()
    line = 1 + next(i for i, text in enumerate(lines) if "np.ones((3, 1))" in text)
    assert found.stderr.strip().endswith(f"({module}.py, line {line}).")


def test_the_place_of_a_failure_in_another_process_is_in_its_traceback(module, tmp_path):
    name = own_methods.import_method(f"{module}:Deep")
    there = RuntimeError(f'File "{tmp_path / module}.py", line 7, in fit\nFile "{np.__file__}", line 3, in ones')
    error = ValueError("no luck")
    error.__cause__ = there
    told = rf"ValueError: no luck \({module}\.py, line 7\)\.$"
    with pytest.raises(MethodFailedError, match=told), own_methods.failures_told(name):
        raise error


def test_of_a_failure_outside_of_the_method_no_line_is_told(run, module, data):
    found = run("cv", data, "--method", f"{module}:Short", "--folds", 3)
    assert found.stderr.strip().endswith("(where gmil calls it: check what its methods take and return).")


def test_cv_says_that_decisions_are_no_numbers(run, module, data):
    found = run("cv", data, "--method", f"{module}:Unsure", "--folds", 3)
    assert found.exit_code == 0
    told = "decision_function of Unsure is NaN for 24 of 24 bags. Folds that test one of them have no AUC."
    assert told in found.stderr
    assert "NaN" not in run("cv", data, "--method", f"{module}:Largest", "--folds", 3).stderr


@pytest.mark.parametrize("command", [("cv", "--method"), ("compare", "--methods")])
def test_a_method_that_is_nearly_named_is_proposed(run, data, command):
    assert run(command[0], data, command[1], "gmill").stderr.strip().endswith("Did you mean 'gmil'?")


def test_fit_refuses_what_no_model_file_may_hold_before_it_is_fitted(run, module, data, tmp_path):
    found = run("fit", data, "--method", f"{module}:Failing", "-o", tmp_path / "model.gmil")
    assert found.exit_code == 2
    assert found.stderr.startswith("gmil: Failing cannot be saved: a model file holds gmil's estimators only.")
    assert "joblib.dump(Failing().fit(bags, y), 'model.joblib')" in found.stderr


def test_joblib_keeps_an_own_method(module, data, tmp_path):
    bags, y = gmil.read(data)
    name = own_methods.import_method(f"{module}:Largest")
    model = own_methods.own_methods()[name]().fit(bags, y)
    joblib.dump(model, tmp_path / "model.joblib")
    assert_array_equal(joblib.load(tmp_path / "model.joblib").predict(bags), model.predict(bags))


WRONG = {
    "{module}:": "names no class",
    ":Largest": "names no module",
    "nowhere_at_all.here:Largest": "there is no module 'nowhere_at_all'",
    "{module}.deeper:Largest": "'{module}.deeper'",
    "{module}:Missing": "has no class 'Missing'",
    "{module}:Unfit": "has no fit",
    "{module}:Plain": "Derive it from sklearn.base.BaseEstimator",
    "{module}:Needy": "cannot be made: TypeError",
    "broken_module:Largest": "cannot be imported: ZeroDivisionError: division by zero. Correct the module.",
    "needs_more:Largest": "No module named 'not_installed_here'. Correct the module.",
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("command", ["cv", "compare", "methods"])
def test_a_wrong_name_is_one_sentence(run, module, data, tmp_path, name, command):
    (tmp_path / "broken_module.py").write_text("1 / 0\n")
    (tmp_path / "needs_more.py").write_text("import not_installed_here\n")
    text = name.format(module=module)
    given = {"cv": (data, "--method", text), "compare": (data, "--methods", f"gmil,{text}"), "methods": (text,)}
    found = run(command, *given[command])
    assert found.exit_code == 2
    assert WRONG[name].format(module=module) in found.stderr
    assert found.stderr.startswith("gmil: The m")
    assert found.stderr.count("\n") == 1
    assert not found.stdout


# -------------------------------------------------------------------------------- plugins


def test_a_plugin_is_listed_and_taken_by_name(run, module, data, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    installed(monkeypatch, largest=f"{module}:Largest", gmil="os:getcwd")
    listed = dict(line.split("\t") for line in run("methods").stdout.splitlines())
    assert listed["largest"] == "The largest instance of every bag."
    assert listed["gmil"] != listed["largest"]
    assert len(listed) == len(gmil.base.methods()) + 1
    assert run("cv", data, "--method", "largest", "--folds", 3).exit_code == 0
    assert "largest" in run("cv", data, "--method", "largets").stderr


def test_a_plugin_is_not_imported_for_our_own_methods(run, module, data, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    installed(monkeypatch, largest=f"{module}:Largest")
    assert run("cv", data, "--method", "bag-statistics", "--folds", 3).exit_code == 0
    assert module not in sys.modules


@pytest.mark.parametrize("value", ["not_there_at_all:Class", "os:no_such_thing", "os:sep"])
def test_a_broken_plugin_is_one_sentence(run, module, monkeypatch, value):
    installed(monkeypatch, broken=value)
    listed = run("methods")
    assert listed.exit_code == 0
    assert len(listed.stdout.splitlines()) == len(gmil.base.methods())
    assert listed.stderr.startswith("The method 'broken' ")
    assert listed.stderr.count("\n") == 1
    named = run("methods", "broken")
    assert (named.exit_code, named.stderr) == (2, f"gmil: {listed.stderr}")


# -------------------------------------------------------------------------------- files import nothing


def test_an_experiment_that_names_a_module_imports_nothing(module, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    document = {
        "datasets": ["toy"],
        "generated": {"toy": {"n_bags": 12, "random_state": 0}},
        "protocol": {"folds": 2, "repeats": 1},
        "method": [{"name": f"{module}:Largest"}, {"name": "bag-statistics", "columns": ["paper"]}],
    }
    results = run_spec(parse_spec(document, "example"), output=tmp_path / "run")
    assert module not in sys.modules
    assert results.fold_accuracies("toy", f"{module}:Largest", "paper") is None
    assert any(f"Not in this gmil, shown with published figures only: {module}:Largest" in n for n in results.notes)


def test_the_folder_of_a_run_imports_nothing(run, module, data, monkeypatch):
    names = f"bag-statistics,{module}:Largest"
    arguments = ("compare", data, "--methods", names, "--folds", 2, "--repeats", 1, "--jobs", 1, "-o", "run")
    assert run(*arguments).exit_code == 0
    sys.modules.pop(module)
    monkeypatch.setattr(own_methods, "_own", {})
    assert run("report", "run").exit_code == 0
    assert module not in sys.modules


@pytest.mark.parametrize("cls", ["{module}:Largest", "{module}.Largest", "Largest"])
def test_a_model_file_that_names_a_module_imports_nothing(module, tmp_path, monkeypatch, cls):
    from gmil.io.model_files.values import Decoder

    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(gmil.ModelFileError, match="which this gmil does not know"):
        Decoder({}).model({"class": cls.format(module=module), "params": {}, "fitted": {}})
    assert module not in sys.modules


def test_only_the_command_line_imports(module, tmp_path, monkeypatch, gaussian_bags):
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(gmil.GmilError, match="There is no method"):
        choose_methods(*gaussian_bags(), [f"{module}:Largest"], quick=False)
    assert module not in sys.modules


# -------------------------------------------------------------------------------- the source behind stored rows


def test_rows_are_of_the_source_of_the_class_and_of_what_it_imports_beside_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "ownpackage_of_sources"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "helpers.py").write_text("from . import deeper\n")
    (package / "deeper.py").write_text("VALUE = 1\n")
    (package / "unrelated.py").write_text("VALUE = 1\n")
    (package / "model.py").write_text(
        "from sklearn.base import BaseEstimator\nfrom .helpers import deeper\nclass Own(BaseEstimator):\n    pass\n"
    )
    cls = importlib.import_module("ownpackage_of_sources.model").Own
    importlib.import_module("ownpackage_of_sources.unrelated")
    before = code_fingerprint(cls)
    (package / "unrelated.py").write_text("VALUE = 22\n")
    (package / "deeper.py").write_text("# a comment\nVALUE = 1\n")
    assert code_fingerprint(cls) == before
    (package / "deeper.py").write_text("VALUE = 22\n")
    assert code_fingerprint(cls) != before


# -------------------------------------------------------------------------------- gmil.compare


@pytest.mark.slow
def test_compare_in_python_is_what_the_command_does(run, data, tmp_path):
    arguments = ("--methods", "bag-statistics,mi-fv", "--folds", 3, "--repeats", 2, "--seed", 5, "--jobs", 1)
    assert run("compare", data, *arguments, "--instances", "-o", tmp_path / "run").exit_code == 0
    told = json.loads((tmp_path / "run/compare.json").read_text())["rows"]
    bags, y = gmil.read(data, info=["y_instance"])
    labels = bags.instance_info.column("y_instance").to_numpy()
    methods = {"bag-statistics": gmil.BagStatistics(), "mi-fv": gmil.base.methods()["mi-fv"]()}
    found = gmil.compare(methods, bags, y, cv=3, repeats=2, random_state=5, instance_y=labels)
    assert [row["method"] for row in found.rows] == [row["method"] for row in told]
    for mine, theirs in zip(found.summary["rows"], told, strict=True):
        (own,), (cell,) = mine["cells"].values(), theirs["cells"].values()
        del own["jobs"], cell["jobs"]
        assert json.loads(json.dumps(own)) == cell
    for name, estimator in methods.items():
        assert found.results[name] == gmil.cross_validate(
            estimator, bags, y, cv=3, repeats=2, random_state=5, instance_y=labels
        )
    assert found.best == told[0]["method"]
