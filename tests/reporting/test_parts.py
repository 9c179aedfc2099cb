"""The parts that choose and draw: properties, and pictures that are well-formed whatever they are given."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmil.reporting import explorer
from gmil.reporting.markdown import escaped
from gmil.reporting.plots import charts, measured, model, svg
from gmil.reporting.plots.figure import Figure
from gmil.reporting.summary import AccuracyPanel, AccuracyPoint, Bin, Curve, CurvePoint, InstanceMap, ViewWeight

shares = st.floats(0, 1)
seconds = st.floats(1e-5, 1e5)


@given(st.integers(1, 5000), st.randoms(use_true_random=False))
def test_chosen_instances_hold_the_best_and_the_worst_once_and_in_order(n, random):
    ranking = list(range(n))
    random.shuffle(ranking)
    shown = explorer.choose_instances(np.array(ranking)).tolist()
    assert len(shown) == len(set(shown)) == min(n, explorer.MOST_INSTANCES)
    places = [ranking.index(i) for i in shown]
    assert places == sorted(places)
    assert set(ranking[: explorer.BEST]) <= set(shown)
    assert set(ranking[-explorer.WORST :]) <= set(shown)


@given(st.integers(1, 3000), st.integers(0, 2**32 - 1))
def test_chosen_bags_hold_the_clearest_once_and_in_order(n, seed):
    decisions = np.random.default_rng(seed).normal(size=n)
    shown = explorer.choose_bags(n, decisions)
    assert len(np.unique(shown)) == min(n, explorer.MOST_BAGS)
    assert (np.diff(shown) > 0).all()
    assert {int(decisions.argmax()), int(decisions.argmin())} <= set(shown.tolist())


def accuracy_point(label, accuracy, time):
    return AccuracyPoint(
        "m", label, "tuned", accuracy, max(0, accuracy - 0.1), min(1, accuracy + 0.1), time, "source-1"
    )


@given(st.lists(st.tuples(shares, seconds), min_size=1, max_size=12))
def test_the_front_is_what_nothing_beats_in_both(values):
    points = [accuracy_point("a", accuracy, time) for accuracy, time in values]
    found = measured.pareto_front(points)
    for point in points:
        beaten = any(
            (p.accuracy >= point.accuracy and p.seconds < point.seconds)
            or (p.accuracy > point.accuracy and p.seconds <= point.seconds)
            for p in points
        )
        on_front = any((p.accuracy, p.seconds) == (point.accuracy, point.seconds) for p in found)
        assert on_front == (not beaten)


@given(
    st.lists(st.tuples(st.text(max_size=20), shares, seconds), min_size=1, max_size=6),
    st.one_of(st.none(), shares),
)
def test_accuracies_are_drawn_inside_their_picture(values, floor):
    points = [accuracy_point(label, accuracy, time) for label, accuracy, time in values]
    panel = AccuracyPanel("d", "<d>", points, floor)
    picture = parsed(measured.draw_accuracies(panel, measured.method_numbers([panel])))
    width, height = map(float, picture.get("viewBox").split()[2:])
    for square in picture.iter("rect"):
        assert -8 <= float(square.get("x")) <= width
        assert -8 <= float(square.get("y")) <= height


def parsed(picture):
    # What XML cannot hold, an HTML parser drops: it is no concern of well-formedness.
    return ET.fromstring("".join(c for c in str(picture) if c.isprintable()))


@given(st.lists(st.tuples(shares, shares, st.floats(0, 100)), min_size=1, max_size=90))
def test_histograms_and_rankings_are_well_formed(values):
    bins = [Bin(i, 1.0, 2.0, p, n, s, i % 3 == 0, i % 4 == 0) for i, (p, n, s) in enumerate(values)]
    for picture in (*model.draw_histograms(bins), model.draw_ranking(bins)):
        drawn = parsed(picture)
        assert len(drawn.findall("rect")) == min(len(bins), model.MOST_BARS)
        assert all(float(bar.get("height")) >= 0 for bar in drawn.findall("rect"))


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=1, max_size=30), st.integers(0, 200))
def test_maps_are_drawn_inside_their_picture(places, n_centers):
    points = [[x, y, i % 2, 0] for i, (x, y) in enumerate(places)]
    centers = [[float(i), -float(i), ["", "positive", "both"][i % 3], i] for i in range(n_centers)]
    found = InstanceMap(points, centers, 0.5, len(points))
    picture, scales = model.draw_map(found)
    drawn = parsed(picture)
    assert len(drawn.findall("circle")) == len(points)
    assert all(0 <= float(c.get("cx")) <= 480 and 0 <= float(c.get("cy")) <= 400 for c in drawn.findall("circle"))
    assert scales["xlow"] < scales["xhigh"]
    kinds = [
        part.get("class").split()[0]
        for part in drawn
        if "instance" in part.get("class", "") or "center" in part.get("class", "")
    ]
    n_plain = sum(not role for _, _, role, _ in centers)
    below = n_plain if n_plain > model.MOST_BARS else 0
    assert kinds == ["center"] * below + ["instance"] * len(points) + ["center"] * (n_centers - below)
    bins = [Bin(0, 1, 1, 0.5, 0.5, 1.0, True, False)]
    assert len([parsed(p) for _, p in model.draw_overview(bins, found)]) == 4


@pytest.mark.parametrize("values", [[4, 6, 8], [1000, 10000, None], [2]])
def test_curves_place_numbers_by_size_and_everything_else_evenly(values):
    points = [CurvePoint(v, 0.6, 0.5, 0.7, 0.02, None, 0.1, "source-1", None) for v in values]
    curve = Curve("k", "K", "K", "d", 0.5, points)
    drawn = parsed(measured.draw_curve(curve, measured.curve_limits([curve])))
    dots = [float(dot.get("cx")) for dot in drawn.iter("circle")]
    assert dots == sorted(dots)
    assert len(dots) == len(values)
    assert len(list(parsed(measured.draw_seconds(curve)).iter("circle"))) == len(values)


def test_views_are_drawn_in_proportion():
    drawn = parsed(model.draw_views([ViewWeight("a & b", 0.4), ViewWeight("c", 0.1)]))
    widths = [float(bar.get("width")) for bar in drawn.findall("rect")]
    assert widths[0] == pytest.approx(4 * widths[1], rel=0.01)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_few_and_between_the_limits(low, width):
    ticks = svg.nice_ticks(low, low + width)
    assert len(ticks) <= 8
    assert all(low - 1e-6 * width - 1e-9 <= tick <= low + width * (1 + 1e-6) + 1e-9 for tick in ticks)


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"time": [1.0]}, "time"),
        ({"file": ["a"], "Start_Seconds": [1]}, "Start_Seconds"),
        ({"frame": ["7"]}, None),  # a name, no number
        ({"sometimes": [1.0]}, None),
        ({"x": [1.0], "timestamp": [5]}, "timestamp"),
    ],
)
def test_a_time_is_a_number_with_the_name_of_a_time(columns, found):
    assert explorer.time_column(pa.table(columns)) == found


@given(st.text())
def test_markdown_of_users_has_no_tags_and_stays_in_its_cell(text):
    written = escaped(text)
    assert "\n" not in written
    assert not set("<>") & set(written)
    assert written.replace("\\\\", "").replace("\\|", "").count("|") == 0


@given(st.lists(st.tuples(st.floats(50, 350), st.floats(20, 270)), max_size=25))
def test_markers_stand_apart_at_their_own_height(places):
    found = measured.apart(places, most=1000)
    moved = [(x, y) for x, (_, y) in zip(found, places, strict=True)]
    for i, (x, y) in enumerate(moved):
        assert all(abs(x - a) >= 14.9 or abs(y - b) >= 14.9 for a, b in moved[:i])


@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=9), st.integers(1, 3))
def test_a_figure_holds_its_panels_and_legend_and_escapes_all_texts(labels, columns):
    kinds = [charts.Kind(label, i, "square") for i, label in enumerate(labels)]
    axes = charts.Axis("x", 0, 1), charts.Axis("y", 0, 1)
    panels = [
        (kind.label, charts.line_chart(kind.label, [charts.Series([(0, 1), (1, 0)], kind)], *axes)) for kind in kinds
    ]
    drawn = parsed(Figure("<T>", "words & words", panels, columns, kinds).to_svg())
    width, height = float(drawn.get("width")), float(drawn.get("height"))
    name = "{http://www.w3.org/2000/svg}"
    assert len(drawn.findall(f"{name}svg")) == len(labels)
    for panel in drawn.findall(f"{name}svg"):
        assert float(panel.get("x")) + float(panel.get("width")) <= width
        assert float(panel.get("y")) + float(panel.get("height")) <= height
    for text in drawn.findall(f"{name}g/{name}text"):
        assert 0 < float(text.get("x")) < width


def test_marks_of_a_chart_of_rows_stand_in_their_rows():
    kind = charts.Kind("measured", 0)
    marks = [charts.Mark(row, value, kind, (value - 1, value + 1)) for row, value in ((0, 10.0), (1, 90.0))]
    panel = charts.RowPanel(charts.Axis("data", 0, 100), marks, reference=50.0)
    drawn = parsed(charts.row_chart("T", ["one", "two & more"], [panel, panel]))
    dots = [(float(dot.get("cx")), float(dot.get("cy"))) for dot in drawn.iter("circle")]
    assert len(dots) == 4
    assert dots[0][1] == dots[2][1] < dots[1][1] == dots[3][1]
    assert dots[0][0] < dots[1][0] < dots[2][0] < dots[3][0]
    assert [title.text for title in drawn.iter("title")][1] == "one, measured: 10"
