"""Pages in a real browser: fixtures that open a file in Chromium and fail on anything that a visitor should not see.

A test takes ``visit`` and calls ``visit(path)``. When it ends, it fails where the page wrote an error to the console,
raised an exception, or asked for anything that lies elsewhere. A page that needs a server is opened by its
address. Debian's chromium is used, nothing is downloaded.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

_SECONDS_TO_SETTLE = 3
LOCAL = ("file:", "data:", "blob:", "about:")
NARROW, WIDE = 390, 1280
LONG = "a_name_of_more_than_sixty_letters_without_any_space_in_it_as_files_have_them"
every_screen = pytest.mark.parametrize(
    ("width", "theme"),
    [
        (NARROW, "dark"),
        (WIDE, "light"),
        pytest.param(NARROW, "light", marks=pytest.mark.slow),
        pytest.param(WIDE, "dark", marks=pytest.mark.slow),
    ],
)
"""Both widths and both themes; of their four pairs two, and all four in ``make test-all``."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_browser():
    """Return the path of Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@pytest.fixture(scope="module")
def chromium():
    """Return a browser that all tests of a module share; skip them where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Python's playwright is not installed.")
    path = find_browser()
    if path is None:
        pytest.skip("There is no Chromium here: on Debian, apt-get install chromium.")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium):
    """Return a function that opens a page: ``visit(path, width=1280, theme="light")`` gives a Playwright page."""
    contexts, problems = [], []

    def opened(path, *, width=WIDE, height=900, theme="light", fragment=""):
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
        contexts.append(context)
        page = context.new_page()
        served = str(path).startswith("http://")
        address = (str(path) if served else Path(path).resolve().as_uri()) + fragment
        watch(page, problems, "/".join(address.split("/")[:3]) + "/")
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


def watch(page, problems, server="file:"):
    """Write down what a visitor should not see: errors, and requests to the network but to the page's own server."""
    local = (*LOCAL, server)
    page.on("console", lambda m: problems.append(f"console: {m.text}") if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: problems.append(f"exception: {error}"))
    page.on("request", lambda r: None if r.url.startswith(local) else problems.append(f"request: {r.url}"))


def overflow(page, but=None):
    """Return by how many pixels a page is wider than its window, and the elements that stick out.

    Elements of the class ``but`` may. Scripts and fonts still move what has just been opened: it has time to settle.
    """
    until = time.monotonic() + _SECONDS_TO_SETTLE
    while True:
        scrolled, out = _overflow(page)
        out = [element for element in out if but is None or but not in element]
        if [scrolled, out] == [0, []] or time.monotonic() > until:
            return [scrolled, out]
        page.wait_for_timeout(100)


def _overflow(page):
    return page.evaluate(
        """() => {
            const width = document.documentElement.clientWidth;
            const clipped = (e) => {
                for (let up = e.parentElement; up; up = up.parentElement) {
                    if (['auto', 'scroll', 'hidden', 'clip'].includes(getComputedStyle(up).overflowX)) return true;
                }
                return false;
            };
            const out = [...document.body.querySelectorAll('*')].filter(
                (e) => e.getBoundingClientRect().right > width + 1 && !clipped(e));
            return [document.documentElement.scrollWidth - width,
                    out.slice(0, 5).map((e) => `${e.tagName}.${e.getAttribute('class') || ''}`)];
        }"""
    )


def saved_image(page, button):
    """Press "Copy as image" in a browser without a clipboard; return width, height and colours of the PNG it saves."""
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined, configurable: true})")
    with page.expect_download() as download:
        button.focus()
        page.keyboard.press("Enter")
    assert download.value.suggested_filename.endswith(".png")
    return read_image(page, Path(download.value.path()).read_bytes())


def read_image(page, data):
    """Return width, height and the number of colours of a PNG."""
    assert data.startswith(b"\x89PNG\r\n")
    return page.evaluate(
        """async (bytes) => {
            const image = await createImageBitmap(new Blob([new Uint8Array(bytes)], {type: 'image/png'}));
            const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext('2d');
            context.drawImage(image, 0, 0);
            const pixels = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
            return [image.width, image.height, new Set(pixels).size];
        }""",
        list(data),
    )


def overlapping_texts(page, selector="text"):
    """Return the pairs of visible texts whose boxes, less a pixel, cover each other."""
    return page.evaluate(
        """(selector) => {
            const boxes = [...document.querySelectorAll(selector)].filter((e) => e.textContent.trim())
                .map((e) => [e.textContent, e.getBoundingClientRect()]);
            const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
                && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
            return boxes.flatMap(([a, box], i) => boxes.slice(i + 1).filter(([, other]) => meet(box, other))
                .map(([b]) => [a, b]));
        }""",
        selector,
    )


def colours(page):
    """Return the colours of the page's paper and ink, as the browser computes them."""
    return page.evaluate(
        "() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
