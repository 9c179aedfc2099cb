"""Nothing heavy is imported before it is needed, and everything is there when it is."""

from __future__ import annotations

import ast
import inspect
import json
import os
import pickle
import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

import gmil
from gmil.io.model_files import registered_classes
from gmil.names import ESTIMATORS, HOMES, PACKAGES

HEAVY = {
    "asyncio",
    "av",
    "dask",
    "h5py",
    "jinja2",
    "joblib",
    "matplotlib",
    "narwhals",
    "numpy",
    "pandas",
    "polars",
    "pyarrow",
    "rich",
    "safetensors",
    "scipy",
    "skops",
    "sklearn",
    "threadpoolctl",
    "torch",
}
COMMAND = "from gmil.cli.main import main; main({!r}, prog_name='gmil', standalone_mode=False)"
ALL_HELP = """
from gmil.cli.examples import commands_of
from gmil.cli.main import main
for path, _ in commands_of(main):
    main([*path.split()[1:], "--help"], prog_name="gmil", standalone_mode=False)
"""
COMPLETION = """
import os
os.environ.update(_GMIL_COMPLETE="bash_complete", COMP_WORDS={!r}, COMP_CWORD={!r})
from gmil.cli.main import main
try:
    main(prog_name="gmil")
except SystemExit:
    pass
"""


# It imports what gmil builds on, once, and forks for every piece of code, which finds no module of gmil.
FORKING = """
import contextlib, io, json, os, sys, traceback
import pyarrow, scipy.optimize, sklearn.linear_model, sklearn.svm
for line in sys.stdin:
    if os.fork():
        os.wait()
        continue
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            exec(json.loads(line), {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc(file=printed)
    print(json.dumps([printed.getvalue().strip(), list(sys.modules)]), flush=True)
    os._exit(0)
"""


@pytest.fixture(scope="module")
def run_without_gmil():
    """Return what runs code where gmil was not imported: it returns what is printed and the modules that are loaded."""
    if not hasattr(os, "fork"):
        yield run_python
        return
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", FORKING], **pipes) as process:

        def run(code):
            process.stdin.write(json.dumps(code) + "\n")
            process.stdin.flush()
            printed, modules = json.loads(process.stdout.readline())
            return printed, set(modules)

        assert not [name for name in run("")[1] if name.startswith("gmil")]
        yield run
        process.stdin.close()


def run_python(code):
    """Run code in a new interpreter; return what it prints and the modules that it loads."""
    code = f"{code}\nimport json, sys\nprint(); print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    printed, _, modules = done.stdout.rpartition("\n[")
    return printed.strip(), set(json.loads(f"[{modules}"))


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("import gmil", ""),
        ("import gmil; gmil.GmilError, gmil.__version__, dir(gmil)", ""),
        (COMMAND.format(["--version"]), gmil.__version__),
        (COMMAND.format(["--help"]), "Cross-validate one method."),
        (COMMAND.format(["methods", "--help"]), "List all methods, or the parameters of one."),
        (COMPLETION.format("gmil c", "1"), "plain,compare"),
        (COMPLETION.format("gmil cv --me", "2"), "plain,--method"),
        (COMPLETION.format("gmil paper ta", "2"), "plain,table3"),
        (ALL_HELP, "Turn VIDEOS into a Parquet file"),
    ],
    ids=["import", "light names", "version", "help", "one help", "commands", "options", "groups", "all help"],
)
def test_nothing_heavy_is_imported_before_it_is_needed(code, printed):
    found, modules = run_python(code)
    assert printed in found
    assert HEAVY & modules == set()


def test_the_list_of_commands_imports_no_command():
    _, modules = run_python(COMMAND.format(["--help"]))
    light = {"gmil", "gmil.cli", "gmil.cli.console", "gmil.cli.examples", "gmil.cli.main", "gmil.errors", "gmil.names"}
    assert {name for name in modules if name.startswith("gmil")} == light


def test_cross_validation_tells_what_it_does_before_libraries_are_imported():
    code = """
from gmil.cli import console
from gmil.cli.main import main

def tell(text):
    print(text)
    raise KeyboardInterrupt

console.say = tell
try:
    main(["cv", "musk1", "--repeats", "3"])
except SystemExit:
    pass
"""
    found, modules = run_python(code)
    assert found.splitlines()[0] == "weighted-gmil on musk1, 3 x 10-fold"
    assert HEAVY & modules == set()


def test_gmil_itself_asks_for_arrow_and_frames_only_where_there_are_some():
    code = """
import builtins

asked_for, plain_import = set(), builtins.__import__

def watching_import(name, globals=None, locals=None, fromlist=(), level=0):
    if str((globals or {}).get("__name__")).startswith("gmil"):
        asked_for.add(name.split(".")[0])
    return plain_import(name, globals, locals, fromlist, level)

builtins.__import__ = watching_import
import gmil
gmil.GMIL(), gmil.WeightedGMIL(), gmil.Bags, gmil.cross_validate
print(*asked_for & {"pyarrow", "narwhals", "pandas", "polars", "matplotlib", "skops", "safetensors", "rich", "click"})
"""
    found, _ = run_python(code)
    assert found == ""  # scikit-learn itself loads some of them where they are installed


@pytest.mark.parametrize(
    ("code", "there", "absent"),
    [
        ("gmil.GMIL", "gmil.greedy", ("gmil.methods", "gmil.paper", "gmil.reporting", "gmil.weighted")),
        ("gmil.MILES", "gmil.methods", ("gmil.paper", "gmil.reporting")),
        ("gmil.reporting", "gmil.reporting", ("gmil.cli",)),
        ("gmil.datasets.load", "gmil.datasets", ("gmil.greedy", "gmil.methods")),
    ],
)
def test_a_name_brings_its_module_and_not_those_above(run_without_gmil, code, there, absent):
    _, modules = run_without_gmil(f"import gmil; {code}")
    assert there in modules
    assert not modules.intersection(absent)


# ------------------------------------------------------------------ the table of names


def test_every_name_is_defined_where_the_table_has_it():
    for name, module in HOMES.items():
        assert getattr(gmil, name) is getattr(import_module(module), name)
    assert gmil.__all__ == sorted(HOMES)
    assert set(ESTIMATORS["gmil.methods"]) == {n for n, thing in vars(gmil.methods).items() if inspect.isclass(thing)}


def test_no_public_name_is_that_of_a_module():
    modules = {module.name for module in pkgutil.iter_modules(gmil.__path__)}
    assert not modules & set(gmil.__all__)
    assert set(PACKAGES) <= modules


def test_the_table_has_every_estimator_of_every_module():
    for module in pkgutil.walk_packages(gmil.__path__, "gmil."):
        if not {"__main__", "torch", "on_device"} & set(module.name.split(".")):  # the last two need PyTorch
            import_module(module.name)
    ours = {name for name, cls in registered_classes().items() if cls.__module__.startswith("gmil.")}
    assert ours == {name for names in ESTIMATORS.values() for name in names}


def test_type_checkers_see_every_name():
    tree = ast.parse(inspect.getsource(gmil))
    block = next(node for node in tree.body if isinstance(node, ast.If)).body
    seen = set()
    for node in block:
        if isinstance(node, ast.ImportFrom) and node.module.startswith("gmil"):
            starred = import_module(node.module)
            exported = getattr(starred, "__all__", [n for n, thing in vars(starred).items() if inspect.isclass(thing)])
            seen |= {name for alias in node.names for name in (exported if alias.name == "*" else [alias.name])}
    modules = {name for name in seen if inspect.ismodule(getattr(gmil, name))}
    assert seen - modules == set(gmil.__all__)
    assert set(PACKAGES) <= modules


# ------------------------------------------------------------------ what must work however gmil was imported


def test_all_public_names_can_be_imported_at_once(run_without_gmil):
    names = "GMIL.__name__, load.__name__, MILES.__name__, report.__name__"
    found, _ = run_without_gmil(f"from gmil import *; print({names})")
    assert found == "GMIL load MILES report"


def test_the_first_estimators_asked_for_are_all_estimators(run_without_gmil):
    found, _ = run_without_gmil("import gmil; print(*(name for name, _ in gmil.all_estimators()))")
    assert found.split() == [name for name, _ in gmil.all_estimators()]
    found, _ = run_without_gmil("from gmil.registry import methods; print(*methods())")
    assert found.split() == list(gmil.registry.methods())


def test_a_model_is_unpickled_where_nothing_was_imported(run_without_gmil, tmp_path, gaussian_bags):
    path = tmp_path / "model.pickle"
    path.write_bytes(pickle.dumps(gmil.GMIL(random_state=0).fit(*gaussian_bags())))
    found, _ = run_without_gmil(f"import pickle; print(type(pickle.load(open({str(path)!r}, 'rb'))).__name__)")
    assert found == "GMIL"


@pytest.mark.parametrize("name", ["SingleInstance", "DensityRatio"])
def test_a_model_file_can_be_loaded_first_of_all(run_without_gmil, tmp_path, gaussian_bags, name):
    path = tmp_path / "model.gmil"
    getattr(gmil, name)().fit(*gaussian_bags()).save(path)
    found, modules = run_without_gmil(f"import gmil; print(type(gmil.load({str(path)!r})).__name__)")
    assert found == name
    assert ("gmil.methods" in modules) == (name == "SingleInstance")


def test_names_that_are_not_there_are_told():
    with pytest.raises(AttributeError, match="module 'gmil' has no attribute 'missing'"):
        gmil.missing  # noqa: B018
    with pytest.raises(AttributeError, match="__main__"):
        gmil.__main__  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'missing'"):
        from gmil import missing  # noqa: F401


@pytest.mark.parametrize(("old", "new"), [("experiments", "paper"), ("rivals", "methods")])
def test_renamed_modules_are_found_with_a_warning(old, new):
    with pytest.warns(FutureWarning, match=f"gmil.{old} is now gmil.{new}") as caught:
        assert getattr(gmil, old) is getattr(gmil, new)
    assert caught[0].filename == __file__


# ------------------------------------------------------------------ options that are written down, not imported


def test_the_options_name_the_defaults_of_the_library():
    from gmil.cli.main import main
    from gmil.paper import comparison
    from gmil.transform.impute import STRATEGIES

    helps = {p.name: getattr(p, "help", None) for p in main.commands["compare"].params}
    assert f"; {comparison.REPEATS} by default" in helps["repeats"]
    assert f"; {comparison.FOLDS} by default" in helps["folds"]
    missing = next(p for p in main.commands["fit"].params if p.name == "missing")
    assert list(missing.type.choices) == [*STRATEGIES, "error"]
