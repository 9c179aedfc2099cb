"""
A first model on Musk1
======================

**Question.** Which molecules smell of musk?

A molecule bends into many shapes, its conformers. It smells of musk if one of
them fits a receptor of the nose, and nobody knows which one. So the molecule
is a **bag**, its conformers are the **instances**, and labels belong to bags
alone. This is the problem for which multiple instance learning was invented.
Musk1 comes with gmil.
"""

import matplotlib.pyplot as plt
from scipy.special import expit
from sklearn.model_selection import train_test_split

import gmil

bags, y = gmil.load_musk1(return_X_y=True)
print(bags)
print(f"{y.sum()} of {len(y)} molecules are musks")
print(f"conformers of a molecule: {bags.sizes.min()} to {bags.sizes.max()}")

# %%
# Fit and predict
# ---------------
# Bags go through scikit-learn's tools as they are. :class:`~gmil.WeightedGMIL`
# is the method to start with: it has nothing to tune.

train, test, y_train, y_test = train_test_split(
    bags, y, test_size=0.25, stratify=y, random_state=0
)
model = gmil.WeightedGMIL(random_state=0).fit(train, y_train)
print("predicted:", model.predict(test[:8]))
print("true:     ", y_test[:8])
accuracy = model.score(test, y_test)
print(f"accuracy on {len(test)} held-out molecules: {accuracy:.2f}")

# %%
# Cross-validate
# --------------
# So few molecules are a short exam. In a 10-fold cross-validation every
# molecule is held out once.

result = gmil.cross_validate(
    gmil.WeightedGMIL(), bags, y, cv=10, random_state=0
)
low, high = result.accuracy_interval()
print(
    f"accuracy: {result.accuracy():.2f}, 95 % interval {low:.2f} to {high:.2f}"
)
print(f"majority class: {result.majority_accuracy():.2f}")

# %%
# Every molecule in one picture
# -----------------------------
# The decisions of ``WeightedGMIL`` are log-odds, so that the logistic function
# makes probabilities of them.

plt.rc("font", size=12)
BLUE, ORANGE = "#0072B2", "#E69F00"

probability = expit(result.decisions[0, 0])
rank = probability.argsort().argsort() + 1
wrong = ~result.correct[0, 0]

fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for label, name, color, marker in [
    (1, "musk", ORANGE, "o"),
    (0, "no musk", BLUE, "s"),
]:
    mine = y == label
    ax.scatter(
        rank[mine], probability[mine], c=color, marker=marker, s=28, label=name
    )
ax.scatter(
    rank[wrong],
    probability[wrong],
    s=130,
    facecolors="none",
    edgecolors="black",
)
ax.axhline(0.5, color="grey", linewidth=1, linestyle="--")
ax.text(1, 0.52, "predicted: musk", color="grey")
ax.text(1, 0.48, "predicted: no musk", color="grey", va="top")
ax.text(92, 0.05, f"ringed: {wrong.sum()} wrong of {len(y)}", ha="right")
ax.set(
    xlabel="molecules, by rank",
    ylabel="held-out probability of musk",
    ylim=(0, 1),
)
ax.legend(loc="upper left", frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# **What one sees.** Most molecules have a probability near 0 or 1. The 7 wrong
# ones of 92 are ringed; most of them lie between, so that the probability
# tells which molecules to test again.
#
# **Limits.** 92 molecules are few. The interval from 0.87 to 0.98 is so wide
# that methods a few points apart cannot be told apart on Musk1.
#
# **More.** :doc:`WeightedGMIL </methods/weighted>`
