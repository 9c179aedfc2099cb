"""README and docs: links lead somewhere, commands are those that gmil takes, and every block of Python runs."""

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
from pyarrow import csv
from tests.docs_pages import (
    GENERATED,
    NEEDS,
    PAGES,
    README,
    ROOT,
    anchors_of,
    blocks_of,
    expect_printed,
    name_of,
    page_named,
    python_blocks,
    run_command,
    run_python,
)
from tests.video.conftest import encode, moving_frames

import gmil
from gmil import own_methods
from gmil.cli.main import main

WITH_PYTHON = [page for page in PAGES if page != README and python_blocks(page)]
RUN_WHOLE = ("guide/table", "guide/where", "guide/slides", "guide/trust")
"""Pages of which the commands in blocks are run as well, in the order of the page."""
SLOW = ("guide/choosing", "guide/slides", "guide/table")
"""Pages that take many seconds all the same."""
FASTER = {
    "compare": ("--methods", "gmil,bag-statistics", "--jobs", "1"),
    "cv cells.csv": ("--folds", "3", "--importance", "0"),
    "data make slides": ("--patches", "100", "--features", "16"),
}
"""What is added to a command that would take long."""


def in_pages(pages):
    return pytest.mark.parametrize("page", pages, ids=name_of)


# ------------------------------------------------------------------ the files that pages name


def write_frames():
    made = gmil.make_bags(40, n_features=4, random_state=0)
    info = {"time": np.concatenate([np.arange(size) / 25 for size in made.bags.sizes])}
    gmil.write("frames.parquet", gmil.Bags(made.bags.instances, made.bags.offsets, instance_info=info), made.y)


def write_bags():
    gmil.write("bags.csv", *gmil.make_bags(40, n_features=4, random_state=0, return_X_y=True))


def write_cells():
    """Write the tables of guide/table.md, and those of its cells with a column of labels of instances."""
    namespace: dict = {}
    run_python(python_blocks(page_named("guide/table"))[0], namespace, page_named("guide/table"))
    table, made = namespace["table"], namespace["made"]
    csv.write_csv(table.append_column("abnormal", pa.array(made.instance_y)), "labelled.csv")


def write_slides():
    folder = Path("slides")
    folder.mkdir()
    for number in range(4):
        np.save(folder / f"slide{number}.npy", np.random.default_rng(number).normal(size=(5, 3)))


def write_videos():
    folder = Path("videos")
    folder.mkdir()
    names = [f"clip{i}.webm" for i in range(8)]
    for number, name in enumerate(names):
        encode(folder / name, moving_frames(n_frames=20, speed=2 + 4 * (number % 2), seed=number))
    encode(folder / "new.webm", moving_frames(n_frames=20, seed=9)).rename("new.mp4")
    rows = [f"{name},{'dash' if number % 2 else ''}" for number, name in enumerate(names)]
    Path("labels.csv").write_text("\n".join(["video,event", *rows]), encoding="utf-8")


FILES = {
    "guide/data": (write_frames, write_slides),
    "guide/scale": (write_frames,),
    "guide/trust": (write_bags,),
    "guide/video": (write_videos,),
    "guide/where": (write_cells,),
}
"""What writes the files that the blocks of a page read."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder that has the module of guide/own_methods.md."""
    (tmp_path / "mymethods.py").write_text(python_blocks(page_named("guide/own_methods"))[0].code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(own_methods, "_own", {})
    yield tmp_path
    sys.modules.pop("mymethods", None)


# ------------------------------------------------------------------ Python


def marks_of(page):
    return [pytest.mark.slow] if name_of(page) in SLOW else []


def faster(words):
    """Return what is added to a command."""
    return next((options for start, options in FASTER.items() if words.startswith(start)), ())


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", [pytest.param(page, id=name_of(page), marks=marks_of(page)) for page in WITH_PYTHON])
def test_the_blocks_of_a_page_run_in_order(page):
    for write in FILES.get(name_of(page), ()):
        write()
    namespace: dict = {}
    for block in blocks_of(page):
        if block.language == "python":
            run_python(block, namespace, page)
        elif name_of(page) in RUN_WHOLE:
            shown = "".join(run_command(words, *faster(words)) for words in block.commands)
            if block.printed is not None:
                expect_printed(shown, block.printed)


def test_few_blocks_need_more_than_gmil():
    asked = [(page.stem, block.needs) for page in WITH_PYTHON for block in python_blocks(page) if block.needs]
    assert sorted(asked) == [("gpu", "torch"), ("scale", "dask"), ("video", "video")]
    assert {need for _, need in asked} == set(NEEDS)


QUICKER = {"compare": ("--jobs", "1", "--folds", "2"), "cv": ("--folds", "3"), "paper": ("--jobs", "1")}


@pytest.mark.slow
@pytest.mark.usefixtures("folder", "small_paper")
def test_the_own_method_of_its_page_runs_as_it_is():
    page = page_named("guide/own_methods")
    wanted = [words for block in blocks_of(page) for words in block.commands]
    assert [words.split()[0] for words in wanted] == ["methods", "cv", "compare", "paper"]
    for words in wanted:
        assert "MeanVector" in run_command(words, *QUICKER.get(words.split()[0], ()))
    own = python_blocks(page)[0].code
    assert len([line for line in own.partition("class ")[2].splitlines() if line.strip()]) <= 15


# ------------------------------------------------------------------ commands


def commands(page):
    """Return what stands after "gmil" in blocks of code and between backticks; three dots stand for something else."""
    found = [words for block in blocks_of(page) for words in block.commands]
    text = page.read_text(encoding="utf-8")
    found += [" ".join(words.split()) for words in re.findall(r"`gmil ([^`]+)`", text)]
    return [words for words in found if "..." not in words]


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


@pytest.mark.usefixtures("folder")
@in_pages(PAGES)
def test_commands_are_those_that_gmil_takes(page):
    for words in commands(page):
        first, *alternatives = words.split(" | ")
        for given in [first, *(" ".join([*first.split()[:-1], other]) for other in alternatives)]:
            try:
                parse(shlex.split(given))
            except (click.MissingParameter, click.exceptions.Exit):  # "gmil check" in a sentence; "gmil cv --help"
                pass
            except click.UsageError as error:
                pytest.fail(f"{page.name}: gmil {given}: {error.format_message()}")


# ------------------------------------------------------------------ README


@pytest.mark.usefixtures("folder")
def test_the_first_commands_of_the_readme_work_on_one_file(tmp_path):
    bags, y = gmil.make_bags(20, n_features=3, random_state=0, return_X_y=True)
    columns = {"video": np.repeat(np.arange(20), bags.sizes), "event": np.repeat(y, bags.sizes)}
    features = {f"f{i}": bags.instances[:, i] for i in range(3)}
    pq.write_table(pa.table({**columns, **features}), "frames.parquet")
    pq.write_table(pa.table({"video": columns["video"], **features}), "new.parquet")
    first = [words for words in commands(README) if words.split()[0] in ("cv", "fit", "predict", "check")]
    wanted = [words for words in first if ".parquet" in words]
    assert len(wanted) == 5
    for words in wanted:
        run_command(words)
    assert (tmp_path / "scores.csv").read_text().count("\n") == bags.n_instances + 1


def test_the_ten_lines_of_the_readme_print_what_stands_below_them(capsys):
    (block,) = python_blocks(README)
    assert len([line for line in block.code.splitlines() if line]) == 10
    exec(compile(block.code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    expect_printed(printed, block.printed)
    assert accuracy_lines(printed) == accuracy_lines(block.printed)  # on every processor


def accuracy_lines(text):
    """Return the lines with accuracies, which must not hang on a single bag."""
    return [line for line in text.splitlines() if line.startswith("accuracy")]


def test_the_readme_begins_with_what_it_is_how_to_install_it_and_the_recommended_method():
    text = README.read_text(encoding="utf-8")
    first, titles = text.partition("\n## ")[0], re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert titles[:3] == ["Install", "Ten lines of Python", "On the command line"]
    assert len(re.findall(r"\.(?:\s|$)", first)) == 2  # two sentences
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert sorted(re.findall(r"^\| `(\w+)` \|", text.partition("## Ten")[0], re.MULTILINE)) == sorted(extras)


# ------------------------------------------------------------------ words

PRIVATE = ("manyth", "than which", "a say", "learned say", "speak for", "naming no", "knowing the results")


@in_pages([page for page in PAGES if page.name not in ("CHANGELOG.md", "paper_report.md")])
def test_pages_have_no_wording_that_only_their_authors_understand(page):
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert [words for words in PRIVATE if words in text] == []


# ------------------------------------------------------------------ links


@in_pages(PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith("https://") or GENERATED.intersection(Path(target).parts):
            continue
        path, _, anchor = target.partition("#")
        place = page.parent / path if path else page
        assert place.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors_of(place), f"{page.name}: {target}"
