"""Whole cross-validations of GMIL against the same work in plain scikit-learn and NumPy.

``python benchmarks/cross_validation.py [--only paper,standard,sweep] [--rounds 7] [--out results/cross_validation]``

The peer is what a careful user would write: `KMeans(n_init=1)` per fold, histograms by ``bincount``, bag minima by
``reduceat``. Both sides make folds, scale, cluster, vote and compute the accuracy. Threads are fixed: ours gets two,
the peer the better of one and two. Sets that are not here are left out and named.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.special import expit
from sklearn.cluster import KMeans
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler, normalize

import gmil
from gmil.engine import describe_native
from gmil.errors import DatasetError
from gmil.greedy.settings import paper_setting
from side_by_side import Comparison, Way, compare, peers, write

THREADS = 2
SETS = ("musk1", "musk2", "elephant", "fox", "tiger")
AS_THE_PEER = {"epsilon": "auto", "threshold": "mean", "init": "k-means++"}
"""Both ways have epsilon 1/K, the mean distance as threshold and greedy k-means++: the same work."""


def load(name: str) -> tuple[gmil.Bags, np.ndarray]:
    bunch = gmil.datasets.load(name)
    return bunch.bags.with_instances(bunch.bags.instances.astype(np.float32)), bunch.y


def plain_gmil(X, bag_of, offsets, y, train, test, scale, K, p, q, seed):
    """Fit and predict one fold with scikit-learn and NumPy alone; return the labels of the test bags."""
    inside = train[bag_of]
    if scale == "l2":
        X = normalize(X)
    elif scale == "standard":
        scaler = StandardScaler().fit(X[inside])
        X = scaler.transform(X)
    model = KMeans(K, n_init=1, random_state=seed).fit(X[inside])
    positive = y[bag_of[inside]] == 1
    plus = np.bincount(model.labels_[positive], minlength=K)
    minus = np.bincount(model.labels_[~positive], minlength=K)
    n_over_k = (y[train] == 1).sum() / K
    scores = plus / plus.sum() / (minus / minus.sum() + 1 / K) * expit((plus - n_over_k) / n_over_k)
    to_bags = np.minimum.reduceat(model.transform(X), offsets[:-1], axis=0)
    to_plus = to_bags[:, np.argsort(-scores, kind="stable")[:p]].min(axis=1)
    if q:
        return to_plus[test] < to_bags[:, np.argsort(-minus, kind="stable")[:q]].min(axis=1)[test]
    return to_plus[test] < to_plus[train].mean()


def plain_cross_validation(bags, y, scale, K, p, q, seed=0) -> float:
    X, offsets = np.asarray(bags.instances), bags.offsets
    bag_of = np.repeat(np.arange(len(bags)), np.diff(offsets))
    hits = []
    for fold, (_, test) in enumerate(StratifiedKFold(10, shuffle=True, random_state=seed).split(y, y)):
        inside = np.ones(len(y), dtype=bool)
        inside[test] = False
        labels = plain_gmil(X, bag_of, offsets, y, inside, ~inside, scale, K, p, q, fold)
        hits.append((labels == (y[~inside] == 1)).mean())
    return float(np.mean(hits))


def whole(name: str, rounds: int, target: float, aim: float, **changes) -> Comparison:
    bags, y = load(name)
    scale = None if name == "musk1" else paper_setting(name).get("scale")
    setting = {**paper_setting(name), **AS_THE_PEER, "scale": scale, **changes}
    sizes = (setting["n_clusters"], setting["n_positive"], setting["n_negative"])
    model = gmil.GMIL(**setting)
    ours = gmil.cross_validate(model, bags, y, n_jobs=THREADS).accuracy()
    theirs = plain_cross_validation(bags, y, setting["scale"], *sizes)
    return compare(
        f"{name}, scale {setting['scale']}, whole 10-fold",
        Way("gmil", lambda: gmil.cross_validate(model, bags, y, n_jobs=THREADS).accuracy(), THREADS),
        peers("scikit-learn", lambda: plain_cross_validation(bags, y, setting["scale"], *sizes)),
        rounds=rounds,
        target=target,
        aim=aim,
        notes={"accuracy": round(ours, 3), "peer's": round(theirs, 3)},
    )


def present(names: tuple[str, ...]) -> list[str]:
    found = []
    for name in names:
        try:
            gmil.datasets.load(name, download_if_missing=False)
        except DatasetError:
            print(f"{name} is not here and is left out.")
        else:
            found.append(name)
    return found


def paper(rounds: int) -> list[Comparison]:
    targets = {"musk1": (12, 25), "musk2": (5, 8)}
    return [whole(name, rounds, *targets.get(name, (8, 15))) for name in present(SETS)]


def standard(rounds: int) -> list[Comparison]:
    names = present(tuple(name for name in SETS if name != "musk2"))
    return [whole(name, rounds, 4, 6, scale="standard") for name in names]


class FoldByFold(gmil.GMIL):
    """GMIL that is never batched, because it is a subclass."""


def sweep(rounds: int) -> list[Comparison]:
    bags, y = load("musk1")
    grid = {"n_clusters": [10, 15, 20, 30, 40], "n_positive": [1, 2, 3, 4, 5], "n_negative": [0, 1, 2, 3, 4]}
    part = {name: values[:1] for name, values in grid.items()}
    return [
        compare(
            "musk1, 10 repeats x 10 folds x 5 K x 25 settings (the peer runs 1/125 of it)",
            Way("gmil", lambda: gmil.cross_validate(gmil.GMIL(), bags, y, repeats=10, param_grid=grid, n_jobs=2)),
            peers(
                "gmil fold by fold",
                lambda: gmil.cross_validate(FoldByFold(), bags, y, repeats=10, param_grid=part),
            ),
            rounds=min(rounds, 3),
            target=50 / 125,
            aim=100 / 125,
            notes={"times 125": "the ratio is that of 12 500 fits to 100 fits; multiply it by 125"},
        )
    ]


CASES = {"paper": paper, "standard": standard, "sweep": sweep}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CASES), help="which cases, separated by commas")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=None, help="write OUT.json and OUT.md")
    options = parser.parse_args()
    found = [one for name in options.only.split(",") for one in CASES[name](options.rounds)]
    if options.out is not None:
        write(found, options.out, {"native": describe_native(), "threads": THREADS, "rounds": options.rounds})


if __name__ == "__main__":
    main()
