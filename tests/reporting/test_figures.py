"""Figures as files, in a real browser: no text covers another one, however many methods there are."""

from __future__ import annotations

import random

import pytest
from tests.browser import LONG, overlapping_texts

from gmil.reporting.plots.figure import Figure
from gmil.reporting.plots.paper import draw_table1
from gmil.reporting.plots.svg import Plot

NAMES = ["GMIL", "WeightedGMIL", "MI-SVM", "Citation kNN", "EM-DD with several concepts", LONG]
SETS = ["musk1", "musk2", "elephant", "fox", "tiger"]


def table1_of(n_methods, n_sets, columns=("paper", "tuned", "printed")):
    """Return a summary of Table 1 as `gmil paper table1` writes it, with any figures."""
    chance = random.Random(0)
    rows = []
    for i in range(n_methods):
        for column in columns:
            label = NAMES[i] if i < len(NAMES) else f"method {i}"
            cells = {name: {"accuracy": chance.uniform(0.5, 0.95)} for name in SETS[:n_sets]}
            for cell in cells.values():
                cell["interval"] = [cell["accuracy"] - 0.05, cell["accuracy"] + 0.05]
            rows.append({"label": label, "method": label, "column": column, "cells": cells})
    cells = {name: {"accuracy": 0.51} for name in SETS[:n_sets]}
    rows.append({"label": "majority class", "method": "majority", "column": "control", "cells": cells})
    title = f"Table 1: accuracy on {n_sets} data sets"
    return {"title": title, "rows": rows, "datasets": SETS[:n_sets], "protocol": {"repeats": 5, "folds": 10}}


@pytest.fixture
def shown(visit, tmp_path):
    """Return a function that opens an SVG file inside a page."""

    def opened(svg):
        page = tmp_path / "figure.html"
        page.write_text(f"<!doctype html><body style='margin:0'>{svg}", encoding="utf-8")
        return visit(page)

    return opened


def assert_tidy(page):
    """Texts do not cover each other and lie inside the figure."""
    assert overlapping_texts(page) == []
    outside = page.evaluate(
        """() => {
            const picture = document.querySelector('svg').getBoundingClientRect();
            return [...document.querySelectorAll('text')].filter((e) => {
                const box = e.getBoundingClientRect();
                return box.left < picture.left || box.right > picture.right || box.bottom > picture.bottom;
            }).map((e) => e.textContent);
        }"""
    )
    assert outside == []


@pytest.mark.parametrize(
    ("n_methods", "n_sets"),
    [
        (1, 1),
        (2, 5),
        (20, 2),
        *(pytest.param(*pair, marks=pytest.mark.slow) for pair in [(1, 2), (1, 5), (2, 1), (2, 2), (20, 1), (20, 5)]),
    ],
)
def test_the_plot_of_table_1_is_tidy(shown, tmp_path, n_methods, n_sets):
    (path,) = draw_table1(table1_of(n_methods, n_sets), tmp_path / "table1")
    page = shown(path.read_text(encoding="utf-8"))
    assert_tidy(page)
    texts = page.locator("text").all_text_contents()
    assert texts[0] == f"Table 1: accuracy on {n_sets} data sets"
    assert texts.count("majority class") == 1
    assert len([text for text in texts if text in NAMES[:5]]) == min(n_methods, 5)


def test_a_long_title_takes_several_lines(shown):
    title = "The accuracy of all methods with their paper settings, tuned and published, on the data sets of the paper"
    page = shown(Figure(title, "A caption.", [("", Plot("p", width=200, height=80))]).to_svg())
    assert_tidy(page)
    lines = page.locator(".heading").all_text_contents()
    assert len(lines) > 1
    assert " ".join(lines) == title


def test_a_caption_states_what_is_drawn_alone(tmp_path):
    summary = table1_of(2, 2, columns=("paper",))
    summary["rows"].pop()
    (path,) = draw_table1(summary, tmp_path / "table1")
    text = path.read_text(encoding="utf-8")
    assert "Published" not in text
    assert "majority" not in text
