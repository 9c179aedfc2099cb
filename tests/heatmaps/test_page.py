"""The page of maps in a real browser: pan, zoom, threshold, list, keyboard, touch, two slides, two models."""

from __future__ import annotations

import time

import numpy as np
import pytest
from tests.browser import LONG, chromium, colours, every_screen, overflow, visit  # noqa: F401  fixtures
from tests.heatmaps.conftest import ByFirstFeature, lattice, one_slide, write_tiff

import gmil
from gmil.heatmaps import page as page_module
from gmil.heatmaps import write_maps

EVIL = "</script><img src=x onerror=alert(1)> & Ж木"


def cohort(n_slides=3, width=10, height=8):
    """Slides on lattices of 256; the best patch of slide i is the one in row 2, column 3 + i, with score i - 0.5."""
    x, y = lattice(width, height, 256, 1000, 500)
    rng = np.random.default_rng(0)
    features = []
    for i in range(n_slides):
        scores = rng.uniform(-3, -2, len(x))
        scores[2 * width + 3 + i % 6] = i - 0.5
        features.append(scores[:, None])
    names = ["certain", EVIL, LONG][:n_slides] + [f"s{i}" for i in range(3, n_slides)]
    n = n_slides * len(x)
    info = {"x": np.tile(x, n_slides), "y": np.tile(y, n_slides), "patch_size": np.full(n, 256)}
    return gmil.Bags.from_list(features, bag_ids=names, instance_info=info)


@pytest.fixture(scope="module")
def one_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    write_maps(ByFirstFeature(), cohort(), folder, y=np.array(["tumour", "tumour", "tumour"]), title=f"Maps of {EVIL}")
    return folder / "index.html"


@pytest.fixture(scope="module")
def two_models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    models = {"first": ByFirstFeature(), EVIL: ByFirstFeature(-1.0)}
    write_maps(models, cohort(), folder)
    return folder / "index.html"


def opened(visit, path, **options):  # noqa: F811
    page = visit(path, **options)
    page.wait_for_selector(".sm-canvas[data-view]")
    page.wait_for_function("document.querySelectorAll('.sm-card:not([data-drawn])').length === 0")
    return page


def view(page, pane=0):
    page.wait_for_timeout(60)  # a frame is drawn
    return [float(v) for v in page.locator(".sm-canvas").nth(pane).get_attribute("data-view").split()]


def cards(page):
    return page.locator(".sm-card b").all_text_contents()


def colour_at(page, x, y, pane=0):
    """Return the colour of the map at a share of its width and height."""
    return page.evaluate(
        """([x, y, pane]) => {
            const canvas = document.querySelectorAll('.sm-canvas')[pane];
            const context = new OffscreenCanvas(1, 1).getContext('2d');  // to read the map itself would slow it down
            context.drawImage(canvas, -Math.floor(x * canvas.width), -Math.floor(y * canvas.height));
            return [...context.getImageData(0, 0, 1, 1).data];
        }""",
        [x, y, pane],
    )


# ------------------------------------------------------------------ gallery


def test_the_gallery_is_sorted_by_certainty_and_every_slide_is_drawn(visit, one_model):  # noqa: F811
    page = opened(visit, one_model)
    assert cards(page) == [LONG, "certain", EVIL]  # scores 1.5, -0.5 and 0.5; the first was first
    inked = """() => [...document.querySelectorAll('.sm-card canvas')].map((c) => {
        const pixels = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        return new Set(new Uint32Array(pixels.buffer)).size;
    })"""
    assert min(page.evaluate(inked)) > 5
    assert page.locator(".sm-slide").input_value() == "0"
    assert page.locator(".sm-card[aria-pressed=true] b").text_content() == LONG


def test_orders_and_search(visit, one_model):  # noqa: F811
    page = opened(visit, one_model)
    page.get_by_label("Order").select_option("uncertain")
    assert cards(page)[-1] == LONG
    page.get_by_label("Order").select_option("wrong")
    assert cards(page)[0] == "certain"  # predicted normal, but it is tumour
    assert "✗ tumour, predicted normal" in page.locator(".sm-card").first.text_content()
    page.get_by_label("Order").select_option("name")
    page.get_by_label("Search").fill("cert")
    assert cards(page) == ["certain"]
    assert page.locator(".sm-found").text_content() == "1 of 3 slides"


def test_a_card_opens_its_slide(visit, one_model):  # noqa: F811
    page = opened(visit, one_model)
    page.locator(".sm-card", has_text="onerror").click()
    page.wait_for_function("document.querySelector('.sm-facts').textContent.includes('tumour')")
    assert page.locator(".sm-canvas").get_attribute("aria-label") == f"Map of slide {EVIL}, 80 patches"
    assert page.evaluate("document.activeElement.className") == "sm-canvas"
    page.get_by_role("button", name="Next slide").click()
    page.get_by_role("button", name="Previous slide").click()
    assert page.locator(".sm-card[aria-pressed=true] b").text_content() == EVIL


def test_no_name_becomes_markup(visit, one_model):  # noqa: F811
    page = opened(visit, one_model)
    assert page.locator("img").count() == 0
    assert EVIL in page.locator("h1").text_content()


# ------------------------------------------------------------------ pan and zoom


def test_the_wheel_zooms_where_the_pointer_is(visit, one_model):  # noqa: F811
    page = opened(visit, one_model)
    box = page.locator(".sm-canvas").bounding_box()
    assert view(page) == [0.5, 0.5, 1]
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.5)
    page.mouse.wheel(0, -400)
    x, y, zoom = view(page)
    assert zoom > 1.5
    assert x > 0.5
    assert y == pytest.approx(0.5, abs=0.01)


def test_a_drag_moves_the_map(visit, one_model):  # noqa: F811
    page = opened(visit, one_model)
    box = page.locator(".sm-canvas").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 260, box["y"] + 170, steps=4)
    page.mouse.up()
    x, y, zoom = view(page)
    assert x < 0.5
    assert y > 0.5
    assert zoom == 1
    assert page.locator(".sm-selected").text_content() == ""  # a drag is no click


def test_the_keyboard_moves_zooms_and_fits(visit, one_model):  # noqa: F811
    page = opened(visit, one_model)
    page.locator(".sm-canvas").focus()
    for key in ("+", "+", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    x, y, zoom = view(page)
    assert zoom == pytest.approx(2.25)
    assert x > 0.5
    assert y > 0.5
    page.keyboard.press("-")
    assert view(page)[2] == pytest.approx(1.5)
    page.keyboard.press("0")
    assert view(page) == [0.5, 0.5, 1]
    page.keyboard.press("n")
    assert "score 1.5, percentile 100" in page.locator(".sm-selected").text_content()
    page.keyboard.press("n")
    assert page.locator(".sm-top button[aria-current=true]").get_attribute("aria-label").startswith("Patch 2:")
    page.keyboard.press("p")
    assert page.locator(".sm-top button[aria-current=true]").get_attribute("aria-label").startswith("Patch 1:")


def test_buttons_zoom_and_fit(visit, one_model):  # noqa: F811
    page = opened(visit, one_model)
    page.get_by_role("button", name="Zoom in").click()
    assert view(page)[2] == pytest.approx(1.6)
    page.get_by_role("button", name="Zoom out").click()
    page.get_by_role("button", name="Zoom out").click()
    assert view(page)[2] == pytest.approx(1 / 1.6, abs=1e-3)
    page.get_by_role("button", name="Fit").click()
    assert view(page) == [0.5, 0.5, 1]


def test_two_fingers_zoom_and_one_moves(visit, one_model):  # noqa: F811
    page = opened(visit, one_model)
    touch = """(steps) => {
        const canvas = document.querySelector('.sm-canvas'), box = canvas.getBoundingClientRect();
        canvas.setPointerCapture = () => {};
        for (const [type, id, x, y] of steps) canvas.dispatchEvent(new PointerEvent(type,
            { pointerId: id, pointerType: 'touch', clientX: box.left + x, clientY: box.top + y, bubbles: true }));
    }"""
    fingers = [("pointerdown", 7, 200, 200), ("pointerdown", 8, 300, 200), ("pointermove", 7, 150, 200)]
    fingers += [("pointermove", 8, 350, 200), ("pointerup", 7, 150, 200), ("pointerup", 8, 350, 200)]
    page.evaluate(touch, fingers)
    assert view(page)[2] == pytest.approx(2, abs=0.01)
    page.evaluate(touch, [("pointerdown", 9, 200, 200), ("pointermove", 9, 240, 200), ("pointerup", 9, 240, 200)])
    assert view(page)[0] != pytest.approx(0.5, abs=1e-4)
    assert page.locator(".sm-canvas").evaluate("e => getComputedStyle(e).touchAction") == "none"


# ------------------------------------------------------------------ patches


def test_the_list_and_the_map_are_linked(visit, one_model):  # noqa: F811
    page = opened(visit, one_model)
    first = page.locator(".sm-top button").first
    assert first.locator("span").all_text_contents() == ["1.", "1.5", "100.0 %", "x 2280, y 1012"]
    assert page.locator(".sm-top button").count() == 20
    first.click()
    x, y, _ = view(page)
    assert x == pytest.approx((2280 + 128 - 1000) / 2560, abs=1e-3)
    assert y == pytest.approx((1012 + 128 - 500) / 2048, abs=1e-3)
    assert page.locator(".sm-selected").text_content().startswith("Patch at x 2280, y 1012: score 1.5")
    first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator(".sm-top button[aria-current=true] span").first.text_content() == "2."


def test_a_click_on_the_map_selects_the_patch_there(visit, one_model):  # noqa: F811
    page = opened(visit, one_model)
    page.locator(".sm-top button").first.click()
    page.locator(".sm-top button").nth(1).click()
    page.locator(".sm-top button").first.click()  # now it is in the middle
    page.wait_for_timeout(60)
    page.keyboard.press("Tab")
    box = page.locator(".sm-canvas").bounding_box()
    page.locator(".sm-canvas").click(position={"x": box["width"] / 2, "y": box["height"] / 2})
    assert "x 2280, y 1012" in page.locator(".sm-selected").text_content()


def test_the_slider_hides_low_patches(visit, one_model):  # noqa: F811
    page = opened(visit, one_model)
    said = page.locator(".sm-threshold + output")
    assert said.text_content() == "none hidden: 80 of 80 patches"
    assert colour_at(page, 0.5, 0.9)[3] == 255
    slider = page.get_by_label("Hide patches below")
    slider.focus()
    page.keyboard.press("End")
    page.wait_for_timeout(60)
    assert said.text_content() == "score 1.5: 1 of 80 patches"
    page.wait_for_timeout(60)
    assert colour_at(page, 0.5, 0.9)[3] == 0
    assert page.locator(".sm-top button").count() == 1
    page.keyboard.press("Home")
    page.wait_for_timeout(60)
    assert said.text_content() == "none hidden: 80 of 80 patches"


def test_colours_are_those_of_the_files(visit, one_model):  # noqa: F811
    page = opened(visit, one_model)
    page.locator(".sm-top button").first.click()
    page.wait_for_timeout(60)
    assert colour_at(page, 0.5, 0.5)[:3] == [253, 231, 37]  # the highest of viridis
    assert page.locator(".sm-ends span").last.text_content() == "1.5"
    assert "Score for tumour" in page.locator(".sm-meaning").text_content()
    page.get_by_label("Colours show").select_option("percentile")
    assert page.locator(".sm-ends span").all_text_contents() == ["0", "100"]
    assert page.locator(".sm-meaning").text_content().startswith("Percentile within the slide of: Score for tumour")
    assert page.get_by_label("Scale").is_disabled()
    page.get_by_label("Colours show").select_option("score")
    page.get_by_label("Scale").select_option("cohort")
    page.locator(".sm-card", has_text="certain").click()
    page.wait_for_timeout(100)
    assert page.locator(".sm-ends span").last.text_content() == "1.5"  # of all slides


def test_overlapping_patches_are_averaged_on_the_page_too(visit, tmp_path):  # noqa: F811
    bags = one_slide([0, 128], [0, 0], 256).with_instances(np.array([[0.0], [1.0]]))
    write_maps(ByFirstFeature(), bags, tmp_path)
    page = opened(visit, tmp_path / "index.html")
    left, middle, right = (colour_at(page, x, 0.5)[:3] for x in (0.3, 0.5, 0.7))
    assert (left, right) == ([68, 1, 84], [253, 231, 37])
    assert middle == pytest.approx([33, 145, 140], abs=4)  # the middle of viridis


def test_a_slide_lies_below_the_map_and_the_opacity_can_be_chosen(visit, tmp_path):  # noqa: F811
    pytest.importorskip("openslide")
    write_tiff(tmp_path / "s1.tiff")  # 512 x 384, every tile of 128 a grey of its own
    x, y = lattice(2, 2, 64, 256, 192)
    bags = one_slide(x, y, 64).with_instances(np.array([[0.0], [1.0], [1.0], [1.0]]))
    write_maps(ByFirstFeature(), bags, tmp_path / "maps", slides=tmp_path)
    page = opened(visit, tmp_path / "maps" / "index.html")
    page.wait_for_timeout(300)
    bare = colour_at(page, 0.4, 0.2)
    assert bare[3] == 255
    assert max(bare[:3]) - min(bare[:3]) <= 2  # the grey of the slide
    grey, mixed = np.array(colour_at(page, 0.5, 0.4)[:3]), np.array(colour_at(page, 0.52, 0.52)[:3])
    assert max(mixed) - min(mixed) > 10  # half map, half slide
    page.get_by_label("Opacity of the map").focus()
    page.keyboard.press("Home")
    page.wait_for_timeout(100)
    under = np.array(colour_at(page, 0.52, 0.52)[:3])
    assert max(under) - min(under) <= 2
    page.keyboard.press("End")
    page.wait_for_timeout(100)
    assert colour_at(page, 0.52, 0.52)[:3] in ([68, 1, 84], [253, 231, 37])
    assert grey.max() - grey.min() <= 2


# ------------------------------------------------------------------ two slides, two models


def test_two_slides_side_by_side_move_together(visit, one_model):  # noqa: F811
    page = opened(visit, one_model)
    page.get_by_role("button", name="Side by side").click()
    page.wait_for_selector(".sm-pane:nth-child(2) .sm-canvas[data-view]")
    assert page.locator(".sm-pane .sm-facts").count() == 2
    assert page.locator(".sm-card[aria-pressed=true]").count() == 2
    first, second = (page.locator(".sm-pane").nth(i).bounding_box() for i in (0, 1))
    assert first["y"] == second["y"]
    page.locator(".sm-canvas").first.focus()
    page.keyboard.press("+")
    assert view(page, 1) == view(page, 0)
    page.get_by_label("move together").uncheck()
    page.keyboard.press("0")
    page.locator(".sm-canvas").first.focus()
    page.keyboard.press("+")
    assert view(page, 1) != view(page, 0)
    page.get_by_role("button", name="Side by side").click()
    assert page.locator(".sm-pane").count() == 1


def test_two_models_are_shown_on_the_same_slide(visit, two_models):  # noqa: F811
    page = opened(visit, two_models)
    page.wait_for_selector(".sm-pane:nth-child(2) .sm-canvas[data-view]")
    assert [page.locator(".sm-slide").nth(i).input_value() for i in (0, 1)] == ["0", "0"]
    assert page.locator(".sm-model").nth(1).locator("option:checked").text_content() == EVIL
    best = [page.locator(".sm-pane").nth(i).locator(".sm-top button span").nth(1).text_content() for i in (0, 1)]
    assert float(best[0]) == 1.5
    assert 2 < float(best[1]) < 3  # the sign is turned
    page.locator(".sm-model").nth(1).select_option("0")
    page.wait_for_timeout(60)
    assert page.locator(".sm-pane").nth(1).locator(".sm-top button span").nth(1).text_content() == "1.5"


# ------------------------------------------------------------------ screens


@every_screen
def test_nothing_sticks_out_and_both_themes_can_be_read(visit, two_models, width, theme):  # noqa: F811
    page = opened(visit, two_models, width=width, theme=theme)
    assert overflow(page) == [0, []]
    paper, ink = colours(page)
    assert paper != ink
    page.locator("#theme").click()
    assert colours(page) == [ink, paper] or colours(page)[0] != paper


def test_everything_has_a_name_and_can_be_reached_by_tab(visit, one_model):  # noqa: F811
    page = opened(visit, one_model)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, canvas[tabindex]')].filter((e) =>
            !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).map((e) => e.outerHTML)"""
    )
    assert nameless == []
    reached = set()
    page.locator("#theme").focus()
    for _ in range(24):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.className"))
    assert {"sm-search", "sm-order", "sm-card", "sm-canvas", "sm-threshold", "sm-in"} <= reached


def test_5000_patches_are_drawn_without_lag(visit, tmp_path):  # noqa: F811
    x, y = lattice(100, 50, 256)
    scores = np.random.default_rng(0).normal(size=(5000, 1))
    write_maps(ByFirstFeature(), one_slide(x, y, 256).with_instances(scores), tmp_path)
    start = time.monotonic()
    page = opened(visit, tmp_path / "index.html")
    assert time.monotonic() - start < 5
    moves = """async () => {
        const canvas = document.querySelector('.sm-canvas'), times = [];
        for (let i = 0; i < 20; i += 1) {
            const before = performance.now();
            canvas.dispatchEvent(new WheelEvent('wheel', { deltaY: i % 2 ? 120 : -100, cancelable: true }));
            await new Promise(requestAnimationFrame);
            await new Promise(requestAnimationFrame);
            times.push(performance.now() - before);
        }
        return times.sort((a, b) => a - b)[10];
    }"""
    assert page.evaluate(moves) < 120  # two frames, on a busy machine without a GPU
    slides = """async () => {
        const slider = document.querySelector('.sm-threshold'), before = performance.now();
        for (let i = 1; i <= 5; i += 1) {
            slider.value = 150 * i;
            slider.dispatchEvent(new Event('input'));
            await new Promise(requestAnimationFrame);
        }
        return (performance.now() - before) / 5;
    }"""
    assert page.evaluate(slides) < 250


def test_a_page_holds_no_more_slides_than_it_can(tmp_path, monkeypatch):
    monkeypatch.setattr(page_module, "MOST_BYTES", 1200)  # a slide of 80 patches takes about 500
    write_maps(ByFirstFeature(), cohort(5), tmp_path)
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "2 of them are here" in text
    assert len(list(tmp_path.glob("*.png"))) == 5


def test_places_and_scores_survive_packing(visit, tmp_path):  # noqa: F811
    x, y = np.array([-149.5, 149.25, 1e6]), np.array([0.0, 12.34, 7.0])
    bags = one_slide(x, y, np.array([299.0, 299.0, 150.0])).with_instances(np.array([[0.5], [np.pi], [-1e-3]]))
    write_maps(ByFirstFeature(), bags, tmp_path)
    page = opened(visit, tmp_path / "index.html")
    rows = [
        button.split(", x ") for button in page.locator(".sm-top button").evaluate_all("b => b.map((e) => e.ariaLabel)")
    ]
    assert [row[1] for row in rows] == ["149.25, y 12.34", "-149.5, y 0", "1000000, y 7"]
    assert "score 3.142" in rows[0][0]
