"""README and docs: links lead somewhere, commands are those that gmil takes, and the first example runs."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import gmil
from gmil import own_methods
from gmil.cli.main import main

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands(page):
    """Return what stands after "gmil" in blocks of code and between backticks; three dots stand for something else."""
    text = page.read_text(encoding="utf-8")
    blocks = "".join(re.findall(r"^```\w*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    found = re.findall(r"^gmil (.*)$", blocks, re.MULTILINE)
    found += [" ".join(words.split()) for words in re.findall(r"`gmil ([^`]+)`", text)]
    return [words.partition("  #")[0] for words in found if "..." not in words]


def parse(words):
    """Parse a command line as click would, and run nothing."""
    command = main
    while isinstance(command, click.Group):
        if not words:
            return
        name, *words = words
        if name not in command.commands:
            msg = f"There is no command {name!r}."
            raise click.UsageError(msg)
        command = command.commands[name]
    command.make_context("gmil", words)


def python_blocks(page):
    """Return the examples in Python of a page."""
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """Write the file that docs/guide/own_methods.md begins with into the current directory."""
    (tmp_path / "mymethods.py").write_text(python_blocks("guide/own_methods")[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(own_methods, "_own", {})
    yield
    sys.modules.pop("mymethods", None)


@pytest.mark.usefixtures("own_module")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_are_those_that_gmil_takes(page):
    for words in commands(page):
        first, *alternatives = words.split(" | ")
        for given in [first, *(" ".join([*first.split()[:-1], other]) for other in alternatives)]:
            try:
                parse(shlex.split(given))
            except click.MissingParameter:  # "gmil check" in a sentence is no whole command
                pass
            except click.UsageError as error:
                pytest.fail(f"{page.name}: gmil {given}: {error.format_message()}")


def test_the_first_commands_of_the_readme_work_on_one_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bags, y = gmil.make_bags(20, n_features=3, random_state=0, return_X_y=True)
    columns = {"video": np.repeat(np.arange(20), bags.sizes), "event": np.repeat(y, bags.sizes)}
    features = {f"f{i}": bags.instances[:, i] for i in range(3)}
    pq.write_table(pa.table({**columns, **features}), "frames.parquet")
    pq.write_table(pa.table({"video": columns["video"], **features}), "new.parquet")
    wanted = [words for words in commands(PAGES[0]) if words.split()[0] in ("cv", "fit", "predict", "check")]
    assert len(wanted) == 4
    for words in wanted:
        result = CliRunner().invoke(main, shlex.split(words))
        assert result.exit_code == 0, f"gmil {words}: {result.output}"
    assert (tmp_path / "scores.csv").read_text().count("\n") == bags.n_instances + 1


def test_the_ten_lines_of_the_readme_print_what_stands_below_them(capsys):
    text = PAGES[0].read_text(encoding="utf-8")
    ((lines, shown),) = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len([line for line in lines.splitlines() if line]) == 10
    exec(compile(lines, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    number = r"-?\d+\.\d*"  # the last digit may depend on the machine
    assert re.sub(number, "#", printed).split() == re.sub(number, "#", shown).split()
    found, expected = (np.array(re.findall(number, words), dtype=float) for words in (printed, shown))
    np.testing.assert_allclose(found, expected, atol=0.11)


def test_the_readme_begins_with_what_it_is_how_to_install_it_and_the_recommended_method():
    text = PAGES[0].read_text(encoding="utf-8")
    first, titles = text.partition("\n## ")[0], re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert titles[:3] == ["Install", "Ten lines of Python", "On the command line"]
    assert len(re.findall(r"\.(?:\s|$)", first)) == 2  # two sentences
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert sorted(re.findall(r"^\| `(\w+)` \|", text.partition("## Ten")[0], re.MULTILINE)) == sorted(extras)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith("https://"):
            assert (page.parent / target.partition("#")[0]).exists(), f"{page.name}: {target}"


PRINTED = {
    "methods/bag_vectors": ["True", "True", "['min(x0)', 'min(x1)', 'max(x0)', 'max(x1)']", "True", "True"],
    "guide/instance_scores": ["True", "True", "True", "[1, 3]", "True", "2"],
}


@pytest.mark.parametrize("page", PRINTED)
def test_the_examples_of_a_page_run_as_they_are(page, capsys):
    for lines in python_blocks(page):
        exec(compile(lines, f"{page}.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == PRINTED[page]


@pytest.mark.usefixtures("own_module", "small_paper")
def test_the_own_method_of_its_page_runs_as_it_is(capsys):
    page = ROOT / "docs/guide/own_methods.md"
    wanted = [words for words in commands(page) if "mymethods" in words]
    assert [words.split()[0] for words in wanted] == ["methods", "cv", "compare", "paper"]
    for words in wanted:
        jobs = [] if words.startswith(("methods", "cv")) else ["--jobs", "1"]
        result = CliRunner().invoke(main, [*shlex.split(words), *jobs])
        assert result.exit_code == 0, f"gmil {words}: {result.output}"
        assert "MeanVector" in result.stdout
    own, example = python_blocks("guide/own_methods")
    assert len([line for line in own.partition("class ")[2].splitlines() if line.strip()]) <= 15
    exec(compile(example, page.name, "exec"), {})
    best, shape, worse = capsys.readouterr().out.splitlines()
    assert (best, shape) == ("statistics", "(1, 1, 92)")
    assert {"majority", "bag-size", "noise"} <= set(eval(worse))
