"""
Bags to vectors
===============

**Question.** How can tools for tables work on bags?

Most of scikit-learn takes one vector per sample. A transformer of gmil makes
one vector of every bag: from then on any classifier, search or plot works.
Which vector is right depends on what makes a bag positive: the whole of it, or
a few instances.
"""

import matplotlib.pyplot as plt
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gmil

bags, y = gmil.load_musk1(return_X_y=True)
print(bags)
transformers = {
    "BagSummaries": gmil.BagSummaries(),
    "CodebookDistances": gmil.CodebookDistances(50, random_state=0),
    "InstanceSimilarities": gmil.InstanceSimilarities(),
    "VLAD": gmil.VLAD(4, random_state=0),
}

# %%
# In a pipeline
# -------------
# Codebooks are learnt from training bags alone, in every fold.

folds = StratifiedKFold(10, shuffle=True, random_state=0)
accuracy, columns = {}, {}
for name, transformer in transformers.items():
    model = make_pipeline(
        transformer, StandardScaler(), LogisticRegression(C=0.1, max_iter=2000)
    )
    accuracy[name] = cross_val_score(model, bags, y, cv=folds).mean()
    columns[name] = transformer.fit_transform(bags).shape[1]
    print(f"{name}: {columns[name]} columns, accuracy {accuracy[name]:.2f}")

# %%
# As a map
# --------
# Two principal components of the vectors of all molecules.

plt.rc("font", size=12)
BLUE, ORANGE = "#0072B2", "#E69F00"

fig, axes = plt.subplots(2, 2, figsize=(7, 6.5), layout="constrained")
for ax, (name, transformer) in zip(axes.flat, transformers.items()):
    points = make_pipeline(
        transformer, StandardScaler(), PCA(2)
    ).fit_transform(bags)
    for label, color, marker in [(0, BLUE, "s"), (1, ORANGE, "o")]:
        ax.scatter(
            *points[y == label].T, c=color, marker=marker, s=22, alpha=0.8
        )
    ax.set_title(
        f"{name}\naccuracy {accuracy[name]:.2f}", loc="left", fontsize=12
    )
    ax.set(xticks=[], yticks=[])
    ax.spines[["top", "right"]].set_visible(False)
axes[1, 0].set(xlabel="first component", ylabel="second component")
axes[0, 0].scatter([], [], c=ORANGE, label="musk")
axes[0, 0].scatter([], [], c=BLUE, marker="s", label="no musk")
fig.legend(loc="outside lower center", ncols=2, frameon=False)
plt.show()

# %%
# **What one sees.** The four maps differ much, the accuracies less: from 0.79
# to 0.89. No map separates musks from others, yet a linear classifier on all
# columns does. Simple summaries of every feature are the best start here.
#
# **Limits.** 92 molecules: differences of three points are within the error. A
# map of two components shows where bags vary most, not what tells the classes
# apart. ``C`` was not tuned.
#
# **More.** :doc:`bags to vectors </methods/bag_vectors>`
