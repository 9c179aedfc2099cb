"""
Which method for which bags?
============================

**Question.** What makes a bag positive, and which method finds it?

"One positive instance makes a bag positive" is the classic assumption, and
many data break it: often a share of instances matters, or two things that must
come together, or the spread of all. Methods differ in what they can see. Here
six kinds of bags meet seven methods, each with its defaults, but for
``SingleInstance``, which takes the mean over a bag.
"""

import matplotlib.pyplot as plt
import numpy as np

import gmil

# %%
# Six kinds of bags
# -----------------
# Every bag has 10 instances of 4 features around the origin. What is added to
# positive bags, and to negative ones, is the kind.


def one_witness(bag, positive, rng):
    if positive:
        bag[0, 0] += 5


def weak_majority(bag, positive, rng):
    if positive:
        bag[:6, 0] += 1


def four_concepts(bag, positive, rng):
    if positive:
        bag[:2, rng.integers(4)] += 5


def two_together(bag, positive, rng):
    """Negative bags have one of two concepts, positive bags have both."""
    first = rng.integers(2)
    bag[:2, first] += 5
    bag[2:4, 1 - first if positive else first] += 5


def larger_share(bag, positive, rng):
    """Both have witnesses; positive bags have more."""
    bag[: 5 if positive else 2, 0] += 5


def wider_spread(bag, positive, rng):
    if positive:
        bag *= 1.4


KINDS = [
    one_witness,
    weak_majority,
    four_concepts,
    two_together,
    larger_share,
    wider_spread,
]


def make(kind, n_bags, seed):
    rng = np.random.default_rng(seed)
    y = np.arange(n_bags) % 2
    bags = rng.normal(size=(n_bags, 10, 4))
    for bag, label in zip(bags, y):
        kind(bag, label == 1, rng)
    return bags, y


# %%
# Seven methods
# -------------
# Each is fitted on 100 bags, and tested on 500 new ones.

METHODS = {
    "WeightedGMIL": gmil.WeightedGMIL(random_state=0),
    "BagStatistics": gmil.BagStatistics(),
    "NSK": gmil.SetKernelSVM(random_state=0),
    "MILES": gmil.MILES(random_state=0),
    "MI-SVM": gmil.WitnessSVM(random_state=0),
    "SingleInstance": gmil.SingleInstance(aggregate="mean"),
    "GMIL (the paper)": gmil.GMIL(random_state=0),
}
accuracy = np.empty((len(METHODS), len(KINDS)))
for column, kind in enumerate(KINDS):
    train, y_train = make(kind, 100, seed=1)
    test, y_test = make(kind, 500, seed=2)
    for row, model in enumerate(METHODS.values()):
        accuracy[row, column] = model.fit(train, y_train).score(test, y_test)

for name, row in zip(METHODS, accuracy):
    by_kind = " ".join(f"{value:.2f}" for value in row)
    print(f"{name:17} {by_kind}   mean {row.mean():.2f}")

# %%

plt.rc("font", size=12)

fig, ax = plt.subplots(figsize=(7, 5), layout="constrained")
ax.imshow(accuracy, cmap="cividis", vmin=0.5, vmax=1, aspect="auto")
for (row, column), value in np.ndenumerate(accuracy):
    best = value == accuracy[:, column].max()
    ax.text(
        column,
        row,
        f"{100 * value:.0f}",
        ha="center",
        va="center",
        color="black" if value > 0.75 else "white",
        weight="bold" if best else "normal",
    )
ax.set_yticks(range(len(METHODS)), METHODS)
ax.set_xticks(
    range(len(KINDS)), [kind.__name__.replace("_", "\n") for kind in KINDS]
)
ax.xaxis.tick_top()
ax.tick_params(length=0)
ax.spines[:].set_visible(False)
ax.set_xlabel("accuracy on new bags, per cent; the best of a column is bold")
plt.show()

# %%
# **What one sees.** What a method can see decides. MI-SVM goes by the best
# instance: it has 97 per cent with one witness and 56 where both classes have
# witnesses and their share matters. The mean over single instances has 99
# there, and 54 where two things must come together. ``WeightedGMIL``, which
# combines several embeddings, is the best or one point behind for every kind.
# ``BagStatistics`` is simple and follows it: a baseline that any method must
# beat.
#
# **Limits.** One draw of 100 training bags, and defaults without tuning. The
# standard error of a cell is about two points. More features, larger bags or
# weaker effects change the order: generate bags like yours, and compare.
#
# **More.** :doc:`accuracies on real data </results/accuracy>`
