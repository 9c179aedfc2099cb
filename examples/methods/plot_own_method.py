"""
Your own method in a comparison
===============================

**Question.** Is my method better than what exists, or is it luck?

A method of your own is a scikit-learn classifier whose ``X`` are bags. Nothing
has to be registered. :func:`gmil.compare` runs it on the same folds as other
methods, beside three controls that every result must beat: the majority class,
the size of the bag, and noise in place of the features. It corrects for the
number of comparisons.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gmil


class Quartiles(ClassifierMixin, BaseEstimator):
    """Logistic regression on the quartiles of every feature over the bag."""

    def __init__(self, C=0.01):
        self.C = C

    def fit(self, X, y):
        regression = LogisticRegression(C=self.C, max_iter=1000)
        self.model_ = make_pipeline(StandardScaler(), regression).fit(
            self.embed(X), y
        )
        self.classes_ = self.model_.classes_
        return self

    def embed(self, X):
        return [
            np.quantile(bag, [0.25, 0.5, 0.75], axis=0).ravel() for bag in X
        ]

    def predict(self, X):
        return self.model_.predict(self.embed(X))

    def decision_function(self, X):
        return self.model_.decision_function(self.embed(X))


# %%
# Compare
# -------

bags, y = gmil.load_musk1(return_X_y=True)
print(bags)
found = gmil.compare(
    {
        "Quartiles (mine)": Quartiles(),
        "BagStatistics": gmil.BagStatistics(),
        "MILES": gmil.MILES(),
        "WeightedGMIL": gmil.WeightedGMIL(),
    },
    bags,
    y,
    cv=5,
    repeats=2,
)
print(found)

# %%

plt.rc("font", size=12)
COLORS = {"mine": "#D55E00", "other": "#0072B2", "control": "#777777"}

fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for place, row in enumerate(reversed(found.rows)):
    name = row["method"]
    control = name in ("majority", "bag-size", "noise")
    color = COLORS[
        "mine" if "mine" in name else "control" if control else "other"
    ]
    ax.hlines(
        place, 100 * row["low"], 100 * row["high"], color=color, linewidth=3
    )
    ax.plot(100 * row["accuracy"], place, "o", color=color, markersize=9)
    verdict = "the best" if name == found.best else row["verdict_to_best"]
    ax.text(101.5, place, verdict, va="center", color=color)
names = [row["method"] for row in reversed(found.rows)]
ax.set_yticks(range(len(names)), names)
ax.set_xlabel("accuracy on Musk1, per cent, with 95 % interval")
ax.set_xlim(30, 101)
ax.spines[["top", "right", "left"]].set_visible(False)
ax.tick_params(axis="y", length=0)
plt.show()

# %%
# **What one sees.** The interval of the own method (76.1 to 89.7) lies above
# those of all controls, so it learns from the instances. It is ten points
# below the best, and the verdict is still *undecided*: on 92 molecules the
# test cannot exclude that the order is luck.
#
# **Limits.** *Undecided* is not *equal*: it asks for more data, not for a
# conclusion. Two repeats of 5 folds give a weak test; ten repeats are better
# where time allows. One data set shows little: compare on several.
#
# **More.** :doc:`add your method </guide/own_methods>`
