"""
When should a model say "unsure"?
=================================

**Question.** Which classes can be ruled out for a bag, with a stated error?

In medicine and safety a forced answer is worse than none. A prediction set
holds the classes that cannot be ruled out: at a coverage of 90 %, nine in ten
bags of every class have their class in the set. A set of one class is an
answer; all other bags go to a person.

Bags are generated here, so that there are enough new ones to count.
"""

import matplotlib.pyplot as plt
import numpy as np

import gmil

made = gmil.make_bags(
    1150, bag_size=(5, 15), separation=2.5, witness_rate=0.2, random_state=0
)
train, y_train = made.bags[:150], made.y[:150]
test, y_test = made.bags[150:], made.y[150:]

# %%
# Sets around any classifier
# --------------------------
# ``ConformalClassifier`` leaves out every training bag once. How well left-out
# bags agree with their class tells which classes of a new bag are possible.

model = gmil.ConformalClassifier(
    gmil.WeightedGMIL(), method="cv", random_state=0
)
model.fit(train, y_train)
coverages = np.array([0.6, 0.7, 0.8, 0.9, 0.95])
held, decided, error = [], [], []
for coverage in coverages:
    sets = model.predict_set(test, coverage)
    answers = model.predict(test, abstain=True, coverage=coverage)
    sure = answers != -1
    held.append(sets[np.arange(len(y_test)), y_test].mean())
    decided.append(sure.mean())
    error.append(np.mean(answers[sure] != y_test[sure]))
    print(
        f"coverage {coverage:.2f}: class in {held[-1]:.2f} of the sets, "
        f"{decided[-1]:.2f} decided, {error[-1]:.2f} of these wrong"
    )
forced = np.mean(model.predict(test) != y_test)
print(f"all bags decided: {forced:.2f} wrong")

# %%
# What is asked for, and what comes out
# -------------------------------------

plt.rc("font", size=12)
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
left.plot([0.55, 1], [0.55, 1], ":", color="black", linewidth=1)
left.plot(coverages, held, "o-", color="#0072B2", markersize=9)
left.set(xlabel="coverage asked for", ylabel="sets that hold the class")
right.plot(decided, error, "o-", color="#D55E00", markersize=9)
right.axhline(forced, color="black", linestyle=":", linewidth=1)
right.annotate(
    "no abstention",
    (min(decided), forced),
    xytext=(0, 6),
    textcoords="offset points",
)
right.set(xlabel="share of bags decided", ylabel="wrong among decided")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# **What one sees.** The class is in the set about as often as was asked for.
# A forced answer is wrong for 16 % of the bags. At a coverage of 0.95, the
# model decides 42 % of the bags, and 4 % of these answers are wrong; the
# others go to a person. Below a coverage of about 0.8 sets become empty: the
# model knows more than it is asked to tell.
#
# **Limits.** The coverage holds for new bags from where the training bags came
# from, on average over training sets, and for no single bag. Nothing of this
# holds for instances: no label of a bag can calibrate them. Fewer bags of a
# class for calibration make the coverage of one model vary more.
#
# **More.** :doc:`what is guaranteed, and what is not </guide/uncertainty>`
