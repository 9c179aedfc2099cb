"""The architecture page is true: its packages are those that there are, and its walks are those of the calls."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

import gmil

SOURCE = Path(gmil.__file__).parent
ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "development" / "architecture.md").read_text(encoding="utf-8")


def walks():
    """Return the files of every walk, in order, by its title."""
    parts = PAGE.split("## Walks")[1].split("## Conventions")[0].split("\n**`")[1:]
    return {part.split("`")[0]: re.findall(r"`([\w/]+\.py)`", part) for part in parts}


def files_visited(call):
    """Return the files of gmil in which the call enters a function, in the order of their first visit."""
    found: dict[str, None] = {}

    def visit(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and frame.f_code.co_name != "<module>" and path.is_relative_to(SOURCE):
            found.setdefault(path.relative_to(SOURCE).as_posix())

    before = sys.getprofile()
    sys.setprofile(visit)
    try:
        call()
    finally:
        sys.setprofile(before)
    return list(found)


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    folder = tmp_path_factory.mktemp("walks")
    bags, y = gmil.make_bags(30, n_features=3, random_state=0, return_X_y=True)
    gmil.write(folder / "bags.parquet", bags, y)
    model, machine = gmil.GMIL(random_state=0, n_jobs=1), gmil.WitnessSVM(n_jobs=1)
    model.fit(bags, y).save(folder / "model.gmil")
    return {
        "GMIL().fit(bags, y)": lambda: model.fit(bags, y),
        "GMIL().predict(bags)": lambda: model.predict(bags),
        "WitnessSVM().fit(bags, y)": lambda: machine.fit(bags, y),
        'gmil.read("bags.parquet")': lambda: gmil.read(folder / "bags.parquet"),
        "gmil.cross_validate(GMIL(), bags, y)": lambda: gmil.cross_validate(
            gmil.GMIL(n_jobs=1), bags, y, cv=3, n_jobs=1
        ),
        'gmil.load("model.gmil")': lambda: gmil.load(folder / "model.gmil"),
    }


@pytest.mark.parametrize("title", list(walks()))
def test_a_walk_visits_its_files_in_order(calls, title):
    visited = files_visited(calls[title])
    expected = walks()[title]
    assert [path for path in visited if path in expected] == expected


def test_the_page_lists_every_package_in_the_order_of_imports():
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = document["tool"]["importlinter"]["contracts"][0]["layers"]
    ordered = [name.strip() for layer in layers for name in layer.split(":")]
    rows = re.findall(r"^\| (`.*?`(?:, `.*?`)*) \|", PAGE, re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    rank = {name: i for i, layer in enumerate(layers) for name in (part.strip() for part in layer.split(":"))}
    assert sorted(listed) == sorted(set(ordered) - {"__main__"})
    assert [rank[name] for name in listed] == sorted(rank[name] for name in listed)


def test_no_folder_is_crowded_and_no_file_is_long():
    for folder in {path.parent for path in SOURCE.rglob("*.py")}:
        assert len(list(folder.glob("*.py"))) <= 22, folder
    assert max(len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCE.rglob("*.py")) <= 400
