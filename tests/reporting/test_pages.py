"""The pages in a real browser: both themes, two widths, the explorer by mouse and by keyboard."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.browser import LONG, NARROW, WIDE, colours, every_screen, overflow, read_image, saved_image

import gmil
from gmil.reporting.runs import run_report


@pytest.fixture(scope="module")
def model_page(videos, tmp_path_factory):
    bags, y, model = videos
    return gmil.report(model, bags, y).save(tmp_path_factory.mktemp("page") / "model.html")


@pytest.fixture(scope="module")
def long_page(videos, tmp_path_factory):
    """The page of a model whose bags, classes, features, info, file and title have long names without a space."""
    bags, y, _model = videos
    names = {"feature_names": [f"{LONG}_{j}" for j in range(bags.n_features)]}
    names["bag_ids"] = [f"{i}_{LONG}" for i in range(len(bags))]
    info = {"time_s": bags.instance_info["time_s"], LONG: [f"{LONG}_{i}" for i in range(bags.n_instances)]}
    bags = gmil.Bags(bags.instances, bags.offsets, instance_info=info, **names)
    y = np.where(y == "event", f"event_{LONG}", f"other_{LONG}")
    model = gmil.GMIL(8, 2, 3, pos_label=f"event_{LONG}", random_state=0).fit(bags, y)
    made = gmil.report(model, bags, y, title=f"{LONG}.gmil on {LONG}.csv")
    return made.save(tmp_path_factory.mktemp("page") / "long.html")


@pytest.fixture(scope="module")
def run_page(run_folder, tmp_path_factory):
    return run_report(run_folder, look="musk1").save(tmp_path_factory.mktemp("page") / "run.html")


@every_screen
@pytest.mark.parametrize("which", ["model_page", "run_page", "long_page"])
def test_pages_fit_and_are_quiet_in_both_themes_and_widths(visit, request, which, width, theme):
    page = visit(request.getfixturevalue(which), width=width, theme=theme)
    assert overflow(page) == [0, []]
    for picture in page.query_selector_all("svg.plot"):
        box = picture.bounding_box()
        assert 0 < box["width"] <= width
        assert box["height"] > 20
    paper, ink = ([int(v) for v in c[4:-1].split(",")] for c in colours(page))
    assert (sum(paper) < sum(ink)) == (theme == "dark")


def test_the_theme_can_be_turned(visit, model_page):
    page = visit(model_page, theme="light")
    light = colours(page)
    page.get_by_role("button", name="Dark theme").click()
    assert colours(page) != light
    page.get_by_role("button", name="Light theme").click()
    assert colours(page) == light


def test_a_run_shows_everything(visit, run_page):
    page = visit(run_page)
    counts = {
        name: page.locator(f"[data-test={name}]").count() for name in ("panel", "table", "curve", "explorer", "map")
    }
    assert counts == {"panel": 2, "table": 2, "curve": 2, "explorer": 1, "map": 1}
    assert page.locator("[data-test=overview] svg").count() == 4
    assert page.locator("[data-test=histograms] svg").count() == 3


def test_the_box_of_a_warning_is_not_that_of_the_word_beside_a_finding(run_page):
    rules = re.findall(r"([^{}\n]*\.warning)\s*{", run_page.read_text(encoding="utf-8"))
    assert {rule.split()[-1] for rule in rules} == {"p.warning", ".level.warning"}


def test_a_number_leads_to_its_rows(visit, run_page):
    page = visit(run_page)
    link = page.locator("[data-test=table] td a").first
    target = link.get_attribute("href")
    link.click()
    row = page.locator(target)
    assert row.evaluate("e => e.matches(':target')")
    assert "0, 1" in row.inner_text()
    row.locator("summary").click()
    assert "rows/" in row.inner_text()


# ------------------------------------------------------------------ the explorer


def chosen(page):
    return page.inner_text(".explorer .title")


@pytest.fixture(scope="module")
def time_page(tmp_path_factory):
    bags, y = gmil.make_bags(20, n_features=3, random_state=0, return_X_y=True)
    seconds = {"time": np.arange(bags.n_instances) / 25}
    bags = gmil.Bags(bags.instances, bags.offsets, instance_info=seconds)
    model = gmil.WeightedGMIL(witness_model=False, random_state=0).fit(bags, y)  # effects are long numbers
    return gmil.report(model, bags, y).save(tmp_path_factory.mktemp("page") / "time.html")


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_the_numbers_along_the_time_are_not_cut_off(visit, time_page, width):
    page = visit(time_page, width=width)
    lengths = set()
    for _ in range(10):
        picture = page.locator("svg.time").bounding_box()
        for text in page.query_selector_all("svg.time .tick"):
            box = text.bounding_box()
            assert picture["x"] <= box["x"]
            assert box["x"] + box["width"] <= picture["x"] + picture["width"]
            lengths.add(len(text.text_content()))
        gauges = [gauge.bounding_box()["x"] for gauge in page.query_selector_all(".explorer .gauge")]
        assert max(gauges) - min(gauges) < 1
        page.get_by_role("button", name="Next").click()
    assert max(lengths) >= 8  # as in -0.01234


def test_bags_are_chosen_by_mouse(visit, model_page):
    page = visit(model_page)
    page.get_by_role("button", name="Next").click()
    assert chosen(page) == "Bag video 1"
    page.get_by_role("button", name="Previous").click()
    page.get_by_role("button", name="Previous").click()
    assert chosen(page) == "Bag video 29"
    page.locator(".explorer .list").select_option("5")
    assert chosen(page) == "Bag video 5"
    rows = page.locator(".explorer tbody tr")
    rows.nth(2).click()
    assert rows.nth(2).get_attribute("aria-selected") == "true"
    instance = rows.nth(2).get_attribute("data-instance")
    for part in ("svg.time .at.lit", "svg .member.lit"):
        assert page.locator(part).get_attribute("data-instance") == instance


def test_bags_are_chosen_by_keyboard_alone(visit, model_page):
    page = visit(model_page)
    page.get_by_role("button", name="Dark theme").focus()
    page.keyboard.press("Tab")
    while page.evaluate("document.activeElement.type") != "search":
        page.keyboard.press("Tab")
    page.keyboard.type("video 2")
    assert chosen(page) == "Bag video 2"
    page.keyboard.press("ArrowDown")
    assert chosen(page) == "Bag video 20"
    for _ in range(4):  # order, previous, next, list
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert chosen(page) == "Bag video 21"
    for _ in range(3):  # the time line as image, the region of the rows, the first row
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert page.locator(".explorer tbody tr").nth(1).get_attribute("aria-selected") == "true"


def test_the_search_says_when_nothing_matches(visit, model_page):
    page = visit(model_page)
    page.locator(".explorer input").fill("no such bag")
    assert chosen(page) == "No bag matches"
    assert page.locator(".explorer tbody tr").count() == 0
    page.locator(".explorer input").fill("")
    assert page.locator(".explorer tbody tr").count() > 0


def test_wrong_bags_come_first_where_that_is_asked_for(visit, videos, model_page):
    bags, y, model = videos
    wrong = [i for i, right in enumerate(model.predict(bags) == y) if not right]
    page = visit(model_page)
    page.locator(".explorer .order").select_option("wrong")
    values = page.locator(".explorer .list option").evaluate_all("options => options.map((o) => Number(o.value))")
    assert values[: len(wrong)] == wrong


def test_the_table_shows_scores_centres_and_info_in_the_order_of_the_scores(visit, videos, model_page):
    bags, _y, _model = videos
    page = visit(model_page)
    head = page.locator(".explorer thead th").all_inner_texts()
    assert head == ["rank", "instance", "score", "centre", "distance", "time_s", "file"]
    cells = [row.split("\t") for row in page.locator(".explorer tbody tr").all_inner_texts()]
    scores = [float(row[2]) for row in cells]
    assert scores == sorted(scores, reverse=True)
    assert len(cells) == len(bags[0])
    assert cells[0][6] == f"<b>{cells[0][1]}</b>"
    assert page.locator(".explorer svg.time .at").count() == len(bags[0])


def test_hostile_texts_do_nothing(visit, model_page):
    page = visit(model_page)
    assert "<img src=x" in chosen(page)
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0


# ------------------------------------------------------------------ plots as images


@every_screen
def test_a_plot_is_copied_as_a_png_of_twice_its_size(visit, model_page, width, theme):
    page = visit(model_page, width=width, theme=theme)
    figure = page.locator("[data-test=ranking]")
    box = figure.bounding_box()
    found = saved_image(page, figure.get_by_role("button", name="Copy as image"))
    assert found[:2] == [pytest.approx(2 * (side + 16), abs=2) for side in (box["width"], box["height"])]
    assert found[2] > 50  # bars, axes and letters, with their soft edges


def test_the_legend_of_a_plot_is_copied_with_it(visit, run_page):
    page = visit(run_page)
    figure, legend = page.locator("[data-test=panel]").first, page.locator(".legend").first
    boxes = figure.bounding_box(), legend.bounding_box()
    found = saved_image(page, figure.get_by_role("button", name="Copy as image"))
    assert found[1] == pytest.approx(2 * (sum(box["height"] for box in boxes) + 16), abs=2)
    names = page.evaluate(
        "Math.max(...[...document.querySelectorAll('.legend li')].map((e) => e.getBoundingClientRect().right))"
    )
    widest = max(boxes[0]["width"], names - boxes[1]["x"])
    assert found[0] == pytest.approx(2 * (widest + 16), abs=2)


def test_every_plot_has_the_button(visit, model_page, run_page):
    for path in (model_page, run_page):
        page = visit(path)
        plots = page.locator("svg.plot:visible").count()
        assert plots > 4
        assert page.locator("figure:visible > .copy").count() == plots


def test_an_image_goes_to_the_clipboard_where_the_browser_allows_it(chromium, model_page):
    context = chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(model_page.as_uri())
    figure = page.locator("[data-test=ranking]")
    figure.get_by_role("button").click()
    page.wait_for_function("document.querySelector('[data-test=ranking] .copy').textContent === 'Copied'")
    data = page.evaluate(
        """async () => {
            const [item] = await navigator.clipboard.read();
            return [...new Uint8Array(await (await item.getType('image/png')).arrayBuffer())];
        }"""
    )
    width = figure.bounding_box()["width"]
    assert read_image(page, bytes(data))[0] == pytest.approx(2 * (width + 16), abs=2)
    context.close()


# ------------------------------------------------------------------ on paper


@pytest.fixture
def printed(chromium, request):
    """Return a function that opens a page of a dark browser as it is printed on A4."""
    pages = []

    def opened(path):
        page = chromium.new_page(color_scheme="dark", viewport={"width": 718, "height": 1000})  # A4 less margins
        page.goto(path.as_uri())
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print", color_scheme="dark")
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.close()


@pytest.mark.parametrize("which", ["model_page", "run_page", "long_page"])
def test_on_paper_all_is_light_unfolded_and_without_controls(printed, request, which):
    page = printed(request.getfixturevalue(which))
    assert colours(page)[0] == "rgb(255, 255, 255)"
    assert overflow(page) == [0, []]
    assert page.locator("button:visible, input:visible, select:visible, nav:visible").count() == 0
    assert page.locator("details:not([open])").count() == 0
    cut = "e => getComputedStyle(e).breakInside !== 'avoid' || e.scrollHeight > e.clientHeight + 2"
    assert page.locator("figure:visible").count() > 0
    assert not any(figure.evaluate(cut) for figure in page.locator("figure:visible").all())


def test_details_are_folded_again_after_printing(visit, run_page):
    page = visit(run_page)
    before = page.locator("details[open]").count()
    for event in ("beforeprint", "afterprint"):
        page.evaluate(f"window.dispatchEvent(new Event('{event}'))")
    assert page.locator("details[open]").count() == before


def test_the_page_becomes_a_pdf(chromium, model_page, tmp_path):
    page = chromium.new_page()
    page.goto(model_page.as_uri())
    page.pdf(path=tmp_path / "page.pdf", format="A4")
    assert (tmp_path / "page.pdf").stat().st_size > 10_000
    page.close()
