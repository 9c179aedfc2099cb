"""The page of time lines, in a real browser."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.browser import NARROW, chromium, overflow, visit  # noqa: F401  fixtures

from gmil.video import Detection, TimeLine, segments, write_page
from gmil.video.page import clock


@pytest.fixture
def page_path(tmp_path, clip):
    """A page of one clip of two seconds with two events, one of which happens from 0.8 s to 1.2 s."""
    path = clip("a clip & more.webm", n_frames=50)
    times = np.arange(50) / 25
    scores = np.where((times >= 0.8) & (times < 1.2), 2.0, -1.0)
    lines = [
        TimeLine("jump <b>", 1.5, 0.82, times, scores, segments(scores, times)),
        TimeLine("fall", -2.0, 0.12, times, np.zeros(50), []),
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
    button = page.get_by_role("button")
    assert button.inner_text() == "▶ 0:00.8 to 0:01.2"
    button.click()
    page.wait_for_function("document.querySelector('video').currentTime > 0.9")
    page.wait_for_function("document.querySelector('video').ended")


def test_events_are_named_with_how_sure_they_are(visit, page_path):  # noqa: F811
    page = opened(visit, page_path)
    texts = page.locator(".name").all_inner_texts()
    assert texts[0].startswith("jump <b>")
    assert "82 % likely" in texts[0]
    assert "12 % likely, does not happen" in texts[1]
    assert page.locator("svg rect").count() == 1


@pytest.mark.parametrize("width", [NARROW, 1400])
def test_nothing_sticks_out(visit, page_path, width):  # noqa: F811
    assert overflow(opened(visit, page_path, width=width))[0] <= 0


@pytest.mark.parametrize("seconds", [1.2, 2.96, 30.0, 300.0])
def test_the_texts_of_ticks_do_not_meet(visit, page_path, seconds):  # noqa: F811
    times = np.linspace(0, seconds, 30, endpoint=False)
    line = TimeLine("jump", 1.5, 0.82, times, np.cos(times), [])
    clip = page_path.parent / "a clip & more.webm"
    write_page([Detection(clip.name, clip, [line])], page_path)
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
