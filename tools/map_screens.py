"""Write the screens of docs/guide/heatmaps.md: make slides and maps, and take pictures of the page."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import gmil
from gmil.heatmaps import write_maps

ROOT = Path(__file__).parents[1]
WIDE, NARROW = (ROOT / "docs" / "guide" / f"heatmap_{name}.png" for name in ("page", "phone"))


def make_slide(rng: np.random.Generator, has_tumour: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features and corners of two pieces of tissue, each with a lattice of its own."""
    column, row = (axis.ravel() for axis in np.meshgrid(np.arange(60), np.arange(44)))
    angle = np.arctan2(row - 22, column - 30)
    edge = 1 + 0.12 * np.sin(3 * angle + rng.uniform(0, 6))
    tissue = np.hypot((column - 30) / rng.uniform(16, 29), (row - 22) / rng.uniform(12, 21)) < edge
    extra = [axis.ravel() for axis in np.meshgrid(np.arange(7), np.arange(9))]
    x = np.concatenate([256 * column[tissue] + 1000, 256 * extra[0] + 17077])
    y = np.concatenate([256 * row[tissue] + 500, 256 * extra[1] + 333])
    features = rng.normal(size=(len(x), 8))
    middle = rng.integers(tissue.sum())
    tumour = np.hypot(x - x[middle], y - y[middle]) < rng.uniform(900, 1900)
    features[tumour & has_tumour, :3] += 2.2
    return features, x, y


def main() -> None:
    """Write the screens."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    sys.path.insert(0, str(ROOT))
    from tests.browser import find_browser

    rng = np.random.default_rng(3)
    labels = np.arange(36) % 2
    features, x, y = zip(*(make_slide(rng, label == 1) for label in labels), strict=True)
    info = {"x": np.concatenate(x), "y": np.concatenate(y)}
    info["patch_size"] = np.full(len(info["x"]), 256)
    bags = gmil.Bags.from_list(features, bag_ids=[f"slide {i:02d}" for i in range(36)], instance_info=info)
    words = np.where(labels == 1, "tumour", "normal")
    model = gmil.WeightedGMIL(random_state=0, pos_label="tumour").fit(bags[:24], words[:24])
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        write_maps(model, bags[24:], folder, y=words[24:], title="Twelve slides that the model never saw", smooth=True)
        browser = driver.chromium.launch(executable_path=find_browser(), args=["--no-sandbox", "--disable-gpu"])
        for target, width, height, theme in ((WIDE, 1080, 900, "light"), (NARROW, 390, 844, "dark")):
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme)
            page.goto((Path(folder) / "index.html").as_uri())
            page.get_by_label("Order").select_option("probability")
            page.locator(".sm-card").first.click()
            page.wait_for_timeout(1500)
            page.screenshot(path=target, full_page=True)
            with Image.open(target) as picture:  # few colours make small files
                picture.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(target, optimize=True)


if __name__ == "__main__":
    main()
