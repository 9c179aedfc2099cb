"""Table 3 and Figure 9 in the report of a run, from summaries written by hand."""

from __future__ import annotations

import json
import math
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.browser import NARROW, WIDE, overflow

from gmil.paper.tables.published import published
from gmil.reporting.plots import measured
from gmil.reporting.runs import run_report
from gmil.reporting.summary import TimedFigure, TimedLine, TimedPoint
from gmil.reporting.verdicts import events_verdict

VERSIONS = {"gmil": "9.8.7", "numpy": "2.0"}
MEASURES = ("auc", "average_precision", "balanced_accuracy", "recall", "accuracy")


def table3_row(dataset, method, cells, seconds=2.5, **more):
    """Return a row from five measures for every event; a mean is that of the first event."""
    named = {event: dict(zip(MEASURES, values, strict=True)) for event, values in cells.items()}
    mean = next(iter(named.values()))
    row = {"dataset": dataset, "method": method, "label": f"{method.upper()} (x=1)", "cells": named}
    return {**row, "mean": mean, "seconds": seconds, "failure": None, **more}


def table3(rows, datasets, repeats=1):
    facts = {"bags": 40, "instances": 123, "features": 7}
    return {
        "experiment": "table3",
        "title": "Table 3: events",
        "protocol": {"folds": 10, "repeats": repeats, "seed": 3},
        "datasets": {name: {**facts, "positive": dict.fromkeys(events, 5)} for name, events in datasets.items()},
        "rows": rows,
        "notes": ["A note on events."],
        "failures": [row for row in rows if row["failure"]],
        "versions": VERSIONS,
        "machine": {"cores": 2},
    }


def figure9(curves):
    made = [
        {
            "method": label,
            "label": label,
            "points": [{"bags": b, "instances": 10 * b, "seconds": s, "cpu_seconds": s / 2} for b, s in points.items()],
            "stopped": None if stopped is None else {"bags": stopped, "reason": "the time was over"},
        }
        for label, (points, stopped) in curves.items()
    ]
    named = {"experiment": "figure9", "title": "Figure 9: seconds", "dataset": "ucf-crime", "minutes": 10.0, "seed": 4}
    return {**named, "curves": made, "notes": ["A note on time."], "failures": [], "versions": VERSIONS, "machine": {}}


UCF = [
    table3_row("ucf-crime", "gmil", {"Arson": (0.612, 0.21, 0.55, 0.125, 0.905), "Abuse": (0.7, 0.2, 0.5, 0.1, 0.9)}),
    table3_row("ucf-crime", "weighted", {"Arson": (0.834, 0.4, 0.6, 0.3, 0.95), "Abuse": (0.8, 0.3, 0.6, 0.2, 0.9)}),
    table3_row("ucf-crime", "constant", {"Arson": (0.5, 0.1, 0.5, 0.0, 0.875), "Abuse": (0.5, 0.1, 0.5, 0, 0.9)}, 0.0),
]
TIMES = {"GMIL": ({50: 0.1, 100: 0.2}, None), "MI-SVM": ({50: 3.0}, 100)}


def written(folder, *summaries):
    for summary in summaries:
        (folder / f"{summary['experiment']}.json").write_text(json.dumps(summary))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    table = table3(UCF, {"ucf-crime": ["Arson", "Abuse"]})
    return written(tmp_path_factory.mktemp("videos"), table, figure9(TIMES))


@pytest.fixture(scope="module")
def made(folder):
    return run_report(folder)


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


def test_table_3_says_every_event_then_the_means_and_the_time(made):
    table = made.summary.tables[0]
    assert table.title == "Table 3 (UCF-Crime): events"
    assert table.header[1:4] == ["Arson", "Abuse", "mean AUC"]
    assert texts(table) == [
        ["GMIL (x=1)", "0.612", "0.700", "0.612", "0.210", "55.0", "12.5", "90.5", "2.5 s"],
        ["WEIGHTED (x=1)", "0.834", "0.800", "0.834", "0.400", "60.0", "30.0", "95.0", "2.5 s"],
        ["CONSTANT (x=1)", "0.500", "0.500", "0.500", "0.100", "50.0", "0.0", "87.5", "–"],
    ]
    assert all(len(row) == len(table.header) for row in table.rows)
    assert "Arson 5, Abuse 5" in table.text


def test_figure_9_is_lines_and_a_table_with_ratios_and_notes(made):
    (figure,) = made.summary.times
    assert [(line.label, [p.bags for p in line.points], line.stopped) for line in figure.lines] == [
        ("GMIL", [50, 100], None),
        ("MI-SVM", [50], 100),
    ]
    table = made.summary.tables[1]
    assert table.key == figure.key == "figure9"
    assert texts(table) == [["50", "500", "100 ms", "3 s"], ["100", "1000", "200 ms", "not finished"]]
    assert (table.rows[0][3].detail, table.rows[0][3].note) == ("(30×)", "1.5 s CPU")
    assert table.text.startswith("A note on time.")
    assert made.summary.notes[0] == "A note on events."
    assert "A note on time." not in made.summary.notes


def test_every_measured_number_leads_to_files_with_seed_and_version(made, folder):
    sources = {source.key: source for source in made.summary.sources}
    table, times = made.summary.tables
    assert all(cell.source in sources for row in table.rows[:2] for cell in row[1:])
    assert all(cell.source is None for cell in table.rows[2])
    assert all(cell.source in sources for row in times.rows for cell in row[2:])
    assert {(s.files[0], *s.seeds, s.folds, s.gmil) for s in sources.values()} == {
        ("table3.json", 3, 10, "9.8.7"),
        ("figure9.json", 4, 0, "9.8.7"),
    }
    assert all((folder / file).is_file() for source in sources.values() for file in source.files)
    page = made.to_html()
    assert all(f'id="{key}"' in page and f'href="#{key}"' in page for key in sources)


def test_all_three_forms_say_the_figures(made):
    markdown, page, data = made.to_markdown(), made.to_html(), json.loads(made.to_json())
    for text in ("0.834", "12.5", "A note on time.", "not finished", "1.5 s CPU", "seed 4"):
        assert text in markdown
        assert text in page
    assert "MI-SVM, 50 bags: 3 s" in page
    assert data["times"][0]["lines"][1]["points"] == [{"bags": 50, "instances": 500, "seconds": 3, "cpu_seconds": 1.5}]
    assert data["tables"][0]["rows"][1][1]["text"] == "0.834"


def test_published_accuracies_stand_beside_the_data_of_their_size_alone(tmp_path):
    entry = published()["med11"][1]
    events = list(entry["printed"])
    printed = {event: {"accuracy": value / 100} for event, value in entry["printed"].items()}
    rows = [
        *UCF,
        table3_row("med11", "gmil", dict.fromkeys(events, (0.9, 0.8, 0.7, 0.6, 0.55))),
        {"dataset": "med11 (real)", "method": "gmil", "label": "GMIL, published", "cells": printed,
         "mean": {"accuracy": 0.6804}, "seconds": None, "failure": None},
    ]  # fmt: skip
    written(tmp_path, table3(rows, {"ucf-crime": ["Arson", "Abuse"], "med11": events}))
    ucf, med11, accuracies = run_report(tmp_path, look="none").summary.tables
    assert not any("published" in row[0].text for row in ucf.rows + med11.rows)
    assert len({ucf.key, med11.key, accuracies.key}) == 3
    assert texts(accuracies) == [
        ["GMIL (x=1)", *["55.0"] * 6],
        ["GMIL, published", "57.2", "47.7", "71.9", "86.7", "76.7", "68.0"],
    ]
    assert [row[1].source is None for row in accuracies.rows] == [False, True]
    assert "do not compare" in accuracies.text


def test_decisions_are_named_and_those_that_are_gone_too(tmp_path):
    files = ["table3/ucf-crime-gmil-a.npz", "table3/ucf-crime-gmil-b.npz"]
    row = table3_row("ucf-crime", "gmil", {"Arson": (0.6, 0.2, 0.5, 0.1, 0.9)}, files=files)
    row["cells"]["Arson"]["auc_spread"] = 0.0123
    written(tmp_path, table3([row], {"ucf-crime": ["Arson"]}, repeats=2))
    (tmp_path / "table3").mkdir()
    (tmp_path / files[0]).touch()
    summary = run_report(tmp_path, look="none").summary
    (source,) = summary.sources
    assert source.files == ["table3.json", *files]
    assert source.seeds == [3, 4]
    assert [note for note in summary.notes if "missing" in note] == [
        f"{files[1]} is missing from the folder of the run."
    ]
    assert summary.tables[0].rows[0][1].detail == "± 0.012"


def test_what_was_not_run_is_said(tmp_path):
    row = {"dataset": "ucf-crime", "method": "mi-svm", "label": "MI-SVM", "cells": {}, "failure": "not run: too large"}
    written(tmp_path, table3([*UCF, row], {"ucf-crime": ["Arson", "Abuse"]}), figure9({"GMIL": ({}, 50)}))
    made = run_report(tmp_path, look="none")
    assert made.summary.failures == ["mi-svm on ucf-crime: not run: too large"]
    assert texts(made.summary.tables[0])[-1] == ["MI-SVM", "not run", *["–"] * 7]
    assert texts(made.summary.tables[1]) == [["50", "–", "not finished"]]
    assert 'data-test="times"' not in made.to_html()


def test_a_figure_alone_is_a_report(tmp_path):
    made = run_report(written(tmp_path, figure9(TIMES)))
    assert made.summary.notes == []
    assert made.summary.verdict == "All events of 50 videos are learned in 100 ms by GMIL and in 3 s by MI-SVM."


def test_they_stand_beside_the_other_tables_and_change_none(run_folder, folder, tmp_path):
    before = run_report(run_folder, look="none").summary
    for path in [*run_folder.glob("*.json"), *folder.glob("*.json")]:
        (tmp_path / path.name).write_text(path.read_text())
    (tmp_path / "rows").symlink_to(run_folder / "rows")
    for path in run_folder.glob("*.parquet"):
        (tmp_path / path.name).symlink_to(path)
    after = run_report(tmp_path, look="none").summary
    assert [table.key for table in after.tables] == ["table1", "table2", "table3", "figure9"]
    assert texts(after.tables[0]) == texts(before.tables[0])
    assert (after.verdict, after.panels, after.published) == (before.verdict, before.panels, before.published)
    assert [curve.name for curve in after.curves] == [curve.name for curve in before.curves]
    assert before.times == []


def test_the_verdict_names_the_best_and_all_others():
    found = table3(UCF, {"ucf-crime": ["Arson", "Abuse"]})
    assert events_verdict(found, {}) == (
        "WEIGHTED has a mean AUC of 0.834 over all events (UCF-Crime), against 0.612 for GMIL."
    )
    assert events_verdict({}, figure9({"GMIL": ({}, 50)})) == "Nothing was measured."


# ------------------------------------------------------------------ the picture


def test_both_axes_are_logarithmic():
    points = [TimedPoint(bags, bags, seconds, seconds) for bags, seconds in ((10, 0.01), (100, 1.0), (1000, 100.0))]
    figure = TimedFigure("f", "F", [TimedLine("a", points, None, "source-1")])
    dots = [
        d for d in ET.fromstring(str(measured.draw_times(figure))).iter("circle") if "dot" in d.get("class").split()
    ]
    for axis in ("cx", "cy"):
        first, second, third = (float(dot.get(axis)) for dot in dots)
        assert second - first == pytest.approx(third - second, abs=0.2)
        assert first != second


times = st.dictionaries(st.integers(1, 10**6), st.floats(0, 1e6), max_size=5)
lines = st.lists(st.tuples(times, st.one_of(st.none(), st.integers(1, 10**6))), min_size=1, max_size=3)


@given(times.filter(bool), lines)
def test_times_are_drawn_inside_their_picture(first, others):
    made = [
        TimedLine("<&>", [TimedPoint(b, b, s, s) for b, s in sorted(points.items())], stopped, "source-1")
        for points, stopped in [(first, None), *others]
    ]
    drawn = ET.fromstring(str(measured.draw_times(TimedFigure("f", "<F>", made))))
    width, height = map(float, drawn.get("viewBox").split()[2:])
    for dot in drawn.iter("circle"):
        assert 0 < float(dot.get("cx")) < width
        assert 0 < float(dot.get("cy")) < height
    stops = [line for line in drawn.iter("line") if line.get("class") == "stopped"]
    assert len(stops) == sum(stopped is not None for _, stopped in others)
    assert all(math.isfinite(float(line.get("x1"))) for line in stops)


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_the_page_fits_and_its_lines_have_colours_of_their_own(visit, made, tmp_path, width):
    page = visit(made.save(tmp_path / "page.html"), width=width)
    assert overflow(page) == [0, []]
    fills = page.evaluate(
        """() => [...document.querySelectorAll('.timed')].map(
            (e) => [getComputedStyle(e.querySelector('.dot')).fill,
                    getComputedStyle(e.querySelector('.line')).stroke])"""
    )
    assert all(dot == line for dot, line in fills)
    assert fills[0] != fills[1]
