"""Packages and workflows are what they are meant to be: one list of Python versions, one version, nothing left out."""

from __future__ import annotations

import fnmatch
import os
import re
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml
from packaging.requirements import Requirement
from tools.packages import clean_room, installed, oldest, wheel
from tools.packages.tree import ROOT, tracked_files

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.MULTILINE))
WORKFLOWS = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / ".github/workflows").glob("*.yml"))}
PAGES = ["CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", ".github/PULL_REQUEST_TEMPLATE.md"]

in_a_checkout = pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="git tells which files are part of the project: this is no checkout"
)


def jobs():
    """Return every job of every workflow with its name."""
    return [(f"{file}: {name}", job) for file, text in WORKFLOWS.items() for name, job in parsed(text)["jobs"].items()]


def parsed(text):
    return yaml.safe_load(text)


def called_targets(text):
    """Return the targets of ``make`` that stand in lines or between backticks."""
    return {word for line in re.findall(r"(?:`|^)make ([a-z -]+)", text, re.MULTILINE) for word in line.split()}


def steps():
    return [(name, step) for name, job in jobs() for step in job["steps"]]


# ------------------------------------------------------------------ versions


def classified():
    """Return the versions of Python that the classifiers name."""
    return [
        found[1]
        for line in PYPROJECT["project"]["classifiers"]
        if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line))
    ]


def test_wheels_are_built_for_the_classified_versions_of_python():
    built = PYPROJECT["tool"]["cibuildwheel"]["build"]
    assert built == [f"cp{version.replace('.', '')}-*" for version in classified()]


def test_the_matrix_tests_the_classified_versions_of_python():
    assert parsed(WORKFLOWS["ci.yml"])["jobs"]["test"]["strategy"]["matrix"]["python"] == classified()


def test_the_oldest_version_of_python_is_the_one_that_tools_are_told():
    assert PYPROJECT["project"]["requires-python"] == f">={classified()[0]}"
    assert PYPROJECT["tool"]["mypy"]["python_version"] == classified()[0]
    assert parsed(WORKFLOWS["ci.yml"])["jobs"]["oldest"]["steps"][1]["with"]["python-version"] == classified()[0]


@pytest.mark.skipif(not (ROOT / "setup.py").exists(), reason="setup.py is not here")
def test_one_wheel_is_for_the_oldest_version_of_python_and_all_later_ones():
    text = (ROOT / "setup.py").read_text(encoding="utf-8")
    assert f"OLDEST_PYTHON = ({classified()[0].replace('.', ', ')})\n" in text
    settings = PYPROJECT["tool"]["cibuildwheel"]
    assert settings["environment"]["GMIL_ABI3"] == settings["macos"]["environment"]["GMIL_ABI3"] == "1"


@in_a_checkout
def test_the_version_stands_in_one_place():
    assigned = re.compile(r"^\s*(__version__|version|release)\s*[:=]\s*[\"']?\d", re.MULTILINE)
    places = [path for path in tracked_files() if path.endswith((".py", ".toml", ".cff", ".cfg"))]
    found = [path for path in places if assigned.search((ROOT / path).read_text(encoding="utf-8"))]
    assert found == ["pyproject.toml"]


def test_the_oldest_dependencies_are_those_of_pyproject():
    assert oldest.FILE.read_text(encoding="utf-8") == oldest.constraints(), "run `make oldest`"


def test_every_dependency_has_a_lower_bound_and_no_upper_one():
    project = PYPROJECT["project"]
    lines = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    others = [found for line in lines if (found := Requirement(line)).name != project["name"]]
    assert [str(found) for found in others if [part.operator for part in found.specifier] != [">="]] == []


@pytest.mark.parametrize(
    ("line", "expected"), [("numpy>=1.26", "numpy==1.26"), ("a-b>=2; python_version >= '3'", "a-b==2")]
)
def test_the_lowest_version_is_the_bound(line, expected):
    assert oldest.lowest(Requirement(line)) == expected


# ------------------------------------------------------------------ files


@in_a_checkout
def test_the_source_archive_holds_every_file(monkeypatch):
    egg_info = pytest.importorskip("setuptools.command.egg_info")
    monkeypatch.chdir(ROOT)
    files = egg_info.FileList()
    for line in (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            files.process_template_line(line)
    assert sorted(set(tracked_files()) - {Path(path).as_posix() for path in files.files}) == []


@in_a_checkout
def test_the_wheel_holds_every_file_of_the_package_but_the_sources_of_the_kernels():
    patterns = PYPROJECT["tool"]["setuptools"]["package-data"]["gmil"]
    inside = [path.removeprefix("src/gmil/") for path in tracked_files() if path.startswith("src/gmil/")]
    others = [path for path in inside if not path.endswith(".py")]
    left_out = [path for path in others if not any(fnmatch.fnmatch(path, pattern) for pattern in patterns)]
    assert [path for path in left_out if not re.match(r"engine/native/(_kernels\.pyx$|_\w+\.pxd$|cpp/)", path)] == []


@pytest.mark.parametrize("extra", [[], ["gmil/engine/native/_kernels.pyx", "gmil/engine/native/_kernels.so"]])
def test_a_wheel_without_kernels_or_with_their_sources_is_refused(tmp_path, extra):
    path = tmp_path / "gmil-1-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        for name in ["gmil/engine/native/_kernels.pyi", *extra]:
            archive.writestr(name, "")
    with pytest.raises(SystemExit, match="must have the compiled kernels"):
        wheel.check_contents(path)


# ------------------------------------------------------------------ the clean room


@pytest.mark.parametrize("name", ["cc", "c++", "gcc", "g++-12", "x86_64-linux-gnu-gcc-12", "clang++", "c99", "ld.gold"])
def test_compilers_are_known_by_name(name):
    assert clean_room.COMPILERS.fullmatch(name)


@pytest.mark.parametrize("name", ["cat", "git", "chromium", "sh", "ldd", "python3", "access", "gmil"])
def test_other_commands_are_no_compilers(name):
    assert not clean_room.COMPILERS.fullmatch(name)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_the_clean_room_finds_commands_and_no_compiler(tmp_path, monkeypatch):
    for name in ("cc", "g++-12", "cat"):
        command = tmp_path / "bin" / name
        command.parent.mkdir(exist_ok=True)
        command.touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{tmp_path / 'nowhere'}")
    monkeypatch.setenv("CC", "cc")
    monkeypatch.setenv("PYTHONPATH", "src")
    environment = clean_room.clean_environment(tmp_path)
    assert [path.name for path in (tmp_path / "commands").iterdir()] == ["cat"]
    assert environment["PATH"].endswith(str(tmp_path / "commands"))
    assert not {"CC", "PYTHONPATH"} & environment.keys()


def test_a_source_tree_does_not_pass_for_an_installed_package(monkeypatch, tmp_path):
    monkeypatch.setattr(installed.gmil, "__file__", str(tmp_path / "src" / "gmil" / "__init__.py"))
    with pytest.raises(SystemExit, match="must be the installed one"):
        installed.main()


# ------------------------------------------------------------------ workflows


def test_there_are_workflows():
    assert set(WORKFLOWS) == {"ci.yml", "docs.yml", "wheels.yml"}


@pytest.mark.parametrize("file", WORKFLOWS)
def test_a_workflow_calls_what_is_there(file):
    commands = "\n".join(step["run"] for name, step in steps() if name.startswith(file) and "run" in step)
    assert called_targets(commands) <= TARGETS
    scripts = re.findall(r"(?:^|\s)((?:\.ci|tools)/\S+)", commands)
    assert [path for path in scripts if not (ROOT / path).is_file()] == []


@pytest.mark.parametrize("file", WORKFLOWS)
def test_a_workflow_may_do_nothing_that_a_job_does_not_ask_for(file):
    workflow = parsed(WORKFLOWS[file])
    assert workflow["permissions"] == {}
    assert workflow["concurrency"]["group"].endswith("${{ github.ref }}")
    assert all("permissions" in job and "timeout-minutes" in job for job in workflow["jobs"].values())


def test_one_job_alone_has_an_identity_and_one_alone_may_write():
    asked = [(name, right) for name, job in jobs() for right in job["permissions"].items() if right[1] == "write"]
    assert asked == [("docs.yml: publish", ("contents", "write")), ("wheels.yml: publish", ("id-token", "write"))]
    assert parsed(WORKFLOWS["wheels.yml"])["jobs"]["publish"]["environment"] == "pypi"


def test_actions_are_pinned_by_hash():
    used = re.findall(r"uses: (.*)", "\n".join(WORKFLOWS.values()))
    assert used
    assert [line for line in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


def test_one_action_has_one_version():
    used = set(re.findall(r"uses: (\S+)@(\S+)", "\n".join(WORKFLOWS.values())))
    assert len({action for action, _ in used}) == len(used)


def test_no_checkout_keeps_credentials():
    checkouts = [step for _, step in steps() if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_no_value_from_outside_is_part_of_a_script():
    assert [name for name, step in steps() if "${{" in step.get("run", "")] == []


def test_wheels_are_built_for_every_system():
    machines = parsed(WORKFLOWS["wheels.yml"])["jobs"]["wheels"]["strategy"]["matrix"]["os"]
    assert [re.sub(r"-[\d.]+", "", machine) for machine in machines] == [
        "ubuntu",
        "ubuntu-arm",
        "macos-intel",
        "macos",
        "windows",
    ]


def test_what_wheels_are_tested_with_is_there():
    settings = PYPROJECT["tool"]["cibuildwheel"]
    paths = [*settings["test-sources"], *re.findall(r"(?:tests|tools)/\S+", settings["test-command"])]
    assert [path for path in paths if not (ROOT / path).exists()] == []


# ------------------------------------------------------------------ texts


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_targets_and_files_that_are_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    code = "\n".join(
        re.findall(r"`([^`]+)`|^(make [^#\n]*)", text, re.MULTILINE) and re.findall(r"make [a-z -]+", text)
    )
    named = {word for line in re.findall(r"(?:`|^)make ([a-z -]+)", text, re.MULTILINE) for word in line.split()}
    assert named <= TARGETS, code
    links = re.findall(r"\]\(((?!https?:)[^)#]+)", text)
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []


def test_forms_ask_under_names_of_their_own():
    for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")):
        form = parsed(path.read_text(encoding="utf-8"))
        if path.name != "config.yml":
            names = [part["id"] for part in form["body"] if part["type"] != "markdown"]
            assert form["name"], path.name
            assert form["description"], path.name
            assert len(set(names)) == len(names) > 0, path.name


def test_every_ignored_expectation_has_a_reason():
    reasons = PYPROJECT["tool"]["repo-review"]["ignore"]
    assert all(len(reason.split()) > 3 for reason in reasons.values())
