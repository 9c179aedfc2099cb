"""The page of time lines, in a real browser."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import expit
from tests.browser import LONG, NARROW, WIDE, chromium, colours, every_screen, overflow, saved_image, visit  # noqa: F401  fixtures

from gmil.video import Detection, TimeLine, write_page
from gmil.video.page import clock


def line(event, times, scores, decision):
    return TimeLine.of(event, decision, float(expit(decision)), times, scores, expit(scores))


@pytest.fixture
def page_path(tmp_path, clip):
    """A page of one clip of two seconds with two events, one of which happens from 0.8 s to 1.2 s."""
    path = clip("a clip & more.webm", n_frames=50)
    times = np.arange(50) / 25
    scores = np.where((times >= 0.8) & (times < 1.2), 2.0, -1.0)
    lines = [
        line("jump <b>", times, scores, 1.5),
        line("fall", times, np.full(50, -9.0), -2.0),
    ]
    write_page([Detection(path.name, path, lines)], tmp_path / "page.html")
    return tmp_path / "page.html"


def current_time(page):
    return page.evaluate("document.querySelector('video').currentTime")


def opened(visit, path, **options):  # noqa: F811
    page = visit(path, **options)
    page.wait_for_function("document.querySelector('video').readyState >= 2")
    return page


def test_a_click_on_a_time_line_goes_there(visit, page_path):  # noqa: F811
    page = opened(visit, page_path)
    line = page.get_by_role("slider").first
    box = line.bounding_box()
    line.click(position={"x": box["width"] / 2, "y": 10})
    assert current_time(page) == pytest.approx(1.0, abs=0.02)
    assert float(line.get_attribute("aria-valuenow")) == pytest.approx(1.0, abs=0.02)
    head = page.locator(".head").nth(1).bounding_box()  # the heads of all time lines move together
    assert head["x"] == pytest.approx(box["x"] + box["width"] / 2, abs=4)


def test_the_keyboard_goes_there_too(visit, page_path):  # noqa: F811
    page = opened(visit, page_path)
    line = page.get_by_role("slider").nth(1)
    line.focus()
    page.keyboard.press("PageUp")
    assert current_time(page) == pytest.approx(1.0, abs=0.001)
    page.keyboard.press("ArrowLeft")
    assert current_time(page) == pytest.approx(0.96, abs=0.001)
    page.keyboard.press("End")
    assert current_time(page) == pytest.approx(2.0, abs=0.05)
    page.keyboard.press("Home")
    assert current_time(page) == 0
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('video').currentTime > 0.1")
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector('video').paused")


def test_a_stretch_plays_from_its_start(visit, page_path):  # noqa: F811
    page = opened(visit, page_path)
    button = page.locator("[data-start]")
    assert button.inner_text() == "▶ 0:00.8 to 0:01.2"
    button.click()
    page.wait_for_function("document.querySelector('video').currentTime > 0.9")
    page.wait_for_function("document.querySelector('video').ended")


def test_events_are_named_with_how_sure_they_are(visit, page_path):  # noqa: F811
    page = opened(visit, page_path)
    texts = page.locator(".name").all_inner_texts()
    assert texts[0].startswith("jump <b>")
    assert "probability 82 %" in texts[0]
    assert "probability 12 %, not detected" in texts[1]
    assert page.locator("svg rect").count() == 1


def test_a_curve_is_called_a_score_and_not_the_probability_beside_it(page_path):
    text = page_path.read_text(encoding="utf-8")
    assert "A curve is the score of each moment, on a scale from 0 to 100 %" in text
    assert "the probability of the event at each moment" not in text


def heights(page, event):
    """Return where the points of a curve lie, from 0 at the bottom of its box to 1 at the top."""
    points = page.locator(f".event >> nth={event} >> polyline").get_attribute("points").split()
    return [1 - float(point.split(",")[1]) / 60 for point in points]


def test_all_videos_have_one_scale_from_0_to_100_per_cent(visit, page_path):  # noqa: F811
    page = opened(visit, page_path)
    high, low = heights(page, 0), heights(page, 1)
    assert max(high) == pytest.approx(expit(2.0), abs=0.04)
    assert min(high) == pytest.approx(expit(-1.0), abs=0.04)
    assert max(low) < 0.05  # what does not happen is a flat line at the bottom
    assert len(set(low)) == 1
    for event in (0, 1):
        assert page.locator(f".event >> nth={event} >> .scale").all_inner_texts() == ["100 %", "0 %"]


def test_the_threshold_is_a_labelled_line(visit, page_path):  # noqa: F811
    page = opened(visit, page_path)
    middle = (expit(2.0) + expit(-1.0)) / 2  # between the moments that count and those that do not
    assert page.locator(".label").all_inner_texts() == [f"threshold {100 * middle:.0f} %", "threshold 50 %"]
    for event, share in ((0, middle), (1, 0.5)):
        box = page.locator(f".event >> nth={event} >> .time").bounding_box()
        drawn = page.locator(f".event >> nth={event} >> line").bounding_box()
        assert box["y"] + box["height"] - drawn["y"] == pytest.approx(share * box["height"], abs=3)
        label = page.locator(f".event >> nth={event} >> .label").bounding_box()
        assert box["y"] - 1 <= label["y"]
        assert label["y"] + label["height"] <= box["y"] + box["height"] + 1


@every_screen
def test_nothing_sticks_out_whatever_the_names(chromium, page_path, width, theme):  # noqa: F811
    times = np.arange(50) / 25
    clips = [page_path.parent / name for name in ("a clip & more.webm", f"{LONG}.webm")]
    lines = [line(LONG, times, np.sin(9 * times), 1.0), line("fall", times, np.zeros(50), -1.0)]
    write_page([Detection(clip.name, clip, lines) for clip in clips], page_path)
    page = chromium.new_page(viewport={"width": width, "height": 800}, color_scheme=theme)
    page.goto(page_path.as_uri())
    page.wait_for_selector(".trouble:not([hidden])")  # the second clip is not there
    assert overflow(page) == [0, []]
    page.close()


@pytest.mark.parametrize("width", [NARROW, pytest.param(WIDE, marks=pytest.mark.slow)])
def test_a_time_line_is_copied_with_its_words_and_its_axis(visit, page_path, width):  # noqa: F811
    page = opened(visit, page_path, width=width)
    found = saved_image(page, page.get_by_role("button", name="Copy as image").first)
    boxes = [page.locator(part).first.bounding_box() for part in (".event", ".axis")]
    assert found[0] == pytest.approx(2 * boxes[0]["width"] + 32, abs=2)
    assert found[1] == pytest.approx(2 * (boxes[0]["height"] + boxes[1]["height"]) + 32, abs=2)
    assert found[2] > 20  # shading, line, threshold and letters


def test_on_paper_there_are_light_colours_and_no_controls(chromium, page_path):  # noqa: F811
    page = chromium.new_page(color_scheme="dark")
    page.goto(page_path.as_uri())
    page.emulate_media(media="print", color_scheme="dark")
    assert colours(page)[0] == "rgb(255, 255, 255)"
    for control in ("video", ".copy", ".help", ".head"):
        assert not page.locator(control).first.is_visible()
    assert page.locator(".label").first.is_visible()
    page.close()


@pytest.mark.parametrize(
    "seconds", [1.2, 300.0, pytest.param(2.96, marks=pytest.mark.slow), pytest.param(30.0, marks=pytest.mark.slow)]
)
def test_the_texts_of_ticks_do_not_meet(visit, page_path, seconds):  # noqa: F811
    times = np.linspace(0, seconds, 30, endpoint=False)
    clip = page_path.parent / "a clip & more.webm"
    write_page([Detection(clip.name, clip, [line("jump", times, np.cos(times), 1.5)])], page_path)
    page = visit(page_path, width=NARROW)
    boxes = [text.bounding_box() for text in page.query_selector_all(".axis span")]
    assert len(boxes) > 2
    assert all(a["x"] + a["width"] < b["x"] for a, b in itertools.pairwise(boxes))


def test_a_video_that_is_gone_is_said_and_the_time_lines_work(chromium, page_path):  # noqa: F811
    (page_path.parent / "a clip & more.webm").unlink()
    page = chromium.new_page()
    page.goto(page_path.as_uri())
    page.wait_for_selector(".trouble:not([hidden])")
    page.get_by_role("slider").first.click()
    assert float(page.get_by_role("slider").first.get_attribute("aria-valuenow")) == pytest.approx(1.0, abs=0.05)
    page.close()


def test_times_are_written_as_people_read_them():
    assert [clock(t) for t in (0, 59.96, 61.25, 3600)] == ["0:00.0", "1:00.0", "1:01.2", "1:00:00.0"]
