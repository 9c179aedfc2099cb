"""
Can the probabilities be trusted?
=================================

**Question.** Of all bags with a probability of 80 %, are 80 % positive?

A probability is of use where it is true: to choose a threshold, to send the
doubtful cases to a person, to weigh costs. A model whose probabilities agree
with the shares that are found is calibrated. It can be accurate and not
calibrated.

Bags are generated here, so that there are enough new ones to count.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gmil

made = gmil.make_bags(
    3100, bag_size=(5, 15), separation=2.5, witness_rate=0.2, random_state=0
)
train, y_train = made.bags[:100], made.y[:100]
test, y_test = made.bags[100:], made.y[100:]

# %%
# Two ways to a probability
# -------------------------
# ``WeightedGMIL`` calibrates on bags that were left out of its fit. The usual
# way is a logistic regression, here on the minimum, mean, maximum and
# deviation of every feature over the bag.

weighted = gmil.WeightedGMIL(random_state=0).fit(train, y_train)
regression = make_pipeline(
    gmil.BagSummaries(), StandardScaler(), LogisticRegression()
)
regression.fit(train, y_train)
models = {
    "WeightedGMIL": weighted.predict_proba(test)[:, 1],
    "logistic regression": regression.predict_proba(test)[:, 1],
}


def reliability(probability, y, n_bins=10):
    """Return mean probability, share of positive bags, size of bins."""
    bins = np.minimum((n_bins * probability).astype(int), n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    filled = count >= 10
    given = np.bincount(bins, probability, n_bins)[filled] / count[filled]
    share = np.bincount(bins, y, n_bins)[filled] / count[filled]
    return given, share, count[filled]


for name, probability in models.items():
    given, share, count = reliability(probability, y_test)
    gap = np.average(np.abs(given - share), weights=count)
    brier = brier_score_loss(y_test, probability)
    accuracy = np.mean((probability > 0.5) == y_test)
    above = y_test[probability > 0.9].mean()
    print(f"{name}: accuracy {accuracy:.2f}, Brier score {brier:.2f}")
    print(
        f"  mean gap {gap:.2f}; of bags above 90 %, {above:.0%} are positive"
    )

# %%
# Reliability diagram
# -------------------
# Bags are sorted into tenths by their probability. The share of positive bags
# in each should be on the diagonal. The lower part counts the bags.

plt.rc("font", size=12)
COLORS = {"WeightedGMIL": "#0072B2", "logistic regression": "#D55E00"}

fig, (upper, lower) = plt.subplots(
    2,
    1,
    figsize=(7, 6),
    sharex=True,
    height_ratios=(3, 1),
    layout="constrained",
)
upper.plot([0, 1], [0, 1], color="grey", linestyle="--", linewidth=1)
upper.text(0.97, 0.05, "dashed: calibrated", color="grey", ha="right")
for name, probability in models.items():
    given, share, count = reliability(probability, y_test)
    error = 1.96 * np.sqrt(share * (1 - share) / count)
    upper.errorbar(
        given, share, error, color=COLORS[name], marker="o", linewidth=2
    )
    lower.hist(
        probability,
        bins=np.linspace(0, 1, 11),
        histtype="step",
        color=COLORS[name],
        linewidth=2,
    )
upper.text(0.03, 0.9, "WeightedGMIL", color=COLORS["WeightedGMIL"])
upper.text(
    0.03, 0.8, "logistic regression", color=COLORS["logistic regression"]
)
upper.set(ylabel="share of positive bags", ylim=(0, 1), xlim=(0, 1))
lower.set(xlabel="probability given", ylabel="bags")
for ax in (upper, lower):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# **What one sees.** ``WeightedGMIL`` follows the diagonal, with a mean gap of
# 0.05. Logistic regression is too sure: of the bags to which it gives more
# than 90 %, only 86 % are positive, and its mean gap is 0.12. Its curve is
# flatter than the diagonal, the mark of a model that has learnt the training
# bags too well.
#
# **Limits.** Calibration holds for bags from the same source. With another
# share of positive bags, or another scanner, it must be measured again. Bars
# show the error of counting the bags of a bin; other training bags would move
# the whole curve.
#
# **More.** :doc:`probabilities on real data </methods/weighted>`
