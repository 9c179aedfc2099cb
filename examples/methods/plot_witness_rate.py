"""
Witness rate and accuracy
=========================

**Question.** How few instances may carry the label before a method loses them?

In a slide with a small tumour, one patch in forty may show it. The share of
instances that make a bag positive is the witness rate. It is the number that
most decides which method works, and it is rarely known. :func:`gmil.make_bags`
generates bags with any rate, so that one can test a method before data are
collected.
"""

import matplotlib.pyplot as plt
import numpy as np

import gmil

RATES = [0.025, 0.05, 0.1, 0.2, 0.4]
METHODS = {
    "WeightedGMIL": gmil.WeightedGMIL(random_state=0),
    "MI-SVM": gmil.WitnessSVM(random_state=0),
    "GMIL (the paper)": gmil.GMIL(random_state=0),
    "mean of the bag": gmil.BagStatistics(("mean",)),
}

# %%
# Bags have 40 instances, so the smallest rate is one witness. Methods are
# fitted on 60 bags and tested on 200 new ones, three times.

accuracy = np.empty((len(METHODS), len(RATES), 3))
for column, rate in enumerate(RATES):
    for seed in range(3):
        bags, y = gmil.make_bags(
            260,
            bag_size=40,
            witness_rate=rate,
            separation=4,
            random_state=seed,
            return_X_y=True,
        )
        for row, model in enumerate(METHODS.values()):
            model.fit(bags[:60], y[:60])
            accuracy[row, column, seed] = model.score(bags[60:], y[60:])

print("witness rate:", RATES)
for name, values in zip(METHODS, accuracy.mean(axis=2)):
    print(f"{name:17}", " ".join(f"{value:.2f}" for value in values))

# %%

plt.rc("font", size=12)
COLORS = ["#0072B2", "#D55E00", "#009E73", "#777777"]

fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for values, color, name in zip(accuracy, COLORS, METHODS):
    mean = values.mean(axis=1)
    ax.fill_between(
        RATES, values.min(axis=1), values.max(axis=1), color=color, alpha=0.15
    )
    ax.plot(RATES, mean, color=color, marker="o", linewidth=2, label=name)
ax.axhline(0.5, color="black", linestyle=":", linewidth=1)
ax.text(RATES[-1], 0.505, "guessing", ha="right")
ax.set_xscale("log")
ax.set_xticks(RATES, [f"{rate:.1%}".replace(".0", "") for rate in RATES])
ax.minorticks_off()
ax.set(xlabel="witness rate in positive bags", ylabel="accuracy on new bags")
fig.legend(loc="outside upper center", ncols=2, frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# **What one sees.** With one witness in 40 instances the mean of the bag knows
# nothing (0.49) and ``WeightedGMIL`` still has 0.83. From 20 % of witnesses
# on, the mean does nearly as well as methods that search witnesses (0.98):
# there is no need for them. MI-SVM needs two witnesses in 40 (0.91 in place of
# 0.58). GMIL as the paper has it reaches 0.74 at 40 %.
#
# **Limits.** One concept, ten features, a distance of 4 standard deviations,
# three draws (the bands are their range). More features or a smaller distance
# move all curves to the right. In real data the rate also differs from bag to
# bag.
#
# **More.** :doc:`how well witnesses are found </results/instances>`
