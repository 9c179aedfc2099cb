"""The page of a leaderboard, and the table of which method is for which bags."""

from __future__ import annotations

import copy
import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from tests.browser import every_screen, overflow

from gmil.benchmark import leaderboard, read_leaderboard
from gmil.benchmark.decisions import decision_table, notes_on_kind, packaged
from gmil.benchmark.overview import overview
from gmil.benchmark.page import page, told, write_page
from gmil.cli.main import main
from gmil.datasets import make_bags


@pytest.fixture(scope="module")
def found(board):
    return read_leaderboard(board)


def test_the_first_sentences_say_who_leads_and_what_is_missing(found):
    default, tuned, counts = told(found | {"not_measured": [{"method": "miles", "setting": "default", "n_sets": 3}]})
    assert (
        "3 sets and 2 methods: bag statistics has the best mean rank by AUC (1.00), GMIL is number 2 (2.00)" in default
    )
    assert tuned == "Tuned setting: no ranks, which need two methods that were tried on the same two sets."
    assert counts == (
        "15 cells are measured, 0 of them empty with their reason, and 3 are not measured yet: "
        "nothing is claimed of them."
    )


def test_the_page_has_its_data_and_asks_nobody_for_more(found):
    text = page(found)
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text).group(1))
    assert data["cells"]["gmil|hard|default"]["accuracy"] == pytest.approx(
        next(c for c in found["cells"] if (c["method"], c["set"], c["setting"]) == ("gmil", "hard", "default"))[
            "accuracy"
        ]
    )
    assert re.findall(r'(?:src|href)="(?!data:|#)([^"]+)"', text) == []
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


@every_screen
def test_the_page_can_be_searched_and_sorted(found, tmp_path, visit, width, theme):
    write_page(found, tmp_path / "index.html")
    shown = visit(tmp_path / "index.html", width=width, theme=theme)
    assert overflow(shown) == [0, []]
    names = lambda: shown.locator("[data-test=overview] tbody th").all_inner_texts()  # noqa: E731
    assert names()[:2] == ["bag statistics", "GMIL"]
    shown.locator("[data-test=overview] thead button").first.click()
    assert names() == sorted(names(), key=str.lower)
    shown.fill("#search", "stat")
    assert names() == ["bag statistics"]
    shown.fill("#search", "")
    shown.check("#unseen")
    assert "easy *" not in shown.locator("[data-test=cells] thead").inner_text()
    assert "more bags than features" in shown.locator("[data-test=decisions]").inner_text()
    shown.select_option("#measure", "brier")
    assert "Brier" in shown.locator("[data-test=overview] thead").inner_text()


def test_labels_of_the_plot_hide_nothing(found, tmp_path, visit):
    """Thirty methods near each other: no label lies on another one or on a point, and none leaves the plot."""
    text, rng = page(found), np.random.default_rng(0)
    inside = re.search(r'(<script type="application/json" id="data">)(.*?)(?=</script>)', text)
    data = json.loads(inside.group(2))
    rows = data["views"]["default"]["auc"]["all"]["rows"]
    template = next(row for row in rows if row["method"] == "gmil")
    for i, row in enumerate(row for row in rows if not row["control"]):
        row |= {"auc": 0.6 + 0.3 * i, "seconds": 0.02 + 300 * i}
    rows += [
        template | {"method": f"m{i}", "label": f"method number {i}", "auc": 0.7 + 0.1 * u, "seconds": 10 ** (2 * v)}
        for i, (u, v) in enumerate(rng.beta(2, 2, size=(30, 2)))
    ]
    path = tmp_path / "index.html"
    path.write_text(text[: inside.start(2)] + json.dumps(data) + text[inside.end(2) :])
    shown = visit(path)
    script = "(names) => [...document.querySelectorAll(names)].map((one) => one.getBBox())"
    boxes = f"(names) => ({script})(names).map(({{ x, y, width, height }}) => [x, y, x + width, y + height])"
    names, dots = (np.array(shown.evaluate(boxes, f"#plot {kind}")) for kind in (".name", "circle"))
    names += [0, 2, 0, -2]  # letters are lower than a line
    assert len(names) == len(dots) == len([row for row in rows if not row["control"]])
    assert (names[:, :2] > (50, 0)).all()
    assert (names[:, 2:] < (641, 390)).all()
    for i, name in enumerate(names):
        others = np.concatenate([names[:i], dots])
        shared = np.minimum(name[2:], others[:, 2:]) - np.maximum(name[:2], others[:, :2])
        assert not (shared > 1).all(axis=1).any()


def test_the_command_writes_page_and_decisions(board, tmp_path, document):
    from tests.benchmark.test_verification import as_toml

    spec, target = tmp_path / "toy.toml", tmp_path / "page.html"
    spec.write_text(as_toml(document), encoding="utf-8")
    options = ["--page", str(target), "--decisions", str(tmp_path / "d.json")]
    done = CliRunner().invoke(main, ["benchmark", "page", str(spec), "-o", str(board), *options])
    assert done.exit_code == 0, done.output
    assert "<title>Toy</title>" in target.read_text(encoding="utf-8")
    (row,) = json.loads((tmp_path / "d.json").read_text(encoding="utf-8"))["kinds"]
    assert (row["kind"], row["sets"]) == ("narrow", ["easy", "hard", "more"])


def test_a_decision_needs_all_sets_of_a_kind(found):
    (row,) = decision_table(found)
    assert [one["method"] for one in row["methods"]] == ["bag-statistics", "gmil"]
    fewer = {**found, "cells": [c for c in found["cells"] if (c["method"], c["set"]) != ("bag-statistics", "hard")]}
    (row,) = decision_table(fewer)
    assert [one["method"] for one in row["methods"]] == ["gmil"]


def test_a_decision_is_of_sets_with_the_reference_alone(found):
    fewer = {**found, "cells": [c for c in found["cells"] if (c["method"], c["set"]) != ("gmil", "hard")]}
    (row,) = decision_table(fewer)
    assert row["sets"] == ["easy", "more"]
    assert {one["method"] for one in row["methods"]} == {"bag-statistics", "gmil"}


def test_compare_quotes_the_kind_of_its_bags(found):
    data = make_bags(30, n_features=4, random_state=0)
    (note,) = notes_on_kind(data.bags, data.y, table=decision_table(found))
    assert note.startswith(
        "Bags of this kind (dense, more bags than features) on the leaderboard, 3 sets: best mean AUC"
    )
    assert "bag statistics" in note
    assert notes_on_kind(data.bags, np.arange(30) % 3, table=decision_table(found)) == []
    wide = make_bags(10, n_features=40, random_state=0)
    assert notes_on_kind(wide.bags, wide.y, table=decision_table(found)) == []


def test_the_table_that_comes_with_gmil_is_well_formed():
    for row in packaged("kinds"):
        assert row["sets"]
        means = [one["mean"] for one in row["methods"]]
        assert means == sorted(means, reverse=True)


def test_who_shares_the_first_place_is_named(found):
    shared = copy.deepcopy(found)
    for measure in ("auc", "accuracy"):
        for row in shared["statistics"]["default"]["measures"][measure]["all"]["ranks"]["rows"]:
            row["rank"] = 1.5
    assert "bag statistics and GMIL share the best mean rank by AUC (1.50); bag" in told(shared)[0]


def test_a_page_of_nothing_says_so(toy, tmp_path, visit):
    write_page(leaderboard(toy, tmp_path), tmp_path / "index.html")
    shown = visit(tmp_path / "index.html")
    assert "0 cells are measured" in shown.locator("[data-test=told]").inner_text()
    assert shown.locator("#about-ranks").inner_text() == "Nothing is measured yet."


def test_why_a_cell_is_empty_is_told_where_it_is(found, tmp_path, visit):
    renamed = json.loads(json.dumps(found).replace('"hard"', '"a hard set"'))
    cell = next(c for c in renamed["cells"] if (c["method"], c["set"]) == ("gmil", "a hard set"))
    cell |= {"auc": None, "reason": "more than 8 GiB of memory"}
    write_page(renamed, tmp_path / "index.html")
    shown = visit(tmp_path / "index.html")
    assert shown.locator("[data-test=cells] td[title='more than 8 GiB of memory']").count() == 1


def test_a_method_that_is_empty_everywhere_is_shown(found):
    empty = copy.deepcopy(found)
    for cell in empty["cells"]:
        if cell["method"] == "gmil":
            cell |= {**dict.fromkeys(found["measures"]), "reason": "more than 8 GiB of memory"}
    rows = {row["method"]: row for row in overview(empty, "default")[0]["rows"]}
    assert (rows["gmil"]["n_sets"], rows["gmil"]["n_empty"], rows["gmil"]["auc"]) == (0, 3, None)


def test_networks_on_a_gpu_show_its_seconds(found, tmp_path, visit):
    on_gpu = copy.deepcopy(found)
    for cell in on_gpu["cells"]:
        if (cell["method"], cell["setting"]) == ("gmil", "default"):
            cell["gpu_seconds"] = 12.0
    write_page(on_gpu, tmp_path / "index.html")
    shown = visit(tmp_path / "index.html")
    assert "GPU s" in shown.locator("[data-test=overview] thead").inner_text()
    assert "12 GPU s" in shown.locator("[data-test=plot]").inner_html()
    shown.locator("[data-test=overview] thead button", has_text="GPU s").click()
    shown.select_option("#setting", "tuned")  # which has no such column to be sorted by
    assert "GPU s" not in shown.locator("[data-test=overview] thead").inner_text()
    assert shown.locator("[data-test=overview] tbody th").all_inner_texts() == ["GMIL"]
