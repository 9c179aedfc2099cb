"""
Heat maps: score or percentile?
===============================

**Question.** A slide has no tumour. Does its heat map tell?

Many tools colour a map by percentile: the rank of a patch within its slide.
``gmil.heatmap`` draws both, the score and the percentile, and keeps both in
its files. The slides here are generated. Each has two pieces of tissue, and
each piece has a lattice of its own, as some tools write them.
"""

import matplotlib.pyplot as plt
import numpy as np

import gmil

SIDE = 256


def make_slide(rng, has_tumour):
    """Return features and corners of the patches of a slide."""
    column, row = (
        axis.ravel() for axis in np.meshgrid(np.arange(26), np.arange(18))
    )
    tissue = np.hypot((column - 12.5) / 13, (row - 8.5) / 9) < 1
    x, y = SIDE * column[tissue], SIDE * row[tissue]
    second = [axis.ravel() for axis in np.meshgrid(np.arange(5), np.arange(7))]
    x = np.concatenate([x, SIDE * second[0] + 7177])  # off the first lattice
    y = np.concatenate([y, SIDE * second[1] + 333])
    features = rng.normal(size=(len(x), 16))
    middle = rng.integers(tissue.sum())
    near = np.hypot(x - x[middle], y - y[middle]) < rng.uniform(500, 900)
    features[near & has_tumour, :4] += 2.2
    return features, x, y


rng = np.random.default_rng(1)
labels = np.arange(50) % 2
features, x, y = zip(*(make_slide(rng, label == 1) for label in labels))
places = {"x": np.concatenate(x), "y": np.concatenate(y)}
places["patch_size"] = np.full(len(places["x"]), SIDE)
slides = gmil.Bags.from_list(
    features, bag_ids=[f"slide {i}" for i in range(50)], instance_info=places
)
model = gmil.WeightedGMIL(random_state=0).fit(slides[:40], labels[:40])
test = slides[40:]
scores = model.score_instances(test)
print(f"{len(test)} new slides, {test.sizes[0]} patches each")

# %%
# One scale for all slides
# ------------------------
# With the same ``limits``, a colour means the same score in every slide.
# Percentiles have the same ends anyway, and a different meaning: a rank.

low, high = -5, -1
shown = {"with a tumour": "slide 41", "without": "slide 40"}
maps = {
    name: (
        gmil.heatmap(test, scores, slide=slide, limits=(low, high)),
        gmil.heatmap(test, scores, slide=slide, value="percentile"),
    )
    for name, slide in shown.items()
}
for name, (by_score, _) in maps.items():
    middle = np.median(by_score.scores)
    top = by_score.scores[by_score.highest(top=1)][0]
    print(f"{name}: median score {middle:.1f}, highest {top:.1f}")

plt.rc("font", size=12)
fig, axes = plt.subplots(2, 2, figsize=(8, 5), layout="constrained")
for row, (name, pair) in zip(axes, maps.items()):
    for ax, found in zip(row, pair):
        ax.imshow(found.image)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        if name == "with a tumour":
            ax.set_title(found.value)
    row[0].set_ylabel(name)
plt.show()

# %%
# Files for others
# ----------------
# A map is a picture, tiles for QuPath and a table: ``save_png``,
# ``to_geojson`` and ``to_csv``. A tile is a closed ring in pixels of level 0.

tiles = maps["with a tumour"][0].to_geojson(top=3)["features"]
print(tiles[0]["properties"]["objectType"], "with", end=" ")
print(*tiles[0]["properties"]["measurements"], sep=", ")

# %%
# **What one sees.** Left, the slide with a tumour has a bright region, and the
# slide without one is dark. Right, both have patches in the brightest colour:
# every slide has a highest patch. The percentile shows where to look first,
# and only the score tells whether there is something to see. The other tissue
# of the slide with a tumour is lighter, too: a score counts the whole slide.
#
# **Limits.** Generated slides are easy. The level of scores depends on the
# model: compare maps of one model only.
#
# **More.** :doc:`heat maps on the command line, in QuPath and as a page
# </guide/heatmaps>`
