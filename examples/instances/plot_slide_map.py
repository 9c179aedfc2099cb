"""
Scores of instances as a map
============================

**Question.** A slide has a tumour. Where?

Pathologists label whole slides: tumour or none. To outline every tumour takes
them hours. A slide is a bag of patches here, and only slides have labels. A
map of the scores of patches points to the tumour, so that a person can check
the decision.

The slides are generated: a patch has a place and 16 features, as a network
would give them. The tumour is a patch of tissue somewhere in the slide. Its
labels are kept back to measure the map, and nothing is learnt from them.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.metrics import roc_auc_score

import gmil

WIDTH, HEIGHT = 24, 18


def make_slide(rng, has_tumour):
    """Return features, places and truth of the patches of a slide."""
    x, y = (
        axis.ravel()
        for axis in np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT))
    )
    angle = np.arctan2(y - 8.5, x - 11.5)
    edge = 1 + 0.12 * np.sin(3 * angle + rng.uniform(0, 6))
    tissue = np.hypot((x - 11.5) / 11.5, (y - 8.5) / 8.5) < edge
    x, y = x[tissue], y[tissue]
    features = rng.normal(size=(len(x), 16))
    features[:, 0] += 2 * np.sin(
        x / rng.uniform(2, 4) + rng.uniform(0, 6)
    )  # kinds
    features[:, 1] += 2 * np.cos(
        y / rng.uniform(2, 4) + rng.uniform(0, 6)
    )  # of tissue
    middle = rng.integers(len(x))
    distance = np.hypot(x - x[middle], y - y[middle])
    tumour = (distance < rng.uniform(2, 4)) & has_tumour
    features[tumour, 2:6] += 2.2
    return features, x, y, tumour


rng = np.random.default_rng(0)
labels = np.arange(60) % 2
features, x, y, tumour = zip(
    *(make_slide(rng, label == 1) for label in labels)
)
places = {"x": np.concatenate(x), "y": np.concatenate(y)}
slides = gmil.Bags.from_list(features, instance_info=places)
truth = np.concatenate(tumour)
print(slides)
share = np.concatenate([t for t in tumour if t.any()]).mean()
print(f"tumour in {share:.0%} of the patches of slides with a tumour")

# %%
# Learn from slides, score patches
# --------------------------------
# ``instance_info`` keeps the place of every patch. ``smooth_scores`` averages
# scores over neighbours in the plane; it is never done unless asked for.

train, test = slides[:40], slides[40:]
held_out = truth[train.n_instances :]
model = gmil.WeightedGMIL(random_state=0).fit(train, labels[:40])
raw = model.score_instances(test)
smooth = gmil.smooth_scores(raw, test, bandwidth=1.0)

print(
    f"accuracy of {len(test)} new slides: {model.score(test, labels[40:]):.2f}"
)
probability = expit(raw[held_out]).mean()
print(f"mean probability of tumour patches: {probability:.2f}")
print(f"AUC of their patches, as they are: {roc_auc_score(held_out, raw):.2f}")
print(
    f"AUC of their patches, smoothed:    {roc_auc_score(held_out, smooth):.2f}"
)

# %%
# The map
# -------
# Three new slides: the first two with a tumour, and the first without.

plt.rc("font", size=12)


def picture(values, slide):
    """Lay the values of patches on the grid; NaN where no tissue is."""
    grid = np.full((HEIGHT, WIDTH), np.nan)
    info = test[[slide]].instance_info
    grid[info["y"].to_numpy(), info["x"].to_numpy()] = test.split(values)[
        slide
    ]
    return grid


shown = [
    *np.flatnonzero(labels[40:] == 1)[:2],
    np.flatnonzero(labels[40:] == 0)[0],
]
low, high = -3, 0
columns = {
    "truth": np.where(held_out, high, low),
    "score": raw,
    "smoothed": smooth,
}
fig, axes = plt.subplots(3, 3, figsize=(7, 6), layout="constrained")
for row, slide in zip(axes, shown):
    for ax, (name, values) in zip(row, columns.items()):
        mesh = ax.imshow(
            picture(values, slide), cmap="inferno", vmin=low, vmax=high
        )
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        if slide == shown[0]:
            ax.set_title(name)
    row[0].set_ylabel("tumour" if labels[40 + slide] else "no tumour")
fig.colorbar(mesh, ax=axes, label="score: log-odds of tumour", shrink=0.6)
plt.show()

# %%
# **What one sees.** In slides that the model has never seen, bright patches
# are where the tumour is, and the slide without one stays dark. The AUC of
# patches is 1.00, smoothed 1.00, from labels of 40 slides and of no patch.
#
# **Limits.** The order of scores is right, their level is not: the mean
# probability of a tumour patch is 0.11, since labels of slides do not tell how
# many patches a tumour has. So no fixed threshold outlines it. Generated
# slides are easy: in real ones stain and scanner differ, and features of
# neighbours depend on each other.
#
# **More.** :doc:`how good scores of instances are, measured
# </results/instances>`
