"""The browser fixtures themselves: they notice what they are there to notice."""

from __future__ import annotations

import pytest
from tests.browser import colours, overflow, watch

PAGE = "<!doctype html><meta name=color-scheme content='light dark'><body style='margin:0'>{}</body>"


@pytest.fixture
def written(tmp_path):
    def write(body):
        path = tmp_path / "page.html"
        path.write_text(PAGE.format(body), encoding="utf-8")
        return path

    return write


def test_a_quiet_page_has_no_problems_and_fits(visit, written):
    page = visit(written("<p>quiet</p>"), width=400)
    assert page.inner_text("p") == "quiet"
    assert overflow(page) == [0, []]


def test_a_page_that_sticks_out_is_noticed(visit, written):
    page = visit(written("<div class=wide style='width:500px'>wide</div>"), width=400)
    assert overflow(page) == [100, ["DIV.wide"]]


def test_what_scrolls_by_itself_does_not_stick_out(visit, written):
    page = visit(written("<div style='overflow-x:auto'><div style='width:500px'>wide</div></div>"), width=400)
    assert overflow(page) == [0, []]


def test_the_theme_reaches_the_page(visit, written):
    path = written("<p>ink</p>")
    light, dark = colours(visit(path, theme="light")), colours(visit(path, theme="dark"))
    assert light[1] != dark[1]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("<script>console.error('broken')</script>", "console: broken"),
        ("<script>nothing.there</script>", "exception: nothing is not defined"),
        ("<img src='http://127.0.0.1:9/x.png'>", "request: http://127.0.0.1:9/x.png"),
    ],
)
def test_problems_are_noticed(chromium, written, body, problem):
    path, problems = written(body), []
    page = chromium.new_page()
    watch(page, problems)
    page.goto(path.as_uri())
    page.close()
    assert problem in problems
