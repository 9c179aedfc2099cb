"""
A folder of slides, from files to patients
==========================================

**Question.** Encoders have left a folder of patch embeddings. Which patients
have a tumour?

TRIDENT, CLAM, STAMP and others write one file per slide. ``gmil.scan`` finds
out which tool it was, joins slides to a table of labels and patients, and
leaves the embeddings on disk until a block of them is used. The slides here
are generated: two of a hundred patches of a positive slide are tumour.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gmil

with tempfile.TemporaryDirectory() as folder:
    made = gmil.make_slides(
        Path(folder) / "cohort",
        layout="trident",
        n_slides=60,
        n_patches=200,
        n_features=32,
    )
    cohort = gmil.scan(
        made.folder,
        labels=made.labels,
        bag="slide_id",
        label="label",
        group="case_id",
    )
    bags, y, patients = cohort.bags, cohort.y, cohort.groups
    print(f"{cohort.layout}: {len(bags)} slides, {bags.n_instances} patches")
    print(bags[[0]].instance_info.to_pylist()[0])

    # %%
    # Slides of one patient stay together
    # -----------------------------------
    # ``groups`` keeps them in one fold, here and in what the method chooses
    # on its training slides.

    result = gmil.cross_validate(
        gmil.WeightedGMIL(random_state=0), bags, y, cv=3, groups=patients
    )

auc = result.auc()
print(f"{len(set(patients))} patients, AUC of slides {auc:.2f}")

# %%

plt.rc("font", size=12)
GREY, ORANGE = "#999999", "#D55E00"

decisions = np.squeeze(result.decisions)
names = sorted(
    set(patients), key=lambda name: decisions[patients == name].mean()
)
place = np.array([names.index(name) for name in patients])
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for label, color, text in ((0, GREY, "no tumour"), (1, ORANGE, "tumour")):
    ax.scatter(
        place[y == label], decisions[y == label], color=color, s=40, label=text
    )
ax.axhline(0, color="black", linewidth=1)
ax.set(xlabel="patient, by the mean of the slides", ylabel="held-out decision")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# **What one sees.** Every slide is a dot, slides of one patient share a
# column. Most slides with a tumour lie above 0, slides without one below, and
# slides of a patient agree. Four patches of 200 are tumour.
#
# **Limits.** Generated slides are easier than real ones. With few slides a
# method may miss the tumour altogether: repeat with other folds and seeds
# before you trust a figure.
#
# **More.** :doc:`whole-slide images </guide/slides>`
