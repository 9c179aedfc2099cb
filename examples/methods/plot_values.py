"""
Values of bags: which instances raise them?
===========================================

**Question.** A bag has a measured value, and a tenth of its instances carry
it. Can the value be predicted, how sure is the prediction, and which
instances made it high?

Every bag here has one or two witnesses around a place of their own. How far
they have moved along a direction is the value of the bag; all other instances
are background.
"""

import matplotlib.pyplot as plt
import numpy as np

import gmil

made = gmil.make_bags(
    400,
    target="regression",
    witness_rate=0.1,
    bag_size=(10, 20),
    n_features=20,
    random_state=5,
)
bags, y = made.bags, made.y
training, test = slice(0, 250), slice(250, 400)

# %%
# Predict
# -------
# A reference that knows minimum, mean, maximum and deviation of every feature,
# and the regressor with models of single instances.

reference = gmil.BagRegressor().fit(bags[training], y[training])
model = gmil.WeightedGMILRegressor(random_state=0)
model.fit(bags[training], y[training])

known = reference.score(bags[test], y[test])
found = model.score(bags[test], y[test])
low, high = model.predict_interval(bags[test], coverage=0.9).T
held = np.mean((low <= y[test]) & (y[test] <= high))
print(f"R2 of statistics: {known:.2f}")
print(f"R2 of WeightedGMILRegressor: {found:.2f}")
print(f"values inside their 90 % interval: {held:.2f}")

# %%
# Which instances
# ---------------
# An effect is the prediction for a bag less that without the instance. Of a
# bag with a high value, the instance with the largest effect should be a
# witness.

effects = bags.split(model.score_instances(bags))
witnesses = bags.split(made.instance_y)
hits = [
    witnesses[i][effects[i].argmax()]
    for i in range(250, 400)
    if y[i] > np.quantile(y, 0.8)
]
print(f"largest effect is of a witness: {np.mean(hits):.2f}")

# %%

plt.rc("font", size=12)
predicted = model.predict(bags[test])

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
left.plot([-3, 3], [-3, 3], color="0.6", linestyle="--")
left.fill_between(
    [-3, 3],
    np.add([-3, 3], (low - predicted)[0]),
    np.add([-3, 3], (high - predicted)[0]),
    color="#0072B2",
    alpha=0.12,
)
left.plot(predicted, y[test], "o", color="#0072B2", alpha=0.6)
left.set(xlabel="predicted", ylabel="true", title="150 new bags")
is_witness = np.concatenate(witnesses[250:]) == 1
shown = np.concatenate(effects[250:])
bins = np.linspace(-1.5, 1.5, 41)
right.hist(shown[~is_witness], bins, color="0.7", label="background")
right.hist(shown[is_witness], bins, color="#D55E00", label="witness")
right.set_yscale("log")
right.set(xlabel="effect on the value", ylabel="instances", title="Effects")
right.legend(frameon=False)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# **What one sees.** Statistics of bags explain 0.54 of the variance, models of
# single instances 0.78. The band on the left is the interval that promises 90
# % of new values, and holds 0.91 of them. On the right witnesses have the
# large effects, in both directions: they raise high values and lower low ones.
# In 0.93 of the bags with a high value the largest effect is of a witness.
#
# **Limits.** The witnesses of this example lie apart from the background, and
# all of them follow one rule. The interval is as wide for every bag: it knows
# how large errors are, not where. An effect tells what the model makes of an
# instance, not what caused the value.
#
# **More.** :doc:`values, grades and times </guide/targets>`
